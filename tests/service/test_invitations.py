"""One-time links that create a developer, or bind a messenger account to one."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.sign_ins import by_console, stored_sign_in

from taproof.core.accounts import Actor, AuditEntry, Developer
from taproof.core.clock import DAY
from taproof.core.entropy import system_entropy
from taproof.core.errors import (
    DeveloperExists,
    InvalidRequest,
    InvitationNotFound,
    OwnerOnly,
)
from taproof.core.identifiers import is_key
from taproof.core.identity import MessengerIdentity
from taproof.service.console.sessions import ConsoleSessions
from taproof.service.invitations import FIRST_LIFETIME, LIFETIME, Invitations

if TYPE_CHECKING:
    from tests.service.conftest import Node


ADA = MessengerIdentity("1001", "Ada Lovelace", "ada")
BOB = MessengerIdentity("1002", "Боб", "")
FROM = "203.0.113.7"


def invitations_of(node: "Node") -> Invitations:
    return Invitations(node.storage, node.clock, system_entropy)


@pytest.fixture
def invitations(node: "Node") -> Invitations:
    return invitations_of(node)


async def first(
    invitations: Invitations, email: str = "ada@example.com", identity: MessengerIdentity = ADA
) -> Developer:
    """Let the first developer accept the invitation."""
    code = await invitations.invite_first()
    assert code is not None
    return await invitations.accept_invitation(code, identity, email=email, address=FROM)


async def console(node: "Node", developer: Developer) -> Actor:
    return await by_console(node.storage, developer, node.clock.now)


async def log_of(node: "Node", developer: Developer) -> list[AuditEntry]:
    """Return a developer's log by action. The clock does not move, so the order of the entries is arbitrary."""
    entries = (await node.audit.list_audit_entries(developer, limit=50, cursor=None)).entries
    return sorted(entries, key=lambda entry: entry.action)


async def test_the_first_developer_comes_in(node: "Node", invitations: Invitations) -> None:
    """The first developer enters an address, becomes an owner, and is then found by the messenger account."""
    code = await invitations.invite_first()
    assert code is not None
    assert is_key(code, "inv")
    assert (await invitations.read_invitation(code)).email == ""
    ada = await invitations.accept_invitation(code, ADA, email=" ada@example.com ", address=FROM)
    assert (ada.email, ada.is_owner, ada.messenger_id, ada.messenger_name) == (
        "ada@example.com",
        True,
        "1001",
        "Ada Lovelace",
    )
    assert await node.developers.list_developers() == [ada]
    assert await node.developers.read_developer_by_messenger_id("1001") == ada
    assert await node.developers.read_developer_by_messenger_id("1002") is None
    (entry,) = await log_of(node, ada)
    assert (entry.action, entry.actor, entry.via, entry.address, entry.subject) == (
        "developer.created",
        "ada@example.com",
        "invitation",
        FROM,
        ada.id,
    )
    assert code not in repr(entry)


async def test_wrong_addresses_and_codes(node: "Node", invitations: Invitations) -> None:
    """A typing error does not use up the first developer's only invitation. Existing developers cannot be invited.

    Otherwise, an owner in the console could create links that sign in as somebody else.
    """
    code = await invitations.invite_first()
    assert code is not None
    for email in ("", "ada", "ada@example.com\nbob@example.com", "\ud800@example.com"):
        with pytest.raises(InvalidRequest, match=r"^email "):
            await invitations.accept_invitation(code, ADA, email=email, address=FROM)
    for wrong in ("", "inv_", "inv_" + "0" * 49, "\ud800", "x" * 100_000):
        with pytest.raises(InvitationNotFound):
            await invitations.read_invitation(wrong)
        with pytest.raises(InvitationNotFound):
            await invitations.accept_invitation(wrong, ADA, email="ada@example.com", address=FROM)
    ada = await invitations.accept_invitation(code, ADA, email="ada@example.com", address=FROM)
    actor = await console(node, ada)
    for email in ("ada@example.com", "ADA@example.COM"):
        with pytest.raises(DeveloperExists):
            await invitations.invite_developer(actor, email)
    with pytest.raises(InvalidRequest, match=r"^email "):
        await invitations.invite_developer(actor, "no address")
    for unknown in ("invite_unknown", "", "\0", "\ud800"):
        with pytest.raises(InvitationNotFound):
            await invitations.delete_invitation(actor, unknown)
    assert await node.developers.list_developers() == [ada]


async def test_an_owner_invites(node: "Node", invitations: Invitations) -> None:
    """The invitation has the address, the plan and the role; both logs have an entry."""
    ada = await first(invitations)
    made = await invitations.invite_developer(await console(node, ada), " bob@example.com ", plan="pro")
    assert await invitations.list_invitations(ada) == [made.invitation]
    assert (made.invitation.invited_by, made.invitation.email) == ("ada@example.com", "bob@example.com")
    bob = await invitations.accept_invitation(made.code, BOB, email="ignored@example.com", address=FROM)
    assert (bob.email, bob.plan, bob.is_owner, bob.messenger_name) == ("bob@example.com", "pro", False, "Боб")
    assert await invitations.list_invitations(ada) == []
    _, invited = await log_of(node, ada)
    assert (invited.action, invited.subject) == ("developer.invited", made.invitation.id)
    assert json.loads(invited.details) == {"email": "bob@example.com", "plan": "pro", "is_owner": False}
    (created,) = await log_of(node, bob)
    assert (created.action, json.loads(created.details)["invited_by"]) == ("developer.created", "ada@example.com")
    assert made.code not in repr(await log_of(node, ada)) + repr(made.invitation)


async def test_only_owners_invite_list_and_revoke(node: "Node", invitations: Invitations) -> None:
    """A developer who is not an owner changes and learns nothing, also with an id that exists."""
    ada = await first(invitations)
    made = await invitations.invite_developer(None, "bob@example.com")
    bob = await invitations.accept_invitation(made.code, BOB, address=FROM)
    other = await invitations.invite_developer(await console(node, ada), "eve@example.com", is_owner=True)
    with pytest.raises(OwnerOnly):
        await invitations.invite_developer(await console(node, bob), "mallory@example.com")
    with pytest.raises(OwnerOnly):
        await invitations.list_invitations(bob)
    with pytest.raises(OwnerOnly):
        await invitations.delete_invitation(await console(node, bob), other.invitation.id)
    for actor in (await console(node, ada), replace(await console(node, ada), via="access_token")):
        with pytest.raises(OwnerOnly):
            await invitations.invite_again(actor, bob)
    assert await invitations.list_invitations(ada) == [other.invitation]
    assert [entry.action for entry in await log_of(node, bob)] == ["developer.created"]


async def test_the_command_line_invites_without_anybodys_log(node: "Node", invitations: Invitations) -> None:
    """The command line has no log of its own; the new developer's log begins with the acceptance."""
    ada = await first(invitations)
    made = await invitations.invite_developer(None, "bob@example.com", is_owner=True)
    assert made.invitation.invited_by == ""
    assert [entry.action for entry in await log_of(node, ada)] == ["developer.created"]
    bob = await invitations.accept_invitation(made.code, BOB, address=FROM)
    assert bob.is_owner
    await invitations.invite_developer(await console(node, bob), "eve@example.com")


async def test_links_end(node: "Node", invitations: Invitations) -> None:
    """The first developer's link expires after exactly a day, all others after seven days."""
    assert (FIRST_LIFETIME, LIFETIME) == (DAY, 7 * DAY)
    start = node.clock.now
    code = await invitations.invite_first()
    made = await invitations.invite_developer(None, "bob@example.com")
    assert code is not None
    for each, end in ((code, start + DAY), (made.code, start + 7 * DAY)):
        node.clock.now = end - 1
        assert (await invitations.read_invitation(each)).expires_at == end
        node.clock.now = end
        with pytest.raises(InvitationNotFound):
            await invitations.read_invitation(each)
        with pytest.raises(InvitationNotFound):
            await invitations.accept_invitation(each, BOB, email="bob@example.com", address=FROM)
    assert await node.developers.list_developers() == []


async def test_the_operator_binds_another_account(node: "Node", invitations: Invitations) -> None:
    """A developer who lost their account gets access again; the old account and all console sessions lose it."""
    ada = await first(invitations)
    sessions = ConsoleSessions(node.storage, node.clock, system_entropy)
    sign_in = await stored_sign_in(node.storage, node.clock.now)
    cookie = await sessions.create_console_session(ada, opened_with=sign_in, address=FROM, user_agent="Firefox")
    made = await invitations.invite_again(Actor(ada, "command_line"), ada)
    assert await sessions.authenticate(cookie) is not None
    again = await invitations.accept_invitation(made.code, BOB, email="ignored@example.com", address=FROM)
    assert again == replace(ada, messenger_id="1002", messenger_name="Боб")
    assert await node.developers.list_developers() == [again]
    assert await node.developers.read_developer_by_messenger_id("1001") is None
    assert await sessions.authenticate(cookie) is None
    _, bound, invited = [entry for entry in await log_of(node, ada) if entry.action.startswith("developer.")]
    assert (bound.action, bound.via, json.loads(bound.details)["messenger_id"]) == (
        "developer.identity_bound",
        "invitation",
        "1002",
    )
    assert (invited.action, invited.actor, invited.via) == ("developer.invited", "command line", "command_line")
    with pytest.raises(InvitationNotFound):
        await invitations.accept_invitation(made.code, ADA, address=FROM)


async def test_a_name_that_no_store_takes(invitations: Invitations) -> None:
    """Names from the messenger are stored without NUL and lone surrogates."""
    ada = await first(invitations, identity=MessengerIdentity("1001", "A\0d\ud800a", ""))
    assert ada.messenger_name == "Ada"
