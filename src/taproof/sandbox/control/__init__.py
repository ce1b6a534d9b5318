"""The sandbox's control API: `api.py` and `mini_app.py` act as the users, and `bots.py` acts as @BotFather."""
