"""Requested failures of calls, so that tests can check a bot's reaction to errors, and the flood limit."""

from collections import deque
from dataclasses import dataclass
from typing import Final

from taproof.core.clock import SECOND, Clock
from taproof.sandbox.telegram.request import ApiError, too_many_requests
from taproof.sandbox.telegram.updates import OTHER_POLL

FAULT_LIMIT: Final = 100
"""Maximum number of pending faults."""
SENDS_PER_SECOND: Final = 100
"""The limit on messages to one chat. The real limit is about one a second, which would only slow tests down."""
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
    """A failure of the next `times` calls of a method. With `bot_id` None, it applies to any bot."""

    method: str
    error: ApiError
    times: int
    bot_id: int | None


class Faults:
    """The pending faults, in the order in which they were requested."""

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
        """Make a method fail. Return False if too many faults are pending."""
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
        """Remove all faults and return their number."""
        count = len(self._faults)
        self._faults.clear()
        return count

    def raise_for(self, method: str, bot_id: int) -> None:
        """Raise the first pending fault for this method of this bot, if there is one."""
        for fault in self._faults:
            if fault.method == method.lower() and fault.bot_id in {None, bot_id}:
                fault.times -= 1
                if fault.times <= 0:
                    self._faults.remove(fault)
                # A new exception each time: a reused one would collect the tracebacks of all raises.
                raise ApiError(fault.error.error_code, fault.error.description, fault.error.retry_after)


class FloodLimit:
    """Counts messages to each chat."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: dict[int, deque[int]] = {}

    def count(self, chat_id: int) -> None:
        """Count a message to this chat.

        Raises:
            ApiError: 429, the chat has reached `SENDS_PER_SECOND`.
        """
        now = self._clock()
        sent = self._sent.setdefault(chat_id, deque(maxlen=SENDS_PER_SECOND))
        if len(sent) == SENDS_PER_SECOND and now - sent[0] < SECOND:
            raise too_many_requests(1)
        sent.append(now)
