"""Rate limits: `rates.py` limits calls by project and by client address.

`developers.py` limits each developer and `pages.py` the public pages. `header_fields.py` tells callers what is left.
`refused_credentials.py` logs refused credentials, up to a rate.
"""
