"""The use cases, shared by the HTTP API, the bot, the console and the command line.

`sessions/` creates, decides, lists and waits for sessions. `console/` signs developers in to the console.
`projects.py` and `developers.py` manage accounts, `webhooks.py` signs webhook events and schedules their retries, and
`housekeeping.py` deletes expired data. Each use case receives its storage, clock and entropy, and raises the errors
of `core/errors.py`.
"""
