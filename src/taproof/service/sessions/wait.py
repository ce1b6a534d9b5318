"""Make calls wait while their session is pending, and wake them.

A waiting call ends on the first of these events:

- `Decisions` in this process calls `wake`.
- Another process decides the session (`Storage.watch_decisions`).
- The session's hint changes, if the call asks for hints.
- The session expires, or the call's time limit is reached.

Signals between processes may be lost. So each session with waiting calls is also read about once a second.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal

import structlog

from taproof.core.clock import SECOND, Clock
from taproof.core.code_challenge import is_proven
from taproof.core.errors import StoreUnavailable
from taproof.core.identifiers import session_key
from taproof.core.return_code import has_returned
from taproof.core.session_state import status_without_code, visible_status
from taproof.core.sessions import Hint, PolledSession, SessionKey, known_hint
from taproof.storage.protocol import Storage

PROCESS_LIMIT: Final = 10_000
"""The maximum number of waiting calls in one process. Each uses a connection and about 20 KB of memory."""
PROJECT_LIMIT: Final = 5_000
"""The maximum number of waiting calls per project, so that one busy project leaves half of the places to the others."""
SESSION_LIMIT: Final = 8
"""The maximum number of waiting calls per session. A sign-in has one client, perhaps in several tabs."""

LOOK_EVERY: Final = 0.8
"""Seconds between two reads of a session. It is below one second, because reading many sessions takes time."""
CHUNK: Final = 100
"""The maximum number of sessions read together: one statement on PostgreSQL, about two milliseconds on SQLite."""
_BREATH: Final = 0.002
GATHER: Final = 0.02
"""Seconds by which a read is delayed, so that sessions due shortly after one another are read together."""
AFTER_A_BUG: Final = 1.0

WaitEnd = Literal["over", "no_place", "gone"]
"""The reason why a wait ended.

"over": the session is no longer pending, its hint has changed, the time limit is reached, or there was nothing to wait
for. Read the session now. "no_place": too many calls are already waiting, or the service is stopping. Read the session
now. "gone": the client disconnected, so the session must not be consumed.
"""
UntilGone = Callable[[], Coroutine[Any, Any, None]]
"""Returns when the client has disconnected. It is cancelled when the wait ends."""

_log = structlog.get_logger(__name__)


class _Waited:
    """A session with waiting calls. `due`: when the session is read again, in seconds of the event loop.

    `places` counts the calls that are allowed to read it. Other calls do not take a place. `seen_hints` has the hints
    that the clients know, for the calls that ask for hints.
    """

    __slots__ = ("due", "futures", "key", "places", "seen_hints")

    def __init__(self, key: SessionKey, due: float) -> None:
        self.key = key
        self.due = due
        self.futures: list[asyncio.Future[None]] = []
        self.seen_hints: dict[asyncio.Future[None], str] = {}
        self.places = 0

    def end(self) -> None:
        for future in self.futures:
            if not future.done():
                future.set_result(None)

    def notice(self, hint: Hint) -> None:
        """End the calls whose clients know another hint."""
        for future, seen_hint in self.seen_hints.items():
            if seen_hint != hint and not future.done():
                future.set_result(None)


class Waiting:
    """The waiting calls in this process; `count` is their number. See the constants for the limits."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        *,
        process_limit: int = PROCESS_LIMIT,
        project_limit: int = PROJECT_LIMIT,
        session_limit: int = SESSION_LIMIT,
        look_every: float = LOOK_EVERY,
        chunk: int = CHUNK,
        after_a_bug: float = AFTER_A_BUG,
    ) -> None:
        self.count = 0
        self._process_limit = process_limit
        self._project_limit = project_limit
        self._session_limit = session_limit
        self._look_every = look_every
        self._chunk = chunk
        self._after_a_bug = after_a_bug
        self._storage = storage
        self._clock = clock
        self._needed = asyncio.Event()
        self._stopped = False
        self._waited: dict[SessionKey, _Waited] = {}
        self._by_project: dict[str, int] = {}
        self._queue: deque[_Waited] = deque()
        """Every session with waiting calls, by `due`. Sessions without waiting calls are removed when due."""

    async def wait(
        self,
        project_id: str,
        session_token: str,
        seconds: float,
        until_gone: UntilGone,
        *,
        public: bool,
        code_verifier: object = None,
        seen_hint: str | None = None,
        return_code: object = None,
    ) -> WaitEnd:
        """Wait for at most `seconds` while `SignInSessions.verify_session` would return pending. Change nothing.

        A call that `verify_session` would refuse does not wait. With `seen_hint`, the call waits only while this is
        the session's hint.
        """
        key = session_key(session_token)
        if key is None or seconds <= 0:
            return "over"
        if self._is_full(project_id):
            return "no_place"
        # Registered before the first read, so that a decision between the two wakes this call.
        future = self._enter(key, project_id)
        waited = self._waited[key]
        if seen_hint is not None:
            waited.seen_hints[future] = seen_hint
        has_place = False
        try:
            session = await self._storage.sessions.poll_session(key)
            if session is None or session.project_id != project_id or (public and not session.public_access):
                return "over"
            if not is_proven(session.code_challenge, code_verifier):
                return "over"
            # The session's return code ends the sign-in now, so there is nothing to wait for.
            if _is_over(session, self._clock()) or has_returned(session.return_hash, return_code):
                return "over"
            if seen_hint is not None and seen_hint != known_hint(session.hint):
                return "over"
            if waited.places >= self._session_limit:
                return "no_place"
            has_place = True
            waited.places += 1
            return await self._wait_for(future, session.expires_at, seconds, until_gone)
        finally:
            waited.places -= has_place
            self._leave(key, project_id, future)

    def wake(self, key: SessionKey) -> None:
        """Wake all calls that wait for this session. Never raises."""
        waited = self._waited.get(key)
        if waited is not None:
            waited.end()

    def notice(self, key: SessionKey, hint: Hint) -> None:
        """Wake the calls that wait for this session and ask for hints. Never raises."""
        waited = self._waited.get(key)
        if waited is not None:
            waited.notice(hint)

    async def run_until(self, stopping: asyncio.Event) -> None:
        """Watch decisions of other processes until `stopping` is set, then call `stop`.

        Store errors do not end this.
        """
        tasks = [asyncio.create_task(part) for part in (self._watch(), self._keep_looking())]
        try:
            await stopping.wait()
        finally:
            self.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """End every wait immediately. From now on, no call gets a place."""
        self._stopped = True
        for waited in self._waited.values():
            waited.end()

    def _is_full(self, project_id: str) -> bool:
        of_project = self._by_project.get(project_id, 0)
        return self._stopped or self.count >= self._process_limit or of_project >= self._project_limit

    def _enter(self, key: SessionKey, project_id: str) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        waited = self._waited.get(key)
        if waited is None:
            waited = self._waited[key] = _Waited(key, loop.time() + self._look_every)
            self._queue.append(waited)
        future = loop.create_future()
        waited.futures.append(future)
        self._by_project[project_id] = self._by_project.get(project_id, 0) + 1
        self.count += 1
        self._needed.set()
        return future

    def _leave(self, key: SessionKey, project_id: str, future: asyncio.Future[None]) -> None:
        waited = self._waited[key]
        waited.futures.remove(future)
        waited.seen_hints.pop(future, None)
        if not waited.futures:
            del self._waited[key]
        self._by_project[project_id] -= 1
        if not self._by_project[project_id]:
            del self._by_project[project_id]
        self.count -= 1
        if not self.count:
            self._needed.clear()

    async def _wait_for(
        self, future: asyncio.Future[None], expires_at: int, seconds: float, until_gone: UntilGone
    ) -> WaitEnd:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        gone = loop.create_task(until_gone())
        try:
            # Loop, because expiry depends on the wall clock, which may be changed while the call waits.
            while (left := min(deadline - loop.time(), (expires_at - self._clock()) / SECOND)) > 0:
                done, _ = await asyncio.wait((future, gone), timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    break
            return "gone" if gone.done() else "over"
        finally:
            gone.cancel()

    async def _watch(self) -> None:
        while True:
            try:
                await self._storage.sessions.watch_decisions(self.wake, self._needed, self.notice)
            except Exception as error:  # noqa: BLE001 — watching must continue after any error; it is logged.
                _log.exception("waiting.bug", error=type(error).__name__)
            await asyncio.sleep(self._after_a_bug)

    async def _keep_looking(self) -> None:
        while True:
            await self._needed.wait()
            pause = _BREATH
            try:
                await self._look_at_due()
            except StoreUnavailable:
                pause = self._look_every  # If the failure persists, waiting calls end at their time limit.
            except Exception as error:  # noqa: BLE001 — the other waiting sessions must still be read.
                _log.exception("waiting.bug", error=type(error).__name__)
                pause = self._after_a_bug
            if self._queue and (left := self._queue[0].due - asyncio.get_running_loop().time()) > 0:
                pause = max(pause, left + GATHER)
            await asyncio.sleep(pause)

    async def _look_at_due(self) -> None:
        """Read at most `chunk` due sessions, and end the waits for those that have changed."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        due: list[_Waited] = []
        while self._queue and self._queue[0].due <= now and len(due) < self._chunk:
            waited = self._queue.popleft()
            if waited.futures:
                due.append(waited)
        try:
            sessions = await asyncio.gather(*(self._storage.sessions.poll_session(waited.key) for waited in due))
            instant = self._clock()
            for waited, session in zip(due, sessions, strict=True):
                if session is None or _is_over(session, instant):
                    waited.end()
                else:
                    waited.notice(known_hint(session.hint))
        finally:
            again = loop.time() + self._look_every
            for waited in due:
                waited.due = again
                self._queue.append(waited)


def _is_over(session: PolledSession, now: int) -> bool:
    """Return whether a caller without a return code has nothing more to wait for."""
    status = status_without_code if session.return_required else visible_status
    return status(session.status, session.expires_at, now) != "pending"
