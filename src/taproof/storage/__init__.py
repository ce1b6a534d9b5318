"""Where everything is kept, behind one Protocol (`protocol.py`).

`sql.py` holds every statement once, in the dialect that the databases share; `sqlite.py` is the driver for one
machine: `sqlite_file.py` opens the file, `migrate.py` brings it to the newest of the numbered schemas in `migrations/`,
`group_commit.py` commits concurrent writes together. Every method is held to the conformance suite in `tests/storage/`.
`service/` calls the Protocol; only `store.py`, a part of the composition root, picks the driver.
"""
