"""Several bots in one sandbox are separate, and none sees anything of another."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from tests.granian_server import serve
from tests.sandbox.bot import Bot, BotCommand, refused
from tests.sandbox.conftest import ADA, BORIS, TOKEN, TRUST, USERNAME, Running, buttons
from tests.sandbox.telegram.test_webhook import Receiver
from tests.waiting import until

from taproof.sandbox.telegram.bots import BOT_LIMIT

MakeBot = Callable[[str], Awaitable[tuple[Bot, dict[str, Any]]]]


@pytest.fixture
def new_bot(running: Running) -> MakeBot:
    """Return a function that creates another bot, and returns the bot's client and the control API's answer."""

    async def make(username: str) -> tuple[Bot, dict[str, Any]]:
        answer = await running.post("bots", {"username": username, "name": f"Bot {username}"})
        return Bot(running.http, answer["token"]), answer

    return make


async def texts(running: Running, username: str, user_id: int = ADA) -> list[str]:
    response = await running.http.get(f"/sandbox/users/{user_id}/messages", params={"bot": username})
    answer = response.json()
    assert answer["bot"].lower() == username.lower()
    return [message["text"] for message in answer["messages"]]


# ---- making them


async def test_a_further_bot(running: Running, new_bot: MakeBot) -> None:
    """A new bot knows its name, has its own link, and is listed without its token."""
    bot, answer = await new_bot("acme_login_bot")
    me = await bot.get_me()
    assert (me.id, me.username, me.first_name) == (answer["id"], "acme_login_bot", "Bot acme_login_bot")
    assert answer["token"].startswith(f"{me.id}:")
    shown = {name: value for name, value in answer.items() if name != "token"}
    assert shown == {
        "id": me.id,
        "username": "acme_login_bot",
        "name": "Bot acme_login_bot",
        "link_base": f"{running.base}/sandbox/phone/acme_login_bot",
        "is_first": False,
        "can_manage_bots": False,
    }
    listed = (await running.http.get("/sandbox/bots")).json()["bots"]
    assert listed[1:] == [shown]
    assert (listed[0]["username"], listed[0]["link_base"]) == (USERNAME, f"{running.base}/sandbox/phone")
    assert listed[0]["is_first"] is True


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_sandbox_request"),
        ({"username": 5}, "invalid_sandbox_request"),
        ({"username": "acme"}, "invalid_sandbox_request"),
        ({"username": "abot"}, "invalid_sandbox_request"),
        ({"username": "1_acme_bot"}, "invalid_sandbox_request"),
        ({"username": "acme login bot"}, "invalid_sandbox_request"),
        ({"username": "a" * 30 + "bot"}, "invalid_sandbox_request"),
        ({"username": "acme_bot", "token": "1:x"}, "invalid_sandbox_request"),
        ({"username": "acme_bot", "name": "x" * 65}, "invalid_sandbox_request"),
        ({"username": USERNAME.upper()}, "bot_username_taken"),
        ({"username": "robot"}, "bot_username_taken"),
    ],
)
async def test_refused_bots(running: Running, body: dict[str, Any], code: str) -> None:
    """An invalid or taken name creates no bot."""
    await running.post("users", {"first_name": "x", "username": "robot"})
    response = await running.http.post("/sandbox/bots", json=body)
    assert (response.status_code, response.headers["x-error-code"]) == (400, code)
    assert len((await running.http.get("/sandbox/bots")).json()["bots"]) == 1


async def test_people_and_bots_have_names_and_ids_of_their_own(running: Running, new_bot: MakeBot) -> None:
    """No user can take the name or id of any bot."""
    _, answer = await new_bot("acme_login_bot")
    response = await running.http.post("/sandbox/users", json={"first_name": "x", "username": "Acme_Login_Bot"})
    assert response.headers["x-error-code"] == "username_taken"
    await running.post("users", {"first_name": "x", "id": answer["id"]}, 400)


async def test_bots_are_bounded(running: Running) -> None:
    """The sandbox creates no more bots than its limit."""
    for number in range(BOT_LIMIT - 2):
        running.sandbox.bots.add(f"number_{number}_bot")
    await running.post("bots", {"username": "first_bot"})
    response = await running.http.post("/sandbox/bots", json={"username": "second_bot"})
    assert response.headers["x-error-code"] == "too_many_bots"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"users/{ADA}/messages?bot=nobody_bot", None),
        ("POST", f"users/{ADA}/send", {"text": "x", "bot": "nobody_bot"}),
        ("POST", f"users/{ADA}/press", {"button": "x", "bot": "nobody_bot"}),
        ("POST", f"users/{ADA}/share", {"contact": "own", "bot": "nobody_bot"}),
        ("POST", f"users/{ADA}/tap", {"button": "x", "bot": "nobody_bot"}),
        ("POST", f"users/{ADA}/block", {"bot": "nobody_bot"}),
        ("POST", "faults", {"method": "getMe", "error_code": 500, "bot": "nobody_bot"}),
        ("POST", "bots/nobody_bot/revoke", {}),
        ("POST", "bots/nobody_bot/rename", {"name": "x"}),
    ],
)
async def test_a_bot_that_is_not_there(running: Running, method: str, path: str, body: object) -> None:
    """Wherever a bot is named, an unknown bot is 404."""
    response = await running.http.request(method, f"/sandbox/{path}", json=body)
    assert (response.status_code, response.headers["x-error-code"]) == (404, "bot_not_found")


async def test_the_list_is_no_bot_call(running: Running) -> None:
    """The addresses below /sandbox/bots belong to the control API, so a foreign host is refused there."""
    response = await running.http.post("/sandbox/bots", json={"username": "evil_bot"}, headers={"Host": "evil.example"})
    assert (response.status_code, response.headers["x-error-code"]) == (400, "host_not_allowed")


# ---- keeping them apart


async def test_chats_and_updates_never_mix(running: Running, bot: Bot, new_bot: MakeBot) -> None:
    """A bot does not see what a user does with another bot, and cannot use another bot's message ids."""
    other, _ = await new_bot("acme_login_bot")
    await running.post(f"users/{ADA}/send", {"text": "to the first"})
    await running.post(f"users/{BORIS}/send", {"text": "to the other", "bot": "@Acme_Login_Bot"})
    assert [update.message.text for update in await bot.get_updates() if update.message] == ["to the first"]
    assert [update.message.text for update in await other.get_updates() if update.message] == ["to the other"]
    for who, whom in ((bot, BORIS), (other, ADA)):
        with refused(403, "bot can't initiate conversation"):
            await who.send_message(whom, "x")
    sent = await bot.send_message(ADA, "hi", reply_markup=buttons(("a", "c:1")))
    await running.post(f"users/{ADA}/send", {"text": "hi other", "bot": "acme_login_bot"})
    with refused(400, "message to edit not found"):
        await other.edit_message_text("y", chat_id=ADA, message_id=sent.message_id + 5)
    error = await running.post(f"users/{ADA}/tap", {"button": "a", "bot": "acme_login_bot"}, 404)
    assert "There is no message with buttons" in error["error"]
    assert await texts(running, USERNAME) == ["to the first", "hi"]
    assert await texts(running, "acme_login_bot") == ["hi other"]
    assert await texts(running, "acme_login_bot", BORIS) == ["to the other"]


async def test_blocking_one_bot_blocks_no_other(running: Running, bot: Bot, new_bot: MakeBot) -> None:
    """A user blocks one bot, and the other can still write."""
    other, _ = await new_bot("acme_login_bot")
    for name in (USERNAME, "acme_login_bot"):
        await running.post(f"users/{ADA}/send", {"text": "x", "bot": name})
    assert (await running.post(f"users/{ADA}/block", {"bot": "acme_login_bot"}))["has_blocked"] is True
    await bot.send_message(ADA, "x")
    with refused(403, "blocked by the user"):
        await other.send_message(ADA, "x")
    assert (await running.post(f"users/{ADA}/unblock", {"bot": "acme_login_bot"}))["has_blocked"] is False
    await other.send_message(ADA, "x")


@pytest.mark.parametrize(
    "link",
    [
        "{base}/sandbox/phone/acme_login_bot?start=tok",
        "{base}/sandbox/phone/ACME_login_bot?start=tok",
        "https://t.me/acme_login_bot?start=tok",
        "tg://resolve?domain=acme_login_bot&start=tok",
    ],
)
async def test_a_link_opens_the_chat_with_its_bot(running: Running, new_bot: MakeBot, link: str) -> None:
    """Only the bot that a deeplink names gets the token."""
    other, _ = await new_bot("acme_login_bot")

    async def reply() -> None:
        [update] = await other.get_updates(timeout=20)
        assert update.message is not None
        assert update.message.text == "/start tok"
        await other.send_message(ADA, "Prompt")

    replying = asyncio.create_task(reply())
    opened = await running.post(f"users/{ADA}/open", {"deeplink": link.format(base=running.base)})
    await replying
    assert (opened["answered"], opened["bot"]) == (True, "acme_login_bot")
    assert await texts(running, USERNAME) == []


@pytest.mark.parametrize("path", ["/sandbox/phone/nobody_bot", "/sandbox/phone/acme_login_bot/x", "/sandbox/phonex"])
async def test_links_to_no_bot(running: Running, new_bot: MakeBot, path: str) -> None:
    """A link that names no bot of the sandbox sends nothing."""
    await new_bot("acme_login_bot")
    response = await running.http.post(f"/sandbox/users/{ADA}/open", json={"deeplink": f"{running.base}{path}?start=x"})
    assert (response.status_code, response.headers["x-error-code"]) == (400, "deeplink_invalid")


async def test_a_fault_of_one_bot(running: Running, bot: Bot, new_bot: MakeBot) -> None:
    """A fault that names a bot affects only that bot; one that names none affects any."""
    other, _ = await new_bot("acme_login_bot")
    await running.post("faults", {"method": "getMe", "error_code": 401, "bot": "acme_login_bot"})
    await bot.get_me()
    with refused(401):
        await other.get_me()
    await running.post("faults", {"method": "getMe", "error_code": 401})
    with refused(401):
        await bot.get_me()


async def test_webhooks_of_two_bots(running: Running, bot: Bot, new_bot: MakeBot) -> None:
    """Each bot has its own webhook with its own secret, while the other may poll."""
    receiver = Receiver()
    stop = await serve(receiver.app, receiver.port)
    other, _ = await new_bot("acme_login_bot")
    await other.set_webhook(receiver.url, secret_token="acme")
    await running.post(f"users/{ADA}/send", {"text": "polled"})
    await running.post(f"users/{ADA}/send", {"text": "pushed", "bot": "acme_login_bot"})
    await receiver.wait_for(1)
    assert [(secret, update["message"]["text"]) for secret, update in receiver.got] == [("acme", "pushed")]
    [update] = await bot.get_updates()
    assert update.message is not None
    assert update.message.text == "polled"
    await running.post("bots/acme_login_bot/revoke", {})
    await stop()


async def test_commands_of_two_bots(bot: Bot, new_bot: MakeBot) -> None:
    """Each bot has its own command lists, for all chats and for one private chat."""
    other, _ = await new_bot("acme_login_bot")
    await bot.set_my_commands([BotCommand(command="/start", description=" Sign in ")])
    assert [(each.command, each.description) for each in await bot.get_my_commands()] == [("start", "Sign in")]
    assert await other.get_my_commands() == []
    await bot.set_my_commands([BotCommand(command="x", description="y")], scope={"type": "chat", "chat_id": ADA})
    assert [each.command for each in await bot.get_my_commands()] == ["start"]
    await bot.set_my_commands([BotCommand(command="x", description="y")] * 2, language_code="fa")
    assert len(await bot.get_my_commands(language_code="fa")) == 2
    await bot.delete_my_commands()
    assert await bot.get_my_commands() == []
    assert len(await bot.get_my_commands(language_code="fa")) == 2
    await bot.set_my_commands([], language_code="fa")
    assert await bot.get_my_commands(language_code="fa") == []
    assert len(await bot.get_my_commands(scope={"type": "chat", "chat_id": ADA})) == 1
    with refused(400, "can't use specified scope in private chats"):
        await bot.get_my_commands(scope={"type": "chat_administrators", "chat_id": ADA})


@pytest.mark.parametrize(
    ("parameters", "description"),
    [
        ({"commands": "{"}, "can't parse commands JSON object"),
        ({"commands": {}}, "expected an Array of BotCommand"),
        ({"commands": [1]}, "can't parse BotCommand: expected an Object"),
        ({"commands": [{"command": "a"}]}, "can't parse BotCommand: Can't find field \"description\""),
        (
            {"commands": [{"command": 1, "description": "x"}]},
            'can\'t parse BotCommand: Field "command" must be of type String',
        ),
        ({"commands": [{"command": "/", "description": "x"}]}, "command must be non-empty"),
        ({"commands": [{"command": "a" * 33, "description": "x"}]}, "command length must not exceed 32"),
        ({"commands": [{"command": "a", "description": " "}]}, "command description must be non-empty"),
        (
            {"commands": [{"command": "a", "description": "x" * 257}]},
            "command description length must not exceed 256",
        ),
        ({"commands": [{"command": "Start", "description": "x"}]}, "BOT_COMMAND_INVALID"),
        ({"commands": [{"command": "a", "description": "x"}] * 101}, "BOT_COMMANDS_TOO_MUCH"),
        ({"language_code": "english"}, "invalid language code specified"),
        ({"language_code": "EN"}, "invalid language code specified"),
        ({"scope": "x"}, "can't parse BotCommandScope JSON object"),
        ({"scope": []}, "can't parse BotCommandScope: BotCommandScope must be an Object"),
        ({"scope": {}}, "can't parse BotCommandScope: Can't find field \"type\""),
        ({"scope": {"type": "everyone"}}, "can't parse BotCommandScope: Unsupported type specified"),
        ({"scope": {"type": "chat"}}, "can't parse BotCommandScope: Can't find field \"chat_id\""),
        (
            {"scope": {"type": "chat_member", "chat_id": ADA}},
            "can't parse BotCommandScope: Can't find field \"user_id\"",
        ),
        ({"scope": {"type": "chat", "chat_id": 5}}, "chat not found"),
    ],
)
async def test_refused_commands(running: Running, parameters: dict[str, Any], description: str) -> None:
    """A list that the real server refuses is refused with the same text, and the stored list stays as it was."""
    commands = [{"command": "start", "description": "Sign in"}]
    await running.call("setMyCommands", commands=commands)
    answer = await running.call("setMyCommands", **({"commands": commands} | parameters))
    assert answer == {"ok": False, "error_code": 400, "description": f"Bad Request: {description}"}
    assert (await running.call("getMyCommands"))["result"] == commands


# ---- tokens


@pytest.mark.parametrize("token", ["1:x", "7000000001:AAother", f"{'9' * 5000}:x", f"{TOKEN}x", "0:-"])
async def test_a_token_of_nobody(running: Running, token: str) -> None:
    """A well-formed token that belongs to no bot gets 401 for any method and any body."""
    for method in ("getMe", "sendMessage", "nothing"):
        response = await running.http.post(f"/sandbox/bot{token}/{method}", content=b"{")
        assert response.status_code == 401
        assert response.json() == {"ok": False, "error_code": 401, "description": "Unauthorized"}


@pytest.mark.parametrize("token", ["x", "1", "1:", ":x", "x:1", "1:a b", "1:a:b", "1:é"])
async def test_what_is_no_token(running: Running, token: str) -> None:
    """A malformed token gets 404, because no such address exists."""
    response = await running.http.get(f"/sandbox/bot{token}/getMe")
    assert (response.status_code, response.json()["description"]) == (404, "Not Found")


async def test_a_revoked_token(running: Running, bot: Bot, new_bot: MakeBot) -> None:
    """The old token stops working immediately, even for a waiting poll.

    The new one is for the same bot and its chats.
    """
    other, old = await new_bot("acme_login_bot")
    await running.post(f"users/{ADA}/send", {"text": "x", "bot": "acme_login_bot"})
    [update] = await other.get_updates()
    polling = asyncio.create_task(other.get_updates(update.update_id + 1, timeout=50))
    first_polls = asyncio.create_task(bot.get_updates(timeout=1))
    await running.until_polled("acme_login_bot")
    new = await running.post("bots/acme_login_bot/revoke", {})
    assert (new["id"], new["username"]) == (old["id"], "acme_login_bot")
    assert new["token"] != old["token"]
    with refused(401, "Unauthorized"):
        await asyncio.wait_for(polling, 40)
    for call in (other.get_me(), other.get_updates(), other.send_message(ADA, "x"), other.delete_webhook()):
        with refused(401):
            await call
    assert await first_polls == []
    renewed = Bot(running.http, new["token"])
    await renewed.send_message(ADA, "back")
    assert await renewed.get_updates() == []
    assert await texts(running, "acme_login_bot") == ["x", "back"]


async def test_revoking_ends_the_webhook(running: Running, new_bot: MakeBot) -> None:
    """After a revocation, no further update is sent to the webhook that was set with the old token."""
    receiver = Receiver()
    stop = await serve(receiver.app, receiver.port)
    other, _ = await new_bot("acme_login_bot")
    await other.set_webhook(receiver.url)
    new = await running.post("bots/acme_login_bot/revoke", {})
    await running.post(f"users/{ADA}/send", {"text": "x", "bot": "acme_login_bot"})
    renewed = Bot(running.http, new["token"])
    assert (await renewed.get_webhook_info()).url == ""
    assert len(await renewed.get_updates()) == 1
    assert receiver.got == []
    await stop()


async def test_the_services_project_bot_can_be_revoked_too(running: Running, bot: Bot) -> None:
    """The token of the first bot can be revoked like that of any other."""
    new = await running.post(f"bots/{USERNAME}/revoke", {})
    with refused(401):
        await bot.get_me()
    response = await running.http.get(f"/sandbox/bot{new['token']}/getMe")
    assert response.json()["result"]["username"] == USERNAME


async def test_renaming(running: Running, new_bot: MakeBot) -> None:
    """A renamed bot is found only under its new username, in links too; its token and its chats stay."""
    other, _ = await new_bot("acme_login_bot")
    await running.post(f"users/{ADA}/send", {"text": "x", "bot": "acme_login_bot"})
    renamed = await running.post("bots/acme_login_bot/rename", {"username": "acme_id_bot", "name": "Acme"})
    assert (renamed["link_base"], renamed["name"]) == (f"{running.base}/sandbox/phone/acme_id_bot", "Acme")
    assert "token" not in renamed
    me = await other.get_me()
    assert (me.username, me.first_name) == ("acme_id_bot", "Acme")
    assert await texts(running, "acme_id_bot") == ["x"]
    response = await running.http.post(
        f"/sandbox/users/{ADA}/open", json={"deeplink": "https://t.me/acme_login_bot?start=x"}
    )
    assert response.headers["x-error-code"] == "deeplink_invalid"
    await running.post("bots/acme_id_bot/rename", {"username": USERNAME}, 400)
    await running.post("bots/acme_id_bot/rename", {"username": "Acme_ID_bot"})
    assert (await other.get_me()).username == "Acme_ID_bot"
    assert (await other.get_me()).first_name == "Acme"


# ---- many


async def test_many_bots_poll_at_once(running: Running, *, soak: bool) -> None:
    """Bots poll concurrently; each gets only its own update, and all polls end when the sandbox stops."""
    count = 300 if soak else 60
    made = [await running.post("bots", {"username": f"shop_{number}_bot"}) for number in range(count)]
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=running.base, timeout=60, limits=limits, verify=TRUST) as client:
        polls = [
            asyncio.create_task(client.get(f"/sandbox/bot{bot['token']}/getUpdates", params={"timeout": 50}))
            for bot in made
        ]
        await until(lambda: sum(bot.messenger.updates.is_polled for bot in running.sandbox.bots) == count)
        for number in (0, count // 2, count - 1):
            await running.post(f"users/{ADA}/send", {"text": str(number), "bot": f"shop_{number}_bot"})
            [update] = (await polls[number]).json()["result"]
            assert update["message"]["text"] == str(number)
        assert sum(poll.done() for poll in polls) == 3
        running.sandbox.stop_waiting()
        answers = [await poll for poll in polls]
    assert sorted({answer.status_code for answer in answers}) == [200, 500]
