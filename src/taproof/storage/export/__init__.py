"""Export and import: `format.py` defines the file, `sqlite.py` and `postgres.py` read and write a database."""
