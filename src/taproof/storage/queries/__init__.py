"""Each SQL statement once, by concept, in the dialect that SQLite and PostgreSQL share.

Statements use `$1` placeholders, which must first appear in ascending order because SQLite binds them by name in order
of appearance. A driver overrides only the statements that must differ.

The methods are defined next to their statements, in one class for each part of a store. They use the interface in
`database.py`, so they need no driver. A driver that implements a few methods differently has a subclass for that part.
"""
