"""The PostgreSQL driver, for many nodes. `store.py` composes its parts.

`pool.py` has the connections, `batcher.py` makes one statement of concurrent calls, `partitions.py` manages one
partition for each day, and `notify.py` tells other nodes about decisions. Each part begins with the statements that
PostgreSQL needs otherwise than `queries/` has them. Those of the life of a session take arrays, one element for each
session. The first array names their days, each once, so that it is planned for the partitions of these only.

Rows are locked in one order everywhere, so that no two nodes wait for each other in a circle: sessions by day and hash,
people, daily_counts by project and day, daily_users by developer and day, projects by id, webhook_events by id,
webhook_endpoints by project; and of the console the table developers, one developer, invitations, which nobody locks
without the table but whoever revokes a single one, console_sessions by id, access_tokens. A credential that acts is
locked last, by the statement that adds the audit entry; a sign-in, after its developer. Who changes what a plan allows
holds its developer before any project; removed_usage is written under its developer's rows of daily_users. Nobody waits
for the audit log: entries are added, and housekeeping alone erases them. What housekeeping erases and what a worker
claims is locked with SKIP LOCKED: neither ever waits. Whoever goes on with an ending holds its row of ended_webhooks
before any event, and deletes it last: this lock order cannot deadlock.

Sessions are found by `CROSS JOIN LATERAL (… LIMIT 1)`, one walk down the primary key for each, and a status is compared
as `status || ''`: the planner must not take another way. A new day's partition has no statistics for its first minutes,
old ones say that few are pending, and either makes walking over all sessions of the day look cheap. So it is with
events: the statistics of a quiet hour say that none is due.
"""
