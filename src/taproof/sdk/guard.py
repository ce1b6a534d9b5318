"""Guards for `verify_proof`, which accept each proof only once.

A proof is valid for five minutes, and a copy could be sent again during that time. A guard stores the SHA-256 of the
session token, never the token itself, until the proof has expired.
"""

import contextlib
import hashlib
import heapq
import sqlite3
import threading
import time
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Final, Protocol

_MARGIN: Final = 60
"""Seconds that a token is remembered after its expiry, in case a machine's clock is set back a little."""
_BUSY: Final = 30.0
"""Seconds that `take` waits for other processes before it fails."""


class SingleUseGuard(Protocol):
    """Remembers used proofs. All servers of an application must share one guard, or its storage."""

    def take(self, session_token: str, expires_at: int) -> bool:
        """Return True for the first call with this token, and False for every later one.

        Of any number of concurrent calls, exactly one must return True. A guard that cannot decide must raise an
        exception; the proof is then refused.

        Args:
            session_token: the session token of the sign-in. Store only a hash of it.
            expires_at: the time until which to remember it, in seconds since the epoch.
        """


class MemoryGuard:
    """Remembers proofs in this process, for applications with only one process. Its threads can share the guard.

    It remembers only the proofs of the last few minutes, and none after a restart. `SqliteGuard` survives restarts.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:  # noqa: TID251 — as in proof.py.
        self._clock = clock
        self._lock = threading.Lock()
        self._taken: set[bytes] = set()
        self._ends: list[tuple[float, bytes]] = []

    def take(self, session_token: str, expires_at: int) -> bool:
        """See `SingleUseGuard`."""
        digest, now = _digest(session_token), self._clock()
        with self._lock:
            while self._ends and self._ends[0][0] < now:
                self._taken.discard(heapq.heappop(self._ends)[1])
            if digest in self._taken:
                return False
            self._taken.add(digest)
            heapq.heappush(self._ends, (_forget_at(expires_at, now), digest))
            return True


class SqliteGuard:
    """Remembers proofs in a file, for all processes on one machine and across restarts.

    `take` writes to the disk before it returns, so that neither `kill -9` nor a power cut undoes it.

    Args:
        path: the file, in an existing directory; the file is created if it does not exist. It must be on a local disk,
            because locks on network file systems are not reliable.
        clock: returns the time in seconds since the epoch; for tests.

    Raises:
        sqlite3.Error: the file cannot be used. `take` raises it too; the proof is then refused.
    """

    def __init__(self, path: str | PathLike[str], *, clock: Callable[[], float] = time.time) -> None:  # noqa: TID251
        self._path = Path(path).resolve()
        self._clock = clock
        with contextlib.closing(self._connect()) as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS taken (digest BLOB PRIMARY KEY, forget_at REAL NOT NULL) WITHOUT ROWID"
            )
            connection.execute("CREATE INDEX IF NOT EXISTS taken_forget_at ON taken (forget_at)")

    def take(self, session_token: str, expires_at: int) -> bool:
        """See `SingleUseGuard`."""
        now = self._clock()
        row = (_digest(session_token), _forget_at(expires_at, now))
        with contextlib.closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM taken WHERE forget_at < ?", (now,))
            inserted = connection.execute("INSERT INTO taken VALUES (?, ?) ON CONFLICT DO NOTHING", row).rowcount
            connection.execute("COMMIT")
        return inserted == 1

    def _connect(self) -> sqlite3.Connection:
        # Each `take` opens a connection. A shared connection would need protection from other threads and from
        # forked processes, and would save little: most of the time is spent writing to the disk.
        connection = sqlite3.connect(self._path, timeout=_BUSY, isolation_level=None)
        # The file uses the rollback journal: SQLite in some supported Python versions can damage a file in WAL mode.
        # A write is committed when the journal file is deleted. EXTRA then syncs the directory. With FULL, a power cut
        # could bring the journal back and undo the write.
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _digest(session_token: str) -> bytes:
    return hashlib.sha256(session_token.encode(errors="surrogatepass")).digest()


def _forget_at(expires_at: int, now: float) -> float:
    # The time is never in the past, even if `expires_at` was set by another machine's clock.
    return max(expires_at, now) + _MARGIN
