"""Conformance: a report of a sign-in ends the memberships that derive from it."""

import asyncio
import contextlib
import dataclasses
from typing import TYPE_CHECKING

import pytest
from tests.databases import NOW
from tests.storage.conformance.test_members import roles

from taproof.core.accounts import AccessToken, MemberInvitation
from taproof.core.clock import DAY
from taproof.core.errors import InvalidAccessToken
from taproof.core.identifiers import new_session_id
from taproof.core.projects import Project
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed

STOLEN, OTHER = (new_session_id(NOW + at, lambda count: b"\xff" * count) for at in (0, DAY))


async def invite(storage: Storage, seed: "Seed", project: Project, inviter_id: str, sign_in: str | None) -> bytes:
    """Create an invitation for an owner, and return the hash of its code."""
    sources = (inviter_id, None, sign_in)
    invitation = MemberInvitation(seed.name("minv"), project.id, "owner", NOW, NOW + DAY, "", *sources)
    code_hash = invitation.id.encode()
    assert await storage.members.create_member_invitation(invitation, code_hash)
    return code_hash


async def join(storage: Storage, seed: "Seed", project: Project, inviter_id: str, sign_in: str | None) -> str:
    """Return the id of a developer who joined by such an invitation."""
    code_hash = await invite(storage, seed, project, inviter_id, sign_in)
    developer = await seed.developer()
    assert await storage.members.accept_member_invitation(code_hash, developer.id, NOW) == "joined"
    return developer.id


@pytest.mark.parametrize("way", ["removed", "left the service", "removed and back"])
async def test_a_report_reaches_over_a_member_who_left(storage: Storage, seed: "Seed", way: str) -> None:
    """A report ends the memberships of all who were invited through it, even after an inviter in between has left."""
    for reporter, sign_in in (("ada", STOLEN), ("eve", OTHER)):
        project = await seed.project()
        ada = project.developer_id
        eve = await join(storage, seed, project, ada, STOLEN)
        mallory = await join(storage, seed, project, eve, OTHER)
        bob = await join(storage, seed, project, ada, None)
        if way == "left the service":
            assert await storage.developers.remove_developer(eve, NOW, describe=lambda _: [])
        else:
            assert await storage.members.delete_member(bob, project.id, eve)
        if way == "removed and back":
            code_hash = await invite(storage, seed, project, bob, None)
            assert await storage.members.accept_member_invitation(code_hash, eve, NOW) == "joined"
        if reporter == "eve" and way == "left the service":
            continue  # Nobody can report a sign-in of an account that does not exist.
        whose = {"ada": ada, "eve": eve}[reporter]
        ended = await storage.developers.end_sign_in(whose, sign_in, describe=lambda _: [])
        assert set(ended.members) == {(project.id, mallory)}
        assert set(await roles(storage, project)) == {ada, bob} | ({eve} if way == "removed and back" else set())


async def test_a_report_finds_its_developer_by_the_members(storage: Storage, seed: "Seed") -> None:
    """The developer is found by whom they invited, even if only that derives from the sign-in."""
    project = await seed.project()
    ada = project.developer_id
    await invite(storage, seed, project, ada, STOLEN)
    eve = await join(storage, seed, project, ada, OTHER)
    await join(storage, seed, project, eve, None)
    for sign_in in (STOLEN, OTHER):
        found = await storage.developers.read_developer_of_sign_in("1", sign_in)
        assert found is not None
        assert found.id == ada


async def test_nobody_joins_after_a_report(storage: Storage, seed: "Seed", other_node: Storage) -> None:
    """While one node ends a sign-in, another accepts its invitations and creates more: none of that is left."""
    left: list[object] = []
    for number in range(24):
        project = await seed.project()
        ada = project.developer_id
        eve = await join(storage, seed, project, ada, STOLEN)
        codes = [
            await invite(storage, seed, project, ada, STOLEN),
            await invite(storage, seed, project, eve, OTHER),
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
