"""Announces decisions and hints to other processes on the same SQLite file, with a short table that each process reads.

There is no signal between the processes. While a caller waits, a reader checks a hundred times a second whether
anything was committed (`PRAGMA data_version`, 2 µs). Only then does it read the table from its last position.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import apsw

from taproof.core.errors import StoreUnavailable
from taproof.core.sessions import Hint, SessionKey, known_hint
from taproof.storage.sqlite.database import Read, SqliteDatabase

KEPT: Final = 10_000
"""The number of announcements kept for other processes. A process that falls further behind still finds them by
polling the sessions."""
_TRIM_EVERY: Final = 256
_EVERY: Final = 0.01
_WHEN_STORE_IS_AWAY: Final = 1.0

_RECORD: Final = "INSERT INTO decisions (day, token_hash, hint) VALUES (?, ?, ?)"
_TRIM: Final = "DELETE FROM decisions WHERE id <= ?"
_VERSION: Final = "PRAGMA data_version"
_LAST: Final = "SELECT COALESCE(MAX(id), 0) FROM decisions"
_AFTER: Final = "SELECT id, day, token_hash, hint FROM decisions WHERE id > ? ORDER BY id"


def record(connection: apsw.Connection, key: SessionKey, hint: Hint | None = None) -> None:
    """Announce a decided session, or its new hint, to the other processes, in the transaction that changes it."""
    connection.execute(_RECORD, (*key, hint))
    last = connection.last_insert_rowid()
    if last % _TRIM_EVERY == 0:
        connection.execute(_TRIM, (last - KEPT,))


async def record_hints(database: SqliteDatabase, hints: Sequence[tuple[SessionKey, Hint]]) -> None:
    """Announce new hints to the other processes."""

    def write(connection: apsw.Connection) -> None:
        for key, hint in hints:
            record(connection, key, hint)

    if hints:
        await database.writer.run(write)


async def watch(
    read: Read,
    wake: Callable[[SessionKey], None],
    needed: asyncio.Event,
    notice: Callable[[SessionKey, Hint], None],
) -> None:
    """Call `wake` or `notice` for everything announced from now on, as `SessionStorage` defines it. Neither may raise.

    `read` runs a statement on a connection that only reads. While `needed` is not set, nothing is read.
    """
    version: int | None = None
    last: int | None = None
    while True:
        try:
            # This connection never writes, so its data version changes with every commit, including those of this
            # process.
            changed = read(_VERSION, ())[0][0]
            if last is None:
                last = read(_LAST, ())[0][0]
            elif changed != version:
                for number, day, token_hash, hint in read(_AFTER, (last,)):
                    last = number
                    if hint is None:
                        wake(SessionKey(day, token_hash))
                    else:
                        notice(SessionKey(day, token_hash), known_hint(hint))
            version = changed
        except StoreUnavailable:
            await asyncio.sleep(_WHEN_STORE_IS_AWAY)
        await asyncio.sleep(_EVERY)
        await needed.wait()
