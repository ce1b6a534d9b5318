"""Sessions of Mini Apps on SQLite."""

from typing import Final

import apsw

from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import ConsumedSession, NewSession
from taproof.storage.queries.counts import COUNT
from taproof.storage.queries.deliveries import RECORD_EVENT
from taproof.storage.queries.mini_apps import ADMISSION_REFUSAL, INSERT_ONCE, MINI_APP_REFUSALS, opened_values
from taproof.storage.queries.sessions import write_time
from taproof.storage.rows import consumed_from, event_values
from taproof.storage.sqlite.counts import COLUMNS, Counters, count_user
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows

_OF_PROJECT: Final = "FROM projects p WHERE p.id = sessions.project_id"
CREATE_USED_SESSION: Final = f"""
INSERT INTO sessions (day, token_hash, id, status, created_at, expires_at, opened_at, opener_id, confirmed_at,
  messenger_id, messenger_name, messenger_username, used_at, secrets_version, bot_id, project_id)
SELECT $1, $2, $3, 'used', $4, $5, $6, $7, $6, $7, $8, $9, $6, p.secrets_version, p.bot_id, p.id
FROM projects p WHERE p.id = $10 AND {ADMISSION_REFUSAL.format(public="$11", bot="$12", user="$7")} IS NULL
{INSERT_ONCE}
RETURNING project_id, messenger_id, messenger_name, messenger_username, confirmed_at,
  (SELECT p.encrypted_webhook_secret {_OF_PROJECT}), (SELECT p.encrypted_next_webhook_secret {_OF_PROJECT}),
  (SELECT p.next_webhook_secret_at {_OF_PROJECT}), used_at, id, encrypted_phone,
  (SELECT p.creator_id {_OF_PROJECT})"""
EXPLAIN_REFUSAL: Final = f"""
SELECT {ADMISSION_REFUSAL.format(public="$1", bot="$2", user="$3")} FROM projects p WHERE p.id = $4"""


class SqliteMiniApps:
    """See `storage.queries.mini_apps.MiniAppStorage`, and `SqliteSessions` for the arguments."""

    def __init__(self, database: SqliteDatabase, counters: Counters, clock: Clock | None) -> None:
        self._database = database
        self._counters = counters
        self._clock = clock

    async def create_used_session(
        self, session: NewSession, identity: MessengerIdentity, now: int, event: Event, *, public: bool
    ) -> ConsumedSession:
        key, project_id = session.key, session.project_id
        named = (identity.messenger_name, identity.messenger_username)
        values = (*opened_values(session, identity, now), *named, project_id, public, session.bot_id)
        asked = (public, session.bot_id, identity.messenger_id, project_id)

        def write(connection: apsw.Connection) -> ConsumedSession | str:
            # The clock is read again, because this write may have waited for another process.
            if session.expires_at <= write_time(self._clock, now):
                return "expired"
            for *consumed, creator_id in rows(connection, CREATE_USED_SESSION, values):
                for counted in ("requested", "opened", "confirmed", "used"):
                    self._counters.add(counted, project_id, key.day)
                # `count_user` changes the counters' row, which otherwise exists since the session was created.
                connection.execute(COUNT, (project_id, key.day, *[0] * len(COLUMNS)))
                count_user(connection, creator_id, project_id, identity, key.day, now)
                connection.execute(RECORD_EVENT, (session.id, *event_values(event)))
                return consumed_from(consumed)
            found = rows(connection, EXPLAIN_REFUSAL, asked)
            return (found[0][0] or "used") if found else "no_project"

        created = await self._database.writer.run(write)
        if isinstance(created, str):
            raise MINI_APP_REFUSALS[created]
        return created
