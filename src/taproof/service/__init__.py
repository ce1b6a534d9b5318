"""The use cases: what can be done, whoever asks (HTTP, the bot, a worker, the command line).

`signin.py` is the life of a session, `projects.py` and `developers.py` the management, `sessions.py`, `analytics.py`
and `deliveries.py` what a developer sees, page by page (`paging.py`), `webhooks.py` what is sent, `housekeeping.py`
what is swept. Each takes a Storage, a clock and entropy; each raises the errors of `core/errors.py`.
"""
