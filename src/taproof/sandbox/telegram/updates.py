"""The pending updates of a bot (https://core.telegram.org/bots/api#getting-updates).

An update stays pending until a getUpdates call with a higher offset or a webhook's 2xx answer acknowledges it. Until
then, it is delivered repeatedly, as on the real server.
"""

import asyncio
from collections import deque
from typing import Any, Final, NamedTuple

from taproof.core.clock import DAY, Clock
from taproof.core.entropy import Entropy
from taproof.sandbox.telegram.request import ApiError, read_json

QUEUE_LIMIT: Final = 10_000
"""Maximum number of pending updates. A new one replaces the oldest, so that memory use is limited."""
OTHER_POLL: Final = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
_RESTART: Final = "Internal Server Error: restart"
_LIFETIME: Final = DAY
_FUTURE: Final = 10
"""The limit on an offset ahead of the next id. An offset beyond it counts as a mistake and acknowledges nothing."""
_BY_DEFAULT_UNSENT: Final = {"chat_member", "message_reaction", "message_reaction_count"}


class SandboxUpdate(NamedTuple):
    """One update. `user_id` is the person who caused it; `added_at` is in ms."""

    update_id: int
    user_id: int
    added_at: int
    content: dict[str, Any]


class UpdateQueue:
    """Stores updates in order, and lets the bot wait for the next one."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._updates: deque[SandboxUpdate] = deque()
        self._next_id = 100_000_000 + int.from_bytes(entropy(3))
        self._poll: asyncio.Future[None] | None = None
        self._closed = False
        self.allowed: list[str] = []
        """The kinds of updates that the bot asked for; empty for the default kinds."""
        self.arrived = asyncio.Event()
        """The event that is set at every change. A task that waits for it clears it first."""

    def allow(self, parameter: str) -> None:
        """Apply the parameter `allowed_updates`. As on the real server, an unreadable value changes nothing."""
        if not parameter:
            return
        try:
            kinds = read_json(parameter)
        except ValueError:
            return
        if isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds):
            self.allowed = [kind[:64] for kind in kinds[:50]]

    def add(self, kind: str, user_id: int, content: dict[str, Any]) -> None:
        """Queue an update, unless the bot did not ask for its kind."""
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
        """Return the pending updates, oldest first. Updates older than a day are dropped."""
        oldest = self._clock() - _LIFETIME
        while self._updates and self._updates[0].added_at < oldest:
            self._updates.popleft()
        return list(self._updates)

    def drop(self, update_id: int) -> None:
        """Remove one update, which a webhook accepted."""
        self._updates = deque(update for update in self._updates if update.update_id != update_id)

    @property
    def is_polled(self) -> bool:
        """Return whether a call of getUpdates is waiting."""
        return self._poll is not None

    def clear(self) -> None:
        """Remove all updates."""
        self._updates.clear()

    async def poll(self, offset: int, limit: int, seconds: int) -> list[dict[str, Any]]:
        """Answer getUpdates: remove the updates below the offset, then wait until there is one to return.

        `offset` is the id of the first wanted update. A negative number -n means the last n updates; 0 or a number far
        ahead means all. It raises ApiError: 409 if another call arrives while this one waits, 500 if the sandbox stops.
        """
        if self._closed:
            raise ApiError(500, _RESTART)
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
        """Make a waiting call fail with this error."""
        if self._poll is not None and not self._poll.done():
            self._poll.set_exception(error)

    def close(self) -> None:
        """Make the waiting call and all later ones fail as on a restarting server, so that the bot retries later."""
        self._closed = True
        self.end_poll(ApiError(500, _RESTART))

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
