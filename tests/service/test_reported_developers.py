"""A developer reports a sign-in to the service itself, which ends all access that came from it, on every node."""

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

import pytest
from tests.databases import every_driver
from tests.service.conftest import key_of
from tests.tapping import tap_right

from taproof.core.accounts import Actor, AuditEntry, Developer
from taproof.core.entropy import system_entropy
from taproof.core.errors import AccessDenied, InvalidAccessToken, StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import Session
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.console.sign_in import CONSOLE, TERMINAL, DeveloperSignIns, Purpose, StartedSignIn
from taproof.service.developers import CreatedAccessToken
from taproof.service.invitations import Invitations
from taproof.service.sessions.seen import SeenSession
from taproof.service.user_control import UserControl

if TYPE_CHECKING:
    from tests.service.conftest import Node

ADA = MessengerIdentity("1001", "Ada", "ada")
BOB = MessengerIdentity("2002", "Bob", "")


class Door:
    """The ways in which developers sign in through one node, and report it."""

    def __init__(self, node: "Node") -> None:
        self.node = node
        self.sign_ins = DeveloperSignIns(
            node.storage, node.encryptor, node.signin, node.clock, system_entropy, waiting=node.signin.waiting
        )
        self.sessions = ConsoleSessions(node.storage, node.clock, system_entropy)
        self.control = UserControl(node.storage, node.signin, node.clock)

    async def developer(self, identity: MessengerIdentity = ADA) -> Developer:
        """Create a developer with a linked messenger account."""
        invitations = Invitations(self.node.storage, self.node.clock, system_entropy)
        made = await invitations.invite_developer(None, f"{identity.messenger_id}@example.com")
        return await invitations.accept_invitation(made.code, identity, address="203.0.113.7")

    async def confirmed(self, purpose: Purpose, identity: MessengerIdentity = ADA) -> StartedSignIn:
        """Return a sign-in that an account was talked into confirming, and that was read; a block is undone."""
        started = await self.sign_ins.start(purpose)
        project_id = (await self.stored(started)).project_id
        await self.control.unblock_project(identity.messenger_id, project_id)
        await self.node.signin.open_session(token_of(started), identity.messenger_id)
        assert (await tap_right(self.node.signin, token_of(started), identity)).changed
        assert (await self.sign_ins.finish(started.encrypted, purpose)).identity == identity
        return started

    async def browser(self, developer: Developer, started: StartedSignIn) -> str:
        """Turn a sign-in that was read into a session of the console, and return its cookie."""
        return await self.sessions.create_console_session(
            developer,
            opened_with=await self.sign_ins.source(started.encrypted, CONSOLE),
            address="198.51.100.66",
            user_agent="Firefox",
        )

    async def terminal(self, developer: Developer, started: StartedSignIn) -> CreatedAccessToken:
        return await self.node.developers.create_access_token(
            Actor(developer, "login"),
            "taproof login",
            sign_in=await self.sign_ins.source(started.encrypted, TERMINAL),
        )

    async def is_in(self, cookie: str) -> bool:
        return await self.sessions.authenticate(cookie) is not None

    async def is_valid(self, token: CreatedAccessToken) -> bool:
        try:
            await self.node.developers.authenticate(token.plaintext)
        except InvalidAccessToken:
            return False
        return True

    async def stored(self, started: StartedSignIn) -> Session:
        key = key_of(token_of(started))
        session = await self.node.storage.sessions.read_session(key)
        assert session is not None
        return session

    async def report(self, started: StartedSignIn, user_id: str = "1001") -> SeenSession:
        """Report the sign-in as the list of /sessions does."""
        return await self.control.report_sign_in((await self.stored(started)).key, user_id)

    async def log(self, developer: Developer) -> list[AuditEntry]:
        """Return the log entries of the service itself about a developer's access."""
        page = await self.node.audit.list_audit_entries(developer, limit=200, cursor=None)
        return [entry for entry in page.entries if entry.via == "service"]


def token_of(started: StartedSignIn) -> str:
    return started.deeplink.rpartition("?start=")[2]


@pytest.fixture
def door(node: "Node") -> Door:
    return Door(node)


@pytest.fixture
def other_door(other_node: "Node") -> Door:
    return Door(other_node)


async def test_whoever_came_in_is_out(door: Door, other_door: Door) -> None:
    """One report on another node ends the console sessions and the access token, with a log entry for each."""
    ada = await door.developer()
    by_browser, by_terminal = await door.confirmed(CONSOLE), await door.confirmed(TERMINAL)
    cookie, token = await door.browser(ada, by_browser), await door.terminal(ada, by_terminal)
    assert (await door.is_in(cookie), await door.is_valid(token)) == (True, True)
    seen = await other_door.report(by_browser)
    assert (seen.outcome, seen.changed, seen.signed_out, seen.was_used) == ("reported", True, True, False)
    assert (await door.is_in(cookie), await door.is_valid(token)) == (False, False)
    told = {"reported_sign_in": (await door.stored(by_browser)).id}
    entries = {entry.action: entry for entry in await door.log(ada)}
    assert entries.keys() == {"console.signed_out_everywhere", "access_token.revoked"}
    assert json.loads(entries["console.signed_out_everywhere"].details) == told
    revoked = entries["access_token.revoked"]
    assert (revoked.subject, revoked.actor) == (token.token.id, "Taproof")
    assert json.loads(revoked.details) == {"name": "taproof login", "preview": token.token.preview, **told}


async def test_a_report_that_was_cut_off_is_finished_when_it_comes_again(
    door: Door, other_door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeated report completes the rest after any interruption; another repetition changes nothing."""
    ada = await door.developer()
    by_browser, by_terminal = await door.confirmed(CONSOLE), await door.confirmed(TERMINAL)
    cookie, token = await door.browser(ada, by_browser), await door.terminal(ada, by_terminal)

    async def dies(*_: object, **__: object) -> int:
        raise StoreUnavailable

    with monkeypatch.context() as broken:
        broken.setattr(other_door.node.storage.developers, "end_sign_in", dies)
        with pytest.raises(StoreUnavailable):
            await other_door.report(by_browser)
    assert (await door.stored(by_browser)).reported_at is not None
    assert (await door.is_in(cookie), await door.is_valid(token)) == (True, True)
    seen = await door.report(by_browser)
    assert (seen.outcome, seen.changed, seen.signed_out) == ("reported", False, True)
    assert (await door.is_in(cookie), await door.is_valid(token)) == (False, False)
    entries = sorted(entry.action for entry in await door.log(ada))
    await door.report(by_browser)
    assert sorted(entry.action for entry in await door.log(ada)) == entries
    assert entries == ["access_token.revoked", "console.signed_out_everywhere"]


async def test_nobody_shut_out_gets_the_token_that_they_were_about_to_get(door: Door, other_door: Door) -> None:
    """`taproof login` reads the identity before it creates the token: a report in between prevents the token."""
    invitations = Invitations(door.node.storage, door.node.clock, system_entropy)
    made = await invitations.invite_developer(None, "ada@example.com", is_owner=True)
    ada = await invitations.accept_invitation(made.code, ADA, address="203.0.113.7")
    started = await door.confirmed(CONSOLE)
    signed_in = await door.sessions.authenticate(await door.browser(ada, started))
    assert signed_in is not None
    stolen = Actor(ada, "console", signed_in.session.id, grant=signed_in.session.grant)
    invited = await invitations.invite_developer(stolen, "bob@example.com")
    bob = await invitations.accept_invitation(invited.code, BOB, address="198.51.100.66")
    by_terminal = await door.confirmed(TERMINAL, BOB)
    assert await door.is_valid(await door.terminal(bob, await door.confirmed(TERMINAL, BOB)))
    assert (await other_door.report(started)).signed_out
    with pytest.raises(AccessDenied):
        await door.terminal(bob, by_terminal)
    assert await door.node.developers.list_access_tokens(bob.id) == []


async def test_what_ends_nothing(door: Door) -> None:
    """Unconfirmed prompts, other projects' sign-ins, accounts without a developer and other users' taps end nothing."""
    ada = await door.developer()
    started = await door.confirmed(CONSOLE)
    cookie = await door.browser(ada, started)
    prompt = await door.sign_ins.start(CONSOLE)
    await door.node.signin.open_session(token_of(prompt), "1001")
    assert not (await door.node.signin.report_session(token_of(prompt), "1001")).signed_out
    assert (await door.stored(prompt)).reported_at is not None
    project, _ = await door.node.project(ada)
    token = await door.node.confirmed(project)
    key = key_of(token)
    assert (await door.node.signin.verify_session(project.id, token, public=True)).proof is not None
    seen = await door.control.report_sign_in(key, "1001")
    assert (seen.was_used, seen.signed_out) == (True, False)
    # Nobody was signed in by it, so the answer must not say that somebody may still be.
    seen = await door.report(await door.confirmed(CONSOLE, BOB), "2002")
    assert (seen.outcome, seen.was_used, seen.signed_out) == ("reported", False, False)
    assert (await door.report(started, "2002")).outcome == "foreign"
    assert await door.is_in(cookie)
    assert await door.log(ada) == []


@every_driver
@pytest.mark.parametrize("purpose", [CONSOLE, TERMINAL])
async def test_a_report_in_the_middle_of_an_entry(
    door: Door, other_door: Door, purpose: Purpose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report before the credential is stored prevents it.

    A report after that ends it before the report is answered.
    """
    ada = await door.developer()
    step = "create_console_session" if purpose == CONSOLE else "create_access_token"
    store = getattr(door.node.storage.credentials, step)
    for order in ("report, store", "store, report"):
        started = await door.confirmed(purpose)

        async def interrupted(
            *what: object, order: str = order, started: StartedSignIn = started, **more: object
        ) -> object:
            if order == "report, store":
                await other_door.report(started)
                return await store(*what, **more)
            stored = await store(*what, **more)
            await other_door.report(started)
            return stored

        refused = pytest.raises(AccessDenied) if order == "report, store" else contextlib.nullcontext()
        with monkeypatch.context() as patched:
            patched.setattr(door.node.storage.credentials, step, interrupted)
            with refused:
                await (door.browser if purpose == CONSOLE else door.terminal)(ada, started)
        assert await door.sessions.list_console_sessions(ada) == []
        assert await door.node.developers.list_access_tokens(ada.id) == []


@every_driver
@pytest.mark.parametrize("purpose", [CONSOLE, TERMINAL])
async def test_report_and_entry_at_once(door: Door, other_door: Door, purpose: Purpose) -> None:
    """Concurrently on two nodes and in either order, no credential works once both are done."""
    ada = await door.developer()
    for number in range(20):
        started = await door.confirmed(purpose)

        async def enter(started: StartedSignIn = started) -> str | CreatedAccessToken | None:
            try:
                return await (door.browser if purpose == CONSOLE else door.terminal)(ada, started)
            except AccessDenied:
                return None

        late = number % 4 // 2  # So that the one overtakes the other in another place.
        if number % 2:
            report = asyncio.create_task(other_door.report(started))
            await asyncio.sleep(0.001 * late)
            await asyncio.gather(enter(), report)
        else:
            entering = asyncio.create_task(enter())
            await asyncio.sleep(0.001 * late)
            await asyncio.gather(other_door.report(started), entering)
        assert await door.sessions.list_console_sessions(ada) == []
        assert await door.node.developers.list_access_tokens(ada.id) == []
