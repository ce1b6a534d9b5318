"""The client of the Bot API: its requests, its result for each kind of answer, and errors without the token."""

import asyncio
import ssl
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.messengers.telegram.conftest import TOKEN, Fault, ScriptedApi
from tests.webhooks.receiver import Authority

from taproof.messengers.telegram.bot_api import (
    Bot,
    BotApiClient,
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from taproof.messengers.telegram.types import (
    BotCommand,
    BotFullInfo,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    KeyboardButton,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
)

UNUSABLE = [
    Fault(500, "Internal Server Error"),
    Fault(502, raw=f"<html>/bot{TOKEN}/getMe could not be reached</html>"),
    Fault(200, raw=f'{{"ok": true, "result": "{TOKEN}"}}'),
    Fault(200, raw="[]"),
    Fault(200, raw='{"ok": true}'),
    Fault(200, raw='{"ok": true, "result": null}'),
    Fault(200, raw='{"ok": true, "result": {"id": 1}}'),
    Fault(200, raw='{"ok": true, "result": {"id": ' + "9" * 5000 + "}}"),
    Fault(200, raw="[" * 100_000),
    Fault(200, raw=""),
    Fault(500, raw='{"ok": false}'),
    Fault(400, f"Bad Request: no such path /bot{TOKEN}/getMe"),
    Fault(429, "Too Many Requests: retry after 1", {"retry_after": 1}),
    Fault(302, raw=""),
]


def assert_no_token(error: BaseException) -> None:
    """Assert that nothing a log could print of an error, with its causes and contexts, contains the token."""
    seen: BaseException | None = error
    while seen is not None:
        for text in [str(seen), repr(seen), str(seen.__dict__), "".join(traceback.format_exception(seen))]:
            assert TOKEN not in text
            assert TOKEN.partition(":")[2] not in text
        seen = seen.__cause__ or seen.__context__


@asynccontextmanager
async def connected(api_url: str, **options: Any) -> AsyncIterator[Bot]:
    bot = Bot(BotApiClient(api_url, **options), TOKEN)
    yield bot
    await bot.api.close()


# ---- token and address


@pytest.mark.parametrize(
    "token", ["", "x", "123", "123:", ":abc", "1 2:abc", "123:a/b", "123:a?b", "１２:abc", "1:a\n"]
)
def test_malformed_token_is_refused_unrepeated(token: str) -> None:
    """A malformed token is refused at the start with its setting's name, and is not repeated."""
    with pytest.raises(ValueError, match="TAPROOF_BOT_TOKEN") as refusal:
        Bot(BotApiClient("https://api.telegram.org"), token)
    secret = token.partition(":")[2]
    assert not secret or secret not in str(refusal.value)


@pytest.mark.parametrize(
    "api_url", ["", "api.telegram.org", "ftp://x", "https://", "https://a b", "https://{token}", "https://x?y"]
)
def test_malformed_address_is_refused(api_url: str) -> None:
    """A malformed address is refused at the start with its setting's name."""
    with pytest.raises(ValueError, match="TAPROOF_BOT_API_URL"):
        BotApiClient(api_url)


@pytest.mark.parametrize(
    ("end", "environment", "folder"), [("", "production", ""), ("/", "production", ""), ("", "test", "test/")]
)
async def test_address_may_have_a_path(end: str, environment: Literal["production", "test"], folder: str) -> None:
    """The Bot API may be below a path, with or without a trailing slash; the test environment is below each token."""
    asked = []

    async def respond(request: web.Request) -> web.Response:
        asked.append((request.path, await request.json()))
        return web.json_response({"ok": True, "result": {"id": 7000000001, "is_bot": True, "first_name": "Sign in"}})

    application = web.Application()
    application.router.add_post("/{path:.*}", respond)
    async with TestServer(application) as server:
        bot = Bot(BotApiClient(f"{server.make_url('/telegram')}{end}", environment=environment), TOKEN)
        await bot.get_me()
        await bot.api.close()
    assert asked == [(f"/telegram/bot{TOKEN}/{folder}getMe", {})]


def test_a_bot_shows_its_id_only() -> None:
    """Nothing that a log could print of a bot contains its token."""
    api = BotApiClient("https://api.telegram.org")
    bot = Bot(api, TOKEN)
    assert bot.id == 7000000001
    for shown in (repr(bot), str(bot), repr(api), repr([bot])):
        assert TOKEN.partition(":")[2] not in shown


# ---- what is sent, and what it returns


async def test_each_method_sends_what_the_documentation_asks_for(bot: Bot, api: ScriptedApi) -> None:
    """A call sends JSON with the documented names and types, and leaves out parameters that are None."""
    button = InlineKeyboardButton(text="Confirm", callback_data="c:1")
    share = KeyboardButton(text="Share", request_contact=True)
    keyboard = ReplyKeyboardMarkup(keyboard=[[share]], one_time_keyboard=True, resize_keyboard=True)
    html = {"text": "<b>Ж</b>", "parse_mode": "HTML", "link_preview_options": {"is_disabled": True}}
    await bot.send_message(2**52 - 1, "<b>Ж</b>", InlineKeyboardMarkup(inline_keyboard=[[button]]))
    await bot.send_message(-100123, "<b>Ж</b>")
    await bot.send_message(11, "<b>Ж</b>", is_protected=True)
    await bot.send_message(11, "<b>Ж</b>", keyboard)
    await bot.send_message(11, "<b>Ж</b>", ReplyKeyboardRemove())
    await bot.edit_message_text(11, 501, "<b>Ж</b>", InlineKeyboardMarkup(inline_keyboard=[[button]]))
    await bot.edit_message_text(11, 501, "<b>Ж</b>")
    await bot.answer_callback_query("4382", "Done.", alert=True)
    await bot.set_webhook("https://sign-in.example/bot", secret_token="s", allowed_updates=["message"])
    await bot.delete_webhook()
    await bot.set_my_commands([BotCommand(command="block", description="Block")], language_code="de")
    await bot.get_updates(offset=5, limit=1, timeout=0, allowed_updates=["message"], seconds=3)
    await bot.get_updates(offset=None, allowed_updates=["message"], seconds=3)
    buttons = {"inline_keyboard": [[{"text": "Confirm", "callback_data": "c:1"}]]}
    shared = {
        "keyboard": [[{"text": "Share", "request_contact": True}]],
        "resize_keyboard": True,
        "one_time_keyboard": True,
    }
    assert api.calls == [
        ("sendMessage", {"chat_id": 2**52 - 1, **html, "reply_markup": buttons}),
        ("sendMessage", {"chat_id": -100123, **html}),
        ("sendMessage", {"chat_id": 11, **html, "protect_content": True}),
        ("sendMessage", {"chat_id": 11, **html, "reply_markup": shared}),
        ("sendMessage", {"chat_id": 11, **html, "reply_markup": {"remove_keyboard": True}}),
        ("editMessageText", {"chat_id": 11, "message_id": 501, **html, "reply_markup": buttons}),
        ("editMessageText", {"chat_id": 11, "message_id": 501, **html}),
        ("answerCallbackQuery", {"callback_query_id": "4382", "text": "Done.", "show_alert": True}),
        (
            "setWebhook",
            {
                "url": "https://sign-in.example/bot",
                "secret_token": "s",
                "allowed_updates": ["message"],
                "drop_pending_updates": False,
            },
        ),
        ("deleteWebhook", {"drop_pending_updates": False}),
        (
            "setMyCommands",
            {
                "commands": [{"command": "block", "description": "Block"}],
                "scope": {"type": "all_private_chats"},
                "language_code": "de",
            },
        ),
        ("getUpdates", {"offset": 5, "limit": 1, "timeout": 0, "allowed_updates": ["message"]}),
        ("getUpdates", {"timeout": 0, "allowed_updates": ["message"]}),
    ]


async def test_results_are_read(bot: Bot, api: ScriptedApi) -> None:
    """The used fields of each result are read, whatever else it contains; the username is requested once."""
    me = {"id": 7000000001, "is_bot": True, "first_name": "Sign in", "username": "Sign_In_Bot", "can_join_groups": True}
    api.results["getMe"] = me
    api.results["getWebhookInfo"] = {"url": "https://x/y", "has_custom_certificate": False, "pending_update_count": 0}
    api.results["getMyCommands"] = [{"command": "block", "description": "Block", "icon": "new"}]
    assert await bot.get_me() == BotFullInfo(id=7000000001, is_bot=True, first_name="Sign in", username="Sign_In_Bot")
    assert (await bot.get_webhook_info()).url == "https://x/y"
    assert await bot.get_my_commands() == [BotCommand(command="block", description="Block")]
    api.updates = [{"update_id": 1, "message": {"text": 5}}, {"brand_new": {}}]
    assert await bot.get_updates(offset=None, allowed_updates=[], seconds=3) == api.updates
    assert [await bot.read_username() for _ in range(2)] == ["Sign_In_Bot"] * 2
    assert len(api.of("getMe")) == 1


async def test_one_bad_byte_does_not_spoil_an_answer(bot: Bot, api: ScriptedApi) -> None:
    """An answer with invalid UTF-8, or with half of a surrogate pair, is still read."""
    api.fail(
        "getUpdates", Fault(200, raw='{"ok": true, "result": [{"update_id": 1, "x": "\\ud800"}, {"update_id": 2}]}')
    )
    assert [each["update_id"] for each in await bot.get_updates(offset=0, allowed_updates=[], seconds=3)] == [1, 2]


# ---- refusals


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(400, "Bad Request: chat not found"), TelegramBadRequest),
        (Fault(401, "Unauthorized"), TelegramUnauthorizedError),
        (Fault(403, "Forbidden: bot was blocked by the user"), TelegramForbiddenError),
        (Fault(404, "Not Found"), TelegramUnauthorizedError),
        (Fault(409, "Conflict: terminated by other getUpdates request"), TelegramConflictError),
        (Fault(413, "Request Entity Too Large"), TelegramAPIError),
        (Fault(429, "Too Many Requests"), TelegramAPIError),
        (Fault(500, "Internal Server Error: restart"), TelegramServerError),
        (Fault(502, "Bad Gateway"), TelegramServerError),
        (Fault(200, "not ok"), TelegramAPIError),
    ],
)
async def test_each_refusal_has_its_kind(
    fault: Fault, kind: type[TelegramAPIError], bot: Bot, api: ScriptedApi
) -> None:
    """Each refusal raises its own class, with the Bot API's description as the message."""
    api.fail("sendMessage", fault)
    with pytest.raises(TelegramAPIError) as refusal:
        await bot.send_message(11, "text")
    assert type(refusal.value) is kind
    assert refusal.value.message == str(refusal.value) == fault.description


async def test_parameters_of_a_refusal(bot: Bot, api: ScriptedApi) -> None:
    """`retry_after` is read next to unknown parameters. A message to a group that moved is a bad request."""
    api.fail("sendMessage", Fault(429, "Too Many Requests: retry after 7", {"retry_after": 7, "new": 1}))
    with pytest.raises(TelegramRetryAfter, match="retry after 7") as flood:
        await bot.send_message(11, "text")
    assert flood.value.retry_after == 7
    moved = {"migrate_to_chat_id": -1002147483649}
    api.fail("sendMessage", Fault(400, "Bad Request: group chat was upgraded to a supergroup chat", moved))
    with pytest.raises(TelegramBadRequest, match="supergroup"):
        await bot.send_message(-5, "text")


@pytest.mark.parametrize("fault", UNUSABLE)
async def test_unusable_answers(fault: Fault, bot: Bot, api: ScriptedApi) -> None:
    """No error contains the token, even if an answer quotes the URL. The call is made once."""
    api.fail("getMe", Fault(fault.status, fault.description, fault.parameters, raw=fault.raw))
    with pytest.raises(TelegramAPIError) as trouble:
        await bot.get_me()
    assert_no_token(trouble.value)
    assert len(api.calls) == 1


@pytest.mark.parametrize("port", [None, 99999])
async def test_unreachable_server_does_not_leak_the_token(port: int | None, closed_port: int) -> None:
    """A refused connection and an invalid port give a network error without the token, also in its context."""
    async with connected(f"http://127.0.0.1:{port or closed_port}") as bot:
        with pytest.raises(TelegramNetworkError) as trouble:
            await bot.get_me()
    assert_no_token(trouble.value)


async def test_the_token_is_not_taken_elsewhere(bot: Bot, api: ScriptedApi) -> None:
    """Redirects are not followed, because the URL contains the token."""
    api.fail("getMe", Fault(307, raw="", headers={"Location": f"{api.base}/bot{TOKEN}/getWebhookInfo"}))
    with pytest.raises(TelegramNetworkError, match="307"):
        await bot.get_me()
    assert [method for method, _ in api.calls] == ["getMe"]


async def test_endless_answer_is_not_read_whole(api: ScriptedApi) -> None:
    """An answer is read up to a size limit, far above a normal answer of a hundred updates."""
    api.fail("getMe", Fault(200, raw=" " * 1_000_000))
    async with connected(api.base, answer_limit=100_000) as bot:
        with pytest.raises(TelegramNetworkError):
            await bot.get_me()


async def test_slow_server_is_given_up() -> None:
    """A call to a server that accepts and sends nothing ends after a time limit."""

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        gone.set()

    gone = asyncio.Event()
    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, connected(f"http://127.0.0.1:{port}", request_seconds=0.1) as silent:
        with pytest.raises(TelegramNetworkError, match="no response in time"):
            await silent.get_me()
        await gone.wait()


async def test_certificates_are_checked(tmp_path: Path) -> None:
    """A server with a certificate for another name, or of an unknown authority, never gets the token."""
    authority = Authority(tmp_path)
    context = ssl.create_default_context(cafile=str(authority.file))
    asked = []

    async def respond(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"ok": True, "result": {"id": 7000000001, "is_bot": True, "first_name": "Sign in"}})

    for name, tls, is_trusted in (
        ("localhost", context, True),
        ("localhost", None, False),
        ("telegram.example", context, False),
    ):
        application = web.Application()
        application.router.add_post("/{path:.*}", respond)
        server = TestServer(application, scheme="https")
        await server.start_server(ssl=authority.server(name))
        async with server:
            bot = Bot(BotApiClient(f"https://localhost:{server.port}", tls=tls), TOKEN)
            if is_trusted:
                await bot.get_me()
            else:
                with pytest.raises(TelegramNetworkError, match="Certificate") as trouble:
                    await bot.get_me()
                assert_no_token(trouble.value)
            await bot.api.close()
    assert len(asked) == 1


# ---- the flood limit


async def test_flood_wait_is_bounded(api: ScriptedApi) -> None:
    """A call waits as long as the Bot API asks, 60 s in total at most, and not at all once `hurry` is set."""
    waits: list[float] = []

    async def pause(seconds: float, _: asyncio.Event) -> None:
        waits.append(seconds)

    hurry = asyncio.Event()
    for seconds in [10, 25, 10**400]:
        api.fail("sendMessage", Fault(429, "Too Many Requests: retry later", {"retry_after": seconds}))
    async with connected(api.base, pause=pause) as bot:
        with pytest.raises(TelegramRetryAfter):
            await bot.send_message(11, "text", hurry=hurry)
        assert waits == [10, 25]
        api.fail("sendMessage", Fault(429, "Too Many Requests: retry later", {"retry_after": 10**400}, times=4))
        with pytest.raises(TelegramRetryAfter):
            await bot.send_message(11, "text", hurry=hurry)
        hurry.set()
        for given in (hurry, None):
            with pytest.raises(TelegramRetryAfter):
                await bot.send_message(11, "text", hurry=given)
    assert waits == [10, 25, 60]
    assert len(api.of("sendMessage")) == 3 + 2 + 1 + 1


async def test_hurry_ends_a_wait(bot: Bot, api: ScriptedApi) -> None:
    """A call that waits for the flood limit is repeated once, without waiting, when `hurry` is set."""
    hurry = asyncio.Event()
    api.fail("sendMessage", Fault(429, "Too Many Requests: retry later", {"retry_after": 3600}, times=9))

    def soon(*_: object) -> None:
        asyncio.get_running_loop().call_later(0.02, hurry.set)

    api.on_call = soon
    async with asyncio.timeout(60):
        with pytest.raises(TelegramRetryAfter):
            await bot.send_message(11, "text", hurry=hurry)
    assert len(api.of("sendMessage")) == 2
