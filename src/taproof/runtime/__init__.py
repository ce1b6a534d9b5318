"""A running process. `app.py` is the composition root: it builds every part and passes it to its users.

`supervisor.py` runs several processes, `services.py` builds the use cases, `store.py` opens the database,
`listener.py` serves HTTP, and `bot_runtime.py` runs the messenger's bot. `key_file.py` and `key_rotation.py` manage
the master key. No package but `taproof.cli` imports this one.
"""
