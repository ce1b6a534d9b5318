"""The console over the real services and a real SQLite file; only the clock and the messenger are fakes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from tests.api.conftest import START, BotFather, ManualClock, Receiver, assemble_on
from tests.console.browsing import Browsing
from tests.sign_ins import stored_sign_in
from tests.tapping import tap_right
from tests.whole_sign_in import WholeSignIn

from taproof.console.app import Console
from taproof.console.sandbox_sign_in import SandboxDeveloper
from taproof.contract.account import Plan
from taproof.contract.session import SignInStatus
from taproof.core.accounts import Actor, AuditEntry, Developer
from taproof.core.brand import Brand
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.sessions import Session
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.service.projects import ProjectSecrets
from taproof.service.sessions.results import CreatedSession
from taproof.service.sessions.seen import SeenSession
from taproof.service.use_cases import UseCases
from taproof.service.webhooks import Webhooks
from taproof.storage.sqlite.store import SqliteStorage

BASE_URL = "https://console.example"
SESSION_COOKIE = "__Host-taproof_session"
ADA = MessengerIdentity("1001", "Ada Lovelace", "ada")
GRACE = MessengerIdentity("1002", "Grace", "")


@dataclass
class Messenger:
    """A simulated messenger: it opens sign-in links and taps their buttons."""

    signin: WholeSignIn

    async def open(self, deeplink: str, opener_id: str = ADA.messenger_id) -> SeenSession:
        return await self.signin.open_session(_token(deeplink), opener_id)

    async def confirm(self, deeplink: str, identity: MessengerIdentity = ADA) -> SeenSession:
        """Open the link and confirm."""
        await self.open(deeplink, identity.messenger_id)
        seen = await tap_right(self.signin, _token(deeplink), identity)
        assert seen.outcome == "confirmed", seen
        return seen

    async def report(self, deeplink: str, identity: MessengerIdentity = ADA) -> SeenSession:
        """Report a confirmed sign-in as not one's own."""
        key = session_key(_token(deeplink))
        assert key is not None
        seen = await self.signin.report_sign_in(key, identity.messenger_id)
        assert (seen.outcome, seen.changed) == ("reported", True), seen
        return seen

    async def cancel(self, deeplink: str, opener_id: str = ADA.messenger_id) -> SeenSession:
        """Open the link and cancel."""
        await self.open(deeplink, opener_id)
        seen = await self.signin.cancel_session(_token(deeplink), opener_id)
        assert seen.outcome == "cancelled", seen
        return seen


def _token(deeplink: str) -> str:
    return deeplink.partition("?start=")[2]


@dataclass
class Installation:
    """The console and the parts that tests need with it."""

    app: Console
    storage: SqliteStorage
    clock: ManualClock
    services: UseCases
    messenger: Messenger
    receiver: Receiver
    webhooks: Webhooks
    bot_father: BotFather
    places: dict[str, str]
    clients: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def browser(self, address: str = "127.0.0.1") -> Browsing:
        """Return a new browser at this address."""
        transport = httpx.ASGITransport(self.app.app, client=(address, 4711))
        client = httpx.AsyncClient(transport=transport, base_url=BASE_URL)
        return Browsing(await self.clients.enter_async_context(client))

    async def add_developer(self, email: str, plan: Plan = "business", *, is_owner: bool = False) -> Developer:
        return await self.services.developers.create_developer(email, plan, is_owner=is_owner)

    async def sign_in(self, developer: Developer) -> "Visitor":
        """Return a browser in which a developer is signed in, without using the sign-in pages."""
        browser = await self.browser()
        cookie = await self.services.console_sessions.create_console_session(
            developer,
            opened_with=await stored_sign_in(self.storage, self.clock.now),
            address="192.0.2.1",
            user_agent="Test browser",
        )
        browser.client.cookies.set(SESSION_COOKIE, cookie, domain="console.example")
        return Visitor(browser.client, developer, self)


class Visitor(Browsing):
    """A browser with a developer signed in."""

    def __init__(self, client: httpx.AsyncClient, developer: Developer, console: Installation) -> None:
        super().__init__(client)
        self.developer = developer
        self.actor = Actor(developer, "command_line")
        self._console = console

    async def create_project(self, name: str = "Shop", *, webhook_url: str = "") -> tuple[Project, ProjectSecrets]:
        """Create a project through the service."""
        return await self._console.services.projects.create_project(
            self.actor, ProjectChanges(name=name, webhook_url=webhook_url)
        )

    async def change(self, project: Project, **changes: Any) -> Project:
        """Change a project's settings through the service."""
        return await self._console.services.projects.update_project(self.actor, project.id, ProjectChanges(**changes))

    async def only_project(self) -> Project:
        (project,) = await self._console.services.projects.list_projects(self.developer)
        return project

    async def sessions(self, status: SignInStatus | None = None) -> list[Session]:
        """Return the newest sessions, as the service lists them."""
        reader = self._console.services.session_reader
        page = await reader.list_sessions(self.developer, project_id=None, status=status, limit=200, cursor=None)
        return page.sessions

    async def log(self) -> list[AuditEntry]:
        """Return the newest entries of the developer's audit log."""
        page = await self._console.services.audit.list_audit_entries(self.developer, limit=50, cursor=None)
        return page.entries

    async def confirm(self, project_id: str, identity: MessengerIdentity = ADA) -> None:
        """Let a user sign in to a project, and confirm."""
        await self._console.messenger.confirm((await self.start_session(project_id)).deeplink, identity)

    async def start_session(self, project_id: str) -> CreatedSession:
        """Start a sign-in as an application does; decide it with `console.messenger`."""
        return await self._console.messenger.signin.create_session(project_id, public=True)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def in_sandbox() -> bool:
    """Return whether the console runs in the sandbox."""
    return False


@asynccontextmanager
async def open_console(
    directory: Path,
    clock: ManualClock,
    *,
    in_sandbox: bool = False,
    sandbox_developer: SandboxDeveloper | None = None,
    brand: Brand = Brand(),  # noqa: B008 — it cannot change.
) -> AsyncIterator[Installation]:
    """Open a console with an empty database."""
    storage = SqliteStorage.open(directory / "taproof.db", START)
    services, encryptor, signin, receiver, bot_father, places = assemble_on(storage, clock, BASE_URL)
    limits = RateLimits(
        Metrics(CollectorRegistry(), "0.1.0"), clock, generate_address=None, generate_project=None, local_only=True
    )
    app = Console(
        services,
        encryptor,
        clock,
        system_entropy,
        base_url=BASE_URL,
        brand=brand,
        version=version("taproof"),
        limits=limits,
        sandbox=in_sandbox,
        sandbox_developer=sandbox_developer,
    )
    installation = Installation(
        app, storage, clock, services, Messenger(signin), receiver, services.webhooks, bot_father, places
    )
    async with installation.clients:
        yield installation
    await storage.close()


@pytest.fixture
async def console(tmp_path: Path, clock: ManualClock, *, in_sandbox: bool) -> AsyncIterator[Installation]:
    async with open_console(tmp_path, clock, in_sandbox=in_sandbox) as installation:
        yield installation


@pytest.fixture
async def visitor(console: Installation) -> Visitor:
    """A browser of the owner of the installation."""
    return await console.sign_in(await console.add_developer("ada@example.com", is_owner=True))


@pytest.fixture
async def project(visitor: Visitor) -> Project:
    """A project of that owner."""
    return (await visitor.create_project())[0]


@pytest.fixture
async def stranger(console: Installation, visitor: Visitor) -> Visitor:
    """A browser of another developer, who is no owner."""
    return await console.sign_in(await console.add_developer("grace@example.com"))


@pytest.fixture
async def anonymous(console: Installation) -> Browsing:
    """A browser in which nobody is signed in."""
    return await console.browser()
