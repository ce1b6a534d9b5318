"""Storage: `protocol/` defines the interface of a store and its parts; `sqlite/` and `postgres/` implement it.

`queries/` contains each statement once, in the dialect that both databases share, and the methods that are the same on
both. A concept has the same file name in all four. `rows.py` converts rows to the model of `core/`. `migrate.py`
applies the migrations in `migrations/`. `export/` copies a store to a file and back. `tests/storage/conformance/`
checks that both drivers follow the protocol. Only `taproof.runtime` imports a driver.
"""
