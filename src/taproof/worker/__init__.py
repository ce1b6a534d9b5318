"""The loops that run beside the API.

`webhooks.py` sends due events: `endpoints.py` says which of those that it has claimed may be posted next, and
`webhook_client.py` posts, over connections that `bounded_connection.py` bounds. `housekeeping.py` sweeps, and `lead.py`
lets one process at a time do what must not be done twice at once. The loops take a use case of `service/`, run until
their stopping event is set, and go through `repeat.py`, which lets them survive a store that is away for a while.
`app.py` starts and stops them.
"""
