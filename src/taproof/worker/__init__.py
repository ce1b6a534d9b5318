"""The loops that run beside the API: `webhooks.py` posts due events, `housekeeping.py` sweeps.

Each loop takes a use case of `service/` in its constructor, runs until it is cancelled, and survives a store that is
away for a while. `app.py` starts and stops them.
"""
