"""What `taproof doctor` looks at: everything that can keep a sign-in from working, each with what to do about it.

Flow: `examine.py` goes through `store.py`, `messenger.py` and `address.py`, whose findings are `finding.py`'s. It
changes nothing: it makes no database, migrates none and sets no webhook. Every wait has a limit, so it always ends.
`cli.py` prints what was found.
"""
