"""Rows for the tests of stores, with few arguments."""

import asyncio
import hashlib
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from tests.databases import NOW

from taproof.contract.account import Plan
from taproof.contract.audit import AuditAction
from taproof.contract.client import AuthMethod
from taproof.contract.delivery import DeliveryState, EventType
from taproof.contract.member import Role
from taproof.contract.project import ProjectEvent
from taproof.contract.session import SignInStatus
from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, Developer, Invitation, MemberInvitation
from taproof.core.clock import DAY, MINUTE, SECOND
from taproof.core.deliveries import Attempt, Delivery, Event
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import GRANT_TYPES, OidcClient
from taproof.core.projects import Project, ProjectChanges
from taproof.core.prompts import PhoneRequest
from taproof.core.sessions import NewPhone, NewSession, SessionKey
from taproof.storage.protocol import Storage

T = TypeVar("T")
LEASE = 30 * SECOND


def present(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


async def at_once(count: int, call: Callable[[Storage, int], Awaitable[T]], *nodes: Storage) -> list[T]:
    """Make numbered calls at the same instant, on the nodes in turn, and return their results in order."""
    return await asyncio.gather(*(call(nodes[number % len(nodes)], number) for number in range(count)))


async def run(storage: Storage, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement that no method offers and that both databases understand."""
    return [tuple(row) for row in await storage.database.add(statement, *values)]  # type: ignore[attr-defined]


class Seed:
    """Puts rows into a store. Every omitted value gets a new one."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.now = NOW
        self._numbers = itertools.count(1)

    def name(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers):022d}"

    async def developer(self, email: str | None = None, plan: Plan = "free", created_at: int = NOW) -> Developer:
        developer_id = self.name("dev")
        developer = Developer(developer_id, email or f"{developer_id}@example.com", plan, created_at)
        assert await self.storage.developers.create_developer(developer)
        return developer

    async def access_token(self, developer: Developer, at: int = NOW, **fields: Any) -> tuple[AccessToken, bytes]:
        token = AccessToken(self.name("tok"), developer.id, "laptop", "tap_aaaa…zzzz", at, **fields)
        token_hash = hashlib.sha256(token.id.encode()).digest()
        assert await self.storage.credentials.create_access_token(token, token_hash)
        return token, token_hash

    async def invitation(
        self, email: str = "", developer: Developer | None = None, created_at: int = NOW, **fields: Any
    ) -> tuple[Invitation, bytes]:
        """Store an invitation, for a new account of `developer` if given, and return it with its code's hash."""
        developer_id, email = (developer.id, developer.email) if developer else (None, email)
        values = (developer_id, "grace@example.com", created_at, NOW + DAY)
        invitation = Invitation(self.name("inv"), email, "pro", False, *values)  # noqa: FBT003
        invitation = replace(invitation, **fields)
        code_hash = hashlib.sha256(invitation.id.encode()).digest()
        await self.storage.developers.create_invitation(invitation, code_hash)
        return invitation, code_hash

    async def console_session(
        self, developer: Developer, seen_at: int = NOW, created_at: int = NOW, token: AccessToken | None = None
    ) -> tuple[ConsoleSession, bytes]:
        """Store a console session, signed in to with `token` or the messenger, and return it with its cookie's hash."""
        session_id = self.name("cses")
        token_id = token.id if token else None
        account = None if token else developer.messenger_id
        session = ConsoleSession(
            session_id, developer.id, created_at, seen_at, token_id, "2001:db8::7", "Firefox 🦊", account
        )
        token_hash = hashlib.sha256(session_id.encode()).digest()
        await self.storage.credentials.create_console_session(session, token_hash)
        return session, token_hash

    def entry(self, developer_id: str, action: AuditAction = "project.updated", at: int = NOW) -> AuditEntry:
        """Return a new entry for a developer's audit log."""
        details = '{"name": "Café ☕"}'
        return AuditEntry(
            self.name("aud"), developer_id, at, action, "Ada@Example.com", "command_line", "", "::1", "proj_1", details
        )

    async def project(
        self,
        developer: Developer | None = None,
        *,
        webhook_url: str = "",
        webhook_events: tuple[ProjectEvent, ...] = ("auth.confirmed", "auth.cancelled"),
        is_active: bool = True,
        public_access: bool = True,
        collect_phone: bool = False,
        created_at: int = NOW,
    ) -> Project:
        developer = developer or await self.developer(plan="pro" if collect_phone else "free")
        project_id = self.name("proj")
        project = Project(
            id=project_id,
            developer_id=developer.id,
            name=f"Shop {project_id[-3:]}",
            secret_key_preview="sk_aaaa…zzzz",
            encrypted_webhook_secret=b"encrypted " + project_id.encode(),
            webhook_url=webhook_url,
            webhook_events=webhook_events,
            is_active=is_active,
            public_access=public_access,
            collect_phone=collect_phone,
            created_at=created_at,
        )
        await self.storage.projects.create_project(project, self.key_hash(project))
        return project

    async def update(self, project: Project, **changes: Any) -> Project:
        """Change a project as its owner does, and return it."""
        update = self.storage.projects.update_project
        return present(await update(project.developer_id, project.id, ProjectChanges(**changes), self.now))

    async def delete(self, project: Project) -> None:
        """Delete a project as its owner does."""
        assert await self.storage.projects.delete_project(project.developer_id, project.id)

    async def purge_projects(self, limit: int = 10) -> None:
        """Erase all rows of deleted projects."""
        while await self.storage.projects.purge_deleted_projects(limit):
            pass

    async def invite(
        self, project: Project, role: Role = "developer", inviter_id: str = "", sign_in: str | None = "sess_source"
    ) -> tuple[MemberInvitation, bytes]:
        """Store an invitation by the project's developer, or by another inviter; return it with its code's hash."""
        values = (NOW, NOW + DAY, "grace@example.com", inviter_id or project.developer_id, None, sign_in)
        invitation = MemberInvitation(self.name("minv"), project.id, role, *values)
        code_hash = hashlib.sha256(invitation.id.encode()).digest()
        assert await self.storage.members.create_member_invitation(invitation, code_hash)
        return invitation, code_hash

    async def member(
        self,
        project: Project,
        role: Role,
        at: int = NOW,
        *,
        developer: Developer | None = None,
        inviter_id: str = "",
        sign_in: str | None = "sess_source",
    ) -> Developer:
        """Return a new or the given developer, who joined a project with an invitation."""
        developer = developer or await self.developer()
        _, code_hash = await self.invite(project, role, inviter_id, sign_in)
        assert await self.storage.members.accept_member_invitation(code_hash, developer.id, at) == "joined"
        return developer

    async def client(self, project: Project, *, auth_method: AuthMethod = "basic", created_at: int = NOW) -> OidcClient:
        """Store an OpenID Connect client with both grants. Unless it is public, its secret has the hash `b"h" * 32`."""
        has_secret = auth_method != "none"
        client = OidcClient(
            id=self.name("oidc"),
            project_id=project.id,
            name="Grafana",
            redirect_uris=("https://grafana.example/login/generic_oauth",),
            auth_method=auth_method,
            signing_alg="RS256",
            email="none",
            id_token_lifetime=3600,
            grant_types=GRANT_TYPES,
            secret_preview="ocs_aaaa…zzzz" if has_secret else None,
            created_at=created_at,
        )
        secret_hash = b"h" * 32 if has_secret else None
        assert await self.storage.oidc_clients.create_client(project.developer_id, client, secret_hash)
        return client

    @staticmethod
    def key_hash(project: Project) -> bytes:
        return hashlib.sha256(project.id.encode()).digest()

    async def session(self, project: Project, at: int | None = None, **fields: Any) -> NewSession:
        session = self.new_session(project, at, **fields)
        assert await self.storage.sessions.create_session(session, public=True)
        return session

    def new_session(self, project: Project, at: int | None = None, **fields: Any) -> NewSession:
        at = self.now if at is None else at
        session_id = self.name("sess")
        key = SessionKey(at // DAY, hashlib.sha256(session_id.encode()).digest())
        return NewSession(key, session_id, project.id, at, at + 10 * MINUTE)._replace(**fields)

    async def asked_for_phone(self, session: NewSession, user: str = "1001", **fields: Any) -> PhoneRequest:
        """Ask the user of a session for a phone number, at the seed's time."""
        values = (session.key, session.id, user, 0, b"encrypted \0 " + session.id.encode(), NOW, session.expires_at)
        request = replace(PhoneRequest(*values), **fields)
        await self.storage.users.ask_for_phone(request)
        return request

    async def opened(self, project: Project, user: str = "1001", at: int | None = None, **fields: Any) -> NewSession:
        session = await self.session(project, at, **fields)
        assert await self.storage.sessions.open_session(session.key, user, session.created_at)
        return session

    async def confirmed(
        self, project: Project, user: str = "1001", at: int | None = None, phone: NewPhone | None = None, **fields: Any
    ) -> NewSession:
        session, confirm = await self.opened(project, user, at, **fields), self.storage.sessions.confirm_session
        assert await confirm(session.key, self.identity(user), session.created_at, self.event(project), phone)
        return session

    async def due_event(self, project: Project, at: int = NOW) -> Event:
        """Return the event of a session that was cancelled at `at`; the project must have a webhook."""
        session = await self.opened(project, at=at)
        event = self.event(project, "auth.cancelled", at)
        assert await self.storage.sessions.cancel_session(session.key, "1001", at, event)
        return event

    async def claimed(self, project: Project, at: int = NOW) -> Delivery:
        """Return the delivery of a new event of a project with a webhook, leased for half a minute."""
        await self.due_event(project, at)
        (delivery,) = await self.storage.deliveries.claim_deliveries(at, at + LEASE, 1)
        return delivery

    async def attempted(
        self,
        delivery: Delivery,
        state: DeliveryState,
        at: int = NOW,
        due_at: int | None = None,
        *,
        reached: bool = True,
    ) -> bool:
        """Record an attempt that began at `at`, made by `Seed.attempt`."""
        attempt = self.attempt(delivery.attempt, 204 if state == "delivered" else 500, at)
        due_at = at if due_at is None else due_at
        return await self.storage.deliveries.finish_attempt(delivery, attempt, state, due_at, reached=reached)

    @staticmethod
    def attempt(number: int = 1, status: int | None = 500, at: int = NOW) -> Attempt:
        return Attempt(
            number, at, 12, status, None if status else "timeout", b"encrypted \0 answer" if status else None
        )

    async def report(self, key: SessionKey, user: str, at: int, store: Storage | None = None) -> SignInStatus | None:
        """Report a session in any state, as the service does."""
        store = store or self.storage
        found = await store.sessions.read_session(key)
        project_id = found.project_id if found else "proj_none"

        def event(kind: EventType) -> Event:
            return Event(self.name("evt"), kind, project_id, b"encrypted", at)

        events: dict[SignInStatus, list[Event]] = {
            "pending": [event("auth.cancelled"), event("auth.reported")],
            "confirmed": [event("auth.reported")],
            "used": [event("auth.reported")],
        }
        return await store.sessions.report_session(key, user, at, events)

    @staticmethod
    def identity(user: str) -> MessengerIdentity:
        return MessengerIdentity(user, f"User {user}", f"user_{user}")

    def event(self, project: Project, kind: EventType = "auth.confirmed", at: int = NOW) -> Event:
        event_id = self.name("evt")
        return Event(event_id, kind, project.id, b"encrypted " + event_id.encode(), at)
