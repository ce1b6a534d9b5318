"""Decide sign-ins and deliver their webhooks on one core; compare with no webhooks and with a bare HTTP client.

Usage: python -m benchmarks.sender --database URL --receiver URL --events N --rounds N [--profile FILE]. Prints a line
of JSON for each figure of each round:

- "unhooked": N decisions, to confirm and to cancel in turn, in projects without a webhook;
- "hooked": as many in projects with one, which records N events;
- "delivered": the sender, composed as in `taproof serve`, delivers these events, over plain HTTP if the receiver uses
  that; an event counts when the outcome of its attempt is on the disk;
- "bare": an aiohttp client posts as many of the same bodies, as many at once, without a store or signatures.

With --profile only the deliveries are sampled, into FILE.
"""

import argparse
import asyncio
import gc
import itertools
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import uvloop
from benchmarks.machine import LOAD_CORE, SERVER_CORE, BenchmarkFailed, busy_seconds, fail
from benchmarks.sampling import sampled
from benchmarks.server import MASTER_KEY, free_port

from taproof.config.logging import configure_logging
from taproof.config.settings import Settings, load_settings
from taproof.core.accounts import Actor, Developer
from taproof.core.clock import system_clock
from taproof.core.deliveries import AttemptOutcome
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.runtime.listener import raise_file_limit
from taproof.runtime.services import Services, open_services
from taproof.service.housekeeping import Housekeeping
from taproof.service.webhooks import SignedRequest, WebhookResponse
from taproof.webhooks.http_client import WebhookClient, open_webhook_client
from taproof.webhooks.sender import WebhookSender

DEVELOPER: Final = "webhooks@localhost"
PROJECTS: Final = 20
"""With a webhook, and as many without: an endpoint each, at the same receiver."""
AT_ONCE: Final = 64
_USERS: Final = 100_000
"""The number of simulated users who decide. Some of them sign in again, as real users do."""
_PATIENCE: Final = 300.0
"""Seconds after which missing deliveries end the run."""

Post = Callable[[SignedRequest], Awaitable[WebhookResponse]]
Token = tuple[str, str]
"""The token of an opened session, and the user who opened it."""


class Countdown:
    """Counts every attempt, like the metrics; sets `over` after the last event, or when one was not delivered."""

    def __init__(self, events: int) -> None:
        self.over = asyncio.Event()
        self._left = events
        self._failed: AttemptOutcome | None = None

    def count_attempt(self, outcome: AttemptOutcome) -> None:
        """Count an attempt whose outcome is stored."""
        self._left -= 1
        if outcome != "delivered":
            self._failed = outcome
        if self._failed or self._left == 0:
            self.over.set()

    def observe_delivery(self, seconds: float) -> None:
        """Do nothing: the run measures deliveries itself."""

    def show_oldest_due(self, seconds: float) -> None:
        """Do nothing: the backlog is intended."""

    def check(self) -> None:
        """End the run unless every event was delivered exactly once."""
        if self._failed or self._left:
            fail(f"An attempt was {self._failed}, with {self._left} events left.")


class Bench:
    """The measured parts, wired."""

    def __init__(
        self, services: Services, client: WebhookClient, bare: aiohttp.ClientSession, hooked: list[Project]
    ) -> None:
        self._services = services
        self._client = client
        self._bare = bare
        self._receiver = hooked[0].webhook_url
        self._users = itertools.cycle(range(_USERS))
        self._sent: list[SignedRequest] = []

    async def make_tokens(self, projects: list[Project], count: int) -> list[Token]:
        """Create sign-ins and open them, before the measurement."""
        tokens: list[Token] = []

        async def make(number: int) -> None:
            user = str(1_000_000_000 + next(self._users) * 7_919 % _USERS)
            created = await self._services.sign_in_sessions.create_session(
                projects[number % len(projects)].id, public=True
            )
            seen = await self._services.decisions.open_session(created.session_token, user)
            if seen.outcome != "opened":
                fail(f"A new sign-in was not opened but {seen.outcome}.")
            tokens.append((created.session_token, user))

        await at_once(make, count)
        return tokens

    async def decide(self, tokens: list[Token]) -> None:
        """Confirm and cancel in turn."""
        decisions = self._services.decisions

        async def decide(number: int) -> None:
            token, user = tokens[number]
            if number % 2:
                seen = await decisions.cancel_session(token, user)
            else:
                seen = await decisions.confirm_session(token, MessengerIdentity(user, f"User {user}", f"user{user}"))
            if not seen.changed:
                fail(f"A decision did not count: the sign-in is {seen.outcome}.")

        await at_once(decide, len(tokens))

    async def deliver(self, count: int, post: Post | None = None) -> None:
        """Deliver this many due events."""
        countdown = Countdown(count)
        self._services.recorded.set()
        sender = WebhookSender(self._services.webhooks, post or self._client.post, self._services.recorded, countdown)
        try:
            async with asyncio.timeout(_PATIENCE):
                await sender.run_until(countdown.over)
        except TimeoutError:
            fail(f"{count} events were not delivered within {_PATIENCE:.0f} s.")
        countdown.check()
        if await self._services.storage.deliveries.read_oldest_due(2**62) is not None:
            fail(f"After {count} deliveries an event is still due.")

    async def deliver_and_keep(self, count: int) -> None:
        """Do the same, and keep the requests for the bare client."""

        async def post(request: SignedRequest) -> WebhookResponse:
            self._sent.append(request)
            return await self._client.post(request)

        await self.deliver(count, post)

    async def post_bare(self, count: int) -> None:
        """Post bodies that were sent before."""

        async def post(number: int) -> None:
            request = self._sent[number % len(self._sent)]
            headers = {"Content-Type": "application/json", "User-Agent": request.headers["User-Agent"]}
            async with self._bare.post(request.url, data=request.body, headers=headers) as response:
                if response.status != 200 or await response.read() != b"ok":
                    fail(f"The receiver answered the bare client {response.status}.")

        await at_once(post, count)

    async def check_received(self, figure: str, count: int) -> None:
        """End the run unless the receiver got exactly what was sent."""
        async with self._bare.get(self._receiver) as response:
            received = await response.json(content_type=None)
        expected = {"signed": count, "bare": 0, "ids": count} if figure == "delivered" else {"bare": count}
        if received != {"signed": 0, "ids": 0, "wrong": 0} | expected:
            fail(f"{figure}: {count} events were sent, and the receiver has counted {received}.")


async def at_once(work: Callable[[int], Awaitable[Any]], count: int, together: int = AT_ONCE) -> None:
    """Run a function for each number below `count`, `together` of them at the same time."""
    numbers = iter(range(count))

    async def one_after_the_other() -> None:
        for number in numbers:
            await work(number)

    await asyncio.gather(*(one_after_the_other() for _ in range(together)))


async def measured(figure: str, count: int, work: Awaitable[None]) -> dict[str, Any]:
    """Await the work; return its wall-clock time, and the CPU time of this process and of the other core."""
    load_before, cpu_before, begun = busy_seconds(LOAD_CORE), time.process_time(), time.perf_counter()
    await work
    return {
        "figure": figure,
        "count": count,
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu_before,
        "load": busy_seconds(LOAD_CORE) - load_before,
    }


async def make_projects(services: Services, receiver: str) -> tuple[list[Project], list[Project]]:
    """Create projects with a webhook, whose path is their secret (see receiver.py), and projects without one."""
    known = {each.email: each for each in await services.developers.list_developers()}
    developer = known.get(DEVELOPER) or await services.developers.create_developer(DEVELOPER, "business")
    hooked, unhooked = [], []
    for number in range(PROJECTS):
        unhooked.append((await make_project(services, developer, f"Without {number}"))[0])
        project, secret = await make_project(services, developer, f"With {number}")
        # Bypasses the check of the API, which refuses plain HTTP outside the sandbox.
        changes = ProjectChanges(webhook_url=f"{receiver}/{secret}")
        changed = await services.storage.projects.update_project(developer.id, project.id, changes, system_clock())
        assert changed is not None
        hooked.append(changed)
    return hooked, unhooked


async def make_project(services: Services, developer: Developer, name: str) -> tuple[Project, str]:
    """Create a project; return it with its webhook secret."""
    project, secrets = await services.projects.create_project(
        Actor(developer, "command_line"), ProjectChanges(name=name)
    )
    return project, secrets.webhook_secret


@asynccontextmanager
async def open_bench(settings: Settings, receiver: str) -> AsyncIterator[tuple[Bench, list[Project], list[Project]]]:
    """Yield the bench, the projects with a webhook, and those without."""
    rules, ports, jar = settings.address_rules, settings.webhook_ports, aiohttp.DummyCookieJar()
    async with (
        open_services(settings) as services,
        open_webhook_client(rules, ports, allow_http=receiver.startswith("http:")) as client,
        aiohttp.ClientSession(cookie_jar=jar, trust_env=False) as bare,
    ):
        # Creates today's partition.
        await Housekeeping(
            services.storage, services.encryptor, system_clock, system_entropy, settings.session_retention_days
        ).sweep()
        hooked, unhooked = await make_projects(services, receiver)
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)  # These three, as `taproof serve` does.
        yield Bench(services, client, bare, hooked), hooked, unhooked


async def run(settings: Settings, receiver: str, events: int, rounds: int, *, sampling: bool) -> None:
    """Measure round by round, after one that does not count."""
    async with open_bench(settings, receiver) as (bench, hooked, unhooked):
        await bench.decide(await bench.make_tokens(hooked, events // 4))
        await bench.deliver_and_keep(events // 4)
        await bench.check_received("delivered", events // 4)
        for number in range(rounds):
            projects = {"unhooked": unhooked, "hooked": hooked}
            tokens = {figure: await bench.make_tokens(projects[figure], events) for figure in projects}
            if sampling:
                await bench.decide(tokens["hooked"])
                os.kill(os.getpid(), signal.SIGUSR1)
                await bench.deliver(events)
                return
            # Compared figures alternate between rounds, so that neither always goes first.
            for figure in ("unhooked", "hooked") if number % 2 else ("hooked", "unhooked"):
                tell(await measured(figure, events, bench.decide(tokens[figure])))
            for figure in ("delivered", "bare") if number % 2 else ("bare", "delivered"):
                work = bench.post_bare(events) if figure == "bare" else bench.deliver(events)
                tell(await measured(figure, events, work))
                await bench.check_received(figure, events)


def tell(figure: dict[str, Any]) -> None:
    """Print a figure for the parent process."""
    print(json.dumps(figure), flush=True)


def main() -> None:
    """Read the arguments, take the core, measure."""
    parser = argparse.ArgumentParser(description="Measure decisions and deliveries; see benchmarks/README.md.")
    parser.add_argument("--database", required=True, metavar="URL")
    parser.add_argument("--receiver", required=True, metavar="URL")
    parser.add_argument("--events", required=True, type=int)
    parser.add_argument("--rounds", required=True, type=int)
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write down where the CPU time went")
    given = parser.parse_args()
    os.sched_setaffinity(0, {SERVER_CORE})  # Before any thread: threads inherit it.
    configure_logging("warning", "console")
    raise_file_limit()
    settings = load_settings(
        {
            "port": free_port(),
            "database_url": given.database,
            "master_key": MASTER_KEY,
            "messenger_link_base": "https://t.me/benchmark_bot",
            "webhook_allow": "loopback",
            "webhook_ports": str(urlsplit(given.receiver).port),
        }
    )
    sampling = sampled(given.profile) if given.profile else nullcontext()
    try:
        with sampling, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run(settings, given.receiver, given.events, given.rounds, sampling=bool(given.profile)))
    except BenchmarkFailed as failure:
        raise SystemExit(str(failure)) from None


if __name__ == "__main__":
    main()
