"""Rate limits: `rates.py` decides by project and address, `addresses.py` finds the client's address.

`developers.py` limits each developer, `pages.py` the public pages, and `refused_credentials.py` an address whose
credentials are refused.
"""
