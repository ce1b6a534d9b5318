"""The bot's tests run the real handlers on the real SQLite store, against a Bot API server over real HTTP.

That server is scripted here, from the Bot API's documentation, and is not the sandbox's: the bot must not work only
with this project's own stand-in.
"""

import asyncio
import contextlib
import functools
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.messengers.telegram.bots_server import tagged
from tests.messengers.telegram.phone_asking import OPTIONAL, REQUIRED, Asking
from tests.signals import unheard
from tests.whole_sign_in import WholeSignIn

from taproof.core.accounts import Developer
from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import session_key
from taproof.core.projects import Project
from taproof.core.sessions import Session
from taproof.messengers.telegram.bot_api import Bot, BotApiClient
from taproof.messengers.telegram.handlers import Conversation
from taproof.messengers.telegram.signed_buttons import PURPOSE, TAG_LENGTH, ButtonSigner
from taproof.messengers.telegram.updates import Handling, UpdateIntake
from taproof.messengers.telegram.user_control import user_control_handlers
from taproof.sandbox.telegram.html import parse_html, trim
from taproof.service.user_control import UserControl
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage

BOT_ID = 7000000001
TOKEN = "7000000001:AAtestTESTtestTESTtestTESTtestTESTtest"
PROJECT_ID = "proj_0000000000000000000001"
ACME = "<code>\u2068Acme &amp; Söhne &lt;shop&gt;\u2069</code>"
"""The project's name as a message shows it."""
WHEN = "\u20682026-11-20 22:44 UTC\u2069"
"""The clock's first time as a message shows it."""


unmeasured_intake = functools.partial(UpdateIntake, observe_tap=unheard, count_refused_tap=unheard)
"""Returns an `UpdateIntake` whose taps are not measured."""


def talking_intake(
    bot: Bot, signin: WholeSignIn, signer: ButtonSigner, storage: Storage, clock: Clock, **options: Any
) -> UpdateIntake:
    """Return an `UpdateIntake` with a conversation of its own."""
    handlers = user_control_handlers(UserControl(storage, signin, clock), signin)
    conversation = Conversation(signin, signer, clock, handlers, prompts=signin.prompts)
    return unmeasured_intake(bot, conversation.on_update, storage.bots, clock, **options)


@contextlib.asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something without end, and cancel it at the end as the service does."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def stored_session(storage: Storage, session_token: str) -> Session:
    key = session_key(session_token)
    assert key is not None
    session = await storage.sessions.read_session(key)
    assert session is not None
    return session


class HandClock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_795_214_643_127  # 2026-11-20T22:44:03.127Z

    def __call__(self) -> int:
        return self.now


@dataclass
class Fault:
    """An answer that replaces the right one, `times` times."""

    status: int
    description: str = ""
    parameters: dict[str, int] | None = None
    times: int = 1
    raw: str | None = None
    headers: dict[str, str] | None = None


@dataclass
class ScriptedApi:
    """A Bot API server that records its calls and fails on demand."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)
    webhook: str = ""
    base: str = ""
    on_call: Callable[[str, dict[str, Any]], None] | None = None
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The bot's messages as the messenger has them, by id."""
    shown_as: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """Returns a message as the messenger shows it to the bot."""

    def of(self, *methods: str) -> list[dict[str, Any]]:
        """Return the parameters of every call of these methods, in order."""
        return [parameters for method, parameters in self.calls if method in methods]

    def fail(self, method: str, fault: Fault) -> None:
        self.faults.setdefault(method, []).append(fault)

    async def respond(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if request.match_info["token"] != TOKEN:
            return _answer(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
        parameters: dict[str, Any] = await request.json()
        self.calls.append((method, parameters))
        if self.on_call is not None:
            self.on_call(method, parameters)
        if self.faults.get(method):
            return self._fault(method)
        if method == "getUpdates":
            return await self._get_updates(parameters)
        return _answer(200, {"ok": True, "result": self._result(method, parameters)})

    def _fault(self, method: str) -> web.Response:
        fault = self.faults[method][0]
        fault.times -= 1
        if fault.times == 0:
            self.faults[method].pop(0)
        if fault.raw is not None:
            return web.Response(status=fault.status, text=fault.raw, headers=fault.headers)
        body: dict[str, Any] = {"ok": False, "error_code": fault.status, "description": fault.description}
        if fault.parameters:
            body["parameters"] = fault.parameters
        return _answer(fault.status, body)

    async def _get_updates(self, parameters: dict[str, Any]) -> web.Response:
        if self.webhook:
            description = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook first"
            return _answer(409, {"ok": False, "error_code": 409, "description": description})
        offset = parameters.get("offset", 0)
        self.updates = [update for update in self.updates if update.get("update_id", offset) >= offset]
        if not self.updates and parameters.get("timeout"):
            await asyncio.sleep(0.02)
        return _answer(200, {"ok": True, "result": self.updates[: parameters.get("limit", 100)]})

    def _result(self, method: str, parameters: dict[str, Any]) -> Any:
        if method in self.results:
            return self.results[method]
        if method == "getMe":
            return {"id": 7000000001, "is_bot": True, "first_name": "Sign in", "username": "Sign_In_Bot"}
        if method == "deleteWebhook":
            self.webhook = ""
        if method == "setWebhook":
            self.webhook = parameters["url"]
        if method in {"sendMessage", "editMessageText", "editMessageReplyMarkup"}:
            return self._message(method, parameters)
        return True

    def _message(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        message_id = parameters.get("message_id", len(self.calls))
        chat = {"id": parameters["chat_id"], "type": "private"}
        earlier = self.messages.get(message_id, {"message_id": message_id, "date": 1795214643, "chat": chat})
        message = {name: value for name, value in earlier.items() if name != "reply_markup"}
        if "text" in parameters:
            formatted = trim(parse_html(parameters["text"]))
            message |= {"text": formatted.text, "entities": formatted.entities}
        if "inline_keyboard" in parameters.get("reply_markup", {}):
            message["reply_markup"] = parameters["reply_markup"]
        if method != "sendMessage":
            message["edit_date"] = 1795214644
        self.messages[message_id] = message
        return self.shown_as(message)


def untagged(buttons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return buttons as they were sent, without the tags at the end of their data."""
    return [{**button, "callback_data": button["callback_data"][:-TAG_LENGTH]} for button in buttons]


def _answer(status: int, body: dict[str, Any]) -> web.Response:
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")


@dataclass
class Phone:
    """Builds updates as the Bot API documents them, and reads their effects from the store."""

    signin: WholeSignIn
    storage: SqliteStorage
    signer: ButtonSigner
    clock: HandClock
    api: ScriptedApi
    bot: Bot
    intake: UpdateIntake
    updates: int = 900_000_000
    """The id of the last update."""

    async def handle(self, update: dict[str, Any], **options: Any) -> Handling:
        return await self.intake.handle(update, **options)

    def new_intake(self, **options: Any) -> UpdateIntake:
        """Return the intake of another process, or of a bot with another `bot_id`."""
        return talking_intake(self.bot, self.signin, self.signer, self.storage, self.clock, **options)

    async def create_session(self) -> str:
        return (await self.signin.create_session(PROJECT_ID, public=True)).session_token

    async def session(self, session_token: str) -> Session:
        return await stored_session(self.storage, session_token)

    def update(self, **content: Any) -> dict[str, Any]:
        self.updates += 1
        return {"update_id": self.updates, **content}

    def user(self, user_id: int = 11, **more: Any) -> dict[str, Any]:
        return {"id": user_id, "is_bot": False, "first_name": "Ada", "last_name": "Love", "username": "ada", **more}

    def message(self, text: str | None, user_id: int = 11, /, **more: Any) -> dict[str, Any]:
        content: dict[str, Any] = {
            "message_id": 500,
            "from": self.user(user_id),
            "chat": {"id": user_id, "first_name": "Ada", "type": "private"},
            "date": 1795214643,
            **({} if text is None else {"text": text}),
            **more,
        }
        return self.update(message=content)

    def tap(self, data: str | None, user_id: int = 11, /, **more: Any) -> dict[str, Any]:
        """Return a tap on a button with `data` of a message that the service has signed."""
        return self.tap_as_is(None if data is None else tagged(self.signer, BOT_ID, user_id, data), user_id, **more)

    def tap_as_is(self, data: str | None, user_id: int = 11, /, **more: Any) -> dict[str, Any]:
        """Return a tap on a button with this very `data`."""
        keyboard = [] if data is None else [[{"text": "ButtonTap", "callback_data": data}]]
        query: dict[str, Any] = {
            "id": "4382bfdwdsb323b2d9",
            "from": self.user(user_id),
            "chat_instance": "-871236812",
            "message": {
                "message_id": 501,
                "from": {"id": 7000000001, "is_bot": True, "first_name": "Sign in"},
                "chat": {"id": user_id, "first_name": "Ada", "type": "private"},
                "date": 1795214643,
                "text": "Sign in?",
                "reply_markup": {"inline_keyboard": keyboard},
            },
            **({} if data is None else {"data": data}),
            **more,
        }
        return self.update(callback_query=query)


async def opened(phone: Phone, user_id: int = 11) -> str:
    """Create a session and let a user open it."""
    session_token = await phone.create_session()
    assert await phone.handle(phone.message(f"/start {session_token}", user_id)) == "done"
    return session_token


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def storage(tmp_path: Path, clock: HandClock) -> AsyncIterator[SqliteStorage]:
    store = SqliteStorage.open(tmp_path / "taproof.db", clock())
    await store.developers.create_developer(Developer("dev_1", "dev@example.org", "free", clock()))
    await add_project(store, clock(), "Acme & Söhne <shop>")
    yield store
    await store.close()


async def add_project(store: SqliteStorage, now: int, name: str, project_id: str = PROJECT_ID, **settings: Any) -> None:
    project = Project(
        id=project_id,
        developer_id=settings.pop("developer_id", "dev_1"),
        name=name,
        secret_key_preview="sk_a…b",
        encrypted_webhook_secret=b"encrypted",
        webhook_url="https://example.org/hook",
        is_active=True,
        public_access=True,
        collect_phone=settings.pop("collect_phone", False),
        created_at=now,
        **settings,
    )
    await store.projects.create_project(project, hashlib.sha256(project_id.encode()).digest())


@pytest.fixture
def encryptor() -> Encryptor:
    return Encryptor(new_master_key(system_entropy))


@pytest.fixture
def signer(encryptor: Encryptor) -> ButtonSigner:
    return ButtonSigner(functools.partial(encryptor.derive_all, PURPOSE))


@pytest.fixture
def signin(storage: SqliteStorage, clock: HandClock, encryptor: Encryptor) -> WholeSignIn:
    return WholeSignIn(storage, encryptor, lambda: "https://t.me/Sign_In_Bot", clock, system_entropy)


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    scripted = ScriptedApi()
    application = web.Application()
    application.router.add_post("/bot{token}/{method}", scripted.respond)
    async with TestServer(application) as server:
        scripted.base = str(server.make_url(""))
        yield scripted


@pytest.fixture
async def bot(api: ScriptedApi) -> AsyncIterator[Bot]:
    connected = Bot(BotApiClient(api.base), TOKEN)
    yield connected
    await connected.api.close()


@pytest.fixture
def intake(
    bot: Bot, signin: WholeSignIn, signer: ButtonSigner, storage: SqliteStorage, clock: HandClock
) -> UpdateIntake:
    return talking_intake(bot, signin, signer, storage, clock)


@pytest.fixture
def phone(
    signin: WholeSignIn,
    storage: SqliteStorage,
    signer: ButtonSigner,
    clock: HandClock,
    api: ScriptedApi,
    bot: Bot,
    intake: UpdateIntake,
) -> Phone:
    return Phone(signin, storage, signer, clock, api, bot, intake)


@pytest.fixture
async def asking(
    phone: Phone, intake: UpdateIntake, api: ScriptedApi, encryptor: Encryptor, storage: SqliteStorage, clock: HandClock
) -> Asking:
    """A user of projects that collect phone numbers."""
    await storage.developers.create_developer(Developer("dev_pro", "pro@example.org", "pro", clock()))
    more: dict[str, Any] = {"developer_id": "dev_pro", "collect_phone": True}
    await add_project(storage, clock(), "Acme & Söhne <shop>", REQUIRED, phone_required=True, **more)
    await add_project(storage, clock(), "Acme & Söhne <shop>", OPTIONAL, phone_required=False, **more)
    return Asking(phone, intake, api, encryptor)
