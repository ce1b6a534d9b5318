"""The sandbox's control API. `bots.py` acts as @BotFather, and the other files act as the users."""
