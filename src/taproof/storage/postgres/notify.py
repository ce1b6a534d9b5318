"""Announces decisions and hints to other nodes: NOTIFY after the commit, LISTEN on a separate connection."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, cast, get_args

import asyncpg

from taproof.core.errors import StoreUnavailable
from taproof.core.sessions import Hint, SessionKey
from taproof.storage.postgres.connection import disconnect
from taproof.storage.postgres.connection_errors import AWAY
from taproof.storage.postgres.database import PostgresDatabase

CHANNEL: Final = "taproof_decisions"
_TELL: Final = f"SELECT pg_notify('{CHANNEL}', $1)"
_WORDS_IN_PAYLOAD: Final = 90
"""A key and a hint have at most 88 characters, and a payload can have 7,999."""
_HINTS: Final = frozenset(get_args(Hint))
_CHECK_EVERY: Final = 5.0
_BACKOFF: Final = (0.1, 0.2, 0.5, 1.0, 2.0)

Announcement = tuple[SessionKey, Hint | None]
"""A session with its new hint, or None if it was decided."""


class Announcer:
    """Announces committed changes to all nodes, many in one signal. Callers do not wait for it.

    Inside a decision's transaction, NOTIFY would make all such transactions on the server commit one after the other. A
    lost signal delays the waiting callers by a second, since they also poll.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._untold: list[Announcement] = []
        self._task: asyncio.Task[None] | None = None

    def tell(self, announcements: Iterable[Announcement]) -> None:
        """Queue decisions and hints to be announced."""
        self._untold += announcements
        if self._untold and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._send())

    async def close(self) -> None:
        """Finish the pending announcements."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _send(self) -> None:
        while self._untold:
            told, self._untold = self._untold, []
            for payload in _payloads(told):
                with contextlib.suppress(StoreUnavailable):
                    await self._database.fetch(_TELL, payload)


async def listen(
    connect: Callable[[], Awaitable[asyncpg.Connection]],
    wake: Callable[[SessionKey], None],
    needed: asyncio.Event,
    notice: Callable[[SessionKey, Hint], None],
) -> None:
    """Call `wake` or `notice` for everything announced from now on, as `SessionStorage` defines it. Neither may raise.

    `connect` opens a direct connection to the server, which is kept open until this call is cancelled. While `needed`
    is not set, signals are discarded unread.
    """

    def hear(_connection: Any, _pid: int, _channel: str, payload: object) -> None:
        if needed.is_set():
            for key, hint in _announcements(str(payload)):
                if hint is None:
                    wake(key)
                else:
                    notice(key, hint)

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


def _payloads(announcements: list[Announcement]) -> Iterator[str]:
    rest = iter(announcements)
    while some := list(islice(rest, _WORDS_IN_PAYLOAD)):
        yield " ".join(f"{key.day}:{key.token_hash.hex()}" + (f":{hint}" if hint else "") for key, hint in some)


def _announcements(payload: str) -> Iterator[Announcement]:
    """Yield the parts of a payload. Skip invalid parts: anybody who may connect to the database can send a payload."""
    for word in payload.split():
        day, _, rest = word.partition(":")
        token_hash, _, hint = rest.partition(":")
        with contextlib.suppress(ValueError):
            key = SessionKey(int(day), bytes.fromhex(token_hash))
            if not hint:
                yield key, None
            elif hint in _HINTS:
                yield key, cast("Hint", hint)
