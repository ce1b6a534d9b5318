"""Rate limits: `rates.py` limits calls by project and by client address.

`developers.py` limits each developer, and `pages.py` limits the public pages. `header_fields.py` builds the headers
that tell callers how many calls are left. `refused_credentials.py` logs refused credentials at a limited rate.
"""
