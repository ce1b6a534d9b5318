"""Long polling acknowledges only what is handled, loses nothing, and survives every error."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import TOKEN, Fault, HandClock, Phone, ScriptedApi, in_background
from tests.signals import unheard
from tests.waiting import until

from taproof.core.errors import StoreUnavailable
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.connection import Reconnection
from taproof.messengers.telegram.polling import LongPolling, PollTimes
from taproof.messengers.telegram.updates import ALLOWED_UPDATES, UpdateIntake

START = HandClock()()
"""The time at which the loop became the only one."""
SHORT = PollTimes(patience=0.05, longest_delay=0.05)
"""Short delays between attempts; test_connection.py tests their growth."""


def polling(bot: Bot, intake: UpdateIntake, times: PollTimes = SHORT) -> LongPolling:
    return LongPolling(bot, intake, START, Reconnection(unheard, times.longest_delay), times=times)


def running(bot: Bot, intake: UpdateIntake, times: PollTimes = SHORT) -> AbstractAsyncContextManager[None]:
    return in_background(polling(bot, intake, times).run())


async def test_updates_are_handled_and_acknowledged(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """Updates are requested by kind, handled, and acknowledged by the next poll's offset."""
    api.updates = [phone.message("/help", user) for user in (11, 12, 13)]
    last = api.updates[-1]["update_id"]
    async with running(bot, phone.intake):
        await until(lambda: len(api.of("sendMessage")) == 3)
        await until(lambda: not api.updates)
    assert {sent["chat_id"] for sent in api.of("sendMessage")} == {11, 12, 13}
    polls = api.of("getUpdates")
    assert "offset" not in polls[0]
    assert polls[0]["allowed_updates"] == ALLOWED_UPDATES
    assert polls[0]["timeout"] >= 20
    assert last + 1 in [poll.get("offset") for poll in polls]


async def test_offset_stops_before_what_is_not_done(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """An update whose answer cannot be sent holds back the acknowledgement, but not the other users' updates."""
    api.updates = [phone.message("/help", user) for user in (11, 12, 13)]
    first, second, _ = (update["update_id"] for update in api.updates)
    blocked = True

    def fail_for_second_user(method: str, parameters: dict[str, Any]) -> None:
        if blocked and method == "sendMessage" and parameters["chat_id"] == 12:
            api.fail("sendMessage", Fault(502, raw="<html>"))

    api.on_call = fail_for_second_user
    async with running(bot, phone.intake):
        await until(lambda: len(api.of("sendMessage")) >= 5)
        offsets = {poll["offset"] for poll in api.of("getUpdates") if "offset" in poll}
        assert offsets == {first + 1, second} == {second}
        api.updates.append(phone.message("/help", 14))
        await until(lambda: 14 in {sent["chat_id"] for sent in api.of("sendMessage")})
        blocked = False
        await until(lambda: not api.updates)
    delivered = [sent["chat_id"] for sent in api.of("sendMessage")]
    assert {user: delivered.count(user) for user in (11, 13, 14)} == {11: 1, 13: 1, 14: 1}


async def test_one_users_updates_stay_in_order(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """A user's tap is not handled before the user's link, even if handling the link takes two attempts."""
    session_token = await phone.create_session()
    api.updates = [phone.message(f"/start {session_token}"), phone.tap(f"c:{session_token}")]
    api.fail("sendMessage", Fault(502, raw="<html>"))
    async with running(bot, phone.intake):
        await until(lambda: not api.updates)
    assert (await phone.session(session_token)).status == "confirmed"
    assert [method for method, _ in api.calls if method != "getUpdates"] == [
        "sendMessage",
        "sendMessage",
        "editMessageText",
        "answerCallbackQuery",
    ]


async def test_crash_before_the_end_loses_nothing(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """A claim of a dead process does not delay an update that is delivered again."""
    update = phone.message("/help")
    await phone.storage.bots.claim_update(bot.id, update["update_id"], 1_795_214_643_127, 0)
    api.updates = [update]
    async with running(bot, phone.intake):
        await until(lambda: not api.updates)
    assert len(api.of("sendMessage")) == 1


async def test_update_in_hand_is_finished_and_acknowledged_on_stop(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """Cancelled in the middle of an update, the loop finishes and acknowledges it."""
    api.updates = [phone.message("/help")]
    task = asyncio.create_task(polling(bot, phone.intake).run())

    def stop(method: str, _: dict[str, str]) -> None:
        if method == "sendMessage":
            task.cancel()

    api.on_call = stop
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(api.of("sendMessage")) == 1
    assert api.updates == []
    assert (api.of("getUpdates")[-1]["timeout"], api.of("getUpdates")[-1]["limit"]) == (0, 1)


async def test_stop_does_not_wait_for_updates_that_cannot_be_handled(
    phone: Phone, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update that waits for another attempt stays unacknowledged, so the next start receives it."""

    async def unavailable(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(phone.storage.bots, "claim_update", unavailable)
    phone.api.updates = [phone.message("/help")]
    async with asyncio.timeout(60), running(bot, phone.intake, PollTimes(patience=0.05)):
        await until(lambda: len(phone.api.of("getUpdates")) >= 3)
    assert len(phone.api.updates) == 1


async def test_update_that_never_succeeds_is_dropped_in_the_end(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """A chat for which the Bot API always fails does not hold back the acknowledgement forever."""
    api.fail("sendMessage", Fault(500, "Internal Server Error", times=1000))
    api.updates = [phone.message("/help")]
    with capture_logs() as logs:
        async with running(bot, phone.intake, SHORT._replace(unanswered=0.1)):
            await until(lambda: not api.updates)
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["bot_update_given_up"]


@pytest.mark.parametrize("opens_first", [False, True])
async def test_one_user_cannot_stop_sign_in_for_others(
    opens_first: bool,  # noqa: FBT001
    phone: Phone,
    bot: Bot,
    intake: UpdateIntake,
    api: ScriptedApi,
) -> None:
    """Hundreds of messages of a user whom the bot may not answer do not delay another user's link.

    That holds also if a reply to them waits already, and what they decide is stored nevertheless.
    """

    def refuse_first_user(method: str, parameters: dict[str, Any]) -> None:
        if method == "sendMessage" and parameters["chat_id"] == 11:
            api.fail("sendMessage", Fault(429, "Too Many Requests: retry after 3600", {"retry_after": 3600}))

    api.on_call = refuse_first_user
    tokens = [await phone.create_session() for _ in range(3)]
    if opens_first:
        api.updates = [phone.message(f"/start {tokens[0]}")]
    api.updates += [phone.message("hello") for _ in range(150)]
    api.updates += [phone.message(f"/start {tokens[1]}")]
    api.updates += [phone.message("hello") for _ in range(149)]
    api.updates += [phone.message(f"/start {tokens[2]}", 22)]
    async with running(bot, intake, SHORT._replace(finish=0.05)):
        await until(lambda: 22 in {sent["chat_id"] for sent in api.of("sendMessage")})
        await until(lambda: not api.updates)
    assert (await phone.session(tokens[1])).opener_id == "11"
    assert (await phone.session(tokens[2])).opener_id == "22"


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (502, "<html>"),
        (200, '{"ok": true}'),
        (200, '{"ok": true, "result": null}'),
        (200, '{"ok": true, "result": [[]]}'),
        (200, "[" * 100_000),
    ],
)
async def test_odd_answer_does_not_end_the_loop(status: int, answer: str, phone: Phone, bot: Bot) -> None:
    """While the answers are not those of a Bot API, the loop keeps trying.

    It logs one line, and one more when it recovers.
    """
    phone.api.fail("getUpdates", Fault(status, raw=answer, times=4))
    phone.api.updates = [phone.message("/help")]
    with capture_logs() as logs:
        async with running(bot, phone.intake):
            await until(lambda: not phone.api.updates)
    assert [entry["event"] for entry in logs] == ["bot_api_unreachable", "bot_api_reached"]


async def test_bug_does_not_end_the_loop(phone: Phone, bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is logged once, by its type and place, and the loop continues."""
    bugs = 3
    get_updates = bot.get_updates

    async def broken(**parameters: Any) -> list[dict[str, Any]]:
        nonlocal bugs
        bugs -= 1
        if bugs >= 0:
            raise RuntimeError("a secret in an error's text")
        return await get_updates(**parameters)

    monkeypatch.setattr(bot, "get_updates", broken)
    phone.api.updates = [phone.message("/help")]
    with capture_logs() as logs:
        async with running(bot, phone.intake):
            await until(lambda: not phone.api.updates)
    assert [entry["event"] for entry in logs] == ["bot_polling_failed"]
    assert logs[0]["error"] == "RuntimeError"
    assert "secret" not in str(logs)


@pytest.mark.parametrize(
    ("fault", "event", "advice"),
    [
        (Fault(401, "Unauthorized", times=2), "bot_token_refused", "TAPROOF_BOT_TOKEN"),
        (Fault(409, "Conflict: terminated by other getUpdates request", times=2), "bot_conflict", "Another program"),
        (Fault(429, "Too Many Requests: retry after 1", {"retry_after": 1}), "bot_flood_wait", "no calls for 1 s"),
    ],
)
async def test_refused_polls_are_logged_with_advice(
    fault: Fault, event: str, advice: str, bot: Bot, intake: UpdateIntake, api: ScriptedApi
) -> None:
    """An unknown token, a second polling program and a flood limit are named, and polling continues after a delay."""
    api.fail("getUpdates", fault)
    with capture_logs() as logs:
        async with running(bot, intake):
            await until(lambda: len(api.of("getUpdates")) >= 4)
    assert [entry["event"] for entry in logs] == [event, "bot_api_reached"]
    assert advice in logs[0]["advice"]
    assert api.of("deleteWebhook") == []
    assert TOKEN not in str(logs)


async def test_webhook_that_is_still_set_is_removed(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """Polling removes a webhook and keeps its pending updates."""
    api.webhook = "https://example.org/bot/webhook"
    api.updates = [phone.message("/help")]
    async with running(bot, phone.intake):
        await until(lambda: not api.updates)
    assert [call["drop_pending_updates"] for call in api.of("deleteWebhook")] == [False]
    assert len(api.of("sendMessage")) == 1


async def test_unreadable_update_spoils_no_other(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """An unreadable update is skipped; those beside it are handled."""
    broken = phone.update(message={"text": 5})
    api.updates = [phone.message("/help", 11), broken, phone.message("/help", 12), phone.update(brand_new={})]
    async with running(bot, phone.intake):
        await until(lambda: not api.updates)
    assert len(api.of("sendMessage")) == 2


async def test_answer_without_update_ids_is_no_busy_loop(bot: Bot, intake: UpdateIntake, api: ScriptedApi) -> None:
    """After an answer without usable updates, the next poll is delayed."""
    api.updates = [{"message": "?"}]
    loop = asyncio.get_running_loop()
    times: list[float] = []
    api.on_call = lambda *_: times.append(loop.time())
    async with running(bot, intake, SHORT._replace(patience=0.5)):
        await until(lambda: len(times) >= 2)
    assert times[1] - times[0] >= 0.5


async def test_ids_that_start_again_lower_are_received(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """Update ids may restart lower after a quiet week, so once all is acknowledged, no offset is sent."""
    api.updates = [phone.message("/help")]
    async with running(bot, phone.intake):
        await until(lambda: not api.updates)
        await until(lambda: "offset" not in api.of("getUpdates")[-1])
        api.updates = [{**phone.message("/help"), "update_id": 77}]
        await until(lambda: len(api.of("sendMessage")) == 2)


async def test_many_users_at_once(phone: Phone, bot: Bot, api: ScriptedApi) -> None:
    """Hundreds of waiting updates are each handled once, and all are acknowledged."""
    tokens = [await phone.create_session() for _ in range(150)]
    api.updates = [phone.message(f"/start {token}", 1000 + n) for n, token in enumerate(tokens)]
    api.updates += [phone.tap(f"c:{token}", 1000 + n) for n, token in enumerate(tokens)]
    async with running(bot, phone.intake):
        await until(lambda: not api.updates)
    assert len(api.of("sendMessage")) == len(api.of("editMessageText")) == 150
    assert {(await phone.session(token)).status for token in tokens} == {"confirmed"}
