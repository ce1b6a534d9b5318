"""Sign-ins through several services at once, and a record of every answer, which no fail-over may reverse."""

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

import httpx
from tests.faults.place import Place
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import SECOND
from taproof.core.code_challenge import REREAD_WINDOW
from taproof.core.errors import StoreUnavailable
from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.sdk.code_challenge import code_challenge, new_code_verifier
from taproof.service.sessions.seen import SeenSession

USERS: Final = 4
"""Concurrent users of each service."""
AGAIN_AFTER: Final = 0.2
POLL_EVERY: Final = 1.5
PATIENCE: Final = 300.0
FINAL: Final = {"confirmed", "cancelled", "used", "expired"}
BOT: Final = "bot"
T = TypeVar("T")


class Answer(NamedTuple):
    """An answer of verify with status 200, and when it was requested and received on the monotonic clock."""

    sent: float
    received: float
    status: str
    body: bytes


@dataclass
class SignIn:
    """A session whose creation was acknowledged, and all later answers about it."""

    token: str
    verifier: str | None
    outcome: str = ""
    """The acknowledged decision: "confirmed", "cancelled" or ""."""
    decided: float = 0.0
    answers: list[Answer] = field(default_factory=list)

    def possible_states(self) -> set[str]:
        """Return the states that the database may show from now on."""
        seen = {answer.status for answer in self.answers}
        if seen & {"confirmed", "used"}:
            return {"used"}
        if "cancelled" in seen or self.outcome == "cancelled":
            return {"cancelled"}
        return {"confirmed", "used"} if self.outcome == "confirmed" else {"pending", "confirmed", "used", "cancelled"}

    def contradictions(self) -> list[str]:
        """Return the answers that were reversed, and the proofs that were given twice."""
        found = []
        proofs = [answer for answer in self.answers if answer.status == "confirmed"]
        if len({answer.body for answer in proofs}) > 1 or (self.verifier is None and len(proofs) > 1):
            found.append(f"{len(proofs)} proofs")
        if (
            proofs
            and max(each.sent for each in proofs) > min(each.received for each in proofs) + REREAD_WINDOW / SECOND
        ):
            found.append("a proof after the time for reading it again")
        for first in (answer for answer in self.answers if answer.status in FINAL):
            for later in (answer for answer in self.answers if answer.sent > first.received):
                allowed = {"used", "confirmed"} if first.status == "confirmed" else {first.status}
                if later.status not in allowed:
                    found.append(f"{first.status}, then {later.status}")
        return found


class FailOverLoad:
    """Users that sign in without end. Each call goes to any of the services; the decisions are made like the bot's.

    `recoveries`: for each service and the bot, when each acknowledged write was sent and acknowledged.
    """

    def __init__(self, place: Place, clients: dict[str, httpx.AsyncClient], signin: WholeSignIn) -> None:
        self.sign_ins: list[SignIn] = []
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.writes: dict[str, list[tuple[float, float]]] = {name: [] for name in (*clients, BOT)}
        self.finished = 0
        self._place = place
        self._clients = clients
        self._signin = signin
        self._chance = random.Random(19)  # noqa: S311 — the same for every run.

    async def run(self, service: str) -> None:
        while True:
            sign_in = await self._create(service)
            await self._verify(sign_in)
            await self._decide(sign_in)
            await asyncio.gather(*(self._until_final(sign_in) for _ in range(2)))
            self.finished += 1
            # An earlier one must be answered as before, perhaps by another service and another primary.
            recent = 0 if self._chance.random() < 0.2 else -300
            await self._verify(self._chance.choice(self.sign_ins[recent:]))
            await asyncio.sleep(self._chance.random() * 2)

    async def until_finished(self, number: int) -> None:
        """Wait until this many more sign-ins are finished."""
        aim = self.finished + number
        async with asyncio.timeout(PATIENCE):
            while self.finished < aim and not self.wrong:  # noqa: ASYNC110 — nobody tells.
                await asyncio.sleep(0.05)

    async def recovered(self, since: float) -> dict[str, float]:
        """Wait until each service and the bot have made a write that was sent after `since`; return when, for each."""
        async with asyncio.timeout(PATIENCE):
            while True:
                first = {}
                for name, writes in self.writes.items():
                    writes[:] = [write for write in writes if write[0] > since]
                    if writes:
                        first[name] = min(received for _, received in writes)
                if len(first) == len(self.writes) or self.wrong:
                    return first
                await asyncio.sleep(0.05)

    async def check(self, ask: Callable[[], Awaitable[list[Any]]]) -> None:
        """Compare the database with everything that was answered before it is read, and the answers with each other."""
        known = [(sign_in, sign_in.possible_states()) for sign_in in self.sign_ins]
        stored = {(day, token_hash): status for day, token_hash, status in await ask()}
        for sign_in, possible in known:
            key = session_key(sign_in.token)
            assert key is not None
            state = stored.get((key.day, key.token_hash), "lost")
            if state not in possible:
                self.wrong.append(f"{sorted(possible)} was acknowledged, and the database shows {state}")
            self.wrong += sign_in.contradictions()
        assert not self.wrong, self.wrong[:5]

    def stale(self) -> int:
        """Return how many answers were `pending` although the decision had been acknowledged."""
        return sum(
            answer.status == "pending" and answer.sent > sign_in.decided
            for sign_in in self.sign_ins
            if sign_in.outcome
            for answer in sign_in.answers
        )

    async def _create(self, service: str) -> SignIn:
        verifier = new_code_verifier() if self._chance.random() < 0.7 else None
        body = {"project_id": self._place.project_id}
        if verifier is not None:
            body["code_challenge"] = code_challenge(verifier)
        while True:
            sent, answer = await self._call(service, "generate", body)
            if answer is not None:
                sign_in = SignIn(answer.json()["session_token"], verifier)
                self.sign_ins.append(sign_in)
                self.writes[service].append((sent, time.monotonic()))
                return sign_in
            await asyncio.sleep(AGAIN_AFTER)

    async def _decide(self, sign_in: SignIn) -> None:
        user = str(self._chance.randrange(1_000, 2_000))
        await self._insist(lambda: self._signin.open_session(sign_in.token, user))
        if self._chance.random() < 0.15:
            seen = await self._insist(lambda: self._signin.cancel_session(sign_in.token, user))
        else:
            identity = MessengerIdentity(user, "Ada", "ada")
            seen = await self._insist(lambda: self._signin.confirm_session(sign_in.token, identity))
        if seen.outcome not in {"confirmed", "cancelled"}:
            self.wrong.append(f"a decision ended as {seen.outcome}")
        # Also without `changed`: an earlier attempt, which got no answer, has made the change.
        sign_in.outcome, sign_in.decided = seen.outcome, time.monotonic()

    async def _insist(self, call: Callable[[], Awaitable[SeenSession]]) -> SeenSession:
        while True:
            sent = time.monotonic()
            try:
                seen = await call()
            except StoreUnavailable:
                self.refused[BOT] += 1
                await asyncio.sleep(AGAIN_AFTER)
            else:
                if seen.changed:
                    self.writes[BOT].append((sent, time.monotonic()))
                return seen

    async def _until_final(self, sign_in: SignIn) -> None:
        while await self._verify(sign_in) not in FINAL:  # noqa: ASYNC110 — a client polls.
            await asyncio.sleep(POLL_EVERY)

    async def _verify(self, sign_in: SignIn) -> str | None:
        """Poll once at any service, and record the answer; return None for 503."""
        body = {"project_id": self._place.project_id, "session_token": sign_in.token}
        if sign_in.verifier is not None:
            body["code_verifier"] = sign_in.verifier
        sent, answer = await self._call(self._chance.choice(list(self._clients)), "verify", body)
        if answer is None:
            return None
        status: str = answer.json()["status"]
        sign_in.answers.append(Answer(sent, time.monotonic(), status, answer.content))
        return status

    async def _call(self, service: str, call: str, body: dict[str, str]) -> tuple[float, httpx.Response | None]:
        """Return when the call was sent, and its answer; None if it was refused with 503. Others are never right."""
        sent = time.monotonic()
        answer = await self._clients[service].post(f"/api/v1/{call}/public", json=body)
        if answer.status_code == 200:
            return sent, answer
        if (answer.status_code, answer.headers.get("x-error-code")) != (503, "store_unavailable"):
            self.wrong.append(f"{call}: {answer.status_code} {answer.text}")
        self.refused[service] += 1
        return sent, None


@contextlib.asynccontextmanager
async def fail_over_load(place: Place, services: dict[str, str]) -> AsyncIterator[FailOverLoad]:
    """Yield running users of the services, which are given by name and base URL."""
    async with contextlib.AsyncExitStack() as stack:
        signin = await stack.enter_async_context(place.sign_in())
        clients = {
            name: await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=120))
            for name, url in services.items()
        }
        load = FailOverLoad(place, clients, signin)
        users = [asyncio.create_task(load.run(name)) for name in services for _ in range(USERS)]
        try:
            yield load
        finally:
            for user in users:
                user.cancel()
            outcomes = await asyncio.gather(*users, return_exceptions=True)
            load.wrong += [repr(each) for each in outcomes if not isinstance(each, asyncio.CancelledError)]
