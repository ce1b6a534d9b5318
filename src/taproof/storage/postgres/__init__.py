"""The PostgreSQL driver, for many nodes. `store.py` composes its parts.

`database.py` has the connection pool, `connection.py` migrates the schema, and `../batcher.py` combines concurrent
calls into one statement. `partitions.py` manages one partition for each day, and `notify.py` announces decisions to
other nodes. Each part begins with the statements that must differ from `queries/` on PostgreSQL. The statements of the
life of a session take arrays, one element for each session. Their first array holds the distinct days of the sessions,
so that the planner considers only the partitions of these days.

All code locks rows in one order, so that no nodes deadlock. First the tables of sign-ins, then those of the console:

- sessions by day and hash; people; daily_counts by project and day; daily_users by developer and day; projects by id;
  webhook_events by id; webhook_endpoints by project.
- the table developers; one developer; invitations; console_sessions by id; access_tokens.

These rules complete the order:

- Only a call that revokes a single invitation locks invitations without the table developers.
- The acting credential is locked last, by the statement that adds the audit entry. A sign-in is locked after its
  developer.
- A change of what a plan allows locks the developer before any project. removed_usage is written while its developer's
  rows of daily_users are locked.
- Nothing waits for the audit log: entries are added, and only housekeeping erases them.
- Housekeeping and workers lock what they erase or claim with SKIP LOCKED, so they never wait.
- Continuing an ending locks its row of ended_webhooks before any event, and deletes the row last.

The planner must find sessions only by their primary key. So they are found by `CROSS JOIN LATERAL (… LIMIT 1)`, one
walk down the key for each. A status is compared as `status || ''`. A new day's partition has no statistics for its
first minutes, and old statistics say that few sessions are pending. Either makes a scan of all sessions of the day look
cheap. The same applies to events: the statistics of a quiet hour say that none is due.
"""
