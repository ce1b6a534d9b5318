"""What `taproof doctor` looks at: everything that can keep a sign-in from working, each with what to do about it.

Flow: `examine.py` goes through `sqlite.py` or `postgres.py`, each with `master_key.py`, then `messenger.py` and
`address.py`; what they find is `finding.py`'s. It changes nothing: it makes no database, migrates none and sets no
webhook. Every wait has a limit, so it always ends. `cli/main.py` prints what was found.
"""
