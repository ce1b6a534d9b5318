"""Limit a developer's calls to the developer API and the console, over all tokens and browsers of the account.

| limit | calls | rate |
|---|---|---|
| `developer` | all calls of a developer | a setting, 600 a minute |
| `developer_write` | those that may change something | a setting, 1,000 an hour |

A call across all projects takes one more unit for each hundred of them. This bounds the work of a minute, not only the
number of calls. Such calls of one developer also take turns, so that other tenants wait for at most one of them.

Listing and revoking access tokens, and ending console sessions, stays possible at the limit. Such calls are counted by
the acting token or session (`way_out`, 30 a minute), and not as writes. A stolen token that uses up its developer's
limits thus cannot prevent its own revocation. Such calls of one developer take turns too.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taproof.core.accounts import Actor
from taproof.core.clock import MINUTE, Clock
from taproof.core.errors import RateLimited
from taproof.core.rate_limit import Gcra, KeyedGcra, Rate, Standing
from taproof.http.errors import bearer_token, send_error
from taproof.http.limits.header_fields import Allowance, Allowances, rate_limit_fields
from taproof.http.metrics import LimitName

PROJECTS_OF_A_UNIT: Final = 100
WAY_OUT: Final = Gcra(30, MINUTE, 30)
"""The limit for one token or console session of calls that list or end credentials."""
TOKENS: Final = "/api/v1/dev/tokens"
_PAUSE: Final = 0.03
"""Seconds between the starts of two costly calls of one developer: such a call takes about 10 ms of the event loop."""
_KNOWN: Final = 10_000
"""The most developers whose turns are kept, apart from those with waiting calls."""
_ALLOWANCES: Final = "taproof_rate_limit"
_REFUSED: Final = 10_000
"""The most access tokens that are kept as refused."""


@dataclass(slots=True)
class _Turn:
    """The costly calls of one developer. One runs at a time; the next may begin at `free_at` (s, of the loop)."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0


class DeveloperLimits:
    """The limits of developers in this process.

    Args:
        refusal: returns the error for a call that must wait for a number of ms, and counts it.
        clock: returns the time in ms.
        calls: the rate of one developer's calls; None for no limit.
        writes: the rate of one developer's calls that may change something; None for no limit.
    """

    def __init__(
        self,
        refusal: Callable[[LimitName, int], RateLimited],
        clock: Clock,
        *,
        calls: Rate | None,
        writes: Rate | None,
    ) -> None:
        self._refusal = refusal
        self._clock = clock
        self._calls = None if calls is None else KeyedGcra(Gcra(calls.number, calls.window, calls.number))
        self._writes = None if writes is None else KeyedGcra(Gcra(writes.number, writes.window, writes.number))
        self._ways_out = KeyedGcra(WAY_OUT)
        self._refused: dict[int, int] = {}
        """The time (ms) until which an access token is refused, by an unpredictable hash, so no token is stored."""
        self._turns: dict[str, _Turn] = {}

    def count_call(self, scope: Scope, actor: Actor, *, writes: bool = False, way_out: bool = False) -> None:
        """Count a call, and note in its scope what is left.

        Args:
            scope: the request's scope; `TellLimits` reads the note.
            actor: the caller.
            writes: whether the call may change something.
            way_out: whether it shows or ends access tokens or console sessions.

        Raises:
            RateLimited: there are too many calls; nothing is counted.
        """
        allowances: Allowances = []
        scope.setdefault("state", {})[_ALLOWANCES] = allowances
        now = self._clock()
        key = actor.developer.id
        if way_out:
            if self._calls is not None and not _count("way_out", self._ways_out, actor.via_id, now, allowances):
                raise self._refusal("developer", allowances[-1].left.until_next)
            return
        if self._calls is not None and not _count("developer", self._calls, key, now, allowances):
            wait = allowances[-1].left.until_next
            self._remember_refused(scope, now + wait)
            raise self._refusal("developer", wait)
        if self._writes is not None and writes and not _count("writes", self._writes, key, now, allowances):
            if self._calls is not None:
                self._calls.give_back(key, now)
            raise self._refusal("developer_write", allowances[-1].left.until_next)

    def refuse_again(self, scope: Scope) -> RateLimited | None:
        """Return the error for an access token that was just refused; None for any other call.

        A client that calls on without a pause is answered before its request is examined, since authentication takes
        ten times as long. If its token is revoked meanwhile, it learns that only after the wait.
        """
        if not self._refused or self._calls is None or scope["path"].startswith(TOKENS):
            return None
        key, now = hash(bearer_token(scope)), self._clock()
        until = self._refused.get(key)
        if until is None:
            return None
        if until <= now:
            del self._refused[key]
            return None
        scope.setdefault("state", {})[_ALLOWANCES] = [
            Allowance("developer", self._calls.rule, Standing(0, until - now))
        ]
        return self._refusal("developer", until - now)

    def _remember_refused(self, scope: Scope, until: int) -> None:
        bearer = bearer_token(scope)
        if bearer is not None:  # The console sends none.
            if len(self._refused) >= _REFUSED:
                self._refused.clear()
            self._refused[hash(bearer)] = until

    def count_sign_in(self, developer_id: str) -> None:
        """Count a developer's sign-in to the console with an access token, which the audit log records.

        Raises:
            RateLimited: there are too many sign-ins.
        """
        now = self._clock()
        if self._writes is not None and not self._writes.spend(("sign_in", developer_id), now):
            raise self._refusal("developer_write", self._writes.standing(("sign_in", developer_id), now).until_next)

    @asynccontextmanager
    async def turn(self, developer_id: str) -> AsyncIterator[None]:
        """Run costly calls of one developer one at a time, with a pause that leaves the event loop to others.

        Without a limit of calls there is no pause.
        """
        loop = asyncio.get_running_loop()
        if len(self._turns) >= _KNOWN:
            self._turns = {key: turn for key, turn in self._turns.items() if turn.free_at > loop.time()}
        turn = self._turns.setdefault(developer_id, _Turn())
        turn.free_at = max(turn.free_at, loop.time())
        wait, turn.free_at = turn.free_at - loop.time(), turn.free_at + _PAUSE
        if wait > 0 and self._calls is not None:
            await asyncio.sleep(wait)
        async with turn.lock:
            yield

    async def weigh(self, developer_id: str, count_projects: Callable[[str], Awaitable[int]]) -> None:
        """Count an admitted call once more for each hundred projects of the developer that it covers."""
        if self._calls is None:
            return
        now = self._clock()
        for _ in range(await count_projects(developer_id) // PROJECTS_OF_A_UNIT):
            self._calls.charge(developer_id, now)


def _count(name: str, limit: KeyedGcra, key: str, now: int, allowances: Allowances) -> bool:
    """Count a call if it is allowed, and note what is left. Return whether it is allowed."""
    is_allowed = limit.spend(key, now)
    allowances.append(Allowance(name, limit.rule, limit.standing(key, now)))
    return is_allowed


class HoldLimits(Protocol):
    """An object with the limits of developers, which a test may replace."""

    developers: DeveloperLimits


class TellLimits:
    """ASGI middleware that adds header fields with what `DeveloperLimits.count_call` left, and calls `refuse_again`."""

    def __init__(self, app: ASGIApp, limits: HoldLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, and add the header fields to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def telling_send(message: Message) -> None:
            allowances: Allowances = scope.get("state", {}).get(_ALLOWANCES, [])
            if allowances and message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *rate_limit_fields(allowances)]}
            await send(message)

        refusal = self._limits.developers.refuse_again(scope)
        if refusal is not None:
            await send_error(telling_send, refusal)
            return
        await self._app(scope, receive, telling_send)
