"""A button's tag is bound to the user, the bot, and everything that the user sees in the message around it."""

import functools
from typing import Any

import pytest
from tests.messengers.telegram.conftest import BOT_ID, ScriptedApi
from tests.messengers.telegram.phone_asking import Asking

from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.projects import NamedProject
from taproof.core.request_context import RequestContext
from taproof.core.sessions import SessionKey
from taproof.messengers.telegram.chat import Reply
from taproof.messengers.telegram.prompts import opened_reply, outcome_reply, phone_reply
from taproof.messengers.telegram.signed_buttons import PURPOSE, ButtonSigner
from taproof.messengers.telegram.types import CallbackQuery, InlineKeyboardMarkup
from taproof.messengers.telegram.user_control_replies import block_reply, sessions_reply, unblock_reply
from taproof.messengers.texts.catalog import LANGUAGES, Texts
from taproof.sandbox.telegram.html import parse_html, trim
from taproof.service.sessions.seen import SeenSession
from taproof.service.user_control import RecentSignIn

EN = LANGUAGES["en"]
TOKEN = "A" * 43
LINK = "https://shop.example/A#taproof_return=b"
PROJECT = NamedProject("proj_" + "9" * 22, " <b>\u202eÅcme\u030a\u0333 & t.me/x ")
SIGN_IN = RecentSignIn(SessionKey(99_999, b"\xff" * 32), PROJECT, 0, is_reported=False)
CONTEXT = RequestContext("shop.example", place="Zürich, Switzerland")


def replies(texts: Texts) -> dict[str, Reply]:
    """Return every kind of message with buttons."""
    name = PROJECT.project_name
    seen = SeenSession("opened", name, context=CONTEXT, project_id=PROJECT.project_id)
    return {
        "prompt": opened_reply(texts, seen, TOKEN, 0),
        "match codes": opened_reply(texts, SeenSession("opened", name, choices=("11", "22", "33")), TOKEN, 0),
        "phone": phone_reply(texts, SeenSession("phone", name, phone_required=False), TOKEN),
        "returning": outcome_reply(texts, SeenSession("returning", name, return_link=LINK), TOKEN),
        "blocked": opened_reply(texts, SeenSession("blocked", name, project_id=PROJECT.project_id), TOKEN, 0),
        "sessions": sessions_reply(texts.control, [SIGN_IN] * 10),
        "block": block_reply(texts.control, [PROJECT]),
        "unblock": unblock_reply(texts.control, [PROJECT]),
    }


def signer_with(*keys: str) -> ButtonSigner:
    return ButtonSigner(functools.partial(Encryptor(",".join(keys)).derive_all, PURPOSE))


def shown(signer: ButtonSigner, reply: Reply, user_id: int = 11, *, edited: bool = False) -> dict[str, Any]:
    """Return a message as the messenger has it, which cleans texts and finds commands and links in them."""
    assert reply.buttons is not None
    buttons = signer.sign(BOT_ID, user_id, reply.text, reply.buttons, edited=edited)
    formatted = trim(parse_html(reply.text))
    command = {"type": "bot_command", "offset": 0, "length": 1}
    return {
        "message_id": 501,
        "date": 1795214643,
        "chat": {"id": user_id, "type": "private", "first_name": "Ada"},
        "text": formatted.text,
        "entities": [*formatted.entities, command],
        "reply_markup": buttons.model_dump(exclude_none=True),
        **({"edit_date": 1795214644} if edited else {}),
    }


def tapped(message: dict[str, Any], place: int = 0, user_id: int = 11) -> CallbackQuery:
    buttons = [each for row in message["reply_markup"]["inline_keyboard"] for each in row if "callback_data" in each]
    data = buttons[place]["callback_data"]
    user = {"id": user_id, "is_bot": False, "first_name": "Ada"}
    return CallbackQuery.model_validate(
        {"id": "1", "from": user, "chat_instance": "1", "message": message, "data": data}
    )


def opened_by(signer: ButtonSigner, query: CallbackQuery, bot_id: int = BOT_ID) -> str | None:
    """Return the data of a button that the signer proves to be genuine."""
    checked = signer.check(bot_id, query)
    return checked.data if checked.refusal is None else None


@pytest.fixture
def prompt(signer: ButtonSigner) -> dict[str, Any]:
    return shown(signer, replies(EN)["prompt"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_button_comes_back_as_it_was_made(language: str, signer: ButtonSigner) -> None:
    """In each message and language, sent or edited, the tag stays valid after the messenger cleans the text.

    64 bytes hold the data.
    """
    for kind, reply in replies(LANGUAGES[language]).items():
        assert reply.buttons is not None
        made = [each.callback_data for row in reply.buttons.inline_keyboard for each in row if each.url is None]
        for edited in (False, True):
            message = shown(signer, reply, edited=edited)
            keyboard = message["reply_markup"]["inline_keyboard"]
            sent = [each["callback_data"] for row in keyboard for each in row if "url" not in each]
            assert max(len(data.encode()) for data in sent) <= 64  # The Bot API accepts no longer data.
            came = [opened_by(signer, tapped(message, place)) for place in range(len(sent))]
            assert came == made, (kind, edited)


CHANGES: dict[str, dict[str, Any]] = {
    "other words": {"text": "Quiz!"},
    "no words": {"text": None, "caption": "Quiz!"},
    "a spoiler": {"entities": [{"type": "spoiler", "offset": 0, "length": 9}]},
    "a folded quotation": {"entities": [{"type": "expandable_blockquote", "offset": 0, "length": 9}]},
    "a link": {"entities": [{"type": "text_link", "offset": 0, "length": 9, "url": "https://evil.example"}]},
    "another emoji": {"entities": [{"type": "custom_emoji", "offset": 0, "length": 1, "custom_emoji_id": "5"}]},
    "a picture above": {"link_preview_options": {"url": "https://evil.example/quiz.png", "show_above_text": True}},
    "a quotation above": {"external_reply": {"origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Q"}}},
    "a message above": {
        "reply_to_message": {"message_id": 5, "date": 1, "chat": {"id": 11, "type": "private"}, "text": "Quiz!"}
    },
    "an edit": {"edit_date": 1795214644},
}
TURNED = "\u2067" + "".join(f"\u2066{character}\u2069" for character in "Confirm") + "\u2069"
"""A label that shows its characters in reverse order."""


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_else_may_be_shown(change: str, signer: ButtonSigner, prompt: dict[str, Any]) -> None:
    """Genuine data is accepted only in the genuine message, without other content above or beside it."""
    assert opened_by(signer, tapped(prompt)) == f"c:{TOKEN}"
    assert opened_by(signer, tapped(prompt | {"link_preview_options": {"is_disabled": True}})) == f"c:{TOKEN}"
    assert opened_by(signer, tapped(prompt | CHANGES[change])) is None
    assert opened_by(signer, tapped(prompt | {"text": f"\u2067{prompt['text']}\u2069"})) is None


def test_no_button_may_be_changed(signer: ButtonSigner, prompt: dict[str, Any]) -> None:
    """A change of a button's label, place or style, or of another button's data, makes the tag invalid."""
    [[confirm, cancel], [not_me]] = prompt["reply_markup"]["inline_keyboard"]
    bare = {**cancel, "callback_data": cancel["callback_data"][:-12]}
    link = {"text": cancel["text"], "url": "https://evil.example"}
    for rows in (
        [[cancel, confirm], [not_me]],
        [[confirm], [cancel], [not_me]],
        [[confirm]],
        [[confirm, cancel]],
        [[confirm, bare], [not_me]],
        [[confirm, link], [not_me]],
        [[{**confirm, "text": "Paris"}, cancel], [not_me]],
        [[{**confirm, "text": f"Confirm{' ' * 40}."}, cancel], [not_me]],
        [[{**confirm, "text": TURNED}, cancel], [not_me]],
        [[{**confirm, "style": "success"}, cancel], [not_me]],
        [[{**confirm, "icon_custom_emoji_id": "5"}, cancel], [not_me]],
        [[{**confirm, "callback_data": cancel["callback_data"]}, cancel], [not_me]],
    ):
        assert opened_by(signer, tapped(prompt | {"reply_markup": {"inline_keyboard": rows}})) is None, rows


def test_a_link_counts_by_its_label(signer: ButtonSigner) -> None:
    """The messenger may write a link's URL differently.

    No link may be added, removed, moved, or take a button's place.
    """
    message = shown(signer, replies(EN)["returning"])
    [[back], [cancel], [not_me]] = message["reply_markup"]["inline_keyboard"]
    assert (back["url"], set(back)) == (LINK, {"text", "url"})
    for rows, opens in (
        ([[{**back, "url": LINK.lower()}], [cancel], [not_me]], True),
        ([[{**back, "text": "Quiz"}], [cancel], [not_me]], False),
        ([[cancel], [not_me]], False),
        ([[cancel], [back], [not_me]], False),
        ([[back], [back], [cancel], [not_me]], False),
        ([[back], [cancel], [{"text": not_me["text"], "url": LINK}]], False),
        ([[{"text": back["text"]}], [cancel], [not_me]], False),
    ):
        data = opened_by(signer, tapped(message | {"reply_markup": {"inline_keyboard": rows}}))
        assert data == (f"x:{TOKEN}" if opens else None), rows


def test_it_is_one_users_and_one_bots(signer: ButtonSigner, prompt: dict[str, Any]) -> None:
    """A tap of another user, through another bot, or on a nonexistent button does not count."""
    assert opened_by(signer, tapped(prompt, user_id=22)) is None
    assert opened_by(signer, tapped(prompt | {"chat": {"id": 22, "type": "private"}}, user_id=22)) is None
    assert opened_by(signer, tapped(prompt), BOT_ID + 1) is None
    for data in ("", "c", f"c:{TOKEN}", f"c:{TOKEN}" + "A" * 12, "é" * 32, "\U0010ffff" * 13):
        query = tapped(prompt).model_copy(update={"data": data})
        assert opened_by(signer, query) is None
        [[confirm, *_], _] = prompt["reply_markup"]["inline_keyboard"]
        forged = prompt | {"reply_markup": {"inline_keyboard": [[{**confirm, "callback_data": data or " "}]]}}
        assert opened_by(signer, tapped(forged)) is None


def test_a_message_that_is_not_shown_any_more_counts_no_more(signer: ButtonSigner, prompt: dict[str, Any]) -> None:
    """A tap on an inaccessible or inline message does not count."""
    inaccessible = {"chat": prompt["chat"], "message_id": 501, "date": 0}
    query = tapped(prompt).model_dump(exclude={"message"}, by_alias=True)
    for message in (inaccessible, None):
        assert opened_by(signer, CallbackQuery.model_validate(query | {"message": message})) is None


def test_a_rotation_of_the_master_key_loses_no_tap(prompt: dict[str, Any]) -> None:
    """A button is valid as long as the key that signed it is among the master keys, and no longer."""
    old, new = new_master_key(system_entropy), new_master_key(system_entropy)
    message = shown(signer_with(old), replies(EN)["prompt"])
    for keys in ((old,), (old, new), (new, old)):
        assert opened_by(signer_with(*keys), tapped(message)) == f"c:{TOKEN}"
    assert opened_by(signer_with(new), tapped(message)) is None


def sent_message(parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the message that a call of the bot's made."""
    formatted = trim(parse_html(parameters["text"]))
    return {
        "message_id": 501,
        "date": 1795214643,
        "chat": {"id": parameters["chat_id"], "type": "private", "first_name": "Ada"},
        "text": formatted.text,
        "entities": formatted.entities,
        "reply_markup": parameters["reply_markup"],
        **more,
    }


async def test_a_prompt_and_its_phone_request_work_as_sent(asking: Asking, api: ScriptedApi) -> None:
    """The buttons that the bot sends work from the link to the decision, without more calls than without tags."""
    session_token = (await asking.phone.signin.create_session("proj_0000000000000000000008", public=True)).session_token
    await asking.phone.handle(asking.phone.message(f"/start {session_token}"))
    message = sent_message(api.of("sendMessage")[-1])
    confirm = message["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    await asking.phone.handle(asking.phone.tap_as_is(confirm, message=message))
    message = sent_message(api.of("editMessageText")[-1], edit_date=1795214644)
    without = message["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    await asking.phone.handle(asking.phone.tap_as_is(without, message=message))
    assert (await asking.phone.session(session_token)).status == "confirmed"
    assert len(api.of("sendMessage")) == 3
    assert [method for method, _ in api.calls if method.startswith("get")] == []


def test_the_tag_survives_what_the_messenger_does_to_a_text(signer: ButtonSigner) -> None:
    """The messenger removes some characters and makes all spaces alike, but keeps the number of spaces and lines."""
    reply = Reply("a\u00a0b\u200e \u2068c\u030a\u0333\u2069\n\nd", replies(EN)["block"].buttons)
    message = shown(signer, reply)
    for text in ("a b \u2068c\u2069\n\nd", "a b c\n\nd", " a b \u200cc\n\nd\n"):
        assert opened_by(signer, tapped(message | {"text": text})) is not None, text
    for text in ("a b c\n\n\nd", "a  b c\n\nd", "a b c d", "a b\u3164c\n\nd"):
        assert opened_by(signer, tapped(message | {"text": text})) is None, text
    assert isinstance(reply.buttons, InlineKeyboardMarkup)
