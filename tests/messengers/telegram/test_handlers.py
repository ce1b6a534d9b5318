"""The bot's behaviour (contract.md, Messenger), with updates as the Bot API documents them."""

from typing import Any

import pytest
from tests.messengers.telegram.conftest import ACME, Fault, Phone, ScriptedApi
from tests.messengers.telegram.message_fields import OPTIONAL, adding

from taproof.core.clock import MINUTE, SECOND
from taproof.messengers.telegram.user_control_replies import commands_help
from taproof.messengers.texts.catalog import LANGUAGES, Texts

EN = LANGUAGES["en"]
EXPIRED = f"{EN.expired}\n\n{EN.expired_next}"
HELP = f"{EN.help}\n\n{commands_help(EN.control)}"


def prompt_text(texts: Texts, age: str) -> str:
    return texts.prompt.format(project=ACME, context="", age=age, choose="", cancel=texts.cancel_button)


# ---- opening a link


async def test_link_shows_the_prompt(phone: Phone, api: ScriptedApi) -> None:
    """Opening the link names the project and the age of the request, and offers Confirm and Cancel."""
    session_token = await phone.create_session()
    phone.clock.now += 25 * SECOND
    assert await phone.handle(phone.message(f"/start {session_token}")) == "done"
    [sent] = api.of("sendMessage")
    assert sent["chat_id"] == 11
    assert sent["text"] == prompt_text(EN, "25 seconds ago")
    assert sent["parse_mode"] == "HTML"
    assert sent["link_preview_options"]["is_disabled"] is True
    assert [button["text"] for button in sent["reply_markup"]["inline_keyboard"][0]] == ["Confirm", "Cancel"]
    assert (await phone.session(session_token)).opener_id == "11"


@pytest.mark.parametrize("language", LANGUAGES)
async def test_prompt_is_in_the_users_language(language: str, phone: Phone, api: ScriptedApi) -> None:
    """`language_code` chooses the texts, the labels included."""
    session_token = await phone.create_session()
    await phone.handle(phone.message(f"/start {session_token}", 11, **{"from": phone.user(language_code=language)}))
    texts = LANGUAGES[language]
    [sent] = api.of("sendMessage")
    assert sent["text"] == prompt_text(texts, texts.just_now)
    labels = [button["text"] for button in sent["reply_markup"]["inline_keyboard"][0]]
    assert labels == [texts.confirm_button, texts.cancel_button]


async def test_expired_link_is_explained(phone: Phone, api: ScriptedApi) -> None:
    """From the instant the ten minutes are over, the link says so and offers no buttons."""
    session_token = await phone.create_session()
    phone.clock.now += 10 * MINUTE
    await phone.handle(phone.message(f"/start {session_token}"))
    [sent] = api.of("sendMessage")
    assert sent["text"] == EXPIRED.format(project=ACME)
    assert "reply_markup" not in sent


@pytest.mark.parametrize(
    "payload", ["nonsense", "A" * 43, "A" * 44, "A" * 5000, "\ud800", "../../x", "<b>", "a b c", "\u202e" + "A" * 42]
)
async def test_unknown_payload_is_explained(payload: str, phone: Phone, api: ScriptedApi) -> None:
    """A payload that is not a session of this service gets a friendly answer."""
    assert await phone.handle(phone.message(f"/start {payload}")) == "done"
    assert [sent["text"] for sent in api.of("sendMessage")] == [EN.unknown]


@pytest.mark.parametrize("text", ["/start", "/START", "/start@Sign_In_Bot", "/help", "hello", "/", "/nothing", "🙂"])
async def test_anything_else_gets_help(text: str, phone: Phone, api: ScriptedApi) -> None:
    """A bare /start, /help and any other text get the help message."""
    await phone.handle(phone.message(text))
    assert [sent["text"] for sent in api.of("sendMessage")] == [HELP]


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        ({"animation": {"file_id": "x"}, "document": {"file_id": "x"}}, 1),
        ({"audio": {"file_id": "x"}}, 1),
        ({"document": {"file_id": "x"}}, 1),
        ({"location": {"latitude": 1.5, "longitude": 2}}, 1),
        ({"photo": [{"file_id": "x"}], "caption": "/start"}, 1),
        ({"sticker": {"file_id": "x"}}, 1),
        ({"video": {"file_id": "x"}}, 1),
        ({"video_note": {"file_id": "x"}}, 1),
        ({"voice": {"file_id": "x"}}, 1),
        ({"venue": {"title": "x"}, "location": {"latitude": 1.5, "longitude": 2}}, 0),
        ({"live_photo": {"file_id": "x"}}, 0),
        ({"rich_message": {"blocks": [{"type": "paragraph"}]}}, 1),
        ({"game": {"title": "x"}}, 0),
        ({"dice": {"value": 5}}, 0),
        ({"poll": {"id": "1"}}, 0),
        ({"pinned_message": {"message_id": 5}}, 0),
        ({"message_auto_delete_timer_changed": {"message_auto_delete_time": 5}}, 0),
        ({"users_shared": {"request_id": 5, "users": []}}, 0),
        ({}, 0),
    ],
)
async def test_which_content_gets_help(content: dict[str, Any], answers: int, phone: Phone, api: ScriptedApi) -> None:
    """The bot answers texts and media, and ignores service messages, games and locations."""
    assert await phone.handle(phone.message(None, **content)) == "done"
    assert [sent["text"] for sent in api.of("sendMessage")] == [HELP] * answers


# ---- where the bot keeps silent


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("/start", 1),
        ("/start@sign_in_bot", 1),
        ("/start {token}", 1),
        ("/start@Sign_In_Bot {token}", 1),
        ("/start@other_bot {token}", 0),
        ("/help", 0),
        ("hello", 0),
        ("{token}", 0),
    ],
)
async def test_group_is_pointed_to_a_private_chat(text: str, answers: int, phone: Phone) -> None:
    """In a group, nothing is opened and no prompt is shown.

    The command /start gets one polite sentence, and other messages none.
    """
    session_token = await phone.create_session()
    for kind in ("group", "supergroup"):
        chat = {"id": -1001, "title": "G", "type": kind}
        await phone.handle(phone.message(text.format(token=session_token), chat=chat))
    sent = [(each["chat_id"], each["text"]) for each in phone.api.of("sendMessage")]
    assert sent == [(-1001, EN.private_only)] * answers * 2
    assert (await phone.session(session_token)).opener_id is None


async def test_group_that_forbids_writing_is_left_alone(phone: Phone, api: ScriptedApi) -> None:
    """An update from a group in which the bot may not write is not repeated."""
    api.fail("sendMessage", Fault(400, "Bad Request: not enough rights to send text messages to the chat"))
    assert await phone.handle(phone.message("/start", chat={"id": -1, "title": "G", "type": "group"})) == "done"


async def test_updates_of_other_kinds_are_ignored(phone: Phone, recwarn: pytest.WarningsRecorder) -> None:
    """Edits, channel posts, business messages, bots' messages and unknown kinds are acknowledged without an answer."""
    session_token = await phone.create_session()
    message = phone.message(f"/start {session_token}")["message"]
    business = {**message, "business_connection_id": "b1"}
    channel_post = {"message_id": 1, "date": 1, "chat": {"id": -100, "type": "channel", "title": "C"}, "text": "/start"}
    robot = {"id": 12, "is_bot": True, "first_name": "R"}
    for update in [
        phone.update(edited_message={**message, "edit_date": 1795214650}),
        phone.update(channel_post=channel_post),
        phone.update(edited_channel_post={**channel_post, "edit_date": 2}),
        phone.update(message=channel_post),
        phone.update(business_message=business),
        phone.update(edited_business_message={**business, "edit_date": 2}),
        phone.update(message={**message, "from": robot, "chat": {"id": 12, "type": "private"}}),
        phone.update(inline_query={"id": "1", "from": phone.user(), "query": session_token, "offset": ""}),
        phone.update(something_new={"session": session_token}),
        phone.update(),
    ]:
        assert await phone.handle(update) == "done"
    assert phone.api.calls == []
    assert (await phone.session(session_token)).opener_id is None
    assert not recwarn.list


async def test_a_link_opens_whatever_comes_with_it(phone: Phone, subtests: pytest.Subtests) -> None:
    """Whatever other fields a message has, the bot opens the link. Only text that the user wrote counts."""
    odd = {"entities": {"rich": 1}, "reply_markup": 5, "link_preview_options": [], "edit_date": "now"}
    cases = {name: adding(name)({}) for name in OPTIONAL if name != "from"}
    cases |= {f"odd {name}": {name: value} for name, value in odd.items()}
    for number, (name, fields) in enumerate(cases.items()):
        with subtests.test(name):
            token, user_id = await phone.create_session(), 1_000 + number
            assert await phone.handle(phone.message(f"/start {token}", user_id, **fields)) == "done"
            opener = (await phone.session(token)).opener_id
            is_own = name not in {"forward_origin", "via_bot", "business_connection_id"}
            assert opener == (str(user_id) if is_own else None)


async def test_answers_are_in_the_topic_of_the_user(phone: Phone, api: ScriptedApi) -> None:
    """Answers, including the outcome of a tap, are in the user's topic.

    If the topic is gone, they are outside topics.
    """
    topic = {"message_thread_id": 7, "is_topic_message": True}
    token = await phone.create_session()
    await phone.handle(phone.message(f"/start {token}", **topic))
    assert api.of("sendMessage")[-1]["message_thread_id"] == 7
    # A message in a topic replies to the one that created it.
    created = {"message_id": 7, "date": 1, "from": phone.user(), "forum_topic_created": {"name": "Quiz!"}}
    message = next(iter(api.messages.values())) | topic | {"reply_to_message": created}
    confirm = message["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
    await phone.handle(phone.tap_as_is(confirm, message=message))
    assert (await phone.session(token)).status == "confirmed"
    api.fail("sendMessage", Fault(400, "Bad Request: message thread not found"))
    await phone.handle(phone.message("/help", **topic))
    assert [each.get("message_thread_id") for each in api.of("sendMessage")[-2:]] == [7, None]
