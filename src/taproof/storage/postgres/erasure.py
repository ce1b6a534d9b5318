"""The erasure of one user on PostgreSQL."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.pool import PostgresPool
from taproof.storage.postgres.transaction import add_entry
from taproof.storage.protocol import ErasedPage, OpenedDay, OpenedPlace
from taproof.storage.queries import erasure as queries
from taproof.storage.rows import columns

_LIST_OPENED: Final = """
SELECT day, token_hash, created_at, id, opener_id FROM sessions
WHERE day = $1 AND project_id = $2 AND status = $3 AND (created_at, id) < ($4, $5)
ORDER BY created_at DESC, id DESC LIMIT $6"""
_HOLD_SESSIONS: Final = """
SELECT token_hash, project_id, id, confirmed_at, cancelled_at FROM sessions
WHERE day = $1 AND token_hash = ANY ($2::BYTEA[]) AND (opener_id = $3 OR messenger_id = $3)
ORDER BY token_hash FOR UPDATE"""
# This statement runs after the one that waited for the locks on the sessions, so that it sees their events.
_FIND_EVENTS: Final = """
SELECT e.id FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[])
  AS a (project_id, session_id, confirmed_at, cancelled_at)
CROSS JOIN unnest(ARRAY['due', 'delivered', 'failed', 'ended']) AS s (state)
CROSS JOIN unnest(ARRAY['auth.confirmed', 'auth.cancelled']) AS t (type)
CROSS JOIN LATERAL (
  SELECT x.id FROM webhook_events x
  WHERE x.project_id = a.project_id AND x.state = s.state AND x.type COLLATE "C" = t.type
    AND x.created_at IN (a.confirmed_at, a.cancelled_at) AND x.session_id = a.session_id
  ORDER BY x.id -- So that it stays a query of its own: one walk for each state and type.
) AS e"""
_ERASE_EVENTS: Final = """
WITH held AS MATERIALIZED (SELECT id FROM webhook_events WHERE id = ANY ($1::TEXT[]) ORDER BY id FOR UPDATE)
DELETE FROM webhook_events e USING held h WHERE e.id = h.id"""
_ERASE_PHONE_REQUESTS: Final = "DELETE FROM phone_requests WHERE day = $1 AND token_hash = ANY ($2::BYTEA[])"
_ERASE_SESSIONS: Final = "DELETE FROM sessions WHERE day = $1 AND token_hash = ANY ($2::BYTEA[])"
_LOCK_PERSON: Final = "SELECT lock_people(ARRAY[$1::TEXT], ARRAY[$2::TEXT])"
_IN_ORDER: Final = "SET LOCAL enable_sort = off"
"""Makes the planner read a page in the order of the index, as far as needed, instead of sorting the whole day."""


class PostgresErasure:
    """See `storage.protocol.ErasureStorage`."""

    def __init__(self, pool: PostgresPool, partitions: Partitions) -> None:
        self._pool = pool
        self._partitions = partitions

    async def erase_user(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> int:
        async def erase(connection: asyncpg.Connection) -> int:
            erased = (
                await _erase_sign_ins(connection, messenger_id, developer_id, limit)
                or await _forget_person(connection, messenger_id, developer_id, replacement)
                or (await _erase_rest(connection, messenger_id, limit) if developer_id is None else 0)
            )
            if erased:
                await add_entry(connection, entry)
            return erased

        return 0 if "\0" in messenger_id + (developer_id or "") else await self._pool.transact(erase)

    async def list_opened_days(self, developer_id: str | None, after: OpenedDay | None, limit: int) -> list[OpenedDay]:
        oldest = min(await self._partitions.days(), default=0)
        found = await self._pool.read(*queries.opened_days(developer_id, after, oldest, limit))
        return [OpenedDay(*row) for row in found]

    async def erase_opened(
        self,
        messenger_id: str,
        of: OpenedDay,
        after: OpenedPlace | None,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> ErasedPage:
        async def erase(connection: asyncpg.Connection) -> ErasedPage:
            await connection.execute(_IN_ORDER)
            keys: list[tuple[int, bytes]] = []
            left = limit
            following: OpenedPlace | None = None
            for start in queries.opened_starts(of, after):
                values = (of.day, of.project_id, *start, left)
                found = [queries.OpenedSession(*row) for row in await connection.fetch(_LIST_OPENED, *values)]
                keys += [(each.day, each.token_hash) for each in found if each.opener_id == messenger_id]
                left -= len(found)
                if left == 0:
                    following = OpenedPlace(start.status, found[-1].created_at, found[-1].id)
                    break
            erased = await _erase_sessions(connection, keys, messenger_id)
            if erased:
                await add_entry(connection, entry)
            return ErasedPage(erased, following)

        return await self._pool.transact(erase)


async def _erase_sign_ins(
    connection: asyncpg.Connection, messenger_id: str, developer_id: str | None, limit: int
) -> int:
    while True:
        if developer_id is None:
            found = await connection.fetch(queries.FIND_SIGN_INS, messenger_id, limit)
        else:
            values = (messenger_id, developer_id, limit)
            found = await connection.fetch(queries.FIND_SIGN_INS_OF_DEVELOPER, *values)
        # The erasure is complete only when nothing is found: another node may have erased the found sessions meanwhile.
        erased = await _erase_sessions(connection, [tuple(row) for row in found], messenger_id)
        if erased or not found:
            return erased


async def _erase_sessions(connection: asyncpg.Connection, keys: Iterable[tuple[int, bytes]], messenger_id: str) -> int:
    """Erase those of these sessions that still belong to the account, with their webhook events and phone requests.

    The sessions are locked first. So a session that is just being confirmed is either found here with its event, or is
    not confirmed.
    """
    held: list[tuple[int, list[asyncpg.Record]]] = []
    for day, of_day in groupby(sorted(keys), key=itemgetter(0)):
        hashes = [token_hash for _, token_hash in of_day]
        held.append((day, await connection.fetch(_HOLD_SESSIONS, day, hashes, messenger_id)))
    sessions = [row for _, found in held for row in found]
    if not sessions:
        return 0
    events = await connection.fetch(_FIND_EVENTS, *columns(row[1:] for row in sessions))
    await connection.execute(_ERASE_EVENTS, [row[0] for row in events])
    for day, found in held:
        hashes = [row[0] for row in found]
        await connection.execute(_ERASE_PHONE_REQUESTS, day, hashes)
        await connection.execute(_ERASE_SESSIONS, day, hashes)
    return len(sessions)


async def _forget_person(
    connection: asyncpg.Connection, messenger_id: str, developer_id: str | None, replacement: str
) -> int:
    """Rename the user in the counts of a developer: on all days at once, so that they still count as one person."""
    if developer_id is None:
        developer_id = await connection.fetchval(queries.FIND_PERSON, messenger_id)
    if developer_id is None:
        return 0
    await connection.execute(_LOCK_PERSON, developer_id, messenger_id)
    return len(await connection.fetch(queries.RENAME_PERSON, replacement, developer_id, messenger_id))


async def _erase_rest(connection: asyncpg.Connection, messenger_id: str, limit: int) -> int:
    requests = await connection.fetch(queries.ERASE_PHONE_REQUESTS_OF_USER, messenger_id)
    return len(requests) + len(await connection.fetch(queries.ERASE_BLOCKS_OF_USER, messenger_id, limit))
