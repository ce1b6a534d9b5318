"""Rate limits: `rates.py` limits calls by project and by client address.

`developers.py` limits each developer, and builds the headers that tell callers how many calls are left. `pages.py`
limits the public pages. `refused_credentials.py` logs refused credentials at a limited rate.
"""
