"""The use cases: what can be done, whoever asks (HTTP, the bot, a worker, the command line).

`signin.py` is the life of a session, `projects.py` and `developers.py` the management, `analytics.py` the numbers,
`webhooks.py` what is sent, `housekeeping.py` what is swept. Each takes a Storage, a clock and entropy; each
raises the errors of `core/errors.py`.
"""
