"""The use cases, the same for the HTTP API, the bot, the console and the command line.

`sessions/` is the life of a session, `console/` signing in to the console. `projects.py` and `developers.py` manage
accounts, `webhooks.py` decides what is sent, and `housekeeping.py` deletes what has expired. Each use case receives
its storage, clock and entropy, and raises the errors of `core/errors.py`.
"""
