"""The sandbox's control API: `api.py` plays the users, `bots.py` plays @BotFather."""
