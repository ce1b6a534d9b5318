"""Taps with an unverifiable message: none is a dead end, none signs anybody in, and each is counted by its reason."""

import asyncio
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import PROJECT_ID, Fault, HandClock, Phone, ScriptedApi
from tests.messengers.telegram.message_fields import ENTITIES, OPTIONAL, adding

from taproof.http.metrics import TapRefusal
from taproof.messengers.telegram.updates import UpdateIntake
from taproof.messengers.texts.catalog import LANGUAGES

EN = LANGUAGES["en"]
Message = dict[str, Any]
Change = Callable[[Message], Message | None]

REASONS: dict[str, TapRefusal] = {
    "business_connection_id": "business_chat",
    "reply_to_message": "changed_look",
    "external_reply": "changed_look",
    "reply_to_story": "changed_look",
    "link_preview_options": "changed_look",
    "edit_date": "wrong_signature",
}
"""Fields that make Confirm unverifiable, unless the messenger adds them to every message."""
AS_TYPED = {"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"}


def shown(change: Change, message: Message) -> Message:
    return change(message) or message


def with_entity(kind: str) -> Change:
    entity = {"type": kind, "offset": 0, "length": 4, "url": "https://example.org/", "unix_time": 1}
    return lambda message: {**message, "entities": [*message.get("entities", []), entity]}


def without(*names: str, **more: Any) -> Change:
    return lambda message: {name: value for name, value in message.items() if name not in names} | more


def styled(message: Message) -> Message:
    markup = message.get("reply_markup", {"inline_keyboard": []})
    rows = [[{**each, "style": "primary"} for each in row] for row in markup["inline_keyboard"]]
    return {**message, "reply_markup": {"inline_keyboard": rows}}


def only(*names: str, **more: Any) -> Change:
    return lambda message: {name: message[name] for name in names} | more


ADDED: dict[str, tuple[Change, TapRefusal | None]] = {
    **{name: (adding(name), REASONS.get(name)) for name in OPTIONAL},
    **{f"entity {kind}": (with_entity(kind), None if kind in AS_TYPED else "unknown_entity") for kind in ENTITIES},
    "styled buttons": (styled, "changed_look"),
    "a text that turns": (lambda message: {**message, "text": f"\u200f{message['text']}"}, "changed_look"),
    "other spaces": (lambda message: {**message, "text": message["text"].replace(" ", "\u00a0")}, None),
}
"""Changes that the messenger may add to a message, each with the reason for refusing Confirm if it occurs only once."""
MISSING: dict[str, tuple[Change, TapRefusal]] = {
    "inaccessible": (only("chat", "message_id", date=0), "inaccessible_message"),
    "no message": (lambda _: None, "no_message"),
    "no text": (without("text", "entities", caption="Quiz!"), "no_text"),
    "rich text": (without("text", "entities", rich_message={"blocks": []}), "no_text"),
    "no buttons": (without("reply_markup"), "button_gone"),
    "other words": (without(text="Quiz!"), "wrong_signature"),
    "odd text": (without(text=5), "unreadable_message"),
    "odd entities": (without(entities={"of": "the next version"}), "unreadable_message"),
    "odd buttons": (without(reply_markup={"rows": []}), "unreadable_message"),
    "odd chat": (without(chat="private"), "unreadable_message"),
    "empty": (lambda _: {}, "unreadable_message"),
}
"""Parts that the messenger may leave out or change, each with the reason for refusing Confirm."""


class Scene:
    """Users who open links and tap, and the counted refusals."""

    def __init__(self, phone: Phone, api: ScriptedApi, intakes: list[UpdateIntake]) -> None:
        self.phone, self.api, self.intakes = phone, api, intakes
        self.refused: list[TapRefusal] = []
        self.timed: list[float] = []
        self.ids = itertools.count(1_001)

    async def open(self) -> tuple[int, str, Message]:
        """Return a user, the session that they have opened, and its prompt."""
        user_id, token = next(self.ids), await self.phone.create_session()
        await self.intakes[0].handle(self.phone.message(f"/start {token}", user_id))
        self.refused.clear()
        self.timed.clear()
        return user_id, token, self.prompts(user_id)[-1]

    def prompts(self, user_id: int) -> list[Message]:
        """Return the messages of a user that have buttons, as the messenger has them."""
        messages = [each for each in self.api.messages.values() if each["chat"]["id"] == user_id]
        return [each for each in messages if "reply_markup" in each]

    def tap_of(self, user_id: int, message: Message, act: str, change: Change = dict, **more: Any) -> dict[str, Any]:
        """Return a tap on a button of a message, which the messenger shows in its own way."""
        buttons = [each for row in message["reply_markup"]["inline_keyboard"] for each in row]
        [data] = [each["callback_data"] for each in buttons if each.get("callback_data", "").startswith(f"{act}:")]
        update = self.phone.tap_as_is(data, user_id, message=change(message), **more)
        update["callback_query"]["id"] = f"tap {update['update_id']}"
        if update["callback_query"]["message"] is None:
            del update["callback_query"]["message"]
        return update

    async def tap(self, user_id: int, message: Message, act: str, change: Change = dict, **more: Any) -> Message:
        """Tap, and return the bot's answer. There is exactly one."""
        update, before = self.tap_of(user_id, message, act, change, **more), len(self.api.of("answerCallbackQuery"))
        assert await self.intakes[0].handle(update) == "done"
        [answer] = self.api.of("answerCallbackQuery")[before:]
        assert answer["callback_query_id"] == update["callback_query"]["id"]
        assert answer["text"]
        return answer

    async def status(self, token: str) -> str:
        return (await self.phone.session(token)).status


@pytest.fixture
def scene(phone: Phone, api: ScriptedApi) -> Scene:
    """Two nodes with one store, and sandboxed users."""
    made = Scene(phone, api, [])
    for _ in range(2):
        made.intakes.append(phone.new_intake(observe_tap=made.timed.append, count_refused_tap=made.refused.append))
    return made


async def test_no_field_makes_a_dead_end(scene: Scene, subtests: pytest.Subtests) -> None:
    """Whatever one message contains, Confirm works, or gives a new prompt in which it works."""
    for name, (change, reason) in (ADDED | MISSING).items():
        with subtests.test(name), capture_logs() as logs:
            user_id, token, prompt = await scene.open()
            answer = await scene.tap(user_id, prompt, "c", change)
            assert scene.refused == ([] if reason is None else [reason])
            assert len(scene.timed) == (reason is None)
            if reason is not None:
                assert await scene.status(token) == "pending"
                assert [each["reason"] for each in logs if each["event"] == "bot_tap_refused"] == [reason]
                assert answer["text"] == EN.renewed
                [fresh] = scene.prompts(user_id)  # The earlier one has lost its buttons.
                assert fresh["message_id"] != prompt["message_id"]
                await scene.tap(user_id, fresh, "c")
            assert await scene.status(token) == "confirmed"


async def test_what_the_messenger_adds_to_every_message_is_no_obstacle(scene: Scene, subtests: pytest.Subtests) -> None:
    """An addition to the answer of sendMessage is the messenger's own, so the buttons' tag covers it."""
    for name, (change, _) in ADDED.items():
        if name == "business_connection_id":
            continue  # Such a message is not in the bot's own chat.
        with subtests.test(name):
            scene.api.shown_as = partial(shown, change)
            user_id, token, prompt = await scene.open()
            await scene.tap(user_id, prompt, "c", change)
            assert (await scene.status(token), scene.refused) == ("confirmed", [])
            # Anything else that is shown is still refused.
            user_id, token, prompt = await scene.open()
            await scene.tap(user_id, shown(change, prompt), "c", with_entity("hiding"))
            assert (await scene.status(token), scene.refused) == ("pending", ["unknown_entity"])


async def test_cancel_and_reports_always_work(scene: Scene, subtests: pytest.Subtests) -> None:
    """Cancel and reports need no proof of what the user saw, and count as other taps."""
    for name, (change, _) in (ADDED | MISSING).items():
        with subtests.test(name):
            user_id, token, prompt = await scene.open()
            await scene.tap(user_id, prompt, "x", change)
            assert await scene.status(token) == "cancelled"
            assert (scene.refused, len(scene.timed)) == ([], 1)
            user_id, token, prompt = await scene.open()
            await scene.tap(user_id, prompt, "r", change)
            assert (await scene.phone.session(token)).reported_at is not None
            assert await scene.phone.storage.users.is_blocked(str(user_id), PROJECT_ID)
            assert (scene.refused, len(scene.timed)) == ([], 1)
            edits = [each for each in scene.api.of("editMessageText") if each["chat_id"] == user_id]
            assert [each["message_id"] for each in edits] == [prompt["message_id"]]


@pytest.mark.parametrize("act", ["c", "x", "r"])
async def test_only_the_owner_gets_anything(act: str, scene: Scene) -> None:
    """Another account that sends the data of the owner's button only learns that the request is not theirs."""
    _, token, prompt = await scene.open()
    for change, _ in MISSING.values():
        eve = next(scene.ids)
        own_chat = {"chat": {"id": eve, "type": "private"}}
        answer = await scene.tap(eve, prompt | own_chat, act, change)
        assert answer["text"] == EN.foreign
        assert [each for each in scene.api.of("sendMessage") if each["chat_id"] == eve] == []
    assert len(scene.refused) == len(MISSING)
    assert (await scene.status(token), scene.timed) == ("pending", [])


async def test_taps_that_are_no_taps_of_the_owner_in_the_own_chat(scene: Scene) -> None:
    """Each is answered and counted; none changes a session or sends a message."""
    user_id, token, prompt = await scene.open()
    sent = len(scene.api.of("sendMessage"))
    other_buttons = {"reply_markup": {"inline_keyboard": [[{"text": "x", "callback_data": "buy:1"}]]}}
    group: Change = lambda message: {**message, "chat": {"id": -1, "type": "group", "title": "G"}}  # noqa: E731
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    taps: list[tuple[TapRefusal, Change, dict[str, Any]]] = [
        ("other_chat", group, {}),
        ("not_a_person", group, {"from": anonymous}),
        ("not_a_person", dict, {"from": {**anonymous, "id": user_id}}),
        ("no_data", dict, {"data": None, "game_short_name": "g"}),
        ("wrong_signature", dict, {"data": "buy:1", "message": prompt | other_buttons}),
    ]
    for reason, change, more in taps:
        for act in "cxr":
            update = scene.tap_of(user_id, prompt, act, change)
            update["callback_query"] |= more
            before = len(scene.api.of("answerCallbackQuery"))
            assert await scene.intakes[0].handle(update) == "done"
            assert len(scene.api.of("answerCallbackQuery")) == before + 1
            assert scene.refused.pop() == reason
    malformed = scene.tap_of(user_id, prompt, "c")
    malformed["callback_query"]["from"] = {"language_code": "es"}
    assert await scene.intakes[0].handle(malformed) == "done"
    assert scene.api.of("answerCallbackQuery")[-1]["text"] == LANGUAGES["es"].unknown
    assert (scene.refused, scene.timed) == (["malformed"], [])
    assert (await scene.status(token), len(scene.api.of("sendMessage"))) == ("pending", sent)


async def test_the_mode_without_messages_is_ended(scene: Scene) -> None:
    """A tap with `inline_message_id` makes the bot ask for taps with messages, and send a new prompt."""
    user_id, token, prompt = await scene.open()
    await scene.tap(user_id, prompt, "c", lambda _: None, inline_message_id="AAAA")
    assert scene.api.of("setMySettings") == [{"callback_query_mode": "default"}]
    assert scene.refused == ["inline_message"]
    [fresh] = scene.prompts(user_id)
    # A server before Bot API 10.5 does not know the method; the tap is answered all the same.
    scene.api.fail("setMySettings", Fault(404, "Not Found: method not found"))
    user_id, other, prompt = await scene.open()
    await scene.tap(user_id, prompt, "c", lambda _: None, inline_message_id="AAAA")
    await scene.tap(user_id, scene.prompts(user_id)[-1], "x", lambda _: None, inline_message_id="AAAA")
    assert await scene.status(other) == "cancelled"
    await scene.tap(fresh["chat"]["id"], fresh, "c")
    assert await scene.status(token) == "confirmed"


async def test_fresh_prompts_are_limited(scene: Scene, clock: HandClock) -> None:
    """Quick taps get one new prompt, and a session at most three.

    Then the user learns that Cancel still works, and it does.
    """
    user_id, token, prompt = await scene.open()
    texts = []
    for _ in range(5):
        for _ in range(2):
            answer = await scene.tap(user_id, prompt, "c", MISSING["inaccessible"][0])
            texts.append(answer["text"])
        prompt = scene.prompts(user_id)[-1]
        clock.now += 10_000
    assert texts == [EN.renewed] * 6 + [EN.cannot_verify] * 4
    assert len([each for each in scene.api.of("sendMessage") if each["chat_id"] == user_id]) == 4
    await scene.tap(user_id, prompt, "x", MISSING["inaccessible"][0])
    assert await scene.status(token) == "cancelled"


async def test_one_tap_has_one_fresh_prompt(scene: Scene, clock: HandClock) -> None:
    """A tap gets one new prompt, even if it is delivered twice, to two nodes, or again after a failed sending."""
    change = MISSING["inaccessible"][0]

    async def sent(user_id: int) -> int:
        return len([each for each in scene.api.messages.values() if each["chat"]["id"] == user_id]) - 1

    user_id, _, prompt = await scene.open()
    updates = [scene.tap_of(user_id, prompt, "c", change) for _ in range(6)]
    taps = [scene.intakes[number % 2].handle(update) for number, update in enumerate(updates)]
    assert await asyncio.gather(*taps) == ["done"] * 6
    assert await sent(user_id) == 1

    user_id, token, prompt = await scene.open()
    scene.api.fail("sendMessage", Fault(502, raw="<html>"))
    update = scene.tap_of(user_id, prompt, "c", change)
    assert await scene.intakes[0].handle(update) == "unanswered"
    assert await sent(user_id) == 0
    clock.now += 60_000
    assert await scene.intakes[1].handle(update) == "done"
    assert await sent(user_id) == 1
    # The node dies after the prompt was recorded: a third one answers the tap, and sends nothing.
    again = {**update, "update_id": update["update_id"] + 1_000}
    clock.now += 60_000
    assert await scene.intakes[0].handle(again) == "done"
    assert await sent(user_id) == 1
    await scene.tap(user_id, scene.prompts(user_id)[-1], "c")
    assert await scene.status(token) == "confirmed"


async def test_a_decided_session_gets_no_fresh_prompt(scene: Scene) -> None:
    """The answer gives the outcome, even if an app shows an earlier state of the message."""
    user_id, _, prompt = await scene.open()
    await scene.tap(user_id, prompt, "c")
    sent = len(scene.api.of("sendMessage"))
    for change, _ in MISSING.values():
        answer = await scene.tap(user_id, prompt, "c", change)
        assert answer["text"].startswith(EN.confirmed_notice.partition("{")[0])
    assert len(scene.api.of("sendMessage")) == sent


async def test_unblock_is_offered_again(scene: Scene) -> None:
    """The holder of the bot's token must not end a block, so an unverified tap gets the genuine list."""
    user_id, _, prompt = await scene.open()
    await scene.tap(user_id, prompt, "r")
    [reported] = scene.prompts(user_id)
    await scene.tap(user_id, reported, "u", MISSING["inaccessible"][0])
    assert await scene.phone.storage.users.is_blocked(str(user_id), PROJECT_ID)
    await scene.tap(user_id, scene.prompts(user_id)[-1], "u")
    assert not await scene.phone.storage.users.is_blocked(str(user_id), PROJECT_ID)
    assert scene.refused == ["inaccessible_message"]


async def test_an_edit_keeps_what_somebody_else_put_above(scene: Scene) -> None:
    """An attacker's copy with a reply to other text stays unverified after the service edits it."""
    user_id, _, prompt = await scene.open()
    scene.api.shown_as = partial(shown, adding("reply_to_message"))
    await scene.tap(user_id, prompt, "r", adding("reply_to_message"))
    [reported] = scene.prompts(user_id)
    await scene.tap(user_id, reported, "u", adding("reply_to_message"))
    assert await scene.phone.storage.users.is_blocked(str(user_id), PROJECT_ID)
    assert scene.refused == ["changed_look"]
    assert reported["message_id"] not in [each["message_id"] for each in scene.api.of("editMessageReplyMarkup")]


async def test_unknown_formatting_is_logged_by_name(scene: Scene) -> None:
    """The log names the kinds of formatting, but no text that a user could have written."""
    user_id, _, prompt = await scene.open()
    kinds = ["holo_text", "spoiler", "Quiz! \x1b[2J"]
    change: Change = lambda message: {**message, "entities": [{"type": kind} for kind in kinds]}  # noqa: E731
    with capture_logs() as logs:
        await scene.tap(user_id, prompt, "c", change)
        await scene.tap(user_id, prompt, "x", change)
    refused, accepted = (
        next(each for each in logs if each["event"] == f"bot_tap_{name}") for name in ("refused", "unverified")
    )
    assert refused["entities"] == accepted["entities"] == ["other", "holo_text", "spoiler"]
    assert (refused["reason"], refused["answer"]) == ("unknown_entity", "renewed")
