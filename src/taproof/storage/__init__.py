"""Where everything is kept, behind one Protocol (`protocol.py`).

`sql.py` holds every statement once, in the dialect that the databases share; `sqlite.py` is the driver for one
machine, with `group_commit.py` committing concurrent writes together; `migrations/` are the numbered schemas. Every
method is held to the conformance suite in `tests/storage/`. `service/` calls it; only `app.py` picks the driver.
"""
