"""The HTTP API on the real services and a real SQLite file; only the clock is simulated.

Every answer from a documented address is also checked against the OpenAPI document.
"""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator
from prometheus_client import CollectorRegistry
from scripts.docs_reference import openapi
from starlette.types import ASGIApp
from tests.signals import unheard
from tests.whole_sign_in import WholeSignIn

from taproof.api.developer import DeveloperApi
from taproof.api.router import Router
from taproof.api.sessions import SessionApi
from taproof.contract.account import Plan
from taproof.core.accounts import Actor, Developer
from taproof.core.address_rules import AddressRules
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import BotTokenRefused, MessengerUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.service.bots import BotAccount, Bots
from taproof.service.developers import Developers
from taproof.service.plans import Plans
from taproof.service.projects import Projects
from taproof.service.use_cases import UseCases, assemble
from taproof.service.webhooks import SignedRequest, WebhookResponse, Webhooks
from taproof.storage.sqlite.store import SqliteStorage

START = 1_795_000_000_000
PROJECTS_BY_PLAN: dict[Plan, int] = {"pro": 2}
SIGN_INS_BY_PLAN: dict[Plan, int] = {"pro": 5}
SERVICE_BOT_ID = 7_999_999_999


class ManualClock:
    """A clock that moves only when a test advances it."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


class Receiver:
    """A webhook receiver: it answers with `answer` and keeps the requests."""

    def __init__(self) -> None:
        self.answer = WebhookResponse(5, 200, body=b"ok")
        self.sent: list[SignedRequest] = []
        self.times_recorded = 0

    async def post(self, request: SignedRequest) -> WebhookResponse:
        self.sent.append(request)
        return self.answer

    def recorded(self) -> None:
        self.times_recorded += 1


class BotFather:
    """A fake of the messenger's token check: it knows the bots that were made with it.

    While it is away, the service's own bot has no links either.
    """

    def __init__(self) -> None:
        self.is_away = False
        self.asked: list[str] = []
        self.manager: str | None = None
        """The service's bot, if it may manage bots."""
        self._made = 0
        self.accounts: dict[str, BotAccount] = {}

    def make_bot(self, username: str, bot_id: int = 7_000_000_001) -> str:
        """Make a bot, or give one another token; return the token."""
        for token in [each for each, account in self.accounts.items() if account.id == bot_id]:
            del self.accounts[token]
        self._made += 1
        token = f"{bot_id}:AA{self._made:033d}"
        self.accounts[token] = BotAccount(bot_id, username)
        return token

    def find_manager(self) -> str | None:
        return self.manager

    async def ask(self, token: str) -> BotAccount:
        self.asked.append(token)
        if self.is_away:
            raise MessengerUnavailable
        if token not in self.accounts:
            raise BotTokenRefused
        return self.accounts[token]

    @staticmethod
    def is_service_bot(bot_id: int, username: str) -> bool:
        return bot_id == SERVICE_BOT_ID or username.lower() == "test_bot"


class DocumentedAnswers:
    """Holds answers to the OpenAPI document: status, headers and body must be listed there."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._paths = {re.compile(re.sub(r"\{\w+\}", "[^/]+", path)): path for path in document["paths"]}

    def check(self, method: str, path: str, response: httpx.Response) -> None:
        for pattern, template in self._paths.items():
            if pattern.fullmatch(path):
                operation = self.document["paths"][template].get(method.lower())
                if operation is None:
                    assert response.status_code == 405
                else:
                    self._check(operation, response)

    def _check(self, operation: dict[str, Any], response: httpx.Response) -> None:
        assert_no_page(response)
        documented = operation["responses"].get(str(response.status_code))
        assert documented is not None, f"{response.status_code} is not documented for {operation['operationId']}"
        if "$ref" in documented:
            documented = self.document["components"]["responses"][documented["$ref"].rsplit("/", 1)[1]]
        for name, header in documented.get("headers", {}).items():
            assert not header["required"] or name in response.headers
        schema = documented["content"]["application/json"]["schema"]
        Draft202012Validator({**schema, "components": self.document["components"]}).validate(response.json())


def acting(developer: Developer) -> Actor:
    """Return `developer` as one whom the operator acts for."""
    return Actor(developer, "command_line")


@dataclass
class Api:
    """The developer API and the parts that tests need with it."""

    app: FastAPI
    storage: SqliteStorage
    clock: ManualClock
    developers: Developers
    signin: WholeSignIn
    metrics: Metrics
    webhooks: Webhooks
    receiver: "Receiver"
    client: httpx.AsyncClient
    documented: DocumentedAnswers
    bot_father: BotFather
    use_cases: UseCases
    encryptor: Encryptor
    places: dict[str, str]
    limits: RateLimits
    """All limits except those of generate, which are settings."""

    async def sign_up(self, email: str, plan: Plan = "free") -> tuple[Developer, str]:
        """Add a developer and return them with an access token."""
        developer = await self.developers.create_developer(email, plan)
        return developer, (await self.developers.create_access_token(acting(developer), "test")).plaintext

    async def call(self, method: str, path: str, token: str | None = None, **request: Any) -> httpx.Response:
        """Call `/api/v1/dev` + path."""
        headers = dict(request.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        path = f"/api/v1/dev{path}"
        response = await self.client.request(method, path, headers=headers, **request)
        self.documented.check(method, path.partition("?")[0], response)
        return response

    async def get(self, path: str, token: str) -> Any:
        """GET, and return the body of the successful answer."""
        response = await self.call("GET", path, token)
        assert response.status_code == 200, response.text
        return response.json()

    async def confirm(self, project_id: str, user: str = "42") -> str:
        """Let a user sign in to a project, and confirm; return the session token."""
        token = (await self.signin.create_session(project_id, public=True)).session_token
        await self.signin.open_session(token, user)
        await self.signin.confirm_session(token, MessengerIdentity(user, "Ada", "ada"))
        return token

    async def execute(self, statement: str, values: tuple[object, ...] = ()) -> None:
        """Change the store by SQL."""
        await self.storage.database.writer.run(lambda connection: connection.execute(statement, values))

    async def post(self, path: str, token: str, body: Any) -> Any:
        """POST, and return the body of the successful answer."""
        response = await self.call("POST", path, token, json=body)
        assert response.status_code == 200, response.text
        return response.json()


def session_router(api: Api, limits: RateLimits | None = None) -> Router:
    """Return an application with the session endpoints, and the developer API below /api/v1/dev/."""
    projects = api.use_cases.projects
    sessions = SessionApi(api.signin, api.signin.waiting, projects, api.metrics, limits or api.limits)
    return Router(sessions, api.app, api.app, {})


def client_of(app: ASGIApp, host: str = "127.0.0.1") -> httpx.AsyncClient:
    """Return an HTTP client of an application, at this address."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(host, 4711)), base_url="https://taproof.test")


class Assembled(NamedTuple):
    """The use cases on a store, with fakes of the outside parts that they call."""

    use_cases: UseCases
    encryptor: Encryptor
    signin: WholeSignIn
    receiver: Receiver
    bot_father: BotFather
    places: dict[str, str]
    """The location in words for each client address."""


def assemble_on(storage: SqliteStorage, clock: ManualClock, base_url: str) -> Assembled:
    encryptor = Encryptor(new_master_key(system_entropy))
    receiver, bot_father = Receiver(), BotFather()
    places = dict[str, str]()

    def link_base() -> str:
        if bot_father.is_away:
            raise MessengerUnavailable
        return "https://t.me/test_bot"

    projects = Projects(
        storage,
        encryptor,
        clock,
        system_entropy,
        address_rules=AddressRules(),
        webhook_ports=frozenset({443, 8443}),
        allow_loopback_http=False,
        limits=PROJECTS_BY_PLAN,
    )
    plans = Plans(storage, clock, system_entropy, projects=PROJECTS_BY_PLAN, sign_ins=SIGN_INS_BY_PLAN)
    signin = WholeSignIn(
        storage,
        encryptor,
        link_base,
        clock,
        system_entropy,
        find_place=lambda address: places.get(address, ""),
        require_room=plans.require_room,
    )
    use_cases = assemble(
        storage,
        encryptor,
        clock,
        system_entropy,
        sign_in_sessions=signin,
        waiting=signin.waiting,
        projects=projects,
        plans=plans,
        bots=Bots(
            storage,
            encryptor,
            clock,
            system_entropy,
            projects=projects,
            ask=bot_father.ask,
            is_service_bot=bot_father.is_service_bot,
            limited=unheard,
        ),
        webhooks=Webhooks(storage, encryptor, clock, system_entropy, "Taproof/test"),
        post=receiver.post,
        event_recorded=receiver.recorded,
        find_manager=bot_father.find_manager,
        new_bot_link_base="https://t.me/newbot/",
        base_url=base_url,
    )
    return Assembled(use_cases, encryptor, signin, receiver, bot_father, places)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def documented() -> DocumentedAnswers:
    """Return the document of `/openapi.json`. It is built once, because that takes longer than most tests."""
    return DocumentedAnswers(openapi())


@pytest.fixture
async def api(tmp_path: Path, clock: ManualClock, documented: DocumentedAnswers) -> AsyncIterator[Api]:
    storage = SqliteStorage.open(tmp_path / "taproof.db", START)
    use_cases, encryptor, signin, receiver, bot_father, places = assemble_on(storage, clock, "https://taproof.test")
    metrics = Metrics(CollectorRegistry(), "0.1.0")
    limits = RateLimits(metrics, clock, generate_address=None, generate_project=None, local_only=True)
    app = DeveloperApi(use_cases, metrics, limits).build_app()
    async with client_of(app) as client:
        yield Api(
            app,
            storage,
            clock,
            use_cases.developers,
            signin,
            metrics,
            use_cases.webhooks,
            receiver,
            client,
            documented,
            bot_father,
            use_cases,
            encryptor,
            places,
            limits,
        )
    await storage.close()


@pytest.fixture
async def token(api: Api) -> str:
    """Return an access token of a developer on the free plan."""
    return (await api.sign_up("ada@example.com"))[1]


@pytest.fixture
async def project(api: Api, token: str) -> dict[str, Any]:
    """Return a new project of that developer."""
    created: dict[str, Any] = await api.post("/projects", token, {"name": "Acme"})
    return created


def assert_no_page(response: httpx.Response) -> None:
    """Assert that an answer other than a page forbids browsers to guess its type and to show it in a frame."""
    assert response.headers.get_list("x-content-type-options") == ["nosniff"]
    assert response.headers.get_list("content-security-policy") == ["default-src 'none'; frame-ancestors 'none'"]


def assert_error(response: httpx.Response, status: int, code: str) -> str:
    """Assert that an answer has the one error shape, and return its sentence."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-error-code"] == code
    assert_no_page(response)
    body = json.loads(response.content)
    assert list(body) == ["error"]
    assert isinstance(body["error"], str)
    assert body["error"].endswith((".", "…)", ")"))
    assert ("www-authenticate" in response.headers) == (status in {401, 403})
    assert ("retry-after" in response.headers) == (status in {429, 503})
    assert ("allow" in response.headers) == (status == 405)
    return body["error"]
