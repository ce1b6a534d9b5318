"""The sandbox's control API: `api.py` and `mini_apps.py` act as the users, and `bots.py` acts as @BotFather."""
