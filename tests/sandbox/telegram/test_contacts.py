"""Contacts and taps as users and attackers send them."""

import asyncio
from typing import Any

import pytest
from tests.sandbox.bot import Bot
from tests.sandbox.conftest import ADA, BORIS, EchoBot, Running, buttons
from tests.waiting import until

OWN = {"phone_number": "+12025550101", "first_name": "Ada", "last_name": "Lovelace", "user_id": ADA}
THEIRS = {"phone_number": "+12025550102", "first_name": "Борис", "last_name": "Петров", "user_id": BORIS}
UNKNOWN = {"phone_number": "4915123456789", "first_name": "Nobody"}


async def shared(bot: Bot) -> dict[str, Any]:
    """Return the newest update's message."""
    [update] = await bot.get_updates(-1)
    assert update.message is not None
    assert update.message.contact is not None
    return update.message.as_sent()


@pytest.mark.parametrize(
    ("contact", "seen"),
    [
        ("own", OWN),
        (ADA, OWN),
        (BORIS, THEIRS),
        (UNKNOWN, UNKNOWN),
        (UNKNOWN | {"user_id": 99}, UNKNOWN | {"user_id": 99}),
    ],
)
async def test_sharing_from_the_attachment_menu(running: Running, bot: Bot, contact: object, seen: object) -> None:
    """One's own contact, another user's and an unknown number arrive as on the real messenger."""
    answer = await running.post(f"users/{ADA}/share", {"contact": contact})
    assert answer["message"]["contact"] == seen
    message = await shared(bot)
    assert message["contact"] == seen
    assert message["from"]["id"] == ADA
    assert not {"text", "reply_to_message", "forward_origin"} & set(message)
    assert (await running.messages())[-1]["contact"] == seen


async def test_a_forward_says_whose_it_was(running: Running, bot: Bot) -> None:
    """A forwarded contact is sent by the forwarder and names the original sender."""
    await running.post(f"users/{ADA}/share", {"contact": BORIS, "forwarded_from": BORIS})
    message = await shared(bot)
    assert message["from"]["id"] == ADA
    assert message["contact"] == THEIRS
    assert message["forward_origin"]["type"] == "user"
    assert message["forward_origin"]["sender_user"]["id"] == message["forward_from"]["id"] == BORIS
    assert (await running.messages())[-1]["forwarded_from"] == BORIS


async def test_the_messenger_says_whose_a_number_is(running: Running, bot: Bot) -> None:
    """No user can put their own id on another user's number; their own old number can only be forwarded."""
    foreign = UNKNOWN | {"user_id": ADA}
    error = await running.post(f"users/{ADA}/share", {"contact": foreign}, 400)
    assert "forwarded_from" in error["error"]
    assert await running.messages() == []
    await running.post(f"users/{ADA}/share", {"contact": OWN | {"phone_number": "12025550101"}})
    await running.post(f"users/{ADA}/share", {"contact": foreign, "forwarded_from": ADA})
    message = await shared(bot)
    assert message["contact"] == foreign
    assert message["forward_origin"]["sender_user"]["id"] == ADA


@pytest.mark.parametrize("phone", ["+4915123456789", "4915123456789"])
async def test_the_plus_is_the_apps_choice(running: Running, bot: Bot, phone: str) -> None:
    """A contact contains the number as the user's app writes it, with or without the plus."""
    user = await running.post("users", {"id": ADA, "first_name": "Ada", "phone": phone})
    assert user["phone"] == phone
    await running.post(f"users/{ADA}/share", {"contact": "own"})
    assert (await shared(bot))["contact"] == {"phone_number": phone, "first_name": "Ada", "user_id": ADA}


async def test_everybody_has_a_number(running: Running) -> None:
    """A user who is created without a number gets a unique one that belongs to nobody."""
    made = [await running.post("users", {"first_name": "x"}) for _ in range(3)]
    assert [user["phone"] for user in made] == ["+12025550104", "+12025550105", "+12025550106"]


async def test_a_typed_number_is_a_text(running: Running, bot: Bot) -> None:
    """A typed number is marked as a phone number in the text, and is not a contact."""
    await running.post(f"users/{ADA}/send", {"text": "😀 +4915123456789 /help 12+345678901"})
    [update] = await bot.get_updates()
    assert update.message is not None
    assert update.message.contact is None
    assert [(each.type, each.offset, each.length) for each in update.message.entities or []] == [
        ("phone_number", 3, 14),
        ("bot_command", 18, 5),
    ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"contact": None},
        {"contact": "theirs"},
        {"contact": 5},
        {"contact": True},
        {"contact": []},
        {"contact": {}},
        {"contact": {"phone_number": "call me", "first_name": "x"}},
        {"contact": {"phone_number": "+4915123456789"}},
        {"contact": UNKNOWN | {"user_id": "1001"}},
        {"contact": UNKNOWN | {"is_bot": True}},
        {"contact": UNKNOWN | {"vcard": "x" * 2049}},
        {"contact": "own", "forwarded_from": 5},
        {"contact": "own", "forwarded_from": "ada"},
        {"contact": "own", "wait": 31},
        {"contact": "own", "wait": True},
        {"contact": "own", "wait": "1"},
    ],
)
async def test_refused_contacts(running: Running, body: dict[str, Any]) -> None:
    """An invalid contact is refused with 400 and a sentence, and nothing is sent."""
    error = await running.post(f"users/{ADA}/share", body, 400)
    assert error["error"].endswith(".")
    assert await running.messages() == []


async def test_waiting_for_what_the_bot_does(running: Running, bot: Bot, echo: EchoBot) -> None:
    """With `wait`, a call is answered once the bot has sent or edited something, and says whether it has."""
    for verb, body in (("share", {"contact": "own"}), ("send", {"text": "x"})):
        answer = await running.post(f"users/{ADA}/{verb}", body | {"wait": 10})
        assert answer["answered"] is True
        assert (await running.messages())[-1]["from"] == "bot"
    await echo.stop()
    answer = await running.post(f"users/{ADA}/send", {"text": "x", "wait": 0.1})
    assert answer["answered"] is False
    prompt = (await running.messages())[-2]["message_id"]
    waiting = asyncio.create_task(running.post(f"users/{ADA}/send", {"text": "y", "wait": 10}))

    async def is_sent() -> bool:
        return bool((await running.messages())[-1]["text"] == "y")

    await until(is_sent)
    await bot.edit_message_text("edited", chat_id=ADA, message_id=prompt)
    assert (await waiting)["answered"] is True


# ---- callback data that no button carries


async def test_a_changed_app_taps_what_it_likes(running: Running, bot: Bot) -> None:
    """Any callback data can arrive for any message of the bot: the messenger does not compare it with the buttons."""
    await running.post(f"users/{ADA}/send", {"text": "x"})
    plain = await bot.send_message(ADA, "plain")
    old = await bot.send_message(ADA, "old", reply_markup=buttons(("a", "c:1")))
    new = await bot.send_message(ADA, "new", reply_markup=buttons(("b", "c:2")))
    for body, message_id in (
        ({"data": "r:forged"}, new.message_id),
        ({"data": "c:1"}, old.message_id),
        ({"data": "c:3", "message_id": new.message_id}, new.message_id),
        ({"data": "ж" * 32, "message_id": plain.message_id}, plain.message_id),
    ):
        call = asyncio.create_task(running.post(f"users/{ADA}/tap", body))
        query = None
        while query is None or query.data != body["data"]:
            query = (await bot.get_updates(-1, timeout=5))[0].callback_query
        assert query.message is not None
        assert query.message.message_id == message_id
        await bot.answer_callback_query(query.id)
        assert (await call)["answered"] is True


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"data": ""}, 400),
        ({"data": "x" * 65}, 400),
        ({"data": "ж" * 33}, 400),
        ({"data": 1}, 400),
        ({"data": "c:1", "button": "Confirm"}, 400),
        ({"data": "c:1", "message_id": 1}, 404),
        ({"data": "c:1", "message_id": 99}, 404),
    ],
)
async def test_refused_taps(running: Running, bot: Bot, body: dict[str, Any], status: int) -> None:
    """Data that no app can send, and a message that is not the bot's, are refused."""
    await running.post(f"users/{ADA}/send", {"text": "x"})
    await bot.send_message(ADA, "x", reply_markup=buttons(("a", "c:1")))
    await running.post(f"users/{ADA}/tap", body, status)
    updates = await bot.get_updates()
    assert all(update.callback_query is None for update in updates)
