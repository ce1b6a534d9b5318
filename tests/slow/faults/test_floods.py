"""Floods of polls are refused and healthy clients are not, in simulated time and in a flooded service."""

import asyncio
import heapq
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.conftest import Figure
from tests.e2e.conftest import StartService
from tests.faults.clients import clients, new_sessions
from tests.faults.place import make_place
from tests.whole_sign_in import WholeSignIn

from taproof.api.sessions import SessionApi
from taproof.core.clock import MINUTE
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.rate_limit import Rate
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.storage.sqlite.store import SqliteStorage

START = 1_795_000_000_000
TEN_MINUTES = 10 * MINUTE


class Simulation:
    """The real endpoint on a real SQLite file, with a simulated clock and polling clients."""

    def __init__(self, api: SessionApi, signin: WholeSignIn, project_id: str) -> None:
        self.api = api
        self.signin = signin
        self.project_id = project_id
        self.now = START
        self.statuses: Counter[int] = Counter()

    def clock(self) -> int:
        return self.now

    def arrivals(self, pollers: int, pace: int) -> Iterator[tuple[int, int]]:
        """Yield the time and client of each call, in order of time.

        Each client waits for `pace` ms after sending its last call. The network takes 20 to 400 ms. Now and then it
        delays a call for seconds, so that the call arrives together with the next ones.
        """
        chance = random.Random(7)  # noqa: S311 — the same for every run.
        due = [(START + chance.randrange(pace), number, 0) for number in range(pollers)]
        heapq.heapify(due)
        while due:
            instant, number, arrives = heapq.heappop(due)
            if arrives:
                yield instant, number
                continue
            delay = chance.randrange(20, 400) if chance.random() > 0.01 else chance.randrange(5_000)
            heapq.heappush(due, (instant + delay, number, 1))
            if instant + pace < START + TEN_MINUTES - 5_000:
                heapq.heappush(due, (instant + pace, number, 0))

    async def run(self, pollers: int, pace: int) -> None:
        """Let this many clients poll for ten minutes, ten of them behind each address."""
        made = [await self.signin.create_session(self.project_id, public=True) for _ in range(pollers)]
        bodies = [
            json.dumps({"project_id": self.project_id, "session_token": session.session_token}).encode()
            for session in made
        ]
        for instant, number in self.arrivals(pollers, pace):
            self.now = instant
            body = bodies[number]
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            scope = {"method": "POST", "headers": headers, "client": (f"10.0.{number // 2560}.{number // 10 % 256}", 0)}
            await self.api.verify_public(scope, _receiving(body), self._send)

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.statuses[message["status"]] += 1


def _receiving(body: bytes) -> Any:
    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


@pytest.fixture
async def simulation(tmp_path: Path) -> Any:
    place = await make_place(f"sqlite:///{tmp_path / 'taproof.db'}")
    storage = SqliteStorage.open(tmp_path / "taproof.db", START)
    metrics = Metrics(CollectorRegistry(), "0")
    simulation: Simulation

    def clock() -> int:
        return simulation.now

    signin = WholeSignIn(storage, Encryptor(place.master_key), lambda: "https://t.me/b", clock, system_entropy)
    limits = RateLimits(
        metrics, clock, generate_address=Rate(60, MINUTE), generate_project=Rate(6_000, MINUTE), local_only=True
    )
    unused: Any = None
    simulation = Simulation(SessionApi(signin, signin.waiting, unused, metrics, limits), signin, place.project_id)
    yield simulation
    await storage.close()


async def test_pollers_are_never_refused(simulation: Simulation, figure: Figure, *, soak: bool) -> None:
    """A client that polls every 1.5 seconds for ten minutes over a sometimes slow network never gets a 429."""
    pollers = 1_000 if soak else 200
    await simulation.run(pollers, 1_500)
    figure("answers", dict(simulation.statuses))
    assert simulation.statuses.keys() == {200}
    assert simulation.statuses[200] > pollers * 390


async def test_ten_times_as_often_is_refused(simulation: Simulation, figure: Figure, *, soak: bool) -> None:
    """Clients that poll ten times as often are refused at least 89 % of the time."""
    await simulation.run(1_000 if soak else 30, 150)
    refused = simulation.statuses[429] / simulation.statuses.total()
    figure("refused", f"{refused:.2%} of {simulation.statuses.total()}")
    assert simulation.statuses.keys() == {200, 429}
    assert refused >= 0.89


async def test_a_service_that_is_flooded(
    start_service: StartService, tmp_path: Path, figure: Figure, *, soak: bool
) -> None:
    """While forty connections of one address send calls without a pause, sixty healthy clients get every answer."""
    place = await make_place(f"sqlite:///{tmp_path / 'taproof.db'}")
    service = await asyncio.to_thread(start_service, place, "--trusted-proxy", "127.0.0.1/32")
    tokens = await new_sessions(place, 100)
    seconds = 30 if soak else 6
    async with (
        clients(service, place, tokens[:40], seconds + 2, flood=True, address="203.0.113.7") as flood,
        clients(service, place, tokens[40:], seconds, address="198.51.100.9") as healthy,
    ):
        seen, flooded = await asyncio.gather(healthy.seen(), flood.seen())
    figure("healthy calls", sum(seen.answers.values()))
    figure("ms of a healthy call, p99", f"{seen.p99 * 1_000:.0f}")
    figure("calls of the flood", flooded.answers)
    assert seen.answers.keys() == {"pending"}
    # However fast the flood is, no more calls pass than the limit allows in that time.
    assert flooded.answers["own 200"] <= 40 * (10 + flooded.seconds / 1.45)
    assert flooded.answers["made up 404"] <= 200 + 20 * flooded.seconds
    assert flooded.answers["generate 200"] <= 60 + flooded.seconds
    assert {answer for answer in flooded.answers if answer.endswith("429")} == {
        "own 429",
        "made up 429",
        "generate 429",
    }
    if soak:
        assert seen.p99 < 0.5
        assert all(flooded.share(kind, 429) >= 0.89 for kind in ("own", "made up", "generate"))
