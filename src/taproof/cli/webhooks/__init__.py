"""`taproof webhooks`: develop and test webhook handlers.

`listen.py` receives events with `receiver.py`, prints them and can forward them. `trigger.py` sends test events.
`secrets.py` finds the project's webhook secrets, and `posting.py` posts to an application.
"""
