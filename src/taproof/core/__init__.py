"""The rules of Taproof, pure: no I/O, no await, no clock and no randomness of its own.

Owns the model (`model.py`), the session life cycle (`session_state.py`), the proof (`proof.py`), webhook
signatures (`signature.py`), the form of every identifier and secret (`identifiers.py`), encryption at rest
(`sealing.py`) and the errors (`errors.py`). Time enters as `now`, milliseconds since the epoch, from
`clock.py`; randomness as `entropy`, from `entropy.py`. Everything else imports this; this imports nothing of
the project.
"""
