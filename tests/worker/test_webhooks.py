"""Webhooks over real HTTP: what arrives, what counts as success, and who sends when several could."""

import asyncio
import hashlib
import hmac
import json
from typing import TYPE_CHECKING

import aiohttp
import pytest
from standardwebhooks import Webhook
from structlog.testing import capture_logs

from taproof.core.errors import StoreUnavailable
from taproof.core.model import Delivery, ProjectChanges
from taproof.worker import repeat, webhooks

if TYPE_CHECKING:
    from tests.worker.conftest import Receiver, Shop

LEASE = 30_000


async def test_what_arrives_verifies_both_ways(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession
) -> None:
    """The raw body under both signatures; JSON, our User-Agent, and no header more that could tell of a user."""
    project, secret = await shop.project(f"{receiver.base}/200")
    token = await shop.sign_in(project)
    assert await shop.send_due(client) == 1
    ((_, headers, body),) = receiver.arrived
    assert headers["X-Service-Signature"] == hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    assert Webhook(secret).verify(body, headers)["session_token"] == token
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"] == "Taproof/test"
    assert json.loads(body)["messenger_name"] == "Зоя"
    assert not {"Cookie", "Authorization"} & set(headers)
    assert shop.states() == ["delivered"]
    assert await shop.send_due(client) == 0


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("200", "delivered"),
        ("201", "delivered"),
        ("204", "delivered"),
        ("299", "delivered"),
        ("redirect", "failed"),
        ("304", "failed"),
        ("400", "failed"),
        ("404", "failed"),
        ("410", "failed"),
        ("429", "failed"),
        ("500", "failed"),
        ("503", "failed"),
        ("cut", "failed"),
    ],
)
async def test_any_2xx_counts_and_nothing_else(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession, answer: str, state: str
) -> None:
    """A redirect is never followed: exactly one request is made, to the URL that the developer set."""
    project, _ = await shop.project(f"{receiver.base}/{answer}")
    await shop.sign_in(project)
    await shop.send_due(client)
    assert [path for path, _, _ in receiver.arrived] == [f"/{answer}"]
    assert shop.states() == [state]


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "https://no-such-host.invalid/", "https://xn--a/", "https://a..b/"]
)
async def test_a_receiver_that_cannot_be_reached_has_failed(
    shop: "Shop", client: aiohttp.ClientSession, url: str
) -> None:
    """A refused connection, an unknown name, a name that is none."""
    project, _ = await shop.project(url)
    await shop.sign_in(project)
    assert await shop.send_due(client) == 1
    assert shop.states() == ["failed"]


async def test_a_receiver_that_hangs_is_left_and_holds_up_nobody(
    shop: "Shop", receiver: "Receiver", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time runs out; the events of the same batch for others are delivered meanwhile."""
    monkeypatch.setattr(webhooks, "SEND_TIMEOUT", 1.5)
    for answer in ("hang", "200", "200"):
        project, _ = await shop.project(f"{receiver.base}/{answer}")
        await shop.sign_in(project)
    async with webhooks.open_client() as client:
        await shop.send_due(client)
    assert shop.states() == ["delivered", "delivered", "failed"]


async def test_an_answer_without_end_is_not_read(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession
) -> None:
    """The status is all that counts: a hostile receiver cannot fill memory or hold the sender."""
    project, _ = await shop.project(f"{receiver.base}/endless")
    await shop.sign_in(project)
    await asyncio.wait_for(shop.send_due(client), 60)
    assert shop.states() == ["delivered"]


async def test_an_event_that_does_not_open_has_failed_and_holds_up_nobody(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession
) -> None:
    """One altered row in the store must not stop all deliveries."""
    broken, _ = await shop.project(f"{receiver.base}/200")
    await shop.sign_in(broken)
    shop.storage._writer._connection.execute("UPDATE webhook_events SET sealed_body = x'00'")
    await shop.sign_in((await shop.project(f"{receiver.base}/200"))[0])
    await shop.send_due(client)
    assert shop.states() == ["delivered", "failed"]
    assert len(receiver.arrived) == 1


async def test_an_emptied_url_ends_due_deliveries(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession
) -> None:
    """Nothing arrives any more, also not after a URL is set again."""
    project, _ = await shop.project(f"{receiver.base}/200")
    await shop.sign_in(project)
    for url in ("", f"{receiver.base}/200"):
        await shop.projects.update_project(shop.developer, project.id, ProjectChanges(webhook_url=url))
        assert await shop.send_due(client) == 0
    assert shop.states() == ["ended"]
    assert receiver.arrived == []


async def test_a_second_sender_leaves_alone_what_is_leased(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession
) -> None:
    """While one posts, another finds nothing; and what the first then writes down counts."""
    project, _ = await shop.project(f"{receiver.base}/hang")
    await shop.sign_in(project)
    first = asyncio.create_task(shop.send_due(client))
    await receiver.reached.wait()
    shop.clock.now += LEASE - 1
    assert await shop.send_due(client) == 0
    receiver.released.set()
    assert await first == 1
    assert shop.states() == ["delivered"]
    assert len(receiver.arrived) == 1


async def test_a_lapsed_lease_is_taken_over(shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession) -> None:
    """The first sender was killed, or hangs: the event is sent again with the same id, and one outcome is kept."""
    project, secret = await shop.project(f"{receiver.base}/hang")
    await shop.sign_in(project)
    dead = asyncio.create_task(shop.send_due(client))
    await receiver.reached.wait()
    dead.cancel()
    await asyncio.gather(dead, return_exceptions=True)
    assert shop.states() == ["due"]
    receiver.released.set()
    shop.clock.now += LEASE
    assert await shop.send_due(client) == 1
    assert shop.states() == ["delivered"]
    one, two = ((headers["webhook-id"], body) for _, headers, body in receiver.arrived)
    assert one == two
    assert Webhook(secret).verify(receiver.arrived[0][2], receiver.arrived[0][1])


async def test_the_loop_goes_on_when_the_store_was_away(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A locked database, and even a bug, is survived; then what is due is sent."""
    monkeypatch.setattr(webhooks, "_EVERY", 0.0)
    monkeypatch.setattr(repeat, "_WHEN_STORE_IS_AWAY", 0.0)
    project, _ = await shop.project(f"{receiver.base}/200")
    await shop.sign_in(project)
    claim, troubles = shop.storage.claim_deliveries, [StoreUnavailable(), LookupError("a bug"), StoreUnavailable()]

    async def away(now: int, leased_until: int, limit: int) -> list[Delivery]:
        if troubles:
            raise troubles.pop()
        return await claim(now, leased_until, limit)

    monkeypatch.setattr(shop.storage, "claim_deliveries", away)
    stopping = asyncio.Event()
    loop = asyncio.create_task(shop.sender(client).run_until(stopping))
    await receiver.reached.wait()
    stopping.set()
    await loop
    assert troubles == []
    assert shop.states() == ["delivered"]


async def test_an_outcome_that_cannot_be_stored_is_tried_again(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least once: the lease lapses by itself, and the neighbours of the batch are not harmed."""
    project, _ = await shop.project(f"{receiver.base}/200")
    for _ in range(3):
        await shop.sign_in(project)

    async def away(*_arguments: object) -> bool:
        raise StoreUnavailable

    with monkeypatch.context() as trouble:
        trouble.setattr(shop.storage, "finish_delivery", away)
        assert await shop.send_due(client) == 3
    assert shop.states() == ["due"] * 3
    shop.clock.now += LEASE
    assert await shop.send_due(client) == 3
    assert shop.states() == ["delivered"] * 3
    assert len(receiver.arrived) == 6
    assert len({headers["webhook-id"] for _, headers, _ in receiver.arrived}) == 3


async def test_stopping_finishes_what_is_under_way(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession
) -> None:
    """SIGTERM drains: the post that has begun is finished and written down, nothing new is begun."""
    project, _ = await shop.project(f"{receiver.base}/hang")
    await shop.sign_in(project)
    stopping = asyncio.Event()
    loop = asyncio.create_task(shop.sender(client).run_until(stopping))
    await receiver.reached.wait()
    stopping.set()
    await shop.sign_in(project)
    receiver.released.set()
    await loop
    assert shop.states() == ["delivered", "due"]
    assert len(receiver.arrived) == 1


async def test_more_than_a_batch_is_sent_without_waiting(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A burst goes out batch after batch: the pause between looks is only for when there is nothing to do."""
    monkeypatch.setattr(webhooks, "_AT_ONCE", 5)
    monkeypatch.setattr(webhooks, "_EVERY", 3_600.0)
    project, _ = await shop.project(f"{receiver.base}/200")
    for _ in range(12):
        await shop.sign_in(project)
    stopping = asyncio.Event()
    loop = asyncio.create_task(shop.sender(client).run_until(stopping))
    while len(receiver.arrived) < 12:
        await receiver.reached.wait()
        receiver.reached.clear()
    stopping.set()
    await loop
    assert shop.states() == ["delivered"] * 12


async def test_the_log_holds_no_token_and_no_secret(
    shop: "Shop", receiver: "Receiver", client: aiohttp.ClientSession
) -> None:
    """An attempt is logged with its event's id; neither the body nor the key nor the URL is."""
    project, secret = await shop.project(f"{receiver.base}/500?key=of-the-application")
    token = await shop.sign_in(project)
    with capture_logs() as entries:
        await shop.send_due(client)
    assert [entry["event_id"] for entry in entries] == [receiver.arrived[0][1]["webhook-id"]]
    for hidden in (token, secret, "of-the-application", "Зоя"):
        assert hidden not in repr(entries)
