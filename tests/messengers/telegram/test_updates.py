"""An update is handled once, however often it is delivered, and acknowledged only when it is done."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import TOKEN, Fault, HandClock, Phone, ScriptedApi, unmeasured_intake
from tests.waiting import until

from taproof.core.clock import SECOND
from taproof.core.errors import StoreUnavailable
from taproof.core.leases import LOSE_SECONDS
from taproof.messengers.telegram import updates, webhook
from taproof.messengers.telegram.bot_api import Bot, TelegramForbiddenError, TelegramNetworkError
from taproof.messengers.telegram.updates import HandlingTimes, UpdateIntake
from taproof.storage.sqlite.store import SqliteStorage

BOT_ID = int(TOKEN.partition(":")[0])
START = HandClock()()
"""When the only poller began."""


class Counting:
    """A handler that counts its calls and fails a given number of times."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self, *_: object) -> None:
        self.calls += 1
        self.begun.set()
        await self.may_end.wait()
        if self.failures:
            raise self.failures.pop(0)


def intake_with(handler: Counting, bot: Bot, storage: SqliteStorage, clock: HandClock, **times: Any) -> UpdateIntake:
    return unmeasured_intake(bot, handler, storage.bots, clock, times=HandlingTimes(bug_pauses=(0, 0), **times))


async def test_second_delivery_has_no_effect(phone: Phone, api: ScriptedApi) -> None:
    """A second delivery of a handled update is acknowledged and has no effect."""
    session_token = await phone.create_session()
    for update in [phone.message(f"/start {session_token}"), phone.tap(f"c:{session_token}")]:
        assert await phone.handle(update) == "done"
        calls = len(api.calls)
        assert await phone.handle(update) == "done"
        assert await phone.handle(update, sole_since=START) == "done"
        assert len(api.calls) == calls


async def test_a_tap_is_timed_once_it_is_answered(phone: Phone, bot: Bot) -> None:
    """The time runs from the receipt, over all attempts, until the reply is accepted.

    Other updates are not timed, nor are taps that cannot be answered.
    """
    seconds: list[float] = []
    handler = Counting(TelegramNetworkError("away"))
    intake = unmeasured_intake(bot, handler, phone.storage.bots, phone.clock, observe_tap=seconds.append)
    received_at = asyncio.get_running_loop().time() - 7
    tap = phone.tap(f"c:{await phone.create_session()}")
    assert await intake.handle(tap, received_at=received_at) == "unanswered"
    assert seconds == []
    assert await intake.handle(tap, received_at=received_at) == "done"
    assert await intake.handle(tap, received_at=received_at) == "done"
    assert await intake.handle(phone.message("/help")) == "done"
    (waited,) = seconds
    assert waited >= 7
    for failures in ([TelegramForbiddenError("blocked")], [ValueError()] * 2):
        intake = unmeasured_intake(
            bot,
            Counting(*failures),
            phone.storage.bots,
            phone.clock,
            observe_tap=seconds.append,
            times=HandlingTimes(bug_pauses=(0,)),
        )
        assert await intake.handle(phone.tap(f"c:{await phone.create_session()}")) == "done"
    assert len(seconds) == 1


async def test_second_delivery_to_another_process(phone: Phone, api: ScriptedApi) -> None:
    """A handled update is recorded in the store, so every process knows it."""
    update = phone.message("/help")
    for _ in range(2):
        assert await phone.new_intake().handle(update) == "done"
    assert len(api.of("sendMessage")) == 1


async def test_update_in_progress_elsewhere_is_requested_again(phone: Phone, api: ScriptedApi) -> None:
    """Another process's claim is respected during its lease, and taken over when that process is gone."""
    update = phone.message("/help")
    await phone.storage.bots.claim_update(BOT_ID, update["update_id"], phone.clock(), 0)
    phone.clock.now += updates.LEASE - 1
    assert await phone.handle(update) == "retry"
    assert api.calls == []
    phone.clock.now += 1
    assert await phone.handle(update) == "done"
    assert len(api.of("sendMessage")) == 1


async def test_claims_of_the_previous_poller_are_taken_over_at_once(phone: Phone, api: ScriptedApi) -> None:
    """After a crash, the next poller does not wait for its predecessor's claims to expire."""
    update = phone.message("/help")
    await phone.storage.bots.claim_update(BOT_ID, update["update_id"], phone.clock(), phone.clock())
    phone.clock.now += SECOND
    assert await phone.handle(update, sole_since=phone.clock()) == "done"
    assert len(api.of("sendMessage")) == 1


async def test_two_pollers_for_a_moment(phone: Phone, api: ScriptedApi) -> None:
    """A poller that was replaced without noticing does not take over its successor's later claims."""
    update = phone.message("/help")
    since = phone.clock()
    phone.clock.now += SECOND
    await phone.storage.bots.claim_update(BOT_ID, update["update_id"], phone.clock(), phone.clock())
    phone.clock.now += SECOND
    assert await phone.handle(update, sole_since=since) == "retry"
    assert api.calls == []
    phone.clock.now += updates.LEASE
    assert await phone.handle(update, sole_since=since) == "done"
    assert len(api.of("sendMessage")) == 1


async def test_own_claim_is_resumed_at_once(phone: Phone, api: ScriptedApi) -> None:
    """If the reply could not be sent, the only poller retries without waiting for its own claim to expire."""
    update = phone.message("/help")
    since = phone.clock()
    phone.clock.now += SECOND
    api.fail("sendMessage", Fault(500, "Internal Server Error"))
    assert await phone.handle(update, sole_since=since) == "unanswered"
    assert await phone.handle(update, sole_since=since) == "done"
    assert len(api.of("sendMessage")) == 2


async def test_same_update_twice_at_once(phone: Phone, bot: Bot) -> None:
    """Of two concurrent deliveries, one is handled and the other must be delivered again."""
    handler = Counting()
    handler.may_end.clear()
    intake = intake_with(handler, bot, phone.storage, phone.clock)
    update = phone.message("hello")
    first = asyncio.create_task(intake.handle(update, sole_since=START))
    await handler.begun.wait()
    assert await intake.handle(update, sole_since=START) == "retry"
    handler.may_end.set()
    assert await first == "done"
    assert handler.calls == 1


async def test_decision_survives_a_lost_reply(phone: Phone, api: ScriptedApi) -> None:
    """If the Bot API fails after the decision is committed, the update is repeated and the user sees the decision."""
    session_token = await phone.create_session()
    await phone.handle(phone.message(f"/start {session_token}"))
    tap = phone.tap(f"c:{session_token}")
    api.fail("editMessageText", Fault(502, raw="<html>Bad Gateway</html>"))
    assert await phone.handle(tap, sole_since=START) == "unanswered"
    assert (await phone.session(session_token)).status == "confirmed"
    assert await phone.handle(tap, sole_since=START) == "done"
    first, second = api.of("editMessageText")
    assert first == second
    assert len(api.of("answerCallbackQuery")) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500, "Internal Server Error"),
        Fault(502, raw="<html>"),
        Fault(401, "Unauthorized"),
        Fault(404, "Not Found"),
        Fault(200, raw=""),
    ],
)
async def test_trouble_with_the_bot_api_loses_nothing(fault: Fault, phone: Phone, api: ScriptedApi) -> None:
    """With any failure of the Bot API, an update is not finished before its reply is sent."""
    api.fail("sendMessage", Fault(fault.status, fault.description, raw=fault.raw))
    update = phone.message("/help")
    assert await phone.handle(update, sole_since=START) == "unanswered"
    assert await phone.handle(update, sole_since=START) == "done"
    assert len(api.of("sendMessage")) == 2


@pytest.mark.parametrize(("part", "method"), [("bots", "claim_update"), ("sessions", "open_session")])
async def test_store_that_is_away_loses_nothing(
    part: str, method: str, phone: Phone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the store is unavailable, updates are repeated."""
    session_token = await phone.create_session()
    update = phone.message(f"/start {session_token}")
    with monkeypatch.context() as away:
        away.setattr(getattr(phone.storage, part), method, unavailable)
        assert await phone.handle(update, sole_since=START) == "retry"
        assert phone.api.calls == []
    assert await phone.handle(update, sole_since=START) == "done"
    assert (await phone.session(session_token)).opener_id == "11"


async def unavailable(*_: Any) -> None:
    raise StoreUnavailable


async def test_store_that_goes_away_at_the_end_repeats_no_answer(phone: Phone, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update that was answered but not recorded as finished is only recorded when it comes again."""
    update = phone.message("/help")
    with monkeypatch.context() as away:
        away.setattr(phone.storage.bots, "finish_update", unavailable)
        assert await phone.handle(update) == "retry"
    assert await phone.handle(update) == "done"
    assert len(phone.api.of("sendMessage")) == 1
    assert await phone.storage.bots.claim_update(BOT_ID, update["update_id"], 0, 2**60) == "done"


async def test_poison_update_is_given_up(phone: Phone, bot: Bot) -> None:
    """An update that meets a bug is tried three times, logged without the error's text, and then finished."""
    handler = Counting(*[RuntimeError("a secret in an error's text")] * 3)
    intake = intake_with(handler, bot, phone.storage, phone.clock)
    with capture_logs() as logs:
        assert await intake.handle(phone.message("poison")) == "done"
    assert handler.calls == 3
    assert [entry["event"] for entry in logs] == ["bot_update_failed"] * 3 + ["bot_update_given_up"]
    assert logs[0]["error"] == "RuntimeError"
    assert "test_updates.py" in logs[0]["stack"]
    assert "secret" not in str(logs)


async def test_passing_bug_is_survived(phone: Phone, bot: Bot) -> None:
    """A handler that fails once and then works has handled the update."""
    handler = Counting(RuntimeError())
    assert await intake_with(handler, bot, phone.storage, phone.clock).handle(phone.message("hello")) == "done"
    assert handler.calls == 2


async def test_bug_of_the_store_does_not_stop_the_bot(phone: Phone, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error makes the update repeat, and `handle` never raises."""

    async def broken(*_: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(phone.storage.bots, "claim_update", broken)
    with capture_logs() as logs:
        assert await phone.handle(phone.message("hello")) == "retry"
    assert "secret" not in str(logs)


async def test_handling_has_a_limit_where_the_messenger_waits_for_it(phone: Phone, bot: Bot) -> None:
    """Slow handling of an update from a webhook is cancelled, and another process can claim the update immediately."""
    handler = Counting()
    handler.may_end.clear()
    intake = intake_with(handler, bot, phone.storage, phone.clock, handling=0.05)
    update = phone.message("slow")
    async with asyncio.timeout(60):
        assert await intake.handle(update) == "retry"
    assert await intake_with(Counting(), bot, phone.storage, phone.clock).handle(update) == "done"


# ---- claims are leases


async def claimed_at(storage: SqliteStorage, update: dict[str, Any]) -> int:
    """Return the time of the claim that the store has."""
    statement = "SELECT claimed_at FROM bot_updates WHERE update_id = $1"
    ((found,),) = await storage.database.read(statement, update["update_id"])
    return int(found)


@dataclass
class Nodes:
    """Two processes on one store: the first is handling an update, and its handler ends when the test allows it."""

    working: Counting
    handling: asyncio.Task[str]
    update: dict[str, Any]
    elsewhere: UpdateIntake
    replies_elsewhere: Counting


Begin = Callable[..., Awaitable[Nodes]]


@pytest.fixture
def begin(phone: Phone, bot: Bot, storage: SqliteStorage, clock: HandClock) -> Begin:
    """Begin to handle the update.

    Renewals follow the loop's clock and are fast here; claims follow the clock that the test sets.
    """

    async def begin(lose: float = 60.0) -> Nodes:
        working, elsewhere = Counting(), Counting()
        working.may_end.clear()
        update = phone.message("slow")
        intake = intake_with(working, bot, storage, clock, renew=0.01, lose=lose)
        handling = asyncio.create_task(intake.handle(update))
        await working.begun.wait()
        return Nodes(working, handling, update, intake_with(elsewhere, bot, storage, clock), elsewhere)

    return begin


def test_the_promised_seconds() -> None:
    """An update of a dead process is taken over within ten seconds; a live one stops two seconds before that."""
    assert updates.LEASE + webhook.RETRY_SECONDS * SECOND < 10 * SECOND
    assert LOSE_SECONDS * SECOND <= updates.LEASE - 2 * SECOND


async def test_a_slow_process_keeps_its_update(begin: Begin, storage: SqliteStorage, clock: HandClock) -> None:
    """However long it works, no other process handles the update, and it is handled once."""
    nodes = await begin()
    for _ in range(4):
        clock.now += updates.LEASE - 1

        async def is_renewed() -> bool:
            return await claimed_at(storage, nodes.update) == clock.now

        await until(is_renewed)
        assert await nodes.elsewhere.handle(nodes.update) == "retry"
    nodes.working.may_end.set()
    assert await nodes.handling == "done"
    assert await nodes.elsewhere.handle(nodes.update) == "done"
    assert (nodes.working.calls, nodes.replies_elsewhere.calls) == (1, 0)


async def test_a_process_whose_update_was_taken_over_breaks_off(
    begin: Begin, storage: SqliteStorage, clock: HandClock
) -> None:
    """A suspended process whose update was taken over stops, and leaves the claim alone."""
    nodes = await begin()
    taken_at = clock() + updates.LEASE
    assert await storage.bots.claim_update(BOT_ID, nodes.update["update_id"], taken_at, taken_at) == "claimed"
    async with asyncio.timeout(60):
        assert await nodes.handling == "retry"
    assert await claimed_at(storage, nodes.update) == taken_at


async def never(*_: Any) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("renew", [unavailable, never])
async def test_a_process_that_is_cut_off_breaks_off_before_the_claim_ends(
    renew: Callable[..., Any], begin: Begin, storage: SqliteStorage, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without renewals, a process stops by itself.

    Another one waits until the claim has expired, and then handles the update.
    """
    answers: Iterator[Callable[..., Any]] = iter([storage.bots.claim_update])
    with monkeypatch.context() as away:
        away.setattr(storage.bots, "claim_update", lambda *values: next(answers, renew)(*values))  # noqa: PLW0108
        away.setattr(storage.bots, "release_update", unavailable)
        nodes = await begin(lose=0.05)
        async with asyncio.timeout(60):
            assert await nodes.handling == "retry"
    clock.now += updates.LEASE - 1
    assert await nodes.elsewhere.handle(nodes.update) == "retry"
    clock.now += 1
    assert await nodes.elsewhere.handle(nodes.update) == "done"
    assert (nodes.working.calls, nodes.replies_elsewhere.calls) == (1, 1)


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"update_id": None},
        {"update_id": "x"},
        {"update_id": -1, "message": None},
        {"update_id": 2**63},
        {"update_id": 10**400},
        {"update_id": 1, "message": "text"},
        {"update_id": 1, "message": {"text": "/start"}},
        {"update_id": 1, "callback_query": {"id": 1, "data": "c:"}},
        {"update_id": 1, "message": [{}]},
    ],
)
async def test_malformed_update_is_done(update: dict[str, Any], intake: UpdateIntake, api: ScriptedApi) -> None:
    """A malformed update would stay malformed, so it is acknowledged."""
    assert await intake.handle(update) == "done"
    assert api.calls == []


async def test_endless_nesting_is_done(phone: Phone) -> None:
    """An endlessly nested update is acknowledged and causes no failure."""
    update = phone.message("hello")
    innermost = update["message"]
    for _ in range(5000):
        reply = {"message_id": 1, "date": 1, "chat": {"id": 11, "type": "private"}}
        innermost["reply_to_message"] = reply
        innermost = reply
    assert await phone.handle(update) == "done"
