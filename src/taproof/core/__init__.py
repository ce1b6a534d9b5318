"""The rules of Taproof: no I/O, no await, no clock and no randomness of its own.

`model.py` has the model, `session_state.py` the life cycle of a session, and `rights.py` the derivation of rights.
`identifiers.py` defines the form of each identifier and secret. `encryption.py` has encryption at rest, and `errors.py`
the errors. Time is a parameter `now`, in milliseconds since the epoch. Randomness is the parameter `entropy`.
"""
