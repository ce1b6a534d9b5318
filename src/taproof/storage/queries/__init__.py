"""Each SQL statement once, by concept, in the dialect that SQLite and PostgreSQL share.

Statements use `$1` placeholders, which must first appear in ascending order because SQLite binds them by name in order
of appearance. A driver overrides only what must differ.
"""
