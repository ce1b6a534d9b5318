"""How processes on one SQLite file hear of each other's decisions: a short table that each reads on from its place.

There is no signal between the processes: while somebody waits, a reader asks a hundred times a second whether another
process committed anything (`PRAGMA data_version`, 2 µs), and only then looks into the table.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import apsw

from taproof.core.errors import StoreUnavailable
from taproof.core.model import SessionKey

KEPT: Final = 10_000
"""Decisions kept for other processes to read; who falls further behind finds out by looking at the sessions."""
_TRIM_EVERY: Final = 256
_EVERY: Final = 0.01
_WHEN_STORE_IS_AWAY: Final = 1.0

_RECORD: Final = "INSERT INTO decisions (day, token_hash) VALUES (?, ?)"
_TRIM: Final = "DELETE FROM decisions WHERE id <= ?"
_VERSION: Final = "PRAGMA data_version"
_LAST: Final = "SELECT COALESCE(MAX(id), 0) FROM decisions"
_AFTER: Final = "SELECT id, day, token_hash FROM decisions WHERE id > ? ORDER BY id"

Read = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]


def record(connection: apsw.Connection, key: SessionKey) -> None:
    """Tell the other processes that a session was decided, in the transaction that decides it."""
    connection.execute(_RECORD, key)
    last = connection.last_insert_rowid()
    if last % _TRIM_EVERY == 0:
        connection.execute(_TRIM, (last - KEPT,))


async def watch(read: Read, wake: Callable[[SessionKey], None], needed: asyncio.Event) -> None:
    """Call `wake` with every session that is decided from now on, as `storage.protocol.SessionStorage` has it.

    Args:
        read: runs a statement on a connection that only reads.
        wake: called on the event loop; must not raise.
        needed: nothing is read while it is not set.
    """
    version: int | None = None
    last: int | None = None
    while True:
        try:
            # The connection that reads never writes, so this changes with every commit, also of this process.
            changed = read(_VERSION, ())[0][0]
            if last is None:
                last = read(_LAST, ())[0][0]
            elif changed != version:
                for row in read(_AFTER, (last,)):
                    last = row[0]
                    wake(SessionKey(*row[1:]))
            version = changed
        except StoreUnavailable:
            await asyncio.sleep(_WHEN_STORE_IS_AWAY)
        await asyncio.sleep(_EVERY)
        await needed.wait()
