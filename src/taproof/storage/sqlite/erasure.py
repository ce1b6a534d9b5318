"""The erasure of one user on SQLite."""

import asyncio
from collections.abc import Iterable

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.clock import DAY
from taproof.storage.protocol import ErasedPage, OpenedDay, OpenedPlace
from taproof.storage.queries import erasure as queries
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.transaction import add_entry


class SqliteErasure:
    """See `storage.protocol.ErasureStorage`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def erase_user(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> int:
        def write(connection: apsw.Connection) -> int:
            erased = (
                _erase_sign_ins(connection, messenger_id, developer_id, limit)
                or _forget_person(connection, messenger_id, developer_id, replacement)
                or (_erase_rest(connection, messenger_id, limit) if developer_id is None else 0)
            )
            if erased:
                add_entry(connection, entry)
            return erased

        return await self._database.writer.run(write)

    async def list_opened_days(self, developer_id: str | None, after: OpenedDay | None, limit: int) -> list[OpenedDay]:
        oldest = self._database.rows(queries.OLDEST_DAY)[0][0] or 0
        found = await self._database.read(*queries.opened_days(developer_id, after, oldest, limit))
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
        await asyncio.sleep(0)  # Let other tasks run between pages: the reads run on the event loop.
        keys, left = [], limit
        following: OpenedPlace | None = None
        for start in queries.opened_starts(of, after):
            values = (of.project_id, start.status, of.day * DAY, start.created_at, start.session_id, left)
            found = [queries.OpenedSession(*row) for row in self._database.rows(queries.LIST_OPENED, values)]
            keys += [(each.day, each.token_hash) for each in found if each.opener_id == messenger_id]
            left -= len(found)
            if left == 0:
                following = OpenedPlace(start.status, found[-1].created_at, found[-1].id)
                break

        def write(connection: apsw.Connection) -> int:
            erased = _erase_sessions(connection, keys, messenger_id)
            if erased:
                add_entry(connection, entry)
            return erased

        return ErasedPage(await self._database.writer.run(write) if keys else 0, following)


def _erase_sign_ins(connection: apsw.Connection, messenger_id: str, developer_id: str | None, limit: int) -> int:
    if developer_id is None:
        keys = rows(connection, queries.FIND_SIGN_INS, (messenger_id, limit))
    else:
        keys = rows(connection, queries.FIND_SIGN_INS_OF_DEVELOPER, (messenger_id, developer_id, limit))
    return _erase_sessions(connection, keys, messenger_id)


def _erase_sessions(connection: apsw.Connection, keys: Iterable[tuple[int, bytes]], messenger_id: str) -> int:
    """Erase those of these sessions that still belong to the account, with their webhook events and phone requests."""
    erased = 0
    for key in keys:
        for session in rows(connection, queries.ERASE_SESSION, (*key, messenger_id)):
            connection.execute(queries.ERASE_EVENTS_OF_SESSION, session)
            connection.execute(queries.ERASE_PHONE_REQUEST, key)
            erased += 1
    return erased


def _forget_person(connection: apsw.Connection, messenger_id: str, developer_id: str | None, replacement: str) -> int:
    """Rename the user in the counts of a developer: on all days at once, so that they still count as one person."""
    developers = [(developer_id,)] if developer_id else rows(connection, queries.FIND_PERSON, (messenger_id,))
    return sum(
        len(rows(connection, queries.RENAME_PERSON, (replacement, each, messenger_id))) for (each,) in developers
    )


def _erase_rest(connection: apsw.Connection, messenger_id: str, limit: int) -> int:
    requests = rows(connection, queries.ERASE_PHONE_REQUESTS_OF_USER, (messenger_id,))
    return len(requests) + len(rows(connection, queries.ERASE_BLOCKS_OF_USER, (messenger_id, limit)))
