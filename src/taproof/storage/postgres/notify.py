"""Announces decisions to other nodes on one PostgreSQL: NOTIFY after the commit, LISTEN on a separate connection."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

import asyncpg

from taproof.core.errors import StoreUnavailable
from taproof.core.model import SessionKey
from taproof.storage.postgres.connection import disconnect
from taproof.storage.postgres.connection_errors import AWAY
from taproof.storage.postgres.database import PostgresDatabase

CHANNEL: Final = "taproof_decisions"
_TELL: Final = f"SELECT pg_notify('{CHANNEL}', $1)"
_KEYS_IN_PAYLOAD: Final = 100
"""A key has at most 76 characters, and a payload can have 7,999."""
_CHECK_EVERY: Final = 5.0
_BACKOFF: Final = (0.1, 0.2, 0.5, 1.0, 2.0)


class Announcer:
    """Announces committed decisions to all nodes, many in one signal. Callers do not wait for it.

    The signal is a separate statement. Inside a decision's transaction, NOTIFY would make all such transactions on the
    server commit one after the other. A lost signal delays the waiting callers by a second, since they also poll.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._keys: list[SessionKey] = []
        self._task: asyncio.Task[None] | None = None

    def tell(self, keys: Iterable[SessionKey]) -> None:
        """Queue decisions to be announced."""
        self._keys += keys
        if self._keys and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._send())

    async def close(self) -> None:
        """Finish the pending announcements."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _send(self) -> None:
        while self._keys:
            keys, self._keys = self._keys, []
            for payload in _payloads(keys):
                with contextlib.suppress(StoreUnavailable):
                    await self._database.fetch(_TELL, payload)


async def listen(
    connect: Callable[[], Awaitable[asyncpg.Connection]],
    wake: Callable[[SessionKey], None],
    needed: asyncio.Event,
) -> None:
    """Call `wake` with every session that is decided from now on, as `storage.protocol.SessionStorage` defines it.

    Args:
        connect: opens a direct connection to the server, which is kept open until this call is cancelled.
        wake: called on the event loop; must not raise.
        needed: while it is not set, signals are discarded unread.
    """

    def hear(_connection: Any, _pid: int, _channel: str, payload: object) -> None:
        if needed.is_set():
            for key in _keys(str(payload)):
                wake(key)

    failures = 0
    while True:
        with contextlib.suppress(*AWAY):
            connection = await connect()
            try:
                lost = asyncio.Event()
                connection.add_termination_listener(lambda _connection, lost=lost: lost.set())
                await connection.add_listener(CHANNEL, hear)
                failures = 0
                while not lost.is_set():
                    # This query detects a connection that was lost silently.
                    await connection.fetchval("SELECT 1")
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(lost.wait(), _CHECK_EVERY)
            finally:
                await disconnect(connection)
        await asyncio.sleep(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
        failures += 1


def _payloads(keys: list[SessionKey]) -> Iterator[str]:
    rest = iter(keys)
    while some := list(islice(rest, _KEYS_IN_PAYLOAD)):
        yield " ".join(f"{key.day}:{key.token_hash.hex()}" for key in some)


def _keys(payload: str) -> Iterator[SessionKey]:
    """Yield the keys in a payload. Skip invalid keys: anybody who may connect to the database can send a payload."""
    for word in payload.split():
        day, _, token_hash = word.partition(":")
        with contextlib.suppress(ValueError):
            yield SessionKey(int(day), bytes.fromhex(token_hash))
