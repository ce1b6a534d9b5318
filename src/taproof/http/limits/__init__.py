"""Rate limits: `rates.py` limits calls by project and by client address.

`developers.py` limits each developer, `pages.py` the public pages, and `refused_credentials.py` an address whose
credentials are refused.
"""
