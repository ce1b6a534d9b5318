"""Storage: `protocol.py` says what a store and its parts offer, `sqlite/` and `postgres/` implement it.

`queries/` holds each statement once, in the dialect that both databases share, with the methods that are the same on
both. A concept has the same file name in all three. `rows.py` turns rows into the model of `core/`. `migrate.py`
applies the migrations in `migrations/`. `export/` copies a store to a file and back. `tests/storage/conformance/` holds
both drivers to the protocol. Only `taproof.runtime` imports a driver.
"""
