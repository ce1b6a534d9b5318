"""The checks of `taproof doctor`: everything that can prevent a sign-in, with advice.

`examine.py` runs all checks: `sqlite.py` or `postgres.py`, each with `master_key.py`, then `bot_api.py`, `address.py`
and `geoip.py`. Each returns the findings of `finding.py`, and `cli/main.py` prints them. The checks change nothing:
they do not create or migrate a database, or set a webhook. Every wait has a timeout.
"""
