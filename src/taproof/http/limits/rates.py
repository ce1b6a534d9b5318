"""Limit request rates by client address, project or session. Each process has its own counters, in memory.

docs/reference/limits.md lists the limits. `developers.py` limits the calls of authenticated developers.

The client address is the one that `HttpsOnly` determines; for IPv6, its /64. All limits except `verify_session` also
apply to each IPv6 /48, at ten times the rate: see `core.rate_limit`. If the service is for this machine only, local
programs have no address limit. Otherwise loopback is an address like any other, because a local proxy can forward
external calls without forwarding headers. Public and server-side calls are counted separately: anyone can flood the
public endpoints, and this must not block the others. A refused call does not count against other limits. The headers
follow draft-ietf-httpapi-ratelimit-headers-11.
"""

import json
from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

from taproof.core.clock import MINUTE, SECOND, Clock
from taproof.core.errors import RateLimited, StoreUnavailable, TaproofError
from taproof.core.rate_limit import AddressLimit, Gcra, KeyedGcra, Rate, counted_address
from taproof.http.https_only import parse_address
from taproof.http.limits.developers import Allowance, DeveloperLimits, burst_of_all, rate_limit_fields, seconds
from taproof.http.limits.refused_credentials import RefusedCredentials
from taproof.http.metrics import LimitName, Metrics

POLLS: Final = Gcra(1, 1_450, 10)
"""A client that polls every 1.5 s is never refused, however late some of its calls are. If it polls ten times as
often, 89 % of its calls are refused. A call with `wait` counts as one call."""
UNKNOWN: Final = Gcra(20, SECOND, 200)
"""Far more than the unknown sessions of all clients that share an address, and a small load for the store."""
SIGN_INS: Final = Gcra(20, MINUTE, 20)
CREDENTIALS: Final = Gcra(20, MINUTE, 20)
PAGES: Final = Gcra(600, MINUTE, 600)
"""Enough for an office of developers who share one address, and a small load for the event loop."""
_KNOWN_FOR: Final = MINUTE
"""The time (ms) for which a client and its session are remembered after a call. It is longer than the longest wait,
and clients call again right after a wait."""
_KNOWN_HOSTS: Final = 4_096
_HERE: Final = "this machine"
_NOBODY: Final = ("", 0)
_EXPOSE: Final = (b"access-control-expose-headers", b"RateLimit, RateLimit-Policy")


POLL_REFUSALS: Final[Mapping[int, bytes]] = {
    wait: json.dumps({"error": RateLimited(wait).sentence}).encode() for wait in range(1, seconds(POLLS.window) + 1)
}
"""The bodies of all responses to refused verify calls, keyed by the seconds in `Retry-After`."""


class RateLimits:
    """The rate limits in this process.

    Args:
        metrics: counts the refusals.
        clock: returns the time in ms.
        generate_address: how fast one client address can start sessions. None, here and below, is no limit.
        generate_project: how fast one project's sessions can be started.
        local_only: the service is for this machine only, so calls from loopback are not limited by their address.
        developer: the rate of one developer's calls to the developer API and the console.
        developer_write: the rate of those of them that can change something.
    """

    def __init__(
        self,
        metrics: Metrics,
        clock: Clock,
        *,
        generate_address: Rate | None,
        generate_project: Rate | None,
        local_only: bool,
        developer: Rate | None = None,
        developer_write: Rate | None = None,
    ) -> None:
        self.clock = clock
        self.generate_address = None if generate_address is None else AddressLimit(burst_of_all(generate_address))
        self.generate_project = None if generate_project is None else KeyedGcra(burst_of_all(generate_project))
        self.refused_credentials = RefusedCredentials(clock)
        self._local_only = local_only
        self.developers = DeveloperLimits(self.refusal, clock, calls=developer, writes=developer_write)
        self._refused = metrics.rate_limited
        self.polls = KeyedGcra(POLLS, keep=_KNOWN_FOR)
        self._device_polls = KeyedGcra(POLLS)
        self.unknown = AddressLimit(UNKNOWN)
        self._sign_ins = AddressLimit(SIGN_INS)
        self._credentials = AddressLimit(CREDENTIALS)
        self._pages = AddressLimit(PAGES)
        self._addresses: dict[str, str] = {}

    def address(self, scope: Scope) -> str | None:
        """Return the address under which a request's client is counted; None for a local program without limits."""
        client = scope.get("client") or _NOBODY
        address = self._addresses.get(client[0]) or self._learn(client[0])
        if address is not _HERE:
            return address
        # Port 0: a local proxy forwarded the request, so the client is not a local program.
        return None if self._local_only and client[1] != 0 else client[0]

    # ---- verify

    def refuse_poll(
        self, scope: Scope, project_id: str, session_token: str, code_verifier: object, *, public: bool
    ) -> int | None:
        """Return the seconds that a too frequent verify call must wait; None to admit the call.

        A caller that has been admitted before is limited only by its own pace. Callers that share its address or know
        its session do not affect it. A new caller is also counted by its session, because a session created without a
        challenge accepts any verifier.
        """
        client = scope.get("client") or _NOBODY
        # Like `address`, but without a function call, because nearly all requests run this code.
        address = self._addresses.get(client[0])
        if address is None or address is _HERE:
            address = self.address(scope)
            if address is None:
                return None
        if code_verifier.__class__ is not str:
            code_verifier = None
        # Use an unpredictable hash, so that no token is stored.
        key = hash((address, project_id, session_token, code_verifier))
        now = self.clock()
        is_in = self.polls.spend_again(key, now)
        if is_in:
            return None
        if is_in is None:
            left = self.unknown.standing(address if public else project_id, now)
            if not left.remaining:
                return self._refused_poll("verify_unknown", left.until_next)
            key_of_all = hash((address, session_token))
            if self.polls.spend(key_of_all, now):
                self.polls.spend(key, now)
                return None
            key = key_of_all
        return self._refused_poll("verify_session", self.polls.standing(key, now).until_next)

    def poll_failed(
        self,
        scope: Scope,
        project_id: str,
        session_token: str,
        code_verifier: object,
        error: TaproofError,
        *,
        public: bool,
    ) -> None:
        """Record that an admitted verify call found no session, or one that is not the caller's.

        A caller with the project's key is counted by project, so other clients at the same address do not affect it.
        """
        address = self.address(scope)
        # Remember the caller while the store is unavailable.
        if address is None or isinstance(error, StoreUnavailable):
            return
        now = self.clock()
        # Invented sessions use no memory, and do not count against other callers of the same session.
        verifier = code_verifier if isinstance(code_verifier, str) else None
        self.polls.forget(hash((address, project_id, session_token, verifier)))
        self.polls.give_back(hash((address, session_token)), now)
        self.unknown.charge(address if public else project_id, now)

    def _refused_poll(self, name: LimitName, wait: int) -> int:
        self._refused[name].inc()
        return seconds(wait)

    # ---- the OpenID provider

    def count_generate(self, scope: Scope, project_id: str, *, public: bool = True) -> None:
        """Count a sign-in that a page or client starts, as a call to generate. Raise RateLimited if there are too many.

        `public`: the caller has no secret, so it is counted as a call to generate/public, also by its address.
        """
        GenerateCall(self, scope, public=public).count(project_id)

    def admits_device_poll(self, device_code: str) -> bool:
        """Return whether the store may record a device's poll. A device that polls far too often causes no writes."""
        return self._device_polls.spend(hash(device_code), self.clock())

    # ---- the console, and the login from a terminal

    def count_sign_in(self, scope: Scope) -> None:
        """Count a started sign-in. Raise RateLimited if there are too many."""
        self._count("sign_in", self._sign_ins, self.address(scope))

    def count_credential(self, scope: Scope) -> None:
        """Count an attempt with an access token or an invitation code. Raise RateLimited if there are too many."""
        self._count("credential", self._credentials, self.address(scope))

    def count_page(self, scope: Scope) -> None:
        """Count an opened page. Raise RateLimited if there are too many."""
        self._count("page", self._pages, self.address(scope))

    def _count(self, name: LimitName, limit: AddressLimit, address: str | None) -> None:
        now = self.clock()
        if address is not None and not limit.spend(address, now):
            raise self.refusal(name, limit.standing(address, now).until_next)

    def refusal(self, name: LimitName, wait: int) -> RateLimited:
        """Return the error for a call that must wait for `wait` ms, and count the refusal."""
        self._refused[name].inc()
        return RateLimited(seconds(wait))

    def _learn(self, host: str) -> str:
        address = parse_address(host)
        if address is None:
            counted = host or "unknown"
        elif address.is_loopback:
            counted = _HERE
        else:
            counted = counted_address(address)
        if len(self._addresses) >= _KNOWN_HOSTS:
            self._addresses.clear()
        self._addresses[host] = counted
        return counted


class GenerateCall:
    """One call to generate or mini-app: counts it against its limits, and builds the rate limit headers.

    Only the project's own server sees how many calls are left for the project. Public callers see this only when none
    are left, so that a project's usage stays private.
    """

    def __init__(self, limits: RateLimits, scope: Scope, *, public: bool) -> None:
        self._limits = limits
        self._address = limits.address(scope) if public else None
        self._public = public
        self._allowances: list[Allowance] = []

    def count(self, project_id: str) -> None:
        """Count this call. If there are too many, raise RateLimited and count nothing."""
        limits, now = self._limits, self._limits.clock()
        by_address, by_project = limits.generate_address, limits.generate_project
        if self._address is not None and by_address is not None:
            is_in = by_address.spend(self._address, now)
            left = by_address.standing(self._address, now)
            self._allowances.append(Allowance("address", by_address.rule, left))
            if not is_in:
                raise limits.refusal("generate_address", left.until_next)
        if by_project is not None:
            key = (self._public, project_id)
            is_in = by_project.spend(key, now)
            if self._public and is_in:
                return
            left = by_project.standing(key, now)
            self._allowances.append(Allowance("project", by_project.rule, left))
            if not is_in:
                if self._address is not None and by_address is not None:
                    by_address.give_back(self._address, now)
                raise limits.refusal("generate_project", left.until_next)

    def give_back(self, project_id: str) -> None:
        """Stop counting this call against the project, because it started no session."""
        if self._limits.generate_project is not None:
            self._limits.generate_project.give_back((self._public, project_id), self._limits.clock())

    def headers(self, status: int) -> list[tuple[bytes, bytes]]:
        """Return the rate limit headers for a response with this status."""
        if not self._allowances:
            return []
        fields = rate_limit_fields(self._allowances)
        if self._public and status == 200:  # Error responses already expose these headers.
            fields.append(_EXPOSE)
        return fields
