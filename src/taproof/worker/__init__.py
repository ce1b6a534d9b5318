"""The loops that run beside the API: `webhooks.py` posts due events, `housekeeping.py` sweeps.

Each loop takes a use case of `service/`, runs until its stopping event is set, and goes through `repeat.py`, which lets
it survive a store that is away for a while. `app.py` starts and stops them.
"""
