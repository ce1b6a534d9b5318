"""An application with a webhook, its receiver on this machine, and the loops that send to it from the real store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from tests.service.conftest import HandClock, Node
from tests.waiting import until

from taproof.core.accounts import Actor, Developer
from taproof.core.address_rules import AddressRules
from taproof.core.clock import system_clock
from taproof.core.deliveries import AttemptOutcome, Delivery, Event
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import EncryptedWebhookSecrets, Project, ProjectChanges
from taproof.service.webhooks import SignedRequest, WebhookResponse
from taproof.storage.sqlite.store import SqliteStorage
from taproof.webhooks.scheduler import LIMITS, Limits, Scheduler, Turn
from taproof.webhooks.sender import WebhookSender

Post = Callable[[SignedRequest], Awaitable[WebhookResponse]]


@dataclass
class Receiver:
    """An application's webhook endpoint. Each path answers in its own way; all requests are kept."""

    base: str = ""
    retry_after: str = ""
    arrived: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    arrived_at: list[int] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self, request: web.Request) -> web.StreamResponse:
        self.arrived.append((request.path, dict(request.headers), await request.read()))
        self.arrived_at.append(system_clock())
        self.reached.set()
        answer = request.match_info["answer"]
        if answer == "hang":
            await self.released.wait()
        elif answer == "busy":
            return web.Response(status=429, headers={"Retry-After": self.retry_after})
        elif answer == "redirect":
            raise web.HTTPTemporaryRedirect(f"{self.base}/200")
        elif answer == "cut" and request.transport is not None:
            request.transport.close()
        return web.Response(status=int(answer) if answer.isdecimal() else 200)


class Watch:
    """Keeps the figures that the operator would see."""

    def __init__(self) -> None:
        self.outcomes: list[AttemptOutcome] = []
        self.ages: list[float] = []
        self.deliveries: list[float] = []

    def observe_delivery(self, seconds: float) -> None:
        self.deliveries.append(seconds)

    def count_attempt(self, outcome: AttemptOutcome) -> None:
        self.outcomes.append(outcome)

    def show_oldest_due(self, seconds: float) -> None:
        self.ages.append(seconds)


class Shop:
    """A project whose users sign in, and the parts of the service that send its webhooks."""

    def __init__(self, storage: SqliteStorage, clock: HandClock) -> None:
        self.storage = storage
        self.clock = clock
        self.recorded = asyncio.Event()
        node = Node(
            storage,
            Encryptor(new_master_key(system_entropy)),
            clock,
            recorded=self.recorded.set,
            address_rules=AddressRules(["loopback"]),
            allow_loopback_http=True,
        )
        self.signin, self.projects = node.signin, node.projects
        self.webhooks, self.housekeeping = node.webhooks, node.housekeeping
        self.developer = Developer("dev_1", "ada@example.com", "free", clock())
        self.actor = Actor(self.developer, "command_line")
        self.watch = Watch()
        self.sender_options: dict[str, Any] = {}

    async def project(self, webhook_url: str, developer: Developer | None = None) -> tuple[Project, str]:
        """Return a new project and its webhook secret."""
        developer = developer or self.developer
        await self.storage.developers.create_developer(developer)
        project, secrets = await self.projects.create_project(
            Actor(developer, "command_line"), ProjectChanges(name="Shop", webhook_url=webhook_url)
        )
        return project, secrets.webhook_secret

    async def sign_in(self, project: Project) -> str:
        """Let a user confirm a session, which records one event; return the token."""
        token = (await self.signin.create_session(project.id, public=True)).session_token
        await self.signin.open_session(token, "1001")
        assert (await self.signin.confirm_session(token, MessengerIdentity("1001", "Зоя", ""))).changed
        return token

    def sender(self, post: Post) -> WebhookSender:
        return WebhookSender(self.webhooks, post, self.recorded, self.watch, **self.sender_options)

    async def send_due(self, post: Post) -> int:
        """Claim events as a separate worker and send all of them; return their number."""
        sender = self.sender(post)
        claimed, _ = await sender.claim_due()
        await sender.finish_posts()
        return claimed

    @asynccontextmanager
    async def sending(self, post: Post) -> AsyncIterator[None]:
        """Run a sender meanwhile; at the end it is stopped, as by SIGTERM."""
        stopping = asyncio.Event()
        loop = asyncio.create_task(self.sender(post).run_until(stopping))
        yield
        stopping.set()
        await loop

    async def until_states(self, *states: str) -> None:
        """Wait until the events have these states, sorted."""
        await until(lambda: self.states() == list(states))

    def states(self) -> list[str]:
        """Return the states of all events, sorted."""
        return [str(state) for (state,) in self.query("SELECT state FROM webhook_events ORDER BY state")]

    def errors(self) -> list[str | None]:
        """Return why each attempt got no answer, in the order in which the attempts were made."""
        return [error for (error,) in self.query("SELECT error FROM webhook_attempts ORDER BY number, started_at")]

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement on the store directly."""
        return self.storage.database.reader.execute(statement).fetchall()


class Seconds:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """A scheduler, and events for it."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.clock = Seconds()
        self.scheduler = Scheduler(self.clock, limits)
        self.made = 0

    def delivery(
        self,
        project: str = "one",
        url: str = "https://example.com/",
        *,
        developer: str = "",
        attempt: int = 1,
        fails: bool = True,
    ) -> Delivery:
        """Return an event for a project, which unless `developer` is given is the only one of its developer."""
        self.made += 1
        event = Event(f"evt_{self.made}", "auth.confirmed", project, b"", 0)
        developer = developer or f"dev_of_{project}"
        return Delivery(event, developer, url, EncryptedWebhookSecrets(b""), attempt, 0, 30_000, fails)

    def add(self, project: str = "one", count: int = 1, *, developer: str = "") -> int:
        """Return how many of `count` new events were taken."""
        return sum(self.scheduler.add(self.delivery(project, developer=developer)) for _ in range(count))

    def take(self) -> list[Turn]:
        """Take every turn that is available now."""
        turns = []
        while (turn := self.scheduler.take()) is not None:
            turns.append(turn)
        return turns

    def post(self, *, delivered: bool, project: str = "one") -> Turn:
        """Let one event of an idle endpoint have its turn, and finish it."""
        assert self.add(project) == 1
        (turn,) = self.take()
        assert turn.post
        self.scheduler.finish(turn, delivered=delivered)
        return turn

    def at_once(self, project: str = "one") -> int:
        """Return how many posts to an idle endpoint may be under way at once; leaves it as it was."""
        turns = []
        while self.add(project):
            taken = self.take()
            if not taken:
                break
            turns += taken
        for turn in turns:
            self.scheduler.finish(turn, delivered=None)
        self.scheduler.take_all()
        return len(turns)
