"""Keyboards below the message field, as a bot sends them and a person uses them."""

from typing import Any

import pytest
from tests.sandbox.bot import Bot, ForceReply, KeyboardButton, Markup, ReplyKeyboardMarkup, ReplyKeyboardRemove, refused
from tests.sandbox.conftest import ADA, BORIS, Running, buttons

ASK = ReplyKeyboardMarkup(
    keyboard=[[KeyboardButton(text="Share my number", request_contact=True)], [KeyboardButton(text="No")]],
    one_time_keyboard=True,
    resize_keyboard=True,
    input_field_placeholder="Tap the button",
)


async def start(running: Running, user_id: int = ADA) -> None:
    await running.post(f"users/{user_id}/send", {"text": "/start"})


async def chat(running: Running, user_id: int = ADA) -> dict[str, Any]:
    answer: dict[str, Any] = (await running.http.get(f"/sandbox/users/{user_id}/messages")).json()
    return answer


async def newest(bot: Bot) -> dict[str, Any]:
    """Return the newest update's message, as it came over the wire."""
    [update] = await bot.get_updates(-1)
    assert update.message is not None
    return update.message.as_sent()


# ---- what the bot sends


async def test_a_keyboard_is_shown_to_the_person(running: Running, bot: Bot) -> None:
    """The keyboard is a part of the chat and not of the message; its flags and texts arrive as the bot set them."""
    await start(running)
    sent = await bot.send_message(ADA, "Your number?", reply_markup=ASK)
    assert sent.reply_markup is None
    shown = await chat(running)
    assert shown["messages"][-1]["buttons"] == []
    assert shown["reply_keyboard"] == {
        "message_id": sent.message_id,
        "buttons": [
            [{"text": "Share my number", "request_contact": True}],
            [{"text": "No", "request_contact": False}],
        ],
        "resize_keyboard": True,
        "one_time_keyboard": True,
        "is_persistent": False,
        "selective": False,
        "input_field_placeholder": "Tap the button",
        "is_hidden": False,
    }
    assert (await chat(running, BORIS))["reply_keyboard"] is None


@pytest.mark.parametrize("markup", [ReplyKeyboardRemove(), ForceReply()])
async def test_what_takes_the_keyboard_away(running: Running, bot: Bot, markup: Markup) -> None:
    """A keyboard stays below later messages until one removes it or asks for a reply in its place."""
    await start(running)
    await bot.send_message(ADA, "x", reply_markup=ASK)
    await bot.send_message(ADA, "y", reply_markup=buttons(("a", "c:1")))
    await bot.send_message(ADA, "z")
    assert (await chat(running))["reply_keyboard"] is not None
    await bot.send_message(ADA, "gone", reply_markup=markup)
    assert (await chat(running))["reply_keyboard"] is None


async def test_a_newer_keyboard_replaces_the_older(running: Running, bot: Bot) -> None:
    """There is one keyboard at a time, and it disappears only with the message that brought it."""
    await start(running)
    old = await bot.send_message(ADA, "x", reply_markup=ASK)
    newer = ReplyKeyboardMarkup(keyboard=[[KeyboardButton(text="B")]], is_persistent=True)
    new = await bot.send_message(ADA, "y", reply_markup=newer)
    await bot.delete_message(ADA, old.message_id)
    shown = (await chat(running))["reply_keyboard"]
    assert (shown["message_id"], shown["is_persistent"]) == (new.message_id, True)
    await bot.delete_message(ADA, new.message_id)
    assert (await chat(running))["reply_keyboard"] is None


@pytest.mark.parametrize("markup", [ASK, ReplyKeyboardRemove(), ForceReply()])
async def test_only_messages_and_edits_with_inline_keyboards(running: Running, bot: Bot, markup: Markup) -> None:
    """The messenger edits no message with another keyboard, and no edit adds one.

    A bot that relies on more fails here too.
    """
    await start(running)
    sent = await bot.send_message(ADA, "x", reply_markup=markup)
    with refused(400, "Bad Request: message can't be edited"):
        await bot.edit_message_text("y", chat_id=ADA, message_id=sent.message_id)
    with refused(400, "Bad Request: message can't be edited"):
        await bot.edit_message_reply_markup(chat_id=ADA, message_id=sent.message_id, reply_markup=buttons(("a", "b")))
    before = (await chat(running))["reply_keyboard"]
    sent = await bot.send_message(ADA, "x", reply_markup=buttons(("a", "c:1")))
    parameters = {"chat_id": ADA, "message_id": sent.message_id, "reply_markup": markup.model_dump(exclude_none=True)}
    for method in ("editMessageText", "editMessageReplyMarkup"):
        answer = await running.call(method, text="y", **parameters)
        assert answer["description"] == "Bad Request: inline keyboard expected"
    shown = await chat(running)
    assert (shown["messages"][-1]["buttons"], shown["reply_keyboard"]) == ([["a"]], before)


@pytest.mark.parametrize(
    ("markup", "description"),
    [
        ({"keyboard": 1}, 'field "keyboard" must be of type Array'),
        ({"keyboard": [{}]}, 'field "keyboard" must be an Array of Arrays'),
        ({"keyboard": [[1]]}, "can't parse keyboard button: KeyboardButton must be a String or an Object"),
        ({"keyboard": [[{}]]}, "can't parse keyboard button: Can't find field \"text\""),
        ({"keyboard": [[{"text": []}]]}, 'can\'t parse keyboard button: Field "text" must be of type String'),
        (
            {"keyboard": [[{"text": "a", "request_contact": "yes"}]]},
            'can\'t parse keyboard button: Field "request_contact" must be of type Boolean',
        ),
        ({"keyboard": [["a"]], "one_time_keyboard": 1}, 'field "one_time_keyboard" must be of type Boolean'),
        ({"keyboard": [["a"]], "resize_keyboard": "true"}, 'field "resize_keyboard" must be of type Boolean'),
        (
            {"keyboard": [["a"]], "input_field_placeholder": 1},
            'field "input_field_placeholder" must be of type String',
        ),
        ({"keyboard": [["a"]], "input_field_placeholder": "x" * 65}, "REPLY_MARKUP_INVALID"),
        ({"remove_keyboard": "true"}, 'field "remove_keyboard" must be of type Boolean'),
    ],
)
async def test_refused_keyboards(running: Running, markup: dict[str, Any], description: str) -> None:
    """A keyboard that the real server cannot read is refused with the same text, and nothing is sent."""
    await start(running)
    answer = await running.call("sendMessage", chat_id=ADA, text="x", reply_markup=markup)
    assert answer == {"ok": False, "error_code": 400, "description": f"Bad Request: {description}"}
    assert len(await running.messages()) == 1


async def test_too_many_buttons_are_dropped(running: Running) -> None:
    """12 buttons per row and 300 in total are shown, and buttons without a text are dropped; nothing is refused."""
    await start(running)
    row = [str(number) for number in range(13)]
    await running.call("sendMessage", chat_id=ADA, text="x", reply_markup={"keyboard": [row, [""], *[row] * 40]})
    rows = (await chat(running))["reply_keyboard"]["buttons"]
    assert [len(row) for row in rows] == [12] * 25
    await running.call("sendMessage", chat_id=ADA, text="x", reply_markup={"keyboard": [[""]]})
    assert len((await chat(running))["reply_keyboard"]["buttons"]) == 25


# ---- what the person does with it


async def test_the_button_shares_the_own_contact(running: Running, bot: Bot) -> None:
    """The contact is a reply to the message that asked. A one-time keyboard is only folded, so it can be used twice."""
    await start(running)
    asked = await bot.send_message(ADA, "Your number?", reply_markup=ASK)
    own = {"phone_number": "+12025550101", "first_name": "Ada", "last_name": "Lovelace", "user_id": ADA}
    for _ in range(2):
        answer = await running.post(f"users/{ADA}/press", {"button": "Share my number"})
        assert answer["message"]["contact"] == own
        message = await newest(bot)
        assert message["contact"] == own
        assert "text" not in message
        assert message["from"]["id"] == ADA
        assert message["reply_to_message"]["message_id"] == asked.message_id
        assert (await chat(running))["reply_keyboard"]["is_hidden"] is True
    assert [message["contact"] is not None for message in await running.messages()] == [False, False, True, True]


async def test_other_buttons_type_their_text(running: Running, bot: Bot) -> None:
    """A button without a request sends its text as if it were typed; a keyboard that is not one-time stays open."""
    await start(running)
    keyboard = ReplyKeyboardMarkup(keyboard=[[KeyboardButton(text="/sessions")]])
    await bot.send_message(ADA, "x", reply_markup=keyboard)
    await running.post(f"users/{ADA}/press", {"button": "/sessions"})
    message = await newest(bot)
    assert (message["text"], message["entities"][0]["type"]) == ("/sessions", "bot_command")
    assert "reply_to_message" not in message
    assert (await chat(running))["reply_keyboard"]["is_hidden"] is False


async def test_a_button_that_is_not_there(running: Running, bot: Bot) -> None:
    """Pressing a missing button is 404 and sends nothing. A user who has blocked the bot cannot press any."""
    await start(running)
    error = await running.post(f"users/{ADA}/press", {"button": "No"}, 404)
    assert "There is no keyboard" in error["error"]
    await bot.send_message(ADA, "x", reply_markup=ASK)
    error = await running.post(f"users/{ADA}/press", {"button": "Yes"}, 404)
    assert error["error"].endswith("Its buttons are: Share my number, No.")
    await running.post(f"users/{ADA}/press", {}, 400)
    await running.post(f"users/{ADA}/block", {})
    response = await running.http.post(f"/sandbox/users/{ADA}/press", json={"button": "No"})
    assert response.headers["x-error-code"] == "bot_blocked"
    assert len(await running.messages()) == 2
