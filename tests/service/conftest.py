"""The use cases on a real store, with a clock that tests set.

They run on SQLite, and on every driver where `every_driver` marks a test with concurrent callers.
tests/storage/conformance tests each call on each driver.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest
from tests.api.conftest import BotFather
from tests.databases import DRIVERS, OpenStore
from tests.signals import unheard
from tests.whole_sign_in import WholeSignIn

from taproof.contract.account import Plan
from taproof.core.accounts import Actor, Developer
from taproof.core.address_rules import AddressRules
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import MessengerUnavailable
from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.sessions import Session, SessionKey
from taproof.service.analytics import AnalyticsReader
from taproof.service.audit import AuditLog
from taproof.service.bots import Bots
from taproof.service.deliveries import Deliveries
from taproof.service.developers import Developers
from taproof.service.housekeeping import Housekeeping
from taproof.service.projects import Projects, ProjectSecrets
from taproof.service.sessions.list import SessionReader
from taproof.service.sessions.wait import Waiting
from taproof.service.webhooks import SignedRequest, WebhookResponse, Webhooks
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage

START = 1_795_214_643_127  # 2026-11-20T22:44:03.127Z
PUBLIC_ONLY = AddressRules()


class HandClock:
    """A clock that tests set."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


@dataclass
class Link:
    """The base of deeplinks; None while the messenger is not known."""

    base: str | None = "https://t.me/Sign_In_Bot"

    def __call__(self) -> str:
        if self.base is None:
            raise MessengerUnavailable
        return self.base


def acting(developer: Developer) -> Actor:
    """Return `developer` as one for whom the operator changes something."""
    return Actor(developer, "command_line", address="203.0.113.7")


def key_of(token: str) -> SessionKey:
    key = session_key(token)
    assert key is not None
    return key


class Receiver:
    """A webhook receiver: it answers with `answer` and keeps the requests. While `open` is clear, it hangs."""

    def __init__(self) -> None:
        self.answer = WebhookResponse(5, 200, body=b"ok")
        self.sent: list[SignedRequest] = []
        self.open = asyncio.Event()
        self.open.set()
        self.times_recorded = 0

    async def post(self, request: SignedRequest) -> WebhookResponse:
        self.sent.append(request)
        await self.open.wait()
        return self.answer

    def recorded(self) -> None:
        self.times_recorded += 1


class Node:
    """All use cases of one process, and the first steps of every scenario."""

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        clock: HandClock,
        *,
        waiting: Waiting | None = None,
        recorded: Callable[[], None] = unheard,
        address_rules: AddressRules = PUBLIC_ONLY,
        allow_loopback_http: bool = False,
    ) -> None:
        # A test that keeps to SQLite may look into the driver by hand.
        self.storage = cast("SqliteStorage", storage)
        self.encryptor = encryptor
        self.clock = clock
        self.link = Link()
        self.signin = WholeSignIn(
            storage, encryptor, self.link, clock, system_entropy, waiting=waiting, recorded=recorded
        )
        self.projects = Projects(
            storage,
            encryptor,
            clock,
            system_entropy,
            address_rules=address_rules,
            webhook_ports=frozenset({443, 8443}),
            allow_loopback_http=allow_loopback_http,
        )
        self.developers = Developers(storage, clock, system_entropy)
        self.session_reader = SessionReader(storage, encryptor, clock)
        self.analytics = AnalyticsReader(storage, clock)
        self.webhooks = Webhooks(storage, encryptor, clock, system_entropy, "Taproof/test")
        self.receiver = Receiver()
        self.deliveries = Deliveries(
            storage,
            encryptor,
            clock,
            system_entropy,
            self.webhooks,
            post=self.receiver.post,
            recorded=self.receiver.recorded,
        )
        self.audit = AuditLog(storage)
        self.housekeeping = Housekeeping(storage, encryptor, clock, system_entropy, 90)
        self._numbers = itertools.count(1)

    async def developer(self, plan: Plan = "free") -> Developer:
        return await self.developers.create_developer(f"dev{next(self._numbers)}@example.com", plan)

    async def project(
        self, developer: Developer | None = None, *, webhook_url: str = "", public_access: bool = True
    ) -> tuple[Project, ProjectSecrets]:
        return await self.projects.create_project(
            acting(developer or await self.developer()),
            ProjectChanges(name="Shop", webhook_url=webhook_url, public_access=public_access),
        )

    async def owned(
        self, plan: Plan = "free", *, webhook_url: str = "", **settings: object
    ) -> tuple[Developer, Project]:
        """Return a new developer and their new project with these settings."""
        developer = await self.developer(plan)
        project, _ = await self.project(developer, webhook_url=webhook_url)
        if settings:
            changes = ProjectChanges(**settings)  # type: ignore[arg-type]
            project = await self.projects.update_project(acting(developer), project.id, changes)
        return developer, project

    async def stored(self, token: str) -> Session:
        """Return a session as it is stored."""
        session = await self.storage.sessions.read_session(key_of(token))
        assert session is not None
        return session

    async def pending(self, project: Project) -> str:
        return (await self.signin.create_session(project.id, public=False)).session_token

    async def opened(self, project: Project, user: str = "1001") -> str:
        token = await self.pending(project)
        assert (await self.signin.open_session(token, user)).outcome == "opened"
        return token

    async def confirmed(self, project: Project, user: str = "1001") -> str:
        token = await self.opened(project, user)
        assert (await self.signin.confirm_session(token, MessengerIdentity(user, f"User {user}", "handle"))).changed
        return token


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def encryptor() -> Encryptor:
    return Encryptor(new_master_key(system_entropy))


@pytest.fixture
def driver() -> str:
    return "sqlite"


@pytest.fixture
def open_store(driver: str) -> Iterator[OpenStore]:
    """Return a function that opens the test's one database, each time as another process would."""
    with DRIVERS[driver]() as opener:
        yield opener


@pytest.fixture
def waiting_options() -> dict[str, Any]:
    """The options of `Waiting` on `node`; a test overrides them with `waits_with`."""
    return {}


def waits_with(**options: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("waiting_options", [options], ids=["options"])


@pytest.fixture
async def node(
    open_store: OpenStore, encryptor: Encryptor, clock: HandClock, waiting_options: dict[str, Any]
) -> AsyncIterator[Node]:
    store = await open_store()
    yield Node(store, encryptor, clock, waiting=Waiting(store, clock, **waiting_options))
    await store.close()


@pytest.fixture
async def other_node(node: Node, open_store: OpenStore, encryptor: Encryptor, clock: HandClock) -> AsyncIterator[Node]:
    """A second process on the database of `node`."""
    store = await open_store()
    yield Node(store, encryptor, clock)
    await store.close()


@pytest.fixture
def father() -> BotFather:
    return BotFather()


@pytest.fixture
def bots(node: Node, father: BotFather) -> Bots:
    return bots_of(node, father)


def bots_of(node: Node, father: BotFather) -> Bots:
    return Bots(
        node.storage,
        node.encryptor,
        node.clock,
        system_entropy,
        projects=node.projects,
        ask=father.ask,
        is_service_bot=father.is_service_bot,
        limited=unheard,
    )
