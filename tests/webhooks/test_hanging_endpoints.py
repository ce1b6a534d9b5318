"""A hundred hanging receivers do not delay a working one."""

import asyncio
import json
import socket
from collections import Counter
from datetime import datetime

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from tests.service.conftest import HandClock
from tests.waiting import until
from tests.webhooks.receiver import resolved
from tests.webhooks.shop import Post, Receiver, Shop

from taproof.core.accounts import Developer
from taproof.core.address_rules import AddressRules
from taproof.core.clock import system_clock
from taproof.core.projects import Project
from taproof.service.webhooks import SignedRequest, WebhookResponse
from taproof.webhooks.http_client import open_webhook_client
from taproof.webhooks.scheduler import Limits

HANGING = 100
DUE_EACH = 20
HEALTHY_EVENTS = 100
APART = 0.012
NEVER = 3_600.0
"""Seconds: a hanging post does not end by itself, so that anything that waits for one is noticed on any machine."""


class RealClock(HandClock):
    """A clock that follows the machine's."""

    def __call__(self) -> int:
        return system_clock()


@pytest.fixture
def clock() -> HandClock:
    return RealClock()


class HangingNames(AbstractResolver):
    """Resolves this machine; the name servers of all other names do not answer until `released`."""

    def __init__(self, released: asyncio.Event) -> None:
        self._released = released

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        assert family in {socket.AF_INET, socket.AF_UNSPEC}
        if host != "localhost":
            await self._released.wait()
            raise OSError("no such name")
        return [resolved(host, "127.0.0.1", port)]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class Hanging:
    """Sends posts, and counts running and finished posts to hanging receivers."""

    def __init__(self, post: Post) -> None:
        self.under_way = 0
        self.ended = 0
        self._post = post

    async def post(self, request: SignedRequest) -> WebhookResponse:
        if request.url.endswith("/200"):
            return await self._post(request)
        self.under_way += 1
        try:
            return await self._post(request)
        finally:
            self.under_way -= 1
            self.ended += 1


async def record_events(shop: Shop, url: str, due_each: int = DUE_EACH) -> None:
    """Record due events for hanging receivers, before anything is known about them."""
    for number in range(HANGING):
        project, _ = await shop.project(url.format(number))
        await asyncio.gather(*(shop.sign_in(project) for _ in range(due_each)))


async def sign_in_now_and_then(shop: Shop, project: Project) -> None:
    for _ in range(HEALTHY_EVENTS):
        await shop.sign_in(project)
        await asyncio.sleep(APART)


async def until_all_arrived(receiver: Receiver) -> list[float]:
    """Wait for every event of the healthy project; return the seconds from its decision to its arrival, sorted."""
    await until(lambda: sum(path == "/200" for path, _, _ in receiver.arrived) >= HEALTHY_EVENTS)
    took = []
    for (path, _, body), arrived_at in zip(receiver.arrived, receiver.arrived_at, strict=True):
        if path == "/200":
            recorded = datetime.fromisoformat(json.loads(body)["confirmed_at"])
            took.append(arrived_at / 1_000 - recorded.timestamp())
    return sorted(took)


async def test_a_developer_of_whom_many_hang_keeps_no_other_waiting(shop: Shop, receiver: Receiver) -> None:
    """All places of one developer are taken; another's new endpoint, and a proven one, continue."""
    shop.sender_options = {"limits": Limits(unproven_posts=40, unproven_waiting=80)}
    proven, _ = await shop.project(receiver.base + "/201")
    async with (
        open_webhook_client(AddressRules(["loopback"]), frozenset(), allow_http=True, timeout=NEVER) as client,
        shop.sending(client.post),
    ):
        await shop.sign_in(proven)
        await shop.until_states("delivered")
        await record_events(shop, receiver.base + "/hang?{}", 5)
        await until(lambda: shop.query("SELECT count(*) FROM webhook_events WHERE leased_until > 0") >= [(80,)])
        other = Developer("dev_2", "bob@example.com", "free", 1)
        new, _ = await shop.project(receiver.base + "/200", other)
        for project in (new, proven, new, proven):
            await shop.sign_in(project)
        await until(lambda: shop.states().count("delivered") == 5)
        paths = Counter(path for path, _, _ in receiver.arrived)
        assert 20 < paths["/hang"] <= 30
        receiver.released.set()


@pytest.mark.parametrize("what_hangs", ["the answer", "the name"])
async def test_a_hundred_that_hang_do_not_delay_one_that_works(shop: Shop, receiver: Receiver, what_hangs: str) -> None:
    """2,000 of their events are due first; then every event of the healthy one arrives while all of them hang."""
    hangs = receiver.base + "/hang?{}" if what_hangs == "the answer" else "https://hangs-{}.example/"
    await record_events(shop, hangs)
    healthy, _ = await shop.project(receiver.base.replace("127.0.0.1", "localhost") + "/200")
    names = HangingNames(receiver.released)
    async with open_webhook_client(
        AddressRules(["loopback"]),
        frozenset({443}),
        allow_http=True,
        resolver=names,
        timeout=NEVER,
        lookup_timeout=NEVER,
    ) as client:
        hanging = Hanging(client.post)
        async with shop.sending(hanging.post):
            signing_in = asyncio.create_task(sign_in_now_and_then(shop, healthy))
            took = await until_all_arrived(receiver)
            await signing_in
            assert hanging.ended == 0
            assert hanging.under_way == 2 * HANGING
            receiver.released.set()
    assert len(took) == HEALTHY_EVENTS
    assert hanging.under_way == 0
    p50, p99 = (took[len(took) * percent // 100] for percent in (50, 99))
    print(f"\n{what_hangs} hangs: p50 {p50:.3f} s, p99 {p99:.3f} s")  # noqa: T201 — the figure to be shown: pytest -s.
