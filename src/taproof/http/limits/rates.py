"""What is limited at the HTTP edge, and how a refusal is answered. Each process counts for itself, in memory.

| limit | of whom | how much |
|---|---|---|
| `generate_address` | public generate calls of a client address | a setting, 60 a minute unless it says otherwise |
| `generate_project` | generate calls of a project, public and server-side ones apart | a setting, 6,000 a minute |
| `verify_session` | verify calls of a client address for one session | one each 1.45 s, 10 at once |
| `verify_unknown` | verify calls that found nothing, of an address or a server's project | 20 a second, 200 at once |
| `sign_in` | sign-ins to the console or of `taproof login`, begun from a client address | 20 a minute |
| `credential` | access tokens and invitation codes tried from a client address | 20 a minute |
| `page` | what a client address opens of the console and of /metrics | 600 a minute |

What developers do once they are recognised is limited in `developers.py`.

A client address is that of `HttpsOnly`, of IPv6 its /64. In all but `verify_session` a /48 of IPv6 is counted
too, and has ten times as much: see `core.rate_limit`. Where the service is for this machine only, a program here has
no address. Everywhere else loopback is an address like any other, since a proxy here may pass on strangers without a
word of them. Public and server-side calls are counted apart, so that no flood of the
one, which anybody can make, stops the other. What a refused call would have taken is not taken. The header fields are
those of draft-ietf-httpapi-ratelimit-headers-11.
"""

import json
from collections.abc import Mapping
from typing import Final

from starlette.types import Message, Scope, Send

from taproof.core.clock import MINUTE, SECOND, Clock
from taproof.core.errors import RateLimited, StoreUnavailable, TaproofError
from taproof.core.rate_limit import AddressLimit, Gcra, KeyedGcra, Rate, Standing, counted_address
from taproof.http.https_only import parse_address
from taproof.http.limits.developers import DeveloperLimits
from taproof.http.limits.refused_credentials import RefusedCredentials
from taproof.http.metrics import LimitName, Metrics

POLLS: Final = Gcra(1, 1_450, 10)
"""A client that polls every 1.5 s is never refused, however late some of its calls are; ten times as often is refused
89 % of the time. A call that waits counts as one."""
UNKNOWN: Final = Gcra(20, SECOND, 200)
"""Far more than the lost sessions of all who share an address, and next to nothing for the store."""
SIGN_INS: Final = Gcra(20, MINUTE, 20)
CREDENTIALS: Final = Gcra(20, MINUTE, 20)
PAGES: Final = Gcra(600, MINUTE, 600)
"""Enough for an office of developers behind one address, and next to nothing for the event loop."""
_KNOWN_FOR: Final = MINUTE
"""ms that a client and its session are known after a call: longer than any call waits, and the next one comes then."""
_KNOWN_HOSTS: Final = 4_096
_HERE: Final = "this machine"
_NOBODY: Final = ("", 0)
_EXPOSE: Final = (b"access-control-expose-headers", b"RateLimit, RateLimit-Policy")


def _seconds(milliseconds: int) -> int:
    """Return whole seconds, rounded up: whoever comes back then is not too early."""
    return max(1, -(-milliseconds // SECOND))


POLL_REFUSALS: Final[Mapping[int, bytes]] = {
    seconds: json.dumps({"error": RateLimited(seconds).sentence}).encode()
    for seconds in range(1, _seconds(POLLS.window) + 1)
}
"""The bodies of all answers to refused verify calls, by the seconds of their `Retry-After`."""


class RateLimits:
    """The limits of this process.

    Args:
        metrics: where refusals are counted.
        clock: returns the time in ms.
        generate_address: how often one client address may start sessions; None for no limit.
        generate_project: how often sessions of one project may be started; None for no limit.
        local_only: the service is for this machine only, so calls from loopback are not limited by their address.
        developer: how often one developer may call the developer API and the console; None for no limit.
        developer_write: how often one developer may change something there; None for no limit.
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
        self.generate_address = None if generate_address is None else AddressLimit(_burst_of_all(generate_address))
        self.generate_project = None if generate_project is None else KeyedGcra(_burst_of_all(generate_project))
        self.refused_credentials = RefusedCredentials(clock)
        self._local_only = local_only
        self.developers = DeveloperLimits(self.refusal, clock, calls=developer, writes=developer_write)
        self._refused = metrics.rate_limited
        self._polls = KeyedGcra(POLLS, keep=_KNOWN_FOR)
        self._unknown = AddressLimit(UNKNOWN)
        self._sign_ins = AddressLimit(SIGN_INS)
        self._credentials = AddressLimit(CREDENTIALS)
        self._pages = AddressLimit(PAGES)
        self._addresses: dict[str, str] = {}

    def address(self, scope: Scope) -> str | None:
        """Return what the client of a request is counted by; None for a program here that is not limited."""
        client = scope.get("client") or _NOBODY
        address = self._addresses.get(client[0]) or self._learn(client[0])
        if address is not _HERE:
            return address
        # Port 0: a proxy here passed it on, so it is no program here.
        return None if self._local_only and client[1] != 0 else client[0]

    # ---- verify

    def refuse_poll(
        self, scope: Scope, project_id: str, session_token: str, code_verifier: object, *, public: bool
    ) -> int | None:
        """Return how many seconds a verify call has to wait that comes too often; None to let it in.

        A caller that was answered before is held to its own pace alone, whatever others do that share its address or
        know its session. One that was not is counted by its session too, since any verifier fits a session that was
        made without a challenge.
        """
        client = scope.get("client") or _NOBODY
        # As `address`, without a call: this is on the path of nearly all requests.
        address = self._addresses.get(client[0])
        if address is None or address is _HERE:
            address = self.address(scope)
            if address is None:
                return None
        if code_verifier.__class__ is not str:
            code_verifier = None
        # A number that cannot be foreseen, so that no token is kept for it.
        key = hash((address, project_id, session_token, code_verifier))
        now = self.clock()
        is_in = self._polls.spend_again(key, now)
        if is_in:
            return None
        if is_in is None:
            left = self._unknown.standing(address if public else project_id, now)
            if not left.remaining:
                return self._refused_poll("verify_unknown", left.until_next)
            key_of_all = hash((address, session_token))
            if self._polls.spend(key_of_all, now):
                self._polls.spend(key, now)
                return None
            key = key_of_all
        return self._refused_poll("verify_session", self._polls.standing(key, now).until_next)

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
        """Note that a verify call which was let in found nothing: no such session, or not this caller's.

        Who has the project's key is counted by the project: strangers of the same address take nothing from them.
        """
        address = self.address(scope)
        # A caller whom the store keeps waiting is still known when it is back.
        if address is None or isinstance(error, StoreUnavailable):
            return
        now = self.clock()
        # Sessions that are made up take no room, and count against nobody else who asks for this one.
        verifier = code_verifier if isinstance(code_verifier, str) else None
        self._polls.forget(hash((address, project_id, session_token, verifier)))
        self._polls.give_back(hash((address, session_token)), now)
        self._unknown.charge(address if public else project_id, now)

    def _refused_poll(self, name: LimitName, wait: int) -> int:
        self._refused[name].inc()
        return _seconds(wait)

    # ---- the console, and the login from a terminal

    def start_sign_in(self, scope: Scope) -> None:
        """Count a sign-in that is begun; raises RateLimited when there are too many."""
        self._count("sign_in", self._sign_ins, self.address(scope))

    def try_credential(self, scope: Scope) -> None:
        """Count an access token or an invitation code that is tried; raises RateLimited when there are too many."""
        self._count("credential", self._credentials, self.address(scope))

    def open_page(self, scope: Scope) -> None:
        """Count a page that is opened; raises RateLimited when there are too many."""
        self._count("page", self._pages, self.address(scope))

    def _count(self, name: LimitName, limit: AddressLimit, address: str | None) -> None:
        now = self.clock()
        if address is not None and not limit.spend(address, now):
            raise self.refusal(name, limit.standing(address, now).until_next)

    def refusal(self, name: LimitName, wait: int) -> RateLimited:
        """Return the error for a call that has to wait for so many ms, and count it."""
        self._refused[name].inc()
        return RateLimited(_seconds(wait))

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
    """One call to generate: what it takes of the limits, and the header fields that tell of them.

    Of a project only its own server is told what is left, and others once nothing is: how much a project is used is not
    everybody's business.
    """

    def __init__(self, limits: RateLimits, scope: Scope, send: Send, *, public: bool) -> None:
        self._limits = limits
        self._address = limits.address(scope) if public else None
        self._send = send
        self._public = public
        self._policies: list[str] = []
        self._standings: list[str] = []

    def take(self, project_id: str) -> None:
        """Count this call; raises RateLimited, and nothing is counted, when there are too many."""
        limits, now = self._limits, self._limits.clock()
        by_address, by_project = limits.generate_address, limits.generate_project
        if self._address is not None and by_address is not None:
            is_in = by_address.spend(self._address, now)
            wait = self._tell("address", by_address.rule, by_address.standing(self._address, now))
            if not is_in:
                raise limits.refusal("generate_address", wait)
        if by_project is not None:
            key = (self._public, project_id)
            is_in = by_project.spend(key, now)
            if not self._public or not is_in:
                wait = self._tell("project", by_project.rule, by_project.standing(key, now))
            if not is_in:
                if self._address is not None and by_address is not None:
                    by_address.give_back(self._address, now)
                raise limits.refusal("generate_project", wait)

    def give_back(self, project_id: str) -> None:
        """Count this call for its client only: it started no session of the project."""
        if self._limits.generate_project is not None:
            self._limits.generate_project.give_back((self._public, project_id), self._limits.clock())

    async def send(self, message: Message) -> None:
        """Send a part of the answer, with the header fields."""
        if self._standings and message["type"] == "http.response.start":
            fields = [
                (b"ratelimit-policy", ", ".join(self._policies).encode()),
                (b"ratelimit", ", ".join(self._standings).encode()),
            ]
            if self._public and message["status"] == 200:  # With an error there is the list that all errors have.
                fields.append(_EXPOSE)
            message = {**message, "headers": [*message["headers"], *fields]}
        await self._send(message)

    def _tell(self, name: str, rule: Gcra, left: Standing) -> int:
        """Note for the header fields what is left; return how many ms until it is one more."""
        self._policies.append(f'"{name}";q={rule.number};w={rule.window // SECOND}')
        self._standings.append(f'"{name}";r={left.remaining};t={_seconds(left.until_next)}')
        return left.until_next


def _burst_of_all(rate: Rate) -> Gcra:
    return Gcra(rate.number, rate.window, rate.number)
