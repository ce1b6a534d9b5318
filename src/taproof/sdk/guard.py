"""Taking each proof only once: what `verify_proof` asks its `guard`.

A proof holds for five minutes, and for as long somebody who has copied it could send it again. A guard remembers the
SHA-256 of the session token, never the token, until the proof has ended.
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
"""Seconds that a token is remembered beyond its end: a machine's clock may be set back a little."""
_BUSY: Final = 30.0
"""Seconds that a take waits for those of other processes, before it fails."""


class SingleUseGuard(Protocol):
    """Remembers which proofs were used. All servers of an application must share one, or ask the same place."""

    def take(self, session_token: str, expires_at: int) -> bool:
        """Return True the first time for this token, and False ever after.

        Any number of calls may come at once: exactly one of them may return True. When it cannot know, it must raise:
        the proof is then refused.

        Args:
            session_token: what the proof stands for. Store a hash of it only.
            expires_at: until when it must be remembered, in seconds since the epoch.
        """


class MemoryGuard:
    """Remembers in this process: for an application that is one process. Its threads may share it.

    It holds the proofs of the last minutes only. A restart forgets them: then use `SqliteGuard`.
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
    """Remembers in a file: for all processes of one machine, and over restarts.

    Each take is on the disk before it returns, so that neither `kill -9` nor a power cut undoes it.

    Args:
        path: the file, made when it is not there, in a directory that is. On a disk of this machine: the locks of
            network file systems do not hold.
        clock: the time in seconds since the epoch, for tests.

    Raises:
        sqlite3.Error: the file cannot be used. From `take` too: the proof is then refused.
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
        # A connection for each take: one that is kept would have to be kept from other threads, and out of every
        # process that a server forks. What takes its time is the disk.
        connection = sqlite3.connect(self._path, timeout=_BUSY, isolation_level=None)
        # The rollback journal stays: versions of SQLite that Python still comes with can damage a file in WAL mode.
        # A take counts once the journal's file is gone. EXTRA syncs the directory after that, and FULL does not: then a
        # power cut could bring the journal back, and that would undo the take.
        connection.execute("PRAGMA synchronous = EXTRA")
        return connection


def _digest(session_token: str) -> bytes:
    return hashlib.sha256(session_token.encode(errors="surrogatepass")).digest()


def _forget_at(expires_at: int, now: float) -> float:
    # Never at once, whatever the clock says that `expires_at` was reckoned by.
    return max(expires_at, now) + _MARGIN
