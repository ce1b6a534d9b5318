"""A credential has no more rights than the one that creates it, and ends with it (contract.md)."""

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.sign_ins import stored_sign_in

from taproof.core.accounts import AccessToken, Actor, Developer
from taproof.core.clock import HOUR, MINUTE
from taproof.core.entropy import system_entropy
from taproof.core.errors import (
    AccessDenied,
    InsufficientScope,
    InvalidAccessToken,
    InvalidRequest,
    MessengerOnly,
    SignedOut,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.core.rights import SCOPES, Grant
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.invitations import Invitations

if TYPE_CHECKING:
    from tests.service.conftest import Node

OPERATOR: Final = "command_line"


def acting(developer: Developer, token: AccessToken) -> Actor:
    return Actor(developer, "access_token", token.id, grant=token.grant)


@pytest.fixture
def sessions(node: "Node") -> ConsoleSessions:
    return ConsoleSessions(node.storage, node.clock, system_entropy)


def test_derived_grants() -> None:
    """An omitted right defaults to the parent's; more than the parent's is refused; less is granted."""
    now = 1_000
    parent = Grant(("read", "tokens"), now, "tok_1", "sess_1")
    assert parent.derive(None, None) == parent
    assert parent.derive(["read"], now - 1) == Grant(("read",), now - 1, "tok_1", "sess_1")
    assert parent.derive(["tokens", "read", "read"], None).scopes == ("read", "tokens")
    refused: list[Any] = [(["write"], None), (SCOPES, None), ([], None), (None, now + 1)]
    for scopes, until in refused:
        with pytest.raises(InvalidRequest):
            parent.derive(scopes, until)
    assert Grant().derive(None, now).expires_at == now


async def test_a_short_lived_token_gives_no_lasting_access(node: "Node", sessions: ConsoleSessions) -> None:
    """Neither tokens, their descendants, the console, nor tokens created there outlive the token."""
    ada = await node.developer()
    until = node.clock.now + MINUTE
    parent = await node.developers.create_access_token(Actor(ada, OPERATOR), "short", expires_at=until)
    child = await node.developers.create_access_token(acting(ada, parent.token), "child")
    grandchild = await node.developers.create_access_token(acting(ada, child.token), "grandchild")
    cookie = await sessions.create_console_session(ada, opened_with=child.token, address="", user_agent="")
    signed_in = await sessions.authenticate(cookie)
    assert signed_in is not None
    console = Actor(ada, "console", signed_in.session.id, grant=signed_in.session.grant)
    in_console = await node.developers.create_access_token(console, "in the console")
    with pytest.raises(InvalidRequest, match=r"^expires_at "):
        await node.developers.create_access_token(acting(ada, parent.token), "longer", expires_at=until + 1)
    assert {each.token.expires_at for each in (child, grandchild, in_console)} == {until}
    node.clock.now = until
    for each in (parent, child, grandchild, in_console):
        with pytest.raises(InvalidAccessToken):
            await node.developers.authenticate(each.plaintext)
    assert await sessions.authenticate(cookie) is None


async def test_revoking_ends_what_was_created_with_it(node: "Node", sessions: ConsoleSessions) -> None:
    """Descendant tokens and console sessions end, with a log entry for each. Other credentials stay."""
    ada = await node.developer()
    other = await node.developers.create_access_token(Actor(ada, OPERATOR), "other")
    parent = await node.developers.create_access_token(Actor(ada, OPERATOR), "parent")
    child = await node.developers.create_access_token(acting(ada, parent.token), "child")
    grandchild = await node.developers.create_access_token(acting(ada, child.token), "grandchild")
    cookie = await sessions.create_console_session(ada, opened_with=grandchild.token, address="", user_agent="")
    assert await node.developers.delete_access_token(Actor(ada, OPERATOR), parent.token.id) == 3
    assert [each.id for each in await node.developers.list_access_tokens(ada.id)] == [other.token.id]
    assert await sessions.authenticate(cookie) is None
    log = (await node.audit.list_audit_entries(ada, limit=50, cursor=None)).entries
    told = {entry.subject: json.loads(entry.details) for entry in log if entry.action == "access_token.revoked"}
    assert told.keys() == {parent.token.id, child.token.id, grandchild.token.id}
    assert told[grandchild.token.id]["created_with"] == parent.token.id


async def test_a_credential_that_has_ended_changes_nothing(node: "Node", sessions: ConsoleSessions) -> None:
    """A request that was authenticated before its token or session ended changes nothing after that."""
    ada = await node.developer()
    project, secrets = await node.project(ada)
    token = (await node.developers.create_access_token(Actor(ada, OPERATOR), "revoked")).token
    source = await stored_sign_in(node.storage, node.clock.now)
    cookie = await sessions.create_console_session(ada, opened_with=source, address="", user_agent="")
    signed_in = await sessions.authenticate(cookie)
    assert signed_in is not None
    console = Actor(ada, "console", signed_in.session.id, grant=signed_in.session.grant)
    await node.developers.delete_access_token(Actor(ada, OPERATOR), token.id)
    await sessions.delete_console_sessions(Actor(ada, OPERATOR))
    ended: list[tuple[Actor, type[Exception]]] = [(acting(ada, token), InvalidAccessToken), (console, SignedOut)]
    for actor, error in ended:
        with pytest.raises(error):
            await node.projects.regenerate_secrets(actor, project.id)
        with pytest.raises(error):
            await node.projects.reveal_webhook_secret(actor, project.id)
        with pytest.raises(error):
            await node.developers.create_access_token(actor, "more")
    with pytest.raises(InvalidAccessToken):
        await sessions.create_console_session(ada, opened_with=token, address="", user_agent="")
    assert (await node.projects.authenticate(secrets.secret_key)).id == project.id
    assert await node.developers.list_access_tokens(ada.id) == []
    assert await sessions.list_console_sessions(ada) == []


async def test_scopes_hold_in_the_service(node: "Node", sessions: ConsoleSessions) -> None:
    """Scopes also apply to a console session that was opened with the token, and nobody can widen them."""
    ada = await node.developer()
    project, _ = await node.project(ada)
    reader = (await node.developers.create_access_token(Actor(ada, OPERATOR), "reader", scopes=["read"])).token
    cookie = await sessions.create_console_session(ada, opened_with=reader, address="", user_agent="")
    signed_in = await sessions.authenticate(cookie)
    assert signed_in is not None
    assert signed_in.session.scopes == ("read",)
    for actor in (acting(ada, reader), Actor(ada, "console", signed_in.session.id, grant=signed_in.session.grant)):
        for call in (
            node.projects.regenerate_secrets(actor, project.id),
            node.projects.read_webhook_secret(actor, project.id),
            node.projects.delete_project(actor, project.id),
            node.projects.update_project(actor, project.id, ProjectChanges()),
            node.deliveries.send_test(actor, project.id),
            node.developers.create_access_token(actor, "more", scopes=["read"]),
        ):
            with pytest.raises(InsufficientScope):
                await call
    # What has few rights may give them up.
    await sessions.delete_console_session(
        Actor(ada, "console", signed_in.session.id, grant=signed_in.session.grant), signed_in.session.id
    )
    assert await node.developers.delete_access_token(acting(ada, reader), reader.id) == 1


async def test_an_access_token_invites_nobody(node: "Node") -> None:
    """An access token cannot invite, either directly or in a console session that was opened with it."""
    invitations = Invitations(node.storage, node.clock, system_entropy)
    made = await invitations.invite_developer(None, "ada@example.com", is_owner=True)
    ada = await invitations.accept_invitation(made.code, MessengerIdentity("1001", "Ada", ""), address="")
    token = (await node.developers.create_access_token(Actor(ada, OPERATOR), "leaked")).token
    with pytest.raises(MessengerOnly):
        await invitations.invite_developer(acting(ada, token), "eve@example.com", is_owner=True)


async def test_a_report_ends_what_its_invitations_led_to(node: "Node", sessions: ConsoleSessions) -> None:
    """Pending invitations end, and developers who came by one, or by one of theirs, lose access.

    Earlier ones keep theirs.
    """
    invitations = Invitations(node.storage, node.clock, system_entropy)
    made = await invitations.invite_developer(None, "ada@example.com", is_owner=True)
    ada = await invitations.accept_invitation(made.code, MessengerIdentity("1001", "Ada", ""), address="")
    before = await console_of(node, sessions, ada)
    colleague = await invitations.invite_developer(before, "bob@example.com", is_owner=True)
    bob = await invitations.accept_invitation(colleague.code, MessengerIdentity("2002", "Bob", ""), address="")
    node.clock.now += HOUR
    stolen = await console_of(node, sessions, ada)
    waiting = await invitations.invite_developer(stolen, "waiting@example.com")
    taken = await invitations.invite_developer(stolen, "eve@example.com", is_owner=True)
    eve = await invitations.accept_invitation(taken.code, MessengerIdentity("3003", "Eve", ""), address="")
    eves_token = await node.developers.create_access_token(Actor(eve, OPERATOR), "eve's")
    eves_console = await console_of(node, sessions, eve)
    further = await invitations.invite_developer(eves_console, "mallory@example.com", is_owner=True)
    mallory = await invitations.accept_invitation(further.code, MessengerIdentity("4004", "Mallory", ""), address="")
    left = await invitations.invite_developer(await console_of(node, sessions, mallory), "left@example.com")
    sign_in = stolen.grant.sign_in
    assert sign_in is not None
    ended = await node.storage.developers.end_sign_in(ada.id, sign_in, describe=lambda _: [])
    assert set(ended.developers) == {eve.id, mallory.id}
    assert set(ended.invitations) == {waiting.invitation.id, left.invitation.id}
    assert [each.id for each in ended.tokens] == [eves_token.token.id]
    found = {each.email: each for each in await node.developers.list_developers()}
    for each in (found["eve@example.com"], found["mallory@example.com"]):
        assert (each.is_owner, each.messenger_id) == (False, None)
    assert (found["bob@example.com"], found["ada@example.com"]) == (bob, ada)
    assert await invitations.list_invitations(ada) == []
    with pytest.raises(AccessDenied):
        await console_of(node, sessions, eve)
    # The operator may let them in again.
    again = await invitations.invite_again(Actor(eve, OPERATOR), found["eve@example.com"])
    back = await invitations.accept_invitation(again.code, MessengerIdentity("3003", "Eve", ""), address="")
    await node.storage.developers.end_sign_in(ada.id, sign_in, describe=lambda _: [])
    assert await node.developers.read_developer_by_messenger_id("3003") == back


async def test_a_report_unbinds_an_account_that_the_sign_in_bound(node: "Node", sessions: ConsoleSessions) -> None:
    """A user who was tricked into accepting a stranger's invitation is no longer a developer after reporting it."""
    invitations = Invitations(node.storage, node.clock, system_entropy)
    made = await invitations.invite_developer(None, "eve@example.com")
    source = await stored_sign_in(node.storage, node.clock.now)
    eve = await invitations.accept_invitation(
        made.code, MessengerIdentity("1001", "Ada", ""), address="", sign_in=source
    )
    cookie = await sessions.create_console_session(eve, opened_with=source, address="", user_agent="")
    assert await node.storage.developers.read_developer_of_sign_in("9", source.id) == eve
    ended = await node.storage.developers.end_sign_in(eve.id, source.id, describe=lambda _: [])
    assert ended.is_unbound
    assert await sessions.authenticate(cookie) is None
    assert await node.developers.read_developer_by_messenger_id("1001") is None


async def test_a_report_finds_what_came_of_the_sign_in_whatever_account_is_bound_now(node: "Node") -> None:
    """If the operator linked another account before the report, the stolen token still ends."""
    invitations = Invitations(node.storage, node.clock, system_entropy)
    made = await invitations.invite_developer(None, "ada@example.com")
    ada = await invitations.accept_invitation(made.code, MessengerIdentity("1001", "Ada", ""), address="")
    source = await stored_sign_in(node.storage, node.clock.now)
    stolen = AccessToken("tok_stolen", ada.id, "stolen", "tap_aaaa…zzzz", node.clock.now, sign_in=source.id)
    assert await node.storage.credentials.create_access_token(stolen, b"s" * 32)
    again = await invitations.invite_again(Actor(ada, OPERATOR), ada)
    await invitations.accept_invitation(again.code, MessengerIdentity("2002", "Ada", ""), address="")
    found = await node.storage.developers.read_developer_of_sign_in("1001", source.id)
    assert found is not None
    assert found.id == ada.id
    ended = await node.storage.developers.end_sign_in(found.id, source.id, describe=lambda _: [])
    assert [each.id for each in ended.tokens] == [stolen.id]
    assert not ended.is_unbound


async def test_the_report_of_the_binding_does_not_hide_a_later_one(node: "Node", sessions: ConsoleSessions) -> None:
    """A report of the linking ends the invitations of later sign-ins too.

    Other credentials are found by their own sign-in.
    """
    invitations = Invitations(node.storage, node.clock, system_entropy)
    made = await invitations.invite_developer(None, "ada@example.com", is_owner=True)
    bound = await stored_sign_in(node.storage, node.clock.now)
    ada = await invitations.accept_invitation(
        made.code, MessengerIdentity("1001", "Ada", ""), address="", sign_in=bound
    )
    node.clock.now += HOUR
    stolen = await console_of(node, sessions, ada)
    await invitations.invite_developer(stolen, "waiting@example.com", is_owner=True)
    taken = await invitations.invite_developer(stolen, "eve@example.com", is_owner=True)
    eve = await invitations.accept_invitation(taken.code, MessengerIdentity("3003", "Eve", ""), address="")
    first = await node.storage.developers.end_sign_in(ada.id, bound.id, describe=lambda _: [])
    assert (len(first.invitations), first.developers, first.is_unbound) == (1, (eve.id,), True)
    assert stolen.grant.sign_in is not None
    assert await node.storage.developers.read_developer_of_sign_in("1001", stolen.grant.sign_in) is not None
    assert await invitations.list_invitations(ada) == []


async def test_a_child_cannot_keep_itself_when_it_revokes_its_parent(node: "Node") -> None:
    """Even if it revokes a token further above, a child token ends with its parent."""
    ada = await node.developer()
    first = await node.developers.create_access_token(Actor(ada, OPERATOR), "first")
    second = await node.developers.create_access_token(acting(ada, first.token), "second")
    third = await node.developers.create_access_token(acting(ada, second.token), "third")
    for above in (first, second):
        with pytest.raises(InvalidRequest):
            await node.developers.delete_access_token(acting(ada, third.token), above.token.id, keep_created=True)
    assert await node.developers.delete_access_token(acting(ada, third.token), first.token.id) == 3


async def console_of(node: "Node", sessions: ConsoleSessions, developer: Developer) -> Actor:
    """Sign a developer in with the messenger, and return them as an actor in the console."""
    source = await stored_sign_in(node.storage, node.clock.now)
    cookie = await sessions.create_console_session(developer, opened_with=source, address="", user_agent="")
    signed_in = await sessions.authenticate(cookie)
    assert signed_in is not None
    return Actor(developer, "console", signed_in.session.id, grant=signed_in.session.grant)
