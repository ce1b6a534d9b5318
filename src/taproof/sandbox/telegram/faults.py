"""Calls that fail on purpose, so that a bot's answer to failures can be tested; and the flood limit."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from taproof.core.clock import SECOND, Clock
from taproof.sandbox.telegram.request import ApiError, too_many_requests
from taproof.sandbox.telegram.updates import OTHER_POLL

FAULT_LIMIT: Final = 100
"""Faults that wait at once."""
SENDS_PER_SECOND: Final = 100
"""Messages to one chat. The real limit is about one a second; so low a one would only slow tests down."""
_DESCRIPTIONS: Final = {
    400: "Bad Request: injected by the sandbox",
    401: "Unauthorized",
    403: "Forbidden: bot was blocked by the user",
    404: "Not Found",
    409: OTHER_POLL,
    413: "Request Entity Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}


@dataclass(slots=True)
class Fault:
    """A failure that the next `times` calls of a method meet; `bot_id` None: of any bot."""

    method: str
    error: ApiError
    times: int
    bot_id: int | None


class Faults:
    """The faults that wait, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(
        self,
        method: str,
        error_code: int,
        *,
        description: str | None = None,
        retry_after: int | None = None,
        times: int = 1,
        bot_id: int | None = None,
    ) -> bool:
        """Let a method fail; False when too many faults wait already."""
        if len(self._faults) >= FAULT_LIMIT:
            return False
        if error_code == 429:
            error = too_many_requests(1 if retry_after is None else retry_after)
        else:
            error = ApiError(error_code, _DESCRIPTIONS.get(error_code, "Unknown Error"), retry_after)
        if description is not None:
            error.description = description
        self._faults.append(Fault(method.lower(), error, times, bot_id))
        return True

    def clear(self) -> int:
        """Forget all; return how many there were."""
        count = len(self._faults)
        self._faults.clear()
        return count

    def raise_for(self, method: str, bot_id: int) -> None:
        """Raise the first fault that waits for this method of this bot."""
        for fault in self._faults:
            if fault.method == method.lower() and fault.bot_id in {None, bot_id}:
                fault.times -= 1
                if fault.times <= 0:
                    self._faults.remove(fault)
                # A fresh one each time: an exception keeps the traceback of every place that raised it.
                raise ApiError(fault.error.error_code, fault.error.description, fault.error.retry_after)


class FloodLimit:
    """Counts messages to each chat."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[int, deque[int]] = {}

    def count(self, chat_id: int) -> None:
        """Count a message to this chat, or raise ApiError 429."""
        now = self._clock()
        sent = self._sent.setdefault(chat_id, deque(maxlen=SENDS_PER_SECOND))
        if len(sent) == SENDS_PER_SECOND and now - sent[0] < SECOND:
            raise too_many_requests(1)
        sent.append(now)
