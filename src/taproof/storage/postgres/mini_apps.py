"""Sessions of Mini Apps on PostgreSQL."""

from typing import Final

import asyncpg

from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import ConsumedSession, NewSession
from taproof.storage.postgres.database import PostgresDatabase
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.statements import CONFIRM_SESSIONS
from taproof.storage.queries.mini_apps import admitted, admitted_values, opened_values
from taproof.storage.queries.sessions import write_time
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import columns, consumed_from, event_values, identity_values

CREATE_OPENED_SESSION: Final = f"""
INSERT INTO sessions (day, token_hash, id, status, created_at, expires_at, opened_at, opener_id, bot_id, project_id)
SELECT $1, $2, $3, 'pending', $4, $5, $6, $7, p.bot_id, p.id {admitted(8)} RETURNING id"""
# Counts all changes here, because `confirm_sessions` locks users before it locks this counter.
USE_SESSION: Final = """
WITH moved AS (
  UPDATE sessions s SET status = 'used', used_at = $3, secrets_version = p.secrets_version FROM projects p
  WHERE s.day = $1 AND s.token_hash = $2 AND s.status || '' = 'confirmed' AND p.id = s.project_id
  RETURNING s.day, s.project_id, s.messenger_id, s.messenger_name, s.messenger_username, s.confirmed_at,
    p.encrypted_webhook_secret, p.encrypted_next_webhook_secret, p.next_webhook_secret_at, s.used_at, s.id,
    s.encrypted_phone
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, requested, opened, used)
  SELECT m.project_id, m.day, 1, 1, 1 FROM moved m
  ON CONFLICT (project_id, day) DO UPDATE SET requested = c.requested + excluded.requested,
    opened = c.opened + excluded.opened, used = c.used + excluded.used
)
SELECT * FROM moved"""


class _ProjectDeleted(Exception):
    """Rolls a sign-in back, because its project was deleted meanwhile."""


class PostgresMiniApps:
    """See `storage.protocol.MiniAppStorage`. The session becomes visible in its last state, with the commit.

    Args:
        database: runs transactions.
        partitions: the partitions of sessions, one per day.
        clock: see `SessionQueries`.
    """

    def __init__(self, database: PostgresDatabase, partitions: Partitions, clock: Clock | None) -> None:
        self._database = database
        self._partitions = partitions
        self._clock = clock

    async def create_used_session(
        self, session: NewSession, identity: MessengerIdentity, now: int, event: Event, *, public: bool
    ) -> ConsumedSession | None:
        key = session.key
        deadline = write_time(self._clock, now)
        if session.expires_at <= deadline:
            return None
        created = (*opened_values(session, identity, now), *admitted_values(session, public=public))
        confirmed = columns([(*key, now, deadline, *identity_values(identity), *event_values(event), None, None, None)])

        async def sign_in(transaction: Transaction) -> ConsumedSession | None:
            if not await transaction.add(CREATE_OPENED_SESSION, *created):
                return None
            await transaction.add(CONFIRM_SESSIONS, [key.day], *confirmed)
            for _, *consumed in await transaction.add(USE_SESSION, *key, now):
                return consumed_from(consumed)
            raise _ProjectDeleted

        try:
            return await self._database.in_transaction(sign_in)
        except asyncpg.CheckViolationError:
            # This day has no partition. The transaction has changed nothing.
            await self._partitions.prepare({key.day})
            return await self._database.in_transaction(sign_in)
        except _ProjectDeleted:
            return None
