"""Sessions of Mini Apps on PostgreSQL."""

from typing import Final

import asyncpg

from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.errors import ProjectNotFound
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import ConsumedSession, NewSession
from taproof.storage.postgres.database import PostgresDatabase
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.statements import CONFIRM_SESSIONS
from taproof.storage.queries.mini_apps import ADMISSION_REFUSAL, INSERT_ONCE, MINI_APP_REFUSALS, opened_values
from taproof.storage.queries.sessions import CONSUMED_COLUMNS, write_time
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import columns, consumed_from, event_values, identity_values

# Returns the reason for creating no session. Without a reason, the session exists already.
CREATE_OPENED_SESSION: Final = f"""
WITH asked AS MATERIALIZED (
  SELECT p.id, p.bot_id, {ADMISSION_REFUSAL.format(public="$9", bot="$10", user="$7")} AS refusal
  FROM (SELECT) AS one LEFT JOIN projects p ON p.id = $8
), moved AS (
  INSERT INTO sessions (day, token_hash, id, status, created_at, expires_at, opened_at, opener_id, bot_id, project_id)
  SELECT $1, $2, $3, 'pending', $4, $5, $6, $7, a.bot_id, a.id FROM asked a WHERE a.refusal IS NULL
  {INSERT_ONCE} RETURNING id
)
SELECT CASE WHEN NOT EXISTS (SELECT FROM moved) THEN COALESCE(refusal, 'used') END FROM asked"""
# Count all changes here, because `confirm_sessions` locks users before it locks this counter.
USE_SESSION: Final = f"""
WITH moved AS (
  UPDATE sessions s SET status = 'used', used_at = $3, secrets_version = p.secrets_version FROM projects p
  WHERE s.day = $1 AND s.token_hash = $2 AND s.status || '' = 'confirmed' AND p.id = s.project_id
  RETURNING s.day, {CONSUMED_COLUMNS}
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, requested, opened, used)
  SELECT m.project_id, m.day, 1, 1, 1 FROM moved m
  ON CONFLICT (project_id, day) DO UPDATE SET requested = c.requested + excluded.requested,
    opened = c.opened + excluded.opened, used = c.used + excluded.used
)
SELECT * FROM moved"""


class PostgresMiniApps:
    """See `storage.queries.mini_apps.MiniAppStorage`. The commit makes the session visible in its last state."""

    def __init__(self, database: PostgresDatabase, partitions: Partitions, clock: Clock | None) -> None:
        self._database = database
        self._partitions = partitions
        self._clock = clock

    async def create_used_session(
        self, session: NewSession, identity: MessengerIdentity, now: int, event: Event, *, public: bool
    ) -> ConsumedSession:
        key = session.key
        deadline = write_time(self._clock, now)
        if session.expires_at <= deadline:
            raise MINI_APP_REFUSALS["expired"]
        created = (*opened_values(session, identity, now), session.project_id, public, session.bot_id)
        confirmed = columns([(*key, now, deadline, *identity_values(identity), *event_values(event), None, None, None)])

        async def sign_in(transaction: Transaction) -> ConsumedSession:
            ((refusal,),) = await transaction.add(CREATE_OPENED_SESSION, *created)
            if refusal is not None:
                raise MINI_APP_REFUSALS[refusal]
            await transaction.add(CONFIRM_SESSIONS, [key.day], *confirmed)
            for _, *consumed in await transaction.add(USE_SESSION, *key, now):
                return consumed_from(consumed)
            raise ProjectNotFound  # It was deleted meanwhile, so everything is rolled back.

        try:
            return await self._database.in_transaction(sign_in)
        except asyncpg.CheckViolationError:
            # This day has no partition. The transaction has changed nothing.
            await self._partitions.prepare({key.day})
            return await self._database.in_transaction(sign_in)
