"""Where everything is kept, behind one Protocol: `protocol.py`, with a `*_protocol.py` for each part.

`sql.py` and the `*_sql.py` beside it hold every statement once, in the dialect that the databases share, and
`postgres_sql.py` and its kin what PostgreSQL needs otherwise; `rows.py` turns rows into what `core/` has; `migrate.py`
brings a database to the newest of the numbered schemas in `migrations/`.

`sqlite.py` is the driver for one machine: `sqlite_file.py` opens the file, `group_commit.py` commits concurrent writes
together, `tally.py` counts for all of them, `decisions.py` tells other processes what was decided,
`sqlite_accounts.py` has the developers and what they sign in with, `sqlite_projects.py` the projects,
`sqlite_deliveries.py` the webhook events; all of it stands on `sqlite_access.py`.

`postgres.py` is the driver for many nodes: `postgres_sessions.py` has the life of a session, where `coalesce.py` makes
one statement of the calls that come together; `postgres_pool.py` has the connections, `postgres_partitions.py` the
days, `postgres_accounts.py` the developers, `postgres_projects.py` the projects, `postgres_deliveries.py` the webhook
events, `postgres_listen.py` tells other nodes what was decided.

`transfer.py` carries everything from one to the other. Every method is held to the conformance suite in
`tests/storage/`.
`service/` calls the Protocol; only `store.py`, a part of the composition root, picks the driver.
"""
