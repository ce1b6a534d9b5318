"""Webhooks over real HTTP: what arrives, what counts as success, and which process sends."""

import asyncio
import hashlib
import hmac
import itertools
import json
from typing import Any, get_args

import pytest
from prometheus_client import CollectorRegistry
from standardwebhooks import Webhook
from structlog.testing import capture_logs
from tests.service.conftest import HandClock
from tests.waiting import until
from tests.webhooks.shop import Post, Receiver, Shop

from taproof.core.address_rules import AddressRules
from taproof.core.clock import HOUR, SECOND
from taproof.core.deliveries import AttemptOutcome, Delivery
from taproof.core.errors import StoreUnavailable
from taproof.http.metrics import Metrics
from taproof.service.webhooks import LEASE, SignedRequest, WebhookResponse
from taproof.webhooks.http_client import open_webhook_client
from taproof.webhooks.sender import EVERY, WebhookWatch


async def test_what_arrives_verifies_both_ways(shop: Shop, receiver: Receiver, post: Post) -> None:
    """The raw body verifies with both signatures; it is JSON with our User-Agent, and no header reveals the user."""
    project, secret = await shop.project(f"{receiver.base}/200")
    token = await shop.sign_in(project)
    assert await shop.send_due(post) == 1
    ((_, headers, body),) = receiver.arrived
    assert headers["X-Service-Signature"] == hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    assert Webhook(secret).verify(body, headers)["session_token"] == token
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"] == "Taproof/test"
    assert json.loads(body)["messenger_name"] == "Зоя"
    assert not {"Cookie", "Authorization"} & set(headers)
    assert shop.states() == ["delivered"]
    assert await shop.send_due(post) == 0


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("200", "delivered"),
        ("201", "delivered"),
        ("204", "delivered"),
        ("299", "delivered"),
        ("redirect", "due"),
        ("304", "due"),
        ("400", "due"),
        ("404", "due"),
        ("410", "failed"),
        ("429", "due"),
        ("500", "due"),
        ("503", "due"),
        ("cut", "due"),
    ],
)
async def test_any_2xx_counts_and_nothing_else(
    shop: Shop, receiver: Receiver, post: Post, answer: str, state: str
) -> None:
    """A redirect is never followed: exactly one request is made, to the URL that the developer set."""
    project, _ = await shop.project(f"{receiver.base}/{answer}")
    await shop.sign_in(project)
    await shop.send_due(post)
    assert [path for path, _, _ in receiver.arrived] == [f"/{answer}"]
    assert shop.states() == [state]


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [("3600", HOUR, HOUR), ("1", 5 * SECOND, 5 * SECOND), ("9" * 4_000, 10 * HOUR, 10 * HOUR), ("-1", 0, 5 * SECOND)],
)
async def test_retry_after_delays_only_its_own_event(
    shop: Shop, receiver: Receiver, post: Post, retry_after: str, least: int, most: int
) -> None:
    """The later of schedule and Retry-After applies, at most the schedule's longest delay with its jitter."""
    receiver.retry_after = retry_after
    busy, _ = await shop.project(f"{receiver.base}/busy")
    ready, _ = await shop.project(f"{receiver.base}/200")
    for project in (busy, ready, ready):
        await shop.sign_in(project)
    assert await shop.send_due(post) == 3
    assert shop.states() == ["delivered", "delivered", "due"]
    ((due_at,),) = shop.query("SELECT due_at FROM webhook_events WHERE state = 'due'")
    assert least <= due_at - shop.clock() <= most * 6 // 5


@pytest.mark.parametrize(
    ("url", "error"),
    [("http://127.0.0.1:1/", "connection_refused"), ("https://no-such-host.invalid/", "dns_failed")],
)
async def test_a_receiver_that_cannot_be_reached_is_tried_again(shop: Shop, post: Post, url: str, error: str) -> None:
    """For a refused connection and an unknown name, the reason is stored and the schedule continues."""
    project, _ = await shop.project(url)
    await shop.sign_in(project)
    assert await shop.send_due(post) == 1
    assert shop.states() == ["due"]
    assert shop.errors() == [error]
    assert shop.watch.outcomes == ["retried"]


async def test_only_deliveries_at_the_first_attempt_are_timed(shop: Shop, receiver: Receiver, post: Post) -> None:
    """The time runs from the decision. A receiver that fails at first says nothing about the service."""
    for answer in ("500", "200"):
        project, _ = await shop.project(f"{receiver.base}/{answer}")
        await shop.sign_in(project)
    shop.clock.now += 1_500
    await shop.send_due(post)
    assert sorted(shop.watch.outcomes) == ["delivered", "retried"]
    assert shop.watch.deliveries == [1.5]
    shop.storage.database.writer.connection.execute(
        "UPDATE projects SET webhook_url = replace(webhook_url, '500', '200')"
    )
    shop.clock.now += 60_000
    await shop.send_due(post)
    assert shop.watch.outcomes.count("delivered") == 2
    assert shop.watch.deliveries == [1.5]


async def test_a_receiver_that_hangs_is_left_and_holds_up_nobody(shop: Shop, receiver: Receiver) -> None:
    """A hanging receiver times out; the other events of the batch are delivered in the meantime."""
    for answer in ("hang", "200", "200"):
        project, _ = await shop.project(f"{receiver.base}/{answer}")
        await shop.sign_in(project)
    rules = AddressRules(["loopback"])
    async with (
        open_webhook_client(rules, frozenset(), allow_http=True, timeout=0.5) as impatient,
        open_webhook_client(rules, frozenset(), allow_http=True, timeout=60) as patient,
    ):

        async def post(request: SignedRequest) -> WebhookResponse:
            return await (impatient if request.url.endswith("/hang") else patient).post(request)

        await shop.send_due(post)
    assert shop.states() == ["delivered", "delivered", "due"]
    assert shop.watch.outcomes == ["delivered", "delivered", "retried"]
    assert sorted(shop.errors(), key=str) == [None, None, "timeout"]


async def test_an_event_that_does_not_open_is_not_sent_and_holds_up_nobody(
    shop: Shop, receiver: Receiver, post: Post
) -> None:
    """An altered row in the store does not stop other deliveries, and does not count against its endpoint."""
    project, _ = await shop.project(f"{receiver.base}/200")
    for _ in range(12):
        await shop.sign_in(project)
    shop.storage.database.writer.connection.execute("UPDATE webhook_events SET encrypted_body = x'00'")
    await shop.sign_in(project)
    async with shop.sending(post):
        await until(lambda: len(shop.watch.outcomes) == 13)
    assert shop.states() == ["delivered", *["due"] * 12]
    assert shop.errors().count("not_signed") == 12
    assert len(receiver.arrived) == 1


async def test_an_attempt_under_way_when_its_project_is_deleted_is_lost(
    shop: Shop, receiver: Receiver, post: Post
) -> None:
    """A posted event cannot be undone, and no row remains for its outcome."""
    project, _ = await shop.project(f"{receiver.base}/hang")
    await shop.sign_in(project)
    async with shop.sending(post):
        await receiver.reached.wait()
        await shop.projects.delete_project(shop.actor, project.id)
        while await shop.housekeeping.sweep():
            pass
        receiver.released.set()
    assert shop.watch.outcomes == ["lost"]
    assert shop.states() == []
    assert shop.errors() == []


async def test_killed_between_answer_and_outcome_an_event_is_sent_again(
    shop: Shop, clock: HandClock, receiver: Receiver, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least once: the lease expires by itself, and the receiver recognizes the repetition by its id and bytes."""
    project, secret = await shop.project(f"{receiver.base}/200")
    await shop.sign_in(project)
    killed = asyncio.Event()

    async def kill(*_arguments: object, **_more: object) -> bool:
        killed.set()
        return await asyncio.Future[bool]()

    with monkeypatch.context() as crash:
        crash.setattr(shop.storage.deliveries, "finish_attempt", kill)
        dying = asyncio.create_task(shop.send_due(post))
        await killed.wait()
        dying.cancel()
        await asyncio.gather(dying, return_exceptions=True)
    clock.now += LEASE - 1
    assert await shop.send_due(post) == 0
    clock.now += 1
    assert await shop.send_due(post) == 1
    assert shop.states() == ["delivered"]
    one, two = ((headers["webhook-id"], body) for _, headers, body in receiver.arrived)
    assert one == two
    assert Webhook(secret).verify(receiver.arrived[0][2], receiver.arrived[0][1])
    assert shop.query("SELECT interrupted, attempts FROM webhook_events") == [(1, 1)]


async def test_an_outcome_that_cannot_be_stored_is_written_again_rather_than_sent_again(
    shop: Shop, receiver: Receiver, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A brief outage of the store causes no duplicate: the receiver has answered, and only the record is late."""
    shop.sender_options = {"record_retries": (0.0, 0.0)}
    project, _ = await shop.project(f"{receiver.base}/200")
    await shop.sign_in(project)
    finish = shop.storage.deliveries.finish_attempt
    troubles = [StoreUnavailable(), StoreUnavailable()]

    async def away(*arguments: Any, **more: Any) -> bool:
        if troubles:
            raise troubles.pop()
        return await finish(*arguments, **more)

    monkeypatch.setattr(shop.storage.deliveries, "finish_attempt", away)
    await shop.send_due(post)
    assert shop.states() == ["delivered"]
    assert len(receiver.arrived) == 1


async def test_an_outcome_that_cannot_be_stored_at_all_is_tried_again_when_the_lease_lapses(
    shop: Shop, clock: HandClock, receiver: Receiver, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least once: the lease expires by itself, and the other events of the batch are not affected."""
    shop.sender_options = {"record_retries": (0.0, 0.0)}
    project, _ = await shop.project(f"{receiver.base}/200")
    for _ in range(3):
        await shop.sign_in(project)

    async def away(*_arguments: object, **_more: object) -> bool:
        raise StoreUnavailable

    with monkeypatch.context() as trouble:
        trouble.setattr(shop.storage.deliveries, "finish_attempt", away)
        assert await shop.send_due(post) == 3
    assert shop.states() == ["due"] * 3
    clock.now += LEASE
    assert await shop.send_due(post) == 3
    assert shop.states() == ["delivered"] * 3
    assert len(receiver.arrived) == 6
    assert len({headers["webhook-id"] for _, headers, _ in receiver.arrived}) == 3


async def test_stopping_finishes_what_is_under_way_and_gives_back_the_rest(
    shop: Shop, receiver: Receiver, post: Post
) -> None:
    """After SIGTERM, running posts are recorded, and waiting events are released for other workers immediately."""
    project, _ = await shop.project(f"{receiver.base}/hang")
    for _ in range(4):
        await shop.sign_in(project)
    stopping = asyncio.Event()
    loop = asyncio.create_task(shop.sender(post).run_until(stopping))
    await until(lambda: len(receiver.arrived) == 2)
    assert shop.query("SELECT count(*) FROM webhook_events WHERE leased_until > 0") == [(4,)]
    stopping.set()
    await shop.sign_in(project)
    await until(lambda: shop.query("SELECT count(*) FROM webhook_events WHERE leased_until > 0") == [(2,)])
    receiver.released.set()
    await loop
    assert shop.states() == ["delivered", "delivered", "due", "due", "due"]
    assert len(receiver.arrived) == 2
    assert shop.query("SELECT max(leased_until), max(interrupted) FROM webhook_events") == [(0, 0)]


async def test_what_waited_too_long_for_its_turn_is_given_back(
    shop: Shop, clock: HandClock, receiver: Receiver, post: Post
) -> None:
    """An attempt must not outlive its lease, or two workers would send the same event."""
    project, _ = await shop.project(f"{receiver.base}/hang")
    for _ in range(3):
        await shop.sign_in(project)
    sending = asyncio.create_task(shop.send_due(post))
    await until(lambda: len(receiver.arrived) == 2)
    clock.now += LEASE - 9_000
    receiver.released.set()
    await sending
    assert len(receiver.arrived) == 2
    assert shop.states() == ["delivered", "delivered", "due"]
    assert shop.query("SELECT leased_until FROM webhook_events WHERE state = 'due'") == [(0,)]


async def test_a_decision_is_sent_at_once(shop: Shop, receiver: Receiver, post: Post) -> None:
    """The sender is notified of an event that this process records, and does not wait for its next check."""
    shop.sender_options = {"every": 3_600.0}
    project, _ = await shop.project(f"{receiver.base}/200")
    async with shop.sending(post):
        for count in range(1, 4):
            await shop.sign_in(project)
            await shop.until_states(*["delivered"] * count)
    assert not shop.recorded.is_set()


async def test_a_backlog_is_worked_off_without_pauses_and_without_a_claim_per_event(
    shop: Shop, receiver: Receiver, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches follow each other; the pause between checks is only for an empty queue."""
    shop.sender_options = {"every": 3_600.0}
    project, _ = await shop.project(f"{receiver.base}/200")
    await asyncio.gather(*(shop.sign_in(project) for _ in range(400)))
    claims = 0
    claim = shop.storage.deliveries.claim_deliveries

    async def counting(*arguments: Any, **more: Any) -> list[Delivery]:
        nonlocal claims
        claims += 1
        return await claim(*arguments, **more)

    monkeypatch.setattr(shop.storage.deliveries, "claim_deliveries", counting)
    async with shop.sending(post):
        await shop.until_states(*["delivered"] * 400)
    assert len(receiver.arrived) == 400
    assert claims < 40


async def test_after_a_claim_that_took_long_the_sender_rests(
    shop: Shop, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow claims are followed by a longer pause, so that they take a small part of the loop's time."""
    time = asyncio.get_running_loop().time
    claims: list[tuple[float, float]] = []

    async def slow(*_arguments: object, **_more: object) -> list[Delivery]:
        began = time()
        await asyncio.sleep(0.02)
        claims.append((began, time()))
        shop.recorded.set()
        return []

    monkeypatch.setattr(shop.storage.deliveries, "claim_deliveries", slow)
    async with shop.sending(post):
        await until(lambda: len(claims) == 4)
    for (began, ended), (next_began, _) in itertools.pairwise(claims):
        # The rest has an upper limit, which a claim reaches on a busy machine.
        assert next_began - ended >= min(0.99 * EVERY, 9.9 * (ended - began))


async def test_an_endpoint_that_fails_ten_times_in_a_row_is_left_alone(shop: Shop) -> None:
    """The remaining events are recorded as not sent and follow their schedule.

    Another project with that URL is not affected.
    """
    failing, _ = await shop.project("https://example.com/")
    healthy, _ = await shop.project("https://example.com/")
    sent = []

    async def answer(request: SignedRequest) -> WebhookResponse:
        sent.append(request.headers["webhook-id"])
        return WebhookResponse(5, 200 if json.loads(request.body)["project_id"] == healthy.id else 500)

    for _ in range(15):
        await shop.sign_in(failing)
    async with shop.sending(answer):
        await until(lambda: len(shop.watch.outcomes) == 15)
        await shop.sign_in(healthy)
        await shop.until_states("delivered", *["due"] * 15)
    skipped = shop.watch.outcomes.count("skipped")
    assert shop.errors().count("circuit_open") == skipped
    # One more may have begun before the tenth failed.
    assert (len(sent), skipped) in {(11, 5), (12, 4)}
    assert shop.query("SELECT count(*) FROM webhook_events WHERE state = 'due' AND attempts = 1") == [(15,)]


async def test_the_age_of_the_oldest_due_event_is_shown(
    shop: Shop, clock: HandClock, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator sees the delay of the sending, even while nothing can be sent."""
    project, _ = await shop.project("https://example.com/")
    await shop.sign_in(project)
    clock.now += 42_000

    async def nothing(*_arguments: object, **_more: object) -> list[Delivery]:
        return []

    monkeypatch.setattr(shop.storage.deliveries, "claim_deliveries", nothing)
    async with shop.sending(post):
        await until(lambda: bool(shop.watch.ages))
    assert shop.watch.ages[0] == 42.0


async def test_the_log_holds_no_token_and_no_secret(shop: Shop, receiver: Receiver, post: Post) -> None:
    """An attempt is logged with its event's id, without the body, the key and the URL."""
    project, secret = await shop.project(f"{receiver.base}/500?key=of-the-application")
    token = await shop.sign_in(project)
    with capture_logs() as entries:
        await shop.send_due(post)
    assert [entry["event_id"] for entry in entries] == [receiver.arrived[0][1]["webhook-id"]]
    for hidden in (token, secret, "of-the-application", "Зоя"):
        assert hidden not in repr(entries)


def test_every_outcome_has_its_counter_from_the_start() -> None:
    """An alert on dead letters needs the 0 before the first one; the age is that of the last check."""
    registry = CollectorRegistry()
    watch: WebhookWatch = Metrics(registry, "0.1.0")
    for outcome in get_args(AttemptOutcome):
        assert registry.get_sample_value("taproof_webhook_attempts_total", {"outcome": outcome}) == 0
    assert registry.get_sample_value("taproof_webhook_dead_letters_total") == 0
    watch.count_attempt("retried")
    watch.count_attempt("dead")
    watch.show_oldest_due(2.5)
    assert registry.get_sample_value("taproof_webhook_attempts_total", {"outcome": "dead"}) == 1
    assert registry.get_sample_value("taproof_webhook_dead_letters_total") == 1
    assert registry.get_sample_value("taproof_webhook_oldest_due_seconds") == 2.5
