"""The rules of Taproof, without I/O, await, a clock or randomness.

`projects.py`, `sessions.py`, `accounts.py` and others define the values on which the rules work, one file per concept.
`session_state.py` defines a session's life cycle, and `rights.py` the derivation of rights. `identifiers.py` defines
the format of each identifier and secret, `encryption.py` encryption at rest, and `errors.py` the errors. The parameter
`now` is the time in milliseconds since the epoch; `entropy` is the source of randomness.
"""
