"""The updates that wait for the bot (https://core.telegram.org/bots/api#getting-updates).

An update stays until it is acknowledged: by a getUpdates call with a higher offset, or by a webhook's 2xx answer.
Until then it is given out again and again, as the real server does.
"""

import asyncio
from collections import deque
from typing import Any, Final, NamedTuple

from taproof.core.clock import DAY, Clock
from taproof.core.entropy import Entropy
from taproof.sandbox.telegram.request import ApiError, read_json

QUEUE_LIMIT: Final = 10_000
"""Updates that wait at once; the oldest goes when another comes, so that memory stays bounded."""
OTHER_POLL: Final = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
_LIFETIME: Final = DAY
_FUTURE: Final = 10
"""An offset further ahead than this is taken for a mistake: it acknowledges nothing."""
_BY_DEFAULT_UNSENT: Final = {"chat_member", "message_reaction", "message_reaction_count"}


class SandboxUpdate(NamedTuple):
    """One update; `user_id` is who caused it, `added_at` in ms."""

    update_id: int
    user_id: int
    added_at: int
    content: dict[str, Any]


class UpdateQueue:
    """Holds updates in order, and lets the bot wait for the next."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._updates: deque[SandboxUpdate] = deque()
        self._next_id = 100_000_000 + int.from_bytes(entropy(3))
        self._poll: asyncio.Future[None] | None = None
        self._closed = False
        self.allowed: list[str] = []
        """The kinds that the bot asked for; empty for the usual ones."""
        self.arrived = asyncio.Event()
        """Set whenever something changed; who waits for it clears it."""

    @property
    def count(self) -> int:
        """Return how many updates wait."""
        return len(self.pending())

    @property
    def is_polled(self) -> bool:
        """Tell whether a getUpdates call waits."""
        return self._poll is not None

    def allow(self, parameter: str) -> None:
        """Take the parameter `allowed_updates`; what cannot be read leaves everything as it was, as it really does."""
        if not parameter:
            return
        try:
            kinds = read_json(parameter)
        except ValueError:
            return
        if isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds):
            self.allowed = [kind[:64] for kind in kinds[:50]]

    def add(self, kind: str, user_id: int, content: dict[str, Any]) -> None:
        """Queue an update, unless the bot does not want its kind."""
        if kind not in self.allowed if self.allowed else kind in _BY_DEFAULT_UNSENT:
            return
        update_id = self._next_id
        self._next_id += 1
        if len(self._updates) >= QUEUE_LIMIT:
            self._updates.popleft()
        self._updates.append(SandboxUpdate(update_id, user_id, self._clock(), {"update_id": update_id, kind: content}))
        self.arrived.set()
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)

    def pending(self) -> list[SandboxUpdate]:
        """Return what waits, oldest first. What waited for a day is dropped."""
        oldest = self._clock() - _LIFETIME
        while self._updates and self._updates[0].added_at < oldest:
            self._updates.popleft()
        return list(self._updates)

    def drop(self, update_id: int) -> None:
        """Forget one update: a webhook took it."""
        self._updates = deque(update for update in self._updates if update.update_id != update_id)

    def clear(self) -> None:
        """Forget all."""
        self._updates.clear()

    async def poll(self, offset: int, limit: int, seconds: int) -> list[dict[str, Any]]:
        """Answer getUpdates: forget what lies below the offset, then wait until there is something.

        Args:
            offset: the first update wanted; below 0, the last that many; 0 or one far ahead, all.
            limit: how many updates at most.
            seconds: how long to wait.

        Raises:
            ApiError: 409 when another call came in between, 500 when the sandbox stops.
        """
        if self._closed:
            raise _restart()
        offset = self._acknowledge(offset)
        found = self._from(offset, limit)
        if found or seconds == 0:
            return found
        self.end_poll(ApiError(409, OTHER_POLL))
        waiting = self._poll = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await waiting
        except TimeoutError:
            pass
        finally:
            if self._poll is waiting:
                self._poll = None
        return self._from(offset, limit)

    def end_poll(self, error: ApiError) -> None:
        """Let a call that waits fail."""
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(error)

    def close(self) -> None:
        """Let the call that waits, and every later one, fail as a restarting server does: the bot tries again later."""
        self._closed = True
        self.end_poll(_restart())

    def _acknowledge(self, offset: int) -> int:
        if offset < 0:
            while len(self._updates) > -offset:
                self._updates.popleft()
            return 0
        if offset > self._next_id + _FUTURE:
            return 0
        while self._updates and self._updates[0].update_id < offset:
            self._updates.popleft()
        return offset

    def _from(self, offset: int, limit: int) -> list[dict[str, Any]]:
        return [update.content for update in self.pending() if update.update_id >= offset][:limit]


def _restart() -> ApiError:
    return ApiError(500, "Internal Server Error: restart")
