"""Conformance: the limits of a project's members and invitations, and of a developer's memberships."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.databases import NOW
from tests.storage.conformance.test_members import invite, join, roles

from taproof.core.accounts import MemberInvitation
from taproof.storage.protocol import Storage
from taproof.storage.queries import members
from taproof.storage.queries.members import MEMBER_LIMIT, MEMBERSHIP_LIMIT

if TYPE_CHECKING:
    from tests.storage.seed import Seed


async def test_create_member_invitation_is_limited(storage: Storage, seed: "Seed") -> None:
    """A project has at most `MEMBER_LIMIT` of each. Expired invitations do not count."""
    project = await seed.project()
    codes = [(await invite(storage, seed, project))[1] for _ in range(MEMBER_LIMIT)]
    more = MemberInvitation("minv_more", project.id, "viewer", NOW, NOW + 1, "", project.developer_id)
    assert await storage.members.create_member_invitation(more, b"more") is False
    outcomes = [
        await storage.members.accept_member_invitation(code, (await seed.developer()).id, NOW) for code in codes
    ]
    assert outcomes == ["joined"] * (MEMBER_LIMIT - 1) + ["full"]
    assert await storage.members.create_member_invitation(more, b"more") is True


async def test_memberships_are_limited(storage: Storage, seed: "Seed", monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer who is a member of `MEMBERSHIP_LIMIT` projects joins no more."""
    assert MEMBERSHIP_LIMIT == 2000
    monkeypatch.setattr(members, "MEMBERSHIP_LIMIT", 2)
    grace = await seed.developer()
    await seed.project(grace)
    outcomes = []
    for _ in range(2):
        _, code_hash = await invite(storage, seed, await seed.project())
        outcomes.append(await storage.members.accept_member_invitation(code_hash, grace.id, NOW))
    assert outcomes == ["joined", "too_many"]


async def test_accept_member_invitation_keeps_the_limit_on_two_nodes(
    storage: Storage, seed: "Seed", other_node: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two developers who accept the invitations of two owners at once, only one gets the last place."""
    monkeypatch.setattr(members, "MEMBER_LIMIT", 3)
    for _ in range(12):
        project = await seed.project()
        inviters = [project.developer_id, (await join(storage, seed, project, "owner")).id]
        codes = [(await invite(storage, seed, project, inviter_id=each))[1] for each in inviters]
        calls = [
            node.members.accept_member_invitation(code, (await seed.developer()).id, NOW)
            for node, code in zip((storage, other_node), codes, strict=True)
        ]
        assert sorted(await asyncio.gather(*calls)) == ["full", "joined"]
        assert len(await roles(storage, project)) == 3
