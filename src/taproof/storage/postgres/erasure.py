"""Forgetting one user on PostgreSQL."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.storage.erasure_protocol import ErasedPage, OpenedDay, OpenedPlace, opened_starts
from taproof.storage.postgres.developers import PostgresAccounts, add_entry
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.queries import erasure as erasure_queries
from taproof.storage.rows import columns

_BEFORE_ALL: Final = OpenedDay("", -1)
_IN_ORDER: Final = "SET LOCAL enable_sort = off"
"""A page is then read in the order of the index, as far as it goes, and not sorted out of the whole day."""


class PostgresErasure(PostgresAccounts):
    """The part of the store that forgets users. See `storage.erasure_protocol.ErasureStorage`."""

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
        days = await Partitions(self._pool).days()
        place = (*(after or _BEFORE_ALL), min(days, default=0), limit)
        if developer_id is None:
            found = await self._pool.find(erasure_queries.LIST_OPENED_DAYS, *place)
        else:
            found = await self._pool.find(erasure_queries.LIST_OPENED_DAYS_OF_DEVELOPER, developer_id, *place)
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
            for start in opened_starts(of, after):
                values = (of.day, of.project_id, *start, left)
                found = await connection.fetch(erasure_queries.POSTGRES_LIST_OPENED, *values)
                keys += [tuple(row[:2]) for row in found if row[4] == messenger_id]
                left -= len(found)
                if left == 0:
                    following = OpenedPlace(start.status, *found[-1][2:4])
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
            found = await connection.fetch(erasure_queries.FIND_SIGN_INS, messenger_id, limit)
        else:
            values = (messenger_id, developer_id, limit)
            found = await connection.fetch(erasure_queries.FIND_SIGN_INS_OF_DEVELOPER, *values)
        # Nothing is left to do only when nothing is found: what was found may have been erased by another node since.
        erased = await _erase_sessions(connection, [tuple(row) for row in found], messenger_id)
        if erased or not found:
            return erased


async def _erase_sessions(connection: asyncpg.Connection, keys: Iterable[tuple[int, bytes]], messenger_id: str) -> int:
    """Erase those of these sessions that are still the account's, with all that hangs on them.

    They are locked first, so that one that is just confirmed is found here with its event, or is not confirmed.
    """
    held: list[tuple[int, list[asyncpg.Record]]] = []
    for day, of_day in groupby(sorted(keys), key=itemgetter(0)):
        hashes = [token_hash for _, token_hash in of_day]
        held.append((day, await connection.fetch(erasure_queries.POSTGRES_HOLD_SESSIONS, day, hashes, messenger_id)))
    sessions = [row for _, found in held for row in found]
    if not sessions:
        return 0
    events = await connection.fetch(erasure_queries.POSTGRES_FIND_EVENTS, *columns(row[1:] for row in sessions))
    await connection.execute(erasure_queries.POSTGRES_ERASE_EVENTS, [row[0] for row in events])
    for day, found in held:
        hashes = [row[0] for row in found]
        await connection.execute(erasure_queries.POSTGRES_ERASE_PHONE_REQUESTS, day, hashes)
        await connection.execute(erasure_queries.POSTGRES_ERASE_SESSIONS, day, hashes)
    return len(sessions)


async def _forget_person(
    connection: asyncpg.Connection, messenger_id: str, developer_id: str | None, replacement: str
) -> int:
    """Give one developer's person another name: on all days at once, since it stays one person."""
    if developer_id is None:
        developer_id = await connection.fetchval(erasure_queries.FIND_PERSON, messenger_id)
    if developer_id is None:
        return 0
    await connection.execute(erasure_queries.POSTGRES_LOCK_PERSON, developer_id, messenger_id)
    return len(await connection.fetch(erasure_queries.RENAME_PERSON, replacement, developer_id, messenger_id))


async def _erase_rest(connection: asyncpg.Connection, messenger_id: str, limit: int) -> int:
    requests = await connection.fetch(erasure_queries.ERASE_PHONE_REQUESTS_OF_USER, messenger_id)
    return len(requests) + len(await connection.fetch(erasure_queries.ERASE_BLOCKS_OF_USER, messenger_id, limit))
