"""Limit a developer's calls to the developer API and the console, across all of the account's tokens and browsers.

A call across all projects costs one more unit for each hundred projects. This limits the work per minute, not only the
number of calls. One developer's calls of this kind also run one at a time, so that other tenants wait for at most one.

Listing and revoking access tokens, and ending console sessions, remains possible at the limit. These calls count
against a limit of the acting token or session (`way_out`, 30 a minute), and not as writes. So a stolen token that uses
up its developer's limits cannot prevent its own revocation. One developer's calls of this kind run one at a time too.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taproof.core.accounts import Actor
from taproof.core.clock import MINUTE, SECOND, Clock
from taproof.core.errors import RateLimited
from taproof.core.rate_limit import Gcra, KeyedGcra, Rate, Standing
from taproof.http.errors import bearer_token, send_error
from taproof.http.metrics import LimitName

PROJECTS_OF_A_UNIT: Final = 100
WAY_OUT: Final = Gcra(30, MINUTE, 30)
"""The limit on calls that list or end credentials, for each token or console session."""
TOKENS: Final = "/api/v1/dev/tokens"
_PAUSE: Final = 0.03
"""Seconds between the starts of a developer's costly calls. Such a call takes about 10 ms of the event loop."""
_KNOWN: Final = 10_000
"""The maximum number of developers whose turns are kept, not counting developers with waiting calls."""
_ALLOWANCES: Final = "taproof_rate_limit"
DOWNLOADS: Final = 2
"""The maximum number of downloads that one developer runs at a time in a process."""
_DOWNLOAD_WAIT: Final = 10 * SECOND
_REFUSED: Final = 10_000
"""The maximum number of access tokens remembered as refused."""


class Allowance(NamedTuple):
    """A limit that a call was counted against: its name, its rule, and the caller's remaining allowance."""

    name: str
    rule: Gcra
    left: Standing


@dataclass(slots=True)
class _Turn:
    """One developer's costly calls. One runs at a time; the next can start at `free_at` (seconds, event loop time)."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0


class DeveloperLimits:
    """The developer limits in this process.

    `refusal` returns the error for a call that must wait for a number of ms, and counts the refusal. `calls` is the
    rate of one developer's calls, and `writes` of those that can change something; None is no limit.
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
        self.calls = None if calls is None else KeyedGcra(burst_of_all(calls))
        self._writes = None if writes is None else KeyedGcra(burst_of_all(writes))
        self._ways_out = KeyedGcra(WAY_OUT)
        self._refused: dict[int, int] = {}
        """The time (ms) until which a token is refused, keyed by an unpredictable hash, so that no token is stored."""
        self._turns: dict[str, _Turn] = {}
        self._downloads = Counter[str]()

    def count_call(self, scope: Scope, actor: Actor, *, writes: bool = False, way_out: bool = False) -> None:
        """Count a call, and record in its scope how many calls are left. `TellLimits` reads the record.

        If there are too many, raise RateLimited and count nothing. `writes`: the call can change something. `way_out`:
        it shows or ends access tokens or console sessions.
        """
        allowances: list[Allowance] = []
        scope.setdefault("state", {})[_ALLOWANCES] = allowances
        now = self._clock()
        key = actor.developer.id
        if way_out:
            if self.calls is not None and not _count("way_out", self._ways_out, actor.via_id, now, allowances):
                raise self._refusal("developer", allowances[-1].left.until_next)
            return
        if self.calls is not None and not _count("developer", self.calls, key, now, allowances):
            wait = allowances[-1].left.until_next
            self._remember_refused(scope, now + wait)
            raise self._refusal("developer", wait)
        if self._writes is not None and writes and not _count("writes", self._writes, key, now, allowances):
            if self.calls is not None:
                self.calls.give_back(key, now)
            raise self._refusal("developer_write", allowances[-1].left.until_next)

    def refuse_again(self, scope: Scope) -> RateLimited | None:
        """Return the error for an access token that was just refused; None for any other call.

        A client that keeps calling without a pause is refused before authentication, which takes ten times as long. If
        its token is revoked meanwhile, the client learns that only after the wait.
        """
        if not self._refused or self.calls is None or scope["path"].startswith(TOKENS):
            return None
        key, now = hash(bearer_token(scope)), self._clock()
        until = self._refused.get(key)
        if until is None:
            return None
        if until <= now:
            del self._refused[key]
            return None
        refused = Allowance("developer", self.calls.rule, Standing(0, until - now))
        scope.setdefault("state", {})[_ALLOWANCES] = [refused]
        return self._refusal("developer", until - now)

    def _remember_refused(self, scope: Scope, until: int) -> None:
        bearer = bearer_token(scope)
        if bearer is not None:  # The console sends no token.
            if len(self._refused) >= _REFUSED:
                self._refused.clear()
            self._refused[hash(bearer)] = until

    def count_sign_in(self, developer_id: str) -> None:
        """Count a sign-in to the console with an access token. Raise RateLimited if there are too many.

        The audit log records each of them.
        """
        now = self._clock()
        if self._writes is not None and not self._writes.spend(("sign_in", developer_id), now):
            raise self._refusal("developer_write", self._writes.standing(("sign_in", developer_id), now).until_next)

    @asynccontextmanager
    async def turn(self, developer_id: str) -> AsyncIterator[None]:
        """Run one developer's costly calls one at a time, with a pause that frees the event loop for others.

        Without a call limit there is no pause.
        """
        loop = asyncio.get_running_loop()
        if len(self._turns) >= _KNOWN:
            self._turns = {key: turn for key, turn in self._turns.items() if turn.free_at > loop.time()}
        turn = self._turns.setdefault(developer_id, _Turn())
        turn.free_at = max(turn.free_at, loop.time())
        wait, turn.free_at = turn.free_at - loop.time(), turn.free_at + _PAUSE
        if wait > 0 and self.calls is not None:
            await asyncio.sleep(wait)
        async with turn.lock:
            yield

    @contextmanager
    def download(self, developer_id: str) -> Iterator[None]:
        """Run one of a developer's downloads, which can take long. Raise RateLimited if too many run already.

        They wait for no turn, and nothing waits for them.
        """
        if self._downloads[developer_id] >= DOWNLOADS:
            raise self._refusal("developer", _DOWNLOAD_WAIT)
        self._downloads[developer_id] += 1
        try:
            yield
        finally:
            self._downloads[developer_id] -= 1
            self._downloads += Counter()  # Forget developers without downloads.

    async def weigh(self, developer_id: str, count_projects: Callable[[str], Awaitable[int]]) -> None:
        """Charge an admitted call one more unit for each hundred of the developer's projects."""
        if self.calls is None:
            return
        now = self._clock()
        for _ in range(await count_projects(developer_id) // PROJECTS_OF_A_UNIT):
            self.calls.charge(developer_id, now)


def _count(name: str, limit: KeyedGcra, key: str, now: int, allowances: list[Allowance]) -> bool:
    """Count a call if it is allowed, and record how many are left. Return whether it is allowed."""
    is_allowed = limit.spend(key, now)
    allowances.append(Allowance(name, limit.rule, limit.standing(key, now)))
    return is_allowed


def burst_of_all(rate: Rate) -> Gcra:
    """Return the limit with this rate that admits all its calls at once."""
    return Gcra(rate.number, rate.window, rate.number)


def rate_limit_fields(allowances: list[Allowance]) -> list[tuple[bytes, bytes]]:
    """Return the headers for these limits (draft-ietf-httpapi-ratelimit-headers-11)."""
    policies = ", ".join(f'"{name}";q={rule.number};w={rule.window // SECOND}' for name, rule, _ in allowances)
    standings = ", ".join(f'"{name}";r={left.remaining};t={seconds(left.until_next)}' for name, _, left in allowances)
    return [(b"ratelimit-policy", policies.encode()), (b"ratelimit", standings.encode())]


def seconds(milliseconds: int) -> int:
    """Return whole seconds, rounded up, so that a client that retries after this time is not too early."""
    return max(1, -(-milliseconds // SECOND))


class HoldLimits(Protocol):
    """An object with the developer limits, which a test can replace."""

    developers: DeveloperLimits


class TellLimits:
    """ASGI middleware that adds the rate limit headers from `DeveloperLimits.count_call`, and calls `refuse_again`."""

    def __init__(self, app: ASGIApp, limits: HoldLimits) -> None:
        self.app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application, and add the headers to its response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def telling_send(message: Message) -> None:
            allowances: list[Allowance] = scope.get("state", {}).get(_ALLOWANCES, [])
            if allowances and message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *rate_limit_fields(allowances)]}
            await send(message)

        refusal = self._limits.developers.refuse_again(scope)
        if refusal is not None:
            await send_error(telling_send, refusal)
            return
        await self.app(scope, receive, telling_send)
