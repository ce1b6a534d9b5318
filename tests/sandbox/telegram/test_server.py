"""The Bot API server, as a bot and a plain HTTP client use it."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.bot import Bot, refused
from tests.sandbox.conftest import ADA, BORIS, TOKEN, USERNAME, Running, buttons

from taproof.core.clock import DAY, SECOND
from taproof.sandbox.telegram.messenger import QUERY_LIFETIME

UNPARSED = "can't parse inline keyboard button"


def inline(**button: str) -> dict[str, Any]:
    """Return the parameters of a message with this button."""
    return {"reply_markup": {"inline_keyboard": [[button]]}}


async def start(running: Running, user_id: int = ADA) -> None:
    """Let a user write to the bot."""
    await running.post(f"users/{user_id}/send", {"text": "/start"})


# ---- who calls, and how


@pytest.mark.parametrize("path", ["bot", "botx/getMe", f"bot{TOKEN}", f"bot{TOKEN}/", f"bot{TOKEN}/get-me", "bot7:/x"])
async def test_unknown_paths_are_not_found(running: Running, path: str) -> None:
    """Unknown paths get 404 in the Bot API's own shape, as does a malformed method name."""
    response = await running.http.get(f"/sandbox/{path}")
    assert response.status_code == 404
    assert response.json() == {"ok": False, "error_code": 404, "description": "Not Found"}


@pytest.mark.parametrize("method", ["sendPhoto", "GETCHAT", "aMethodOfTheNextYear"])
async def test_a_method_that_the_sandbox_lacks_is_a_bad_request(running: Running, method: str) -> None:
    """A bot library would report a 404 as an invalid token. The sentence names the page with the methods."""
    answer = await running.call(method, chat_id=ADA)
    assert (answer["ok"], answer["error_code"]) == (False, 400)
    page = "docs/reference/sandbox.md"
    assert answer["description"] == (
        f"Bad Request: the sandbox has no method {method}; {page} lists the methods that it has"
    )
    bot = running.sandbox.bots.find(USERNAME)
    assert bot is not None
    text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    table = text.partition("| method | in the sandbox |")[2].partition("\n\n")[0]
    listed = re.findall(r"`([a-z][A-Za-z]+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))
    assert sorted(each.lower() for each in listed) == sorted(bot.methods.by_name)


async def test_every_way_to_pass_parameters(running: Running) -> None:
    """Query string, both kinds of form and JSON mean the same, with GET and POST and method names in any case."""
    await start(running)
    url = f"/sandbox/bot{TOKEN}/SENDmessage"
    text = "ж&=+ \n😀"
    fields = {"chat_id": str(ADA), "text": text}
    for response in (
        await running.http.get(url, params=fields),
        await running.http.post(url, data=fields),
        await running.http.post(url, files={name: (None, value) for name, value in fields.items()}),
        await running.http.post(url, json={"chat_id": ADA, "text": text, "reply_markup": None}),
        await running.http.post(url, params={"chat_id": "5", "text": text}, json={"chat_id": ADA}),
    ):
        assert response.status_code == 200, response.text
        assert response.json()["result"]["text"] == text


@pytest.mark.parametrize(
    ("content_type", "body", "status", "description"),
    [
        ("application/json", b"{", 400, "Bad Request: can't parse JSON object"),
        ("application/json", b"[]", 400, "Bad Request: object expected as JSON body"),
        ("application/json", b'{"text": "\xff"}', 400, "Bad Request: strings must be encoded in UTF-8"),
        ("application/json", b'{"text": "\\ud800"}', 400, "Bad Request: strings must be encoded in UTF-8"),
        ("application/json", b"[" * 100_000, 400, "Bad Request: can't parse JSON object"),
        ("application/x-www-form-urlencoded", b"text=%ff", 400, "Bad Request: strings must be encoded in UTF-8"),
        ("application/x-www-form-urlencoded", b"a=1&" * 1000, 400, "Bad Request: too many parameters"),
        ("multipart/form-data", b"x", 400, "Bad Request: can't parse multipart body"),
        ("application/json", b" " * (1024 * 1024 + 1), 413, "Request Entity Too Large"),
    ],
)
async def test_bodies_that_cannot_be_read(
    running: Running, content_type: str, body: bytes, status: int, description: str
) -> None:
    """A broken body is refused with a reason, and never with 500."""
    response = await running.http.post(
        f"/sandbox/bot{TOKEN}/sendMessage", content=body, headers={"Content-Type": content_type}
    )
    assert response.status_code == status
    assert response.json() == {"ok": False, "error_code": status, "description": description}


async def test_other_http_methods_are_refused(running: Running) -> None:
    """Only GET and POST are calls."""
    assert (await running.http.put(f"/sandbox/bot{TOKEN}/getMe")).status_code == 405


# ---- messages


async def test_send_message(running: Running, bot: Bot) -> None:
    """A message arrives as the bot sent it: chat, date, entities and keyboard."""
    await start(running)
    sent = await bot.send_message(ADA, " <b>Hi</b> 😀 &amp; bye\n", reply_markup=buttons(("Yes", "c:1"), ("No", "x:1")))
    assert sent.text == "Hi 😀 & bye"
    assert [(each.type, each.offset, each.length) for each in sent.entities or []] == [("bold", 0, 2)]
    assert sent.chat.model_dump(exclude_none=True) == {
        "id": ADA,
        "first_name": "Ada",
        "last_name": "Lovelace",
        "username": "ada",
        "type": "private",
    }
    assert sent.from_user.username == USERNAME
    assert sent.date == running.clock.now // SECOND
    assert sent.reply_markup is not None
    assert sent.reply_markup.inline_keyboard[0][1].callback_data == "x:1"
    [_, shown] = await running.messages()
    assert shown == {
        "message_id": sent.message_id,
        "from": "bot",
        "text": "Hi 😀 & bye",
        "entities": [{"type": "bold", "offset": 0, "length": 2}],
        "buttons": [["Yes", "No"]],
        "inline_keyboard": [[{"text": "Yes", "callback_data": "c:1"}, {"text": "No", "callback_data": "x:1"}]],
        "contact": None,
        "forwarded_from": None,
        "date": "2026-11-20T22:44:03.127Z",
        "edited": False,
        "protected": False,
    }


@pytest.mark.parametrize(
    ("parameters", "description"),
    [
        ({"text": ""}, "message text is empty"),
        ({"text": " \n"}, "text must be non-empty"),
        ({"text": "<b></b>", "parse_mode": "html"}, "text must be non-empty"),
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": "😀" * 2049}, "message is too long"),
        (
            {"text": "<b>x", "parse_mode": "HTML"},
            "can't parse entities: Can't find end tag corresponding to start tag \"b\"",
        ),
        ({"text": "ж<p>", "parse_mode": "HTML"}, 'can\'t parse entities: Unsupported start tag "p" at byte offset 2'),
        ({"parse_mode": "XML"}, "unsupported parse_mode"),
        ({"chat_id": ""}, "chat_id is empty"),
        ({"chat_id": 5}, "chat not found"),
        ({"chat_id": "@nobody"}, "chat not found"),
        ({"reply_markup": "{"}, "can't parse reply keyboard markup JSON object"),
        ({"reply_markup": "[]"}, "object expected as reply markup"),
        ({"reply_markup": '{"inline_keyboard": 1}'}, 'field "inline_keyboard" must be of type Array'),
        (
            {"reply_markup": {"inline_keyboard": [{}]}},
            'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays',
        ),
        (inline(text="a"), f"{UNPARSED}: Text buttons are unallowed in the inline keyboard"),
        (inline(callback_data="a"), f'{UNPARSED}: Can\'t find field "text"'),
        (inline(text="a", callback_data="x" * 65), "BUTTON_DATA_INVALID"),
        (inline(text="a", callback_data="ж" * 33), "BUTTON_DATA_INVALID"),
        (inline(text="a", url="nowhere"), "inline keyboard button URL 'nowhere' is invalid: Wrong HTTP URL"),
        (
            inline(text="a", url="http://localhost:3000/"),
            "inline keyboard button URL 'http://localhost:3000/' is invalid: Wrong HTTP URL",
        ),
        (
            inline(text="a", url="ftp://shop.example/"),
            "inline keyboard button URL 'ftp://shop.example/' is invalid: Unsupported URL protocol",
        ),
    ],
)
async def test_refused_messages(running: Running, parameters: dict[str, Any], description: str) -> None:
    """A call that the real server refuses is refused with the same text, and nothing is sent."""
    await start(running)
    answer = await running.call("sendMessage", **({"chat_id": ADA, "text": "x"} | parameters))
    assert answer == {"ok": False, "error_code": 400, "description": f"Bad Request: {description}"}
    assert len(await running.messages()) == 1


async def test_links_are_kept_as_the_messenger_writes_them(running: Running) -> None:
    """Scheme and host are in lower case, and there is always a path. The fragment stays."""
    await start(running)
    links = {
        "HTTPS://Shop.Example#taproof_return=A_b": "https://shop.example/#taproof_return=A_b",
        "https://shop.example?a=B#c": "https://shop.example/?a=B#c",
        "http://127.0.0.1:3000/Sign-In": "http://127.0.0.1:3000/Sign-In",
        "http://[::1]:3000/": "http://[::1]:3000/",
        "shop.example": "http://shop.example/",
        "tg://resolve?domain=a": "tg://resolve?domain=a",
    }
    keyboard = [[{"text": "a", "url": url}] for url in links]
    await running.call("sendMessage", chat_id=ADA, text="x", reply_markup={"inline_keyboard": keyboard})
    [*_, sent] = await running.messages()
    assert [button["url"] for [button] in sent["inline_keyboard"]] == list(links.values())


@pytest.mark.parametrize(
    ("value", "is_protected"), [(True, True), ("Yes", True), (1, True), (False, False), ("x", False)]
)
async def test_protected_messages_stay_protected(running: Running, value: object, *, is_protected: bool) -> None:
    """The bot and the person see the protection. An edit keeps it, and does not accept `protect_content`."""
    await start(running)
    sent = await running.call("sendMessage", chat_id=ADA, text="x", protect_content=value)
    message_id = sent["result"]["message_id"]
    edit = {"chat_id": ADA, "message_id": message_id, "text": "y", "protect_content": not is_protected}
    for answer in (sent, await running.call("editMessageText", **edit)):
        assert answer["result"].get("has_protected_content", False) is is_protected
        assert (await running.messages())[-1]["protected"] is is_protected


async def test_edges_that_are_taken(running: Running, bot: Bot) -> None:
    """4,096 units of text after parsing and 64 bytes of callback data are accepted at most."""
    await start(running)
    await bot.send_message(ADA, f"<b>{'x' * 4096}</b>", reply_markup=buttons(("a", "ж" * 32)))


async def test_a_user_who_never_wrote_or_blocked_cannot_be_written_to(running: Running, bot: Bot) -> None:
    """A bot cannot start a conversation or write while it is blocked; after an unblock it can."""
    with refused(403, "bot can't initiate conversation with a user"):
        await bot.send_message(ADA, "x")
    await start(running)
    sent = await bot.send_message(ADA, "x")
    await running.post(f"users/{ADA}/block", {})
    with refused(403, "bot was blocked by the user"):
        await bot.send_message(ADA, "x")
    with refused(403, "bot was blocked by the user"):
        await bot.edit_message_text("y", chat_id=ADA, message_id=sent.message_id)
    await running.post(f"users/{ADA}/unblock", {})
    await bot.send_message(ADA, "x")
    kinds = [update.my_chat_member for update in await bot.get_updates(allowed_updates=[]) if update.my_chat_member]
    assert [(kind.old_chat_member.status, kind.new_chat_member.status) for kind in kinds] == [
        ("member", "kicked"),
        ("kicked", "member"),
    ]


async def test_edit_message(running: Running, bot: Bot) -> None:
    """An edit replaces text and buttons; an edit without a change, or of another's message, is refused."""
    await start(running)
    sent = await bot.send_message(ADA, "<b>x</b>", reply_markup=buttons(("a", "c:1")))
    edited = await bot.edit_message_text("<i>x</i>", chat_id=ADA, message_id=sent.message_id)
    assert edited.edit_date == running.clock.now // SECOND
    assert edited.reply_markup is None
    assert (await running.messages())[-1]["edited"] is True
    with refused(400, "Bad Request: message is not modified: specified new message content"):
        await bot.edit_message_text("<i>x</i> ", chat_id=ADA, message_id=sent.message_id)
    await bot.edit_message_reply_markup(chat_id=ADA, message_id=sent.message_id, reply_markup=buttons(("b", "x:1")))
    with refused(400, "message is not modified"):
        await bot.edit_message_reply_markup(chat_id=ADA, message_id=sent.message_id, reply_markup=buttons(("b", "x:1")))
    await bot.edit_message_text("<i>x</i>", chat_id=ADA, message_id=sent.message_id)
    with refused(400, "message to edit not found"):
        await bot.edit_message_text("y", chat_id=ADA, message_id=999)
    with refused(400, "message can't be edited"):
        await bot.edit_message_text("y", chat_id=ADA, message_id=sent.message_id - 1)
    assert (await running.call("editMessageText", text="y"))["description"] == (
        "Bad Request: message identifier is not specified"
    )


async def test_delete_message(running: Running, bot: Bot) -> None:
    """A message is deleted once, and only in its first 48 hours."""
    await start(running)
    first = await bot.send_message(ADA, "x")
    second = await bot.send_message(ADA, "y")
    await bot.delete_message(ADA, first.message_id)
    with refused(400, "message to delete not found"):
        await bot.delete_message(ADA, first.message_id)
    running.clock.now += 2 * DAY + 1
    with refused(400, "message can't be deleted"):
        await bot.delete_message(ADA, second.message_id)


# ---- callback queries


async def tap(running: Running, bot: Bot) -> tuple[asyncio.Task[dict[str, Any]], str]:
    """Let Ada tap a button; return the call that waits for the answer, and the query's id."""
    await start(running)
    await bot.send_message(ADA, "x", reply_markup=buttons(("Yes", "c:1")))
    call = asyncio.create_task(running.post(f"users/{ADA}/tap", {"button": "Confirm"}))
    while True:
        for update in await bot.get_updates(-1, timeout=5):
            if update.callback_query is not None:
                assert update.callback_query.data == "c:1"
                assert update.callback_query.from_user.id == ADA
                assert update.callback_query.message is not None
                return call, update.callback_query.id


async def test_a_callback_query_is_answered_once(running: Running, bot: Bot) -> None:
    """The person sees the first answer; a second one, an unknown id and a long text are refused."""
    call, query_id = await tap(running, bot)
    with refused(400, "MESSAGE_TOO_LONG"):
        await bot.answer_callback_query(query_id, text="x" * 201)
    await bot.answer_callback_query(query_id, text="Done", show_alert=True)
    assert await call == {"answered": True, "alert": "Done", "show_alert": True}
    for used_up in (query_id, "", "5"):
        with refused(400, "query is too old and response timeout expired or query ID is invalid"):
            await bot.answer_callback_query(used_up)


async def test_a_callback_query_grows_too_old(running: Running, bot: Bot) -> None:
    """A late answer to a callback query is refused, as by the real server."""
    call, query_id = await tap(running, bot)
    running.clock.now += QUERY_LIFETIME + 1
    with refused(400, "query is too old"):
        await bot.answer_callback_query(query_id)
    call.cancel()


@pytest.mark.parametrize(
    ("mode", "inaccessible", "shown"),
    [
        ("default", False, "message"),
        ("default", True, "date 0"),
        ("auto", False, "message"),
        ("auto", True, "inline"),
        ("inline", False, "inline"),
    ],
)
async def test_the_mode_of_callback_queries(
    mode: str, *, inaccessible: bool, shown: str, running: Running, bot: Bot
) -> None:
    """A tap comes with its message, with one that the bot cannot access, or with the id of an inline message."""
    await running.call("setMySettings", callback_query_mode=mode)
    await start(running)
    await bot.send_message(ADA, "x", reply_markup=buttons(("Yes", "c:1")))
    call = asyncio.create_task(running.post(f"users/{ADA}/tap", {"button": "Confirm", "inaccessible": inaccessible}))
    updates: list[dict[str, Any]] = []
    while not updates or "callback_query" not in updates[-1]:
        updates = (await running.call("getUpdates", offset=-1, timeout=5))["result"]
    query = updates[-1]["callback_query"]
    assert ("message" in query, "inline_message_id" in query) == (shown != "inline", shown == "inline")
    if shown != "inline":
        assert ("text" in query["message"], query["message"]["date"] == 0) == (not inaccessible, inaccessible)
    await bot.answer_callback_query(query["id"])
    await call


async def test_settings(running: Running, bot: Bot) -> None:
    """A setting stays until it is changed. getMe returns all but the mode of callback queries."""
    await running.call("setMySettings", supports_inline_queries=True, callback_query_mode="inline")
    assert (await running.call("setMySettings", can_join_groups=True))["result"] is True
    me = (await running.call("getMe"))["result"]
    assert (me["supports_inline_queries"], me["can_join_groups"], me["can_connect_to_business"]) == (True, True, False)
    assert "callback_query_mode" not in me
    with refused(400, "mode"):
        await bot.call("setMySettings", bool, callback_query_mode="x")


# ---- updates


async def test_updates_stay_until_acknowledged(running: Running, bot: Bot) -> None:
    """Updates are repeated until a higher offset is requested; ids rise by one; a far offset acknowledges nothing."""
    for _ in range(3):
        await start(running)
    first, second, third = await bot.get_updates()
    assert (second.update_id, third.update_id) == (first.update_id + 1, first.update_id + 2)
    assert first.message is not None
    assert first.message.text == "/start"
    assert first.message.entities is not None
    assert first.message.entities[0].type == "bot_command"
    assert len(await bot.get_updates(limit=2)) == 2
    assert len(await bot.get_updates(offset=third.update_id + 100)) == 3
    assert await bot.get_updates(offset=second.update_id) == [second, third]
    assert await bot.get_updates() == [second, third]
    assert await bot.get_updates(offset=-1) == [third]
    assert await bot.get_updates() == [third]
    assert await bot.get_updates(offset=third.update_id + 1) == []
    assert await bot.get_updates() == []


async def test_updates_are_kept_for_a_day(running: Running, bot: Bot) -> None:
    """An update that is not fetched within 24 hours is dropped."""
    await start(running)
    running.clock.now += DAY + 1
    assert await bot.get_updates() == []


async def test_long_poll_ends_with_the_update(running: Running, bot: Bot) -> None:
    """A waiting call is answered when an update arrives, or with an empty list when the time is over."""
    assert await bot.get_updates(timeout=1) == []
    waiting = asyncio.create_task(bot.get_updates(timeout=50))
    await running.until_polled()
    await start(running, BORIS)
    [update] = await asyncio.wait_for(waiting, 40)
    assert update.message is not None
    assert update.message.from_user is not None
    assert (update.message.from_user.username, update.message.from_user.language_code) == (None, "ru")


async def test_allowed_updates_are_remembered(running: Running, bot: Bot) -> None:
    """Kinds of updates that were not requested are not stored until the bot requests them."""
    await bot.get_updates(allowed_updates=["callback_query"])
    await start(running)
    assert await bot.get_updates() == []
    await bot.get_updates(allowed_updates=[])
    await bot.get_updates(allowed_updates=["message"])
    await running.post(f"users/{ADA}/block", {})
    await start(running, BORIS)
    [update] = await bot.get_updates()
    assert update.message is not None


async def test_the_older_of_two_polls_gets_a_conflict(running: Running, bot: Bot) -> None:
    """If two programs poll for one bot, the older poll gets a conflict."""
    older = asyncio.create_task(bot.get_updates(timeout=50))
    await running.until_polled()
    newer = asyncio.create_task(bot.get_updates(timeout=1))
    with refused(409, "terminated by other getUpdates request"):
        await older
    assert await newer == []


async def test_a_stopping_sandbox_ends_polls_as_a_restarting_server(running: Running, bot: Bot) -> None:
    """A waiting bot is released immediately, and a new poll does not get empty answers in a tight loop."""
    waiting = asyncio.create_task(bot.get_updates(timeout=50))
    await running.until_polled()
    running.sandbox.stop_waiting()
    for call in (waiting, asyncio.create_task(bot.get_updates())):
        with refused(500, "restart"):
            await call


# ---- failures on demand


async def test_faults(running: Running, bot: Bot) -> None:
    """An injected fault occurs as often as requested, in order, and only for its method."""
    await start(running)
    await running.post("faults", {"method": "SendMessage", "error_code": 429, "retry_after": 7, "times": 2})
    await running.post("faults", {"method": "sendMessage", "error_code": 403})
    await running.post("faults", {"method": "sendMessage", "error_code": 404, "description": "Gone"})
    await bot.get_me()
    for _ in range(2):
        with refused(429) as raised:
            await bot.send_message(ADA, "x")
        assert raised.value.parameters == {"retry_after": 7}
    with refused(403, "blocked"):
        await bot.send_message(ADA, "x")
    with refused(404, "Gone"):
        await bot.send_message(ADA, "x")
    await bot.send_message(ADA, "x")
    await running.post("faults", {"method": "sendMessage", "error_code": 500})
    assert (await running.http.delete("/sandbox/faults")).json() == {"cleared": 1}
    await bot.send_message(ADA, "x")


async def test_flood_limit(running: Running) -> None:
    """A bot that sends far too many messages is told how long to wait, in the body and in the header."""
    await start(running)
    for _ in range(100):
        assert (await running.call("sendMessage", chat_id=ADA, text="x"))["ok"]
    response = await running.http.post(f"/sandbox/bot{TOKEN}/sendMessage", json={"chat_id": ADA, "text": "x"})
    assert response.status_code == 429
    assert response.headers["retry-after"] == "1"
    assert response.json() == {
        "ok": False,
        "error_code": 429,
        "description": "Too Many Requests: retry after 1",
        "parameters": {"retry_after": 1},
    }
    running.clock.now += SECOND
    assert (await running.call("sendMessage", chat_id=ADA, text="x"))["ok"]
