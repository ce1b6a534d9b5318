"""The sandbox's control API: `api.py` acts as the users, and `bots.py` acts as @BotFather."""
