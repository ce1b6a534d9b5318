"""Each SQL statement once, by concept, in the dialect that SQLite and PostgreSQL share.

Statements use `$1` placeholders, which must first appear in ascending order because SQLite binds them by name in order
of appearance. A driver overrides only the statements that must differ.

The methods that are the same on both databases are defined next to their statements, in one class per part of a store.
They use the interface in `database.py`. A driver that implements a method differently has a subclass for that part.
"""
