"""Conformance: the effects of reporting a developer's sign-in, and what a sign-in may still create."""

import asyncio
import contextlib
import dataclasses
import hashlib
from dataclasses import replace
from typing import Any

import pytest
from tests.databases import NOW
from tests.storage.conformance.test_members import roles
from tests.storage.seed import Seed, present

from taproof.core.accounts import AccessToken, AuditEntry, Developer, EndedRights, Invitation, MemberInvitation
from taproof.core.clock import DAY
from taproof.core.errors import AccessDenied, InvalidAccessToken
from taproof.core.identifiers import new_session_id
from taproof.core.projects import Project
from taproof.core.sessions import DeveloperSignIn
from taproof.storage.protocol import Storage


def sign_in_id(at: int) -> str:
    """Return the id of a session created at `at`, the greatest of that time, so that only the time decides."""
    return new_session_id(at, lambda count: b"\xff" * count)


async def invitation_of(seed: Seed, inviter: Developer, sign_in: str, email: str) -> Invitation:
    """Store an invitation that a developer created in a sign-in."""
    by: dict[str, Any] = {"invited_by": inviter.email, "inviter_id": inviter.id, "sign_in": sign_in}
    return (await seed.invitation(email, plan="free", **by))[0]


async def accept(storage: Storage, seed: Seed, invitation: Invitation, messenger_id: str) -> Developer:
    """Accept an invitation as a new developer."""
    developer = Developer(
        seed.name("dev"), invitation.email, "free", NOW, invitation.is_owner, messenger_id, f"Name {messenger_id}"
    )
    code_hash = hashlib.sha256(invitation.id.encode()).digest()
    assert await storage.developers.accept_invitation(code_hash, developer, NOW) == "accepted"
    return developer


async def test_end_sign_in_ends_what_came_of_it(storage: Storage, seed: Seed) -> None:
    """Console sessions, tokens of this and later sign-ins, its invitations, and those who came by them end.

    Nothing else does.
    """
    ada, bob = await seed.developer("ada@example.com"), await seed.developer("bob@example.com")
    earlier, reported, later = (sign_in_id(at) for at in (NOW - 1, NOW, NOW + 1))
    kept = [(await seed.access_token(ada, sign_in=sign_in))[0] for sign_in in (None, earlier)]
    ended_tokens = [(await seed.access_token(ada, sign_in=sign_in))[0] for sign_in in (reported, later)]
    bobs = (await seed.access_token(bob, sign_in=reported))[0]
    session, cookie = await seed.console_session(ada)
    _, bobs_cookie = await seed.console_session(bob)
    waiting = await invitation_of(seed, ada, reported, "waiting@example.com")
    other = await invitation_of(seed, ada, later, "other@example.com")
    taken = await invitation_of(seed, ada, reported, "eve@example.com")
    eve = await accept(storage, seed, taken, "2002")
    further = await invitation_of(seed, eve, sign_in_id(NOW - 2), "mallory@example.com")
    eves = (await seed.access_token(eve, sign_in=None))[0]
    seen: list[EndedRights] = []

    def describe(ended: EndedRights) -> list[AuditEntry]:
        seen.append(ended)
        return [seed.entry(ada.id)] if ended.tokens else []

    ended = await storage.developers.end_sign_in(ada.id, reported, describe=describe)
    assert seen[-1] == ended
    assert ended.console_sessions == 1
    assert {token.id for token in ended.tokens} == {eves.id, *(token.id for token in ended_tokens)}
    assert set(ended.invitations) == {waiting.id, further.id}
    assert ended.developers == (eve.id,)
    assert {token.id for token in await storage.credentials.list_access_tokens(ada.id)} == {token.id for token in kept}
    assert await storage.credentials.list_access_tokens(bob.id) == [bobs]
    assert await storage.credentials.read_console_session(cookie, NOW, NOW - DAY) is None
    assert await storage.credentials.read_console_session(bobs_cookie, NOW, NOW - DAY) is not None
    assert [invitation.id for invitation in await storage.developers.list_invitations(NOW)] == [other.id]
    assert await storage.developers.read_developer_by_messenger_id("2002") is None
    assert len(await storage.audit.list_audit_entries(ada.id, None, 99)) == 1
    again = await storage.developers.end_sign_in(ada.id, reported, describe=describe)
    assert (again.console_sessions, again.tokens, again.invitations) == (0, (), ())
    assert len(await storage.audit.list_audit_entries(ada.id, None, 99)) == 1
    assert session.developer_id == ada.id


async def test_end_sign_in_reaches_over_a_removed_developer(storage: Storage, seed: Seed) -> None:
    """Developers whom a removed developer invited derive from the sign-in by which that developer was invited."""
    ada = await seed.developer("ada@example.com")
    eve = await accept(storage, seed, await invitation_of(seed, ada, sign_in_id(NOW), "eve@example.com"), "2")
    invitation = await invitation_of(seed, eve, sign_in_id(NOW + 1), "mallory@example.com")
    mallory = await accept(storage, seed, invitation, "3")
    assert await storage.developers.remove_developer(eve.id, NOW, describe=lambda _: []) is not None
    ended = await storage.developers.end_sign_in(ada.id, sign_in_id(NOW), describe=lambda _: [])
    assert ended.developers == (mallory.id,)


async def test_end_sign_in_changes_nothing_without_its_entries(storage: Storage, seed: Seed) -> None:
    """The ended rights and their log entries are one transaction."""
    ada = await seed.developer()
    sign_in = sign_in_id(NOW)
    token = (await seed.access_token(ada, sign_in=sign_in))[0]

    def fails(_: EndedRights) -> list[AuditEntry]:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        await storage.developers.end_sign_in(ada.id, sign_in, describe=fails)
    assert await storage.credentials.list_access_tokens(ada.id) == [token]


async def test_read_developer_of_sign_in_by_account_or_binding(storage: Storage, seed: Seed) -> None:
    """The result is the developer whom the account signs in, or else the one whom the sign-in linked to an account."""
    project = await seed.project()
    binding = await seed.confirmed(project, "1001")
    source = DeveloperSignIn(binding.key, binding.id)
    invitation, code_hash = await seed.invitation("ada@example.com")
    ada = Developer(seed.name("dev"), "ada@example.com", "pro", NOW, messenger_id="1001", messenger_name="Ada")
    assert await storage.developers.accept_invitation(code_hash, ada, NOW, sign_in=source) == "accepted"
    assert await storage.developers.read_developer_of_sign_in("1001", "sess_none") == ada
    assert await storage.developers.read_developer_of_sign_in("9", binding.id) == ada
    assert await storage.developers.read_developer_of_sign_in("9", "sess_none") is None
    assert await storage.developers.read_developer_of_sign_in("\0", "\0") is None
    assert invitation.email == ada.email
    await storage.developers.end_sign_in(ada.id, binding.id, describe=lambda _: [])
    assert await storage.developers.read_developer_of_sign_in("1001", binding.id) is None


async def test_create_access_token_by_a_sign_in(storage: Storage, seed: Seed) -> None:
    """A token is created only while the sign-in is not reported and its account signs in this developer."""
    project = await seed.project()
    _, code_hash = await seed.invitation("ada@example.com")
    ada = Developer(seed.name("dev"), "ada@example.com", "pro", NOW, messenger_id="1001", messenger_name="Ada")
    assert await storage.developers.accept_invitation(code_hash, ada, NOW) == "accepted"
    bob = await seed.developer()
    reported, mine, others, pending = (
        await seed.confirmed(project, "1001"),
        await seed.confirmed(project, "1001"),
        await seed.confirmed(project, "2002"),
        await seed.session(project),
    )
    assert await seed.report(reported.key, "1001", NOW, storage)

    async def create(developer: Developer, key: DeveloperSignIn) -> bool:
        token = AccessToken(seed.name("tok"), developer.id, "login", "tap_aaaa…zzzz", NOW, sign_in=key.id)
        return await storage.credentials.create_access_token(
            token, hashlib.sha256(token.id.encode()).digest(), sign_in=key
        )

    for developer, session in ((ada, reported), (ada, others), (ada, pending), (bob, mine), (bob, pending)):
        with pytest.raises(AccessDenied):
            await create(developer, DeveloperSignIn(session.key, session.id))
    assert await create(ada, DeveloperSignIn(mine.key, mine.id))
    assert [token.sign_in for token in await storage.credentials.list_access_tokens(ada.id)] == [mine.id]
    assert await storage.credentials.list_access_tokens(bob.id) == []
    _, code_hash = await seed.invitation("eve@example.com")
    eve = Developer(seed.name("dev"), "eve@example.com", "pro", NOW, messenger_id="1001", messenger_name="Eve")
    with pytest.raises(AccessDenied):
        await storage.developers.accept_invitation(
            code_hash, eve, NOW, sign_in=DeveloperSignIn(reported.key, reported.id)
        )
    # Bound to another account, the first one signs the developer in no more.
    _, again = await seed.invitation(developer=ada)
    assert await storage.developers.accept_invitation(again, replace(ada, messenger_id="3003"), NOW) == "accepted"
    with pytest.raises(AccessDenied):
        await create(ada, DeveloperSignIn(mine.key, mine.id))


STOLEN, OTHER = (new_session_id(NOW + at, lambda count: b"\xff" * count) for at in (0, DAY))


@pytest.mark.parametrize("way", ["removed", "left the service", "removed and back"])
async def test_a_report_reaches_over_a_member_who_left(storage: Storage, seed: Seed, way: str) -> None:
    """A report ends the memberships of all who were invited through it, even after an inviter in between has left."""
    for reporter, sign_in in (("ada", STOLEN), ("eve", OTHER)):
        project = await seed.project()
        ada = project.developer_id
        eve = (await seed.member(project, "owner", inviter_id=ada, sign_in=STOLEN)).id
        mallory = (await seed.member(project, "owner", inviter_id=eve, sign_in=OTHER)).id
        bob = (await seed.member(project, "owner", inviter_id=ada, sign_in=None)).id
        if way == "left the service":
            assert await storage.developers.remove_developer(eve, NOW, describe=lambda _: [])
        else:
            assert await storage.members.delete_member(bob, project.id, eve)
        if way == "removed and back":
            code_hash = (await seed.invite(project, "owner", bob, None))[1]
            assert await storage.members.accept_member_invitation(code_hash, eve, NOW) == "joined"
        if reporter == "eve" and way == "left the service":
            continue  # Nobody can report a sign-in of an account that does not exist.
        whose = {"ada": ada, "eve": eve}[reporter]
        ended = await storage.developers.end_sign_in(whose, sign_in, describe=lambda _: [])
        assert set(ended.members) == {(project.id, mallory)}
        assert set(await roles(storage, project)) == {ada, bob} | ({eve} if way == "removed and back" else set())


async def test_a_report_finds_its_developer_by_the_members(storage: Storage, seed: Seed) -> None:
    """The developer is found by the members they invited, even if only those derive from the sign-in."""
    project = await seed.project()
    ada = project.developer_id
    await seed.invite(project, "owner", ada, STOLEN)
    eve = (await seed.member(project, "owner", inviter_id=ada, sign_in=OTHER)).id
    await seed.member(project, "owner", inviter_id=eve, sign_in=None)
    for sign_in in (STOLEN, OTHER):
        found = present(await storage.developers.read_developer_of_sign_in("1", sign_in))
        assert found.id == ada


async def test_nobody_joins_after_a_report(storage: Storage, seed: Seed, other_node: Storage) -> None:
    """While one node ends a sign-in, another accepts its invitations and creates more: nothing of that remains."""
    left: list[object] = []
    for number in range(24):
        project = await seed.project()
        ada = project.developer_id
        eve = (await seed.member(project, "owner", inviter_id=ada, sign_in=STOLEN)).id
        codes = [
            (await seed.invite(project, "owner", ada, STOLEN))[1],
            (await seed.invite(project, "owner", eve, OTHER))[1],
        ]
        joining = [(await seed.developer()).id for _ in codes]
        token = AccessToken(seed.name("tok"), ada, "stolen", "tap_aaaa…zzzz", NOW, sign_in=STOLEN)
        assert await storage.credentials.create_access_token(token, token.id.encode())

        async def create(project: Project = project, token: AccessToken = token) -> None:
            sources = (token.developer_id, token.id, STOLEN)
            more = MemberInvitation(seed.name("minv"), project.id, "owner", NOW, NOW + DAY, "", *sources)
            entry = dataclasses.replace(seed.entry(token.developer_id), via="access_token", via_id=token.id)
            with contextlib.suppress(InvalidAccessToken):
                await other_node.members.create_member_invitation(more, more.id.encode(), entry=entry)

        async def end(ada: str = ada, turns: int = number) -> None:
            for _ in range(turns):  # The calls of the other node get further and further before this one.
                await asyncio.sleep(0.0002)
            await storage.developers.end_sign_in(ada, STOLEN, describe=lambda _: [])

        accept = other_node.members.accept_member_invitation
        accepting = [accept(code, each, NOW) for code, each in zip(codes, joining, strict=True)]
        await asyncio.gather(*accepting, create(), end())
        found = set(await roles(storage, project)) - {ada}
        left += [*found, *await storage.members.list_member_invitations(project.id, NOW)]
    assert left == []
