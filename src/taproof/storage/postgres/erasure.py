"""Erases or exports one user's data on PostgreSQL."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import asyncpg

from taproof.storage.queries import erasure as queries
from taproof.storage.queries.erasure import Row, Rows
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import columns

_HOLD_SESSIONS: Final = """
SELECT token_hash, project_id, id, confirmed_at, cancelled_at, expires_at, reported_at FROM sessions
WHERE day = $1 AND token_hash = ANY ($2::BYTEA[]) AND opener_id = $3
ORDER BY token_hash FOR UPDATE"""
# This runs after the statement that waits for the session locks, so that it sees the sessions' events.
_FIND_EVENTS: Final = """
SELECT e.id FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[])
  AS a (project_id, session_id, confirmed_at, cancelled_at, expires_at, reported_at)
CROSS JOIN unnest(ARRAY['due', 'delivered', 'failed', 'ended']) AS s (state)
CROSS JOIN unnest(ARRAY['auth.confirmed', 'auth.cancelled', 'auth.expired', 'auth.reported']) AS t (type)
CROSS JOIN LATERAL (
  SELECT x.id FROM webhook_events x
  WHERE x.project_id = a.project_id AND x.state = s.state AND x.type COLLATE "C" = t.type
    AND x.created_at IN (a.confirmed_at, a.cancelled_at, a.expires_at, a.reported_at) AND x.session_id = a.session_id
  ORDER BY x.id -- So that it stays a query of its own: one walk for each state and type.
) AS e"""
_ERASE_EVENTS: Final = """
WITH held AS MATERIALIZED (SELECT id FROM webhook_events WHERE id = ANY ($1::TEXT[]) ORDER BY id FOR UPDATE)
DELETE FROM webhook_events e USING held h WHERE e.id = h.id"""
_ERASE_PHONE_REQUESTS: Final = "DELETE FROM phone_requests WHERE day = $1 AND token_hash = ANY ($2::BYTEA[])"
_ERASE_PROMPTS: Final = "DELETE FROM prompts WHERE day = $1 AND token_hash = ANY ($2::BYTEA[])"
_ERASE_SESSIONS: Final = "DELETE FROM sessions WHERE day = $1 AND token_hash = ANY ($2::BYTEA[])"

# The first condition on the day lets the planner leave out the days before it.
EXPORT_SESSIONS: Final = f"""
SELECT {queries.columns_of("sessions")} FROM sessions
WHERE opener_id = $1 AND project_id = $2 AND day >= $3 AND (day, token_hash) > ($3, $4)
ORDER BY day, token_hash LIMIT $5"""
_EXPORT_EVENTS: Final = f"SELECT {queries.columns_of('webhook_events')} FROM webhook_events WHERE id = ANY ($1::TEXT[])"
_EXPORT_ATTEMPTS: Final = f"""
SELECT {queries.columns_of("webhook_attempts")} FROM webhook_attempts WHERE event_id = ANY ($1::TEXT[])"""
_BY_KEY: Final = "WHERE day = $1 AND token_hash = ANY ($2::BYTEA[])"
_EXPORT_PHONE_REQUESTS: Final = f"SELECT {queries.columns_of('phone_requests')} FROM phone_requests {_BY_KEY}"
_EXPORT_PROMPTS: Final = f"SELECT {queries.columns_of('prompts')} FROM prompts {_BY_KEY}"


class PostgresErasure(queries.ErasureQueries):
    """See `storage.queries.erasure.ErasureQueries`."""

    _export_page = EXPORT_SESSIONS

    async def _export_of_sessions(self, transaction: Transaction, sessions: Sequence[Row], rows: Rows) -> None:
        if not sessions:
            return
        positions = columns(queries.event_position(session) for session in sessions)
        event_ids = [row[0] for row in await transaction.fetch(_FIND_EVENTS, *positions)]
        queries.add_rows(rows, "webhook_events", await transaction.fetch(_EXPORT_EVENTS, event_ids))
        queries.add_rows(rows, "webhook_attempts", await transaction.fetch(_EXPORT_ATTEMPTS, event_ids))
        for day, of_day in groupby(sessions, key=itemgetter("day")):
            hashes = [session["token_hash"] for session in of_day]
            queries.add_rows(rows, "phone_requests", await transaction.fetch(_EXPORT_PHONE_REQUESTS, day, hashes))
            queries.add_rows(rows, "prompts", await transaction.fetch(_EXPORT_PROMPTS, day, hashes))

    async def _erase_sessions(
        self, transaction: Transaction, keys: Iterable[tuple[int, bytes]], messenger_id: str
    ) -> int:
        # Lock the sessions first. A session that is being confirmed is then either found together with its event, or
        # its confirmation fails.
        held: list[tuple[int, list[asyncpg.Record]]] = []
        for day, of_day in groupby(sorted(keys), key=itemgetter(0)):
            hashes = [token_hash for _, token_hash in of_day]
            held.append((day, await transaction.fetch(_HOLD_SESSIONS, day, hashes, messenger_id)))
        sessions = [row for _, found in held for row in found]
        if not sessions:
            return 0
        events = await transaction.fetch(_FIND_EVENTS, *columns(row[1:] for row in sessions))
        await transaction.fetch(_ERASE_EVENTS, [row[0] for row in events])
        for day, found in held:
            hashes = [row[0] for row in found]
            await transaction.fetch(_ERASE_PHONE_REQUESTS, day, hashes)
            await transaction.fetch(_ERASE_PROMPTS, day, hashes)
            await transaction.fetch(_ERASE_SESSIONS, day, hashes)
        return len(sessions)
