"""The PostgreSQL driver, for many nodes. `store.py` composes its parts.

`database.py` has the connection pool, `connection.py` opens connections and migrates the schema, and `../batcher.py`
combines concurrent calls into one statement. `partitions.py` manages one partition per day, and `notify.py` announces
decisions to other nodes. Each part begins with the statements that must differ from `queries/` on PostgreSQL. The
statements that create and change sessions take arrays with one element per session. Their first array contains the
sessions' distinct days, so that the planner considers only the partitions of these days.

All code locks rows in one order, so that nodes cannot deadlock: first the tables of sign-ins, then those of the
console.

- sessions by day and hash; prompts of these sessions; the user of a project; oidc_authorizations; people; daily_counts
  by project and day; daily_users by developer and day; projects by id; oidc_clients by id; webhook_events by id;
  webhook_endpoints by project; blocks; oidc_grants by id; oidc_logouts.
- the table developers; one developer; invitations; console_sessions by id; access_tokens.

These rules complete the order:

- The user of a project is an advisory lock, like that of people: it is taken to create grants, and to end all of them.
- Whoever changes oidc_group_members has locked their client. A change of groups then locks the users who lose their
  place. Nothing that holds the user of a project waits for a client or its groups.
- Pushed authorization requests and signing keys are changed by single statements, without any other lock. Replacing all
  signing keys locks them by algorithm and generation.
- Only a call that revokes a single invitation locks invitations without the table developers.
- The acting credential is locked last, by the statement that adds the audit entry. A sign-in is locked after its
  developer.
- A call for a project locks the caller's row in project_members before any table above, but after developers. A change
  of members locks the developers that it depends on, then all members of the project, and member_invitations last.
- A change that depends on the plan locks the developer before any project. removed_usage is written while the
  developer's rows in daily_users are locked.
- No transaction waits for the audit log: entries are only added, and only housekeeping erases them.
- Housekeeping and workers lock what they erase or claim with SKIP LOCKED, so they never wait.
- Continuing to end a webhook's deliveries locks the row in ended_webhooks before any event, and deletes it last.

The planner must find sessions only by their primary key. So statements use `CROSS JOIN LATERAL (… LIMIT 1)`, which
searches the key once per session, and compare `status || ''` and `COALESCE(opener_id, '')`. A new day's partition has
no statistics in its first minutes, and old statistics suggest that few sessions are pending. In both cases, a scan of
all sessions of the day, or of the index of openers, looks cheap. The same applies to events: statistics from a quiet
hour suggest that no event is due.
"""
