"""The simulated phone: `page.py` serves a page that shows a user's chats."""
