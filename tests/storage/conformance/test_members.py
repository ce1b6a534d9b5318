"""Conformance: the members of projects, their rights, and the invitations that add members."""

import asyncio
import dataclasses
from typing import Any

import pytest
from tests.databases import NOW
from tests.storage.conformance.test_erasure import erase_all
from tests.storage.seed import Seed, present

from taproof.contract.member import Role
from taproof.core.accounts import Developer, MemberInvitation, ProjectItem, RemovedDeveloper
from taproof.core.clock import DAY
from taproof.core.errors import InsufficientRole, LastOwner, ProjectsNeedOwner
from taproof.core.identifiers import new_session_id
from taproof.core.projects import Project, ProjectChanges
from taproof.storage.protocol import Storage
from taproof.storage.queries.members import MEMBER_LIMIT, MEMBERSHIP_LIMIT


async def daily_users(storage: Storage, developer_id: str, first_day: int) -> list[tuple[int, ...]]:
    found = await storage.counts.read_daily_users(developer_id, first_day)
    return [(each.day, each.unique_users, each.latest_users) for each in found]


async def roles(storage: Storage, project: Project) -> dict[str, Role]:
    return {each.developer_id: each.role for each in await storage.members.list_members(project.id)}


async def test_read_member_invitation_finds_an_open_one(storage: Storage, seed: Seed, other_node: Storage) -> None:
    """An invitation is found by the hash of its code, until it expires."""
    invitation, code_hash = await seed.invite(await seed.project(), "viewer")
    assert await other_node.members.read_member_invitation(code_hash, NOW) == invitation
    assert await storage.members.read_member_invitation(code_hash, NOW + DAY) is None
    assert await storage.members.read_member_invitation(b"none", NOW) is None


async def test_list_member_invitations_is_newest_first(storage: Storage, seed: Seed) -> None:
    """The list has one project's invitations, until they expire."""
    project = await seed.project()
    first, second = [(await seed.invite(project))[0] for _ in range(2)]
    await seed.invite(await seed.project())
    assert await storage.members.list_member_invitations(project.id, NOW) == [second, first]
    assert await storage.members.list_member_invitations(project.id, NOW + DAY) == []


async def test_delete_member_invitation_ends_its_link(storage: Storage, seed: Seed) -> None:
    """An invitation is deleted once, and only in its own project."""
    project, other = await seed.project(), await seed.project()
    invitation, code_hash = await seed.invite(project)
    delete = storage.members.delete_member_invitation
    assert await delete(other.developer_id, other.id, invitation.id) is False
    assert await delete(other.developer_id, project.id, invitation.id) is False
    assert await delete(project.developer_id, project.id, invitation.id) is True
    assert await delete(project.developer_id, project.id, invitation.id) is False
    assert await storage.members.accept_member_invitation(code_hash, other.developer_id, NOW) == "gone"


async def test_accept_member_invitation_works_once(storage: Storage, seed: Seed, other_node: Storage) -> None:
    """One of several callers can accept it, until it expires, if that developer is not a member yet."""
    project = await seed.project()
    ada, grace = project.developer_id, await seed.developer()
    _, code_hash = await seed.invite(project)
    assert await storage.members.accept_member_invitation(code_hash, ada, NOW) == "already_member"
    assert await storage.members.accept_member_invitation(code_hash, "dev_none", NOW) == "gone"
    assert await storage.members.accept_member_invitation(code_hash, grace.id, NOW + DAY) == "gone"
    others = [grace, await seed.developer()]
    nodes = (storage, other_node)
    outcomes = await asyncio.gather(
        *(
            node.members.accept_member_invitation(code_hash, each.id, NOW)
            for node, each in zip(nodes, others, strict=True)
        )
    )
    assert sorted(outcomes) == ["gone", "joined"]


async def test_list_members_is_in_the_order_of_joining(storage: Storage, seed: Seed) -> None:
    """Members are listed with their current address and inviter."""
    project = await seed.project()
    grace = await seed.member(project, "viewer", NOW + 1)
    found = [
        (each.email, each.role, each.created_at, each.invited_by)
        for each in await storage.members.list_members(project.id)
    ]
    assert found == [
        (f"{project.developer_id}@example.com", "owner", NOW, ""),
        (grace.email, "viewer", NOW + 1, "grace@example.com"),
    ]


async def test_read_member_project_shows_a_members_projects(storage: Storage, seed: Seed) -> None:
    """A member's projects are read, listed, named and counted with role and plan; a former member's are not."""
    project = await seed.project()
    grace = await seed.member(project, "viewer")
    found = present(await storage.projects.read_member_project(grace.id, project.id))
    assert (found, found.role, found.plan) == (project, "viewer", "free")
    assert await storage.projects.list_projects(grace.id) == [project]
    assert await storage.projects.read_projects(grace.id, [project.id]) == [project]
    assert [each.project_id for each in await storage.projects.name_projects(grace.id)] == [project.id]
    assert await storage.projects.count_projects(grace.id) == 1
    await storage.members.delete_member(grace.id, project.id, grace.id)
    assert await storage.projects.read_member_project(grace.id, project.id) is None
    assert await storage.projects.list_projects(grace.id) == []
    assert await storage.projects.count_projects(grace.id) == 0


async def test_read_role_is_a_members_role(storage: Storage, seed: Seed) -> None:
    """Anyone who is not a member has no role."""
    project = await seed.project()
    grace = await seed.member(project, "viewer")
    assert await storage.members.read_role(grace.id, project.id) == "viewer"
    assert await storage.members.read_role(grace.id, "proj_none") is None
    assert await storage.members.read_role("dev_none", project.id) is None


async def test_read_roles_is_across_projects(storage: Storage, seed: Seed) -> None:
    """Each role is returned once."""
    grace = await seed.developer()
    assert await storage.members.read_roles(grace.id) == set()
    for _ in range(2):
        await seed.project(grace)
    await seed.member(await seed.project(), "viewer", developer=grace)
    assert await storage.members.read_roles(grace.id) == {"owner", "viewer"}


async def test_update_role_returns_the_previous_one(storage: Storage, seed: Seed) -> None:
    """The result is None if either developer is not a member."""
    project = await seed.project()
    ada, grace = project.developer_id, await seed.member(project, "viewer")
    assert await storage.members.update_role(ada, project.id, grace.id, "developer") == "viewer"
    assert await storage.members.update_role(ada, project.id, "dev_none", "viewer") is None
    assert await storage.members.update_role("dev_none", project.id, grace.id, "viewer") is None
    assert await roles(storage, project) == {ada: "owner", grace.id: "developer"}


async def test_delete_member_lets_anyone_leave(storage: Storage, seed: Seed) -> None:
    """Any member can leave once; only owners remove others."""
    project = await seed.project()
    ada = project.developer_id
    grace, bob = [await seed.member(project, "developer") for _ in range(2)]
    assert await storage.members.delete_member(ada, project.id, "dev_none") is False
    assert await storage.members.delete_member("dev_none", project.id, ada) is False
    with pytest.raises(InsufficientRole):
        await storage.members.delete_member(grace.id, project.id, bob.id)
    assert await storage.members.delete_member(grace.id, project.id, grace.id) is True
    assert await storage.members.delete_member(grace.id, project.id, grace.id) is False
    assert await storage.members.delete_member(ada, project.id, bob.id) is True
    assert await roles(storage, project) == {ada: "owner"}


async def test_the_last_owner_stays(storage: Storage, seed: Seed) -> None:
    """The only owner can neither leave nor get another role; with a second owner, the plan moves to that one."""
    project = await seed.project()
    ada = project.developer_id
    await seed.member(project, "developer")
    for change in (
        storage.members.delete_member(ada, project.id, ada),
        storage.members.update_role(ada, project.id, ada, "viewer"),
    ):
        with pytest.raises(LastOwner):
            await change
    assert await storage.members.update_role(ada, project.id, ada, "owner") == "owner"
    grace = await seed.member(project, "owner")
    assert await storage.members.delete_member(grace.id, project.id, ada) is True
    moved = present(await storage.projects.read_project(project.id))
    assert moved.developer_id == grace.id
    with pytest.raises(LastOwner):
        await storage.members.delete_member(grace.id, project.id, grace.id)


async def test_two_owners_leave_at_once(storage: Storage, seed: Seed, other_node: Storage) -> None:
    """On two nodes, one leaves and the other stays: a project is never without an owner."""
    for _ in range(8):
        project = await seed.project()
        owners = [project.developer_id, (await seed.member(project, "owner")).id]
        results = await asyncio.gather(
            storage.members.delete_member(owners[0], project.id, owners[0]),
            other_node.members.update_role(owners[1], project.id, owners[1], "viewer"),
            return_exceptions=True,
        )
        assert sum(isinstance(each, LastOwner) for each in results) == 1, results
        assert list((await roles(storage, project)).values()).count("owner") == 1


async def test_a_removed_member_changes_nothing_more(storage: Storage, seed: Seed, other_node: Storage) -> None:
    """A change that runs while its member is removed on another node is made before the removal ends, or not at all."""
    for _ in range(8):
        project = await seed.project()
        member = await seed.member(project, "developer")
        removed = asyncio.Event()

        async def change_on(project: Project = project, member: Developer = member, removed: Any = removed) -> int:
            made_after = 0
            while True:
                is_after = removed.is_set()
                changes = ProjectChanges(name="New")
                if await storage.projects.update_project(member.id, project.id, changes, NOW) is None:
                    return made_after
                made_after += is_after

        running = [asyncio.create_task(change_on()) for _ in range(3)]
        await asyncio.sleep(0)
        assert await other_node.members.delete_member(project.developer_id, project.id, member.id)
        left = await other_node.projects.update_project(
            project.developer_id, project.id, ProjectChanges(name="Left"), NOW
        )
        removed.set()
        assert await asyncio.gather(*running) == [0, 0, 0]
        found = await storage.projects.read_project(project.id)
        assert (found, found and found.name) == (left, "Left")


async def test_an_invitation_ends_with_its_inviters_right(storage: Storage, seed: Seed) -> None:
    """Nobody can join by the link of someone who was removed or may no longer invite."""
    project = await seed.project()
    for end in ("removed", "demoted"):
        inviter = await seed.member(project, "owner")
        _, code_hash = await seed.invite(project, inviter_id=inviter.id)
        if end == "removed":
            await storage.members.delete_member(project.developer_id, project.id, inviter.id)
        else:
            await storage.members.update_role(project.developer_id, project.id, inviter.id, "developer")
        assert await storage.members.accept_member_invitation(code_hash, (await seed.developer()).id, NOW) == "gone"


async def test_the_plan_follows_the_owner(storage: Storage, seed: Seed) -> None:
    """A project moves to the plan of the owner who joined first.

    A user counts once across the projects that a developer created, while all of these count on their plan.
    """
    ada, grace = await seed.developer(plan="pro"), await seed.developer()
    moving, staying = await seed.project(ada, collect_phone=True), await seed.project(ada)
    own = await seed.project(grace)
    day = NOW // DAY

    async def used(developer: Developer) -> int:
        return (await storage.plans.read_used(developer.id, day - 1)).sign_ins

    for project, user in ((moving, "1"), (moving, "2"), (staying, "1"), (own, "2"), (own, "3")):
        await seed.confirmed(project, user)
    await seed.confirmed(moving, "1", NOW - DAY)
    await seed.member(moving, "owner", developer=grace)
    assert (await used(ada), await used(grace)) == (3, 2)
    assert await daily_users(storage, ada.id, day - 1) == [(day - 1, 1, 0), (day, 2, 2)]
    assert await daily_users(storage, grace.id, day) == [(day, 4, 4)]
    assert await storage.members.delete_member(ada.id, moving.id, ada.id)
    found = present(await storage.projects.read_project(moving.id))
    assert (found.developer_id, found.collect_phone) == (grace.id, False)
    assert (await used(ada), await used(grace)) == (1, 5)
    assert await daily_users(storage, ada.id, day - 1) == [(day, 1, 1)]
    assert await daily_users(storage, grace.id, day - 1) == [(day - 1, 1, 0), (day, 4, 4)]
    await seed.confirmed(moving, "2", NOW + 1)
    assert (await used(grace), await daily_users(storage, grace.id, day)) == (5, [(day, 4, 4)])
    totals = await storage.counts.read_daily_totals(grace.id, day)
    assert [(each.requested, each.confirmed) for each in totals] == [(5, 5)]
    assert await storage.projects.delete_project(grace.id, moving.id)
    await seed.purge_projects(100)
    assert (await used(ada), await used(grace)) == (1, 4)


async def test_erasing_in_shared_projects_keeps_the_counts(storage: Storage, seed: Seed) -> None:
    """A member erases a user in the projects that they share, and nowhere else. The user then counts as two people."""
    day = NOW // DAY
    for of_shared, of_private, expected in (
        ((0,), (0,), [(day, 2, 2)]),
        ((1,), (0,), [(day, 1, 1), (day + 1, 1, 1)]),
        ((0, 1), (0,), [(day, 2, 1), (day + 1, 1, 1)]),
    ):
        ada = await seed.developer()
        shared, private = await seed.project(ada), await seed.project(ada)
        grace = await seed.member(shared, "developer")
        for project, days in ((shared, of_shared), (private, of_private)):
            for each in days:
                await seed.confirmed(project, "7", NOW + each * DAY)
        assert await erase_all(storage, "7", grace.id)
        found = await storage.sessions.list_sessions([shared.id, private.id], None, None, 10, NOW)
        assert {each.project_id for each in found} == {private.id}
        assert await daily_users(storage, ada.id, day) == expected
        assert await storage.projects.delete_project(ada.id, shared.id)
        await seed.purge_projects(100)
        left = [each for each in await daily_users(storage, ada.id, day) if each[1:] != (0, 0)]
        assert left == [(day, 1, 1)]


async def test_list_project_entries_is_of_all_developers(storage: Storage, seed: Seed) -> None:
    """A project's log has the entries of all developers about it, newest first, and no others."""
    project = await seed.project()
    grace = await seed.member(project, "developer")
    for number, developer_id in enumerate((project.developer_id, grace.id, grace.id)):
        entry = seed.entry(developer_id, at=NOW + number)
        entry = dataclasses.replace(entry, project_id=project.id if number < 2 else "")
        await storage.audit.add_audit_entry(entry)
    found = await storage.audit.list_project_entries(project.id, None, 10)
    assert [(each.developer_id, each.created_at) for each in found] == [
        (grace.id, NOW + 1),
        (project.developer_id, NOW),
    ]
    assert await storage.audit.list_project_entries("", None, 10) == []


async def test_remove_developer_ends_everything(storage: Storage, seed: Seed, other_node: Storage) -> None:
    """Credentials, memberships and invitations; a project passes to the successor, or to its other owner."""
    ada, grace, bob = [
        await seed.developer(name) for name in ("ada@example.org", "grace@example.org", "bob@example.org")
    ]
    alone, shared, joined = await seed.project(ada), await seed.project(ada), await seed.project(bob)
    for project, developer, role in ((shared, grace, "owner"), (joined, ada, "developer")):
        await seed.member(project, role, developer=developer)  # type: ignore[arg-type]
    await seed.confirmed(alone, "1")
    await seed.confirmed(shared, "1")
    _, open_code = await seed.invite(alone, inviter_id=ada.id)
    _, token_hash = await seed.access_token(ada)
    _, session_hash = await seed.console_session(ada)
    with pytest.raises(ProjectsNeedOwner, match=alone.name):
        await storage.developers.remove_developer(ada.id, NOW, describe=lambda _: [])
    assert (
        await storage.developers.remove_developer(ada.id, NOW, successor_id="dev_none", describe=lambda _: []) is None
    )
    assert (
        await storage.developers.remove_developer("dev_none", NOW, delete_projects=True, describe=lambda _: []) is None
    )
    assert await storage.credentials.read_access_token(token_hash) is not None
    entry = dataclasses.replace(seed.entry(bob.id, "developer.removed"), project_id=alone.id)
    removed = await storage.developers.remove_developer(ada.id, NOW, successor_id=bob.id, describe=lambda _: [entry])
    assert removed == RemovedDeveloper(
        transferred=(ProjectItem(alone.id, alone.name),),
        deleted=(),
        left=(ProjectItem(shared.id, shared.name), ProjectItem(joined.id, joined.name)),
        console_sessions=1,
        tokens=1,
    )
    for node in (storage, other_node):
        assert await node.credentials.read_access_token(token_hash) is None
        assert await node.credentials.read_console_session(session_hash, NOW, 0) is None
        assert await node.developers.read_developer(ada.email) is None
    assert await storage.members.accept_member_invitation(open_code, grace.id, NOW) == "gone"
    assert [await roles(storage, each) for each in (alone, shared, joined)] == [
        {bob.id: "owner"},
        {grace.id: "owner"},
        {bob.id: "owner"},
    ]
    plans = [await storage.projects.read_project(each.id) for each in (alone, shared)]
    assert [each and each.developer_id for each in plans] == [bob.id, grace.id]
    day = NOW // DAY
    assert [await daily_users(storage, each.id, day) for each in (bob, grace)] == [[(day, 1, 1)]] * 2
    assert (await storage.plans.read_used(bob.id, day)).sign_ins == 1
    assert await storage.audit.list_project_entries(alone.id, None, 9) == [entry]
    with pytest.raises(ProjectsNeedOwner):
        await storage.developers.remove_developer(grace.id, NOW, describe=lambda _: [])
    removed = present(
        await storage.developers.remove_developer(grace.id, NOW, delete_projects=True, describe=lambda _: [])
    )
    assert removed.deleted == ((shared.id, shared.name),)
    assert await storage.projects.read_project(shared.id) is None


async def test_end_sign_in_ends_memberships(storage: Storage, seed: Seed) -> None:
    """A report removes the members who joined by the sign-in and those whom they invited, and restores the owner."""
    project = await seed.project()
    ada, eve, mallory, bob = project.developer_id, *[await seed.developer() for _ in range(3)]
    reported = new_session_id(NOW, lambda count: b"\xff" * count)
    accept = storage.members.accept_member_invitation
    await seed.member(project, "owner", developer=eve, sign_in=reported)
    _, open_code = await seed.invite(project, "owner", sign_in=reported)
    await seed.member(project, "owner", developer=mallory, inviter_id=eve.id)
    await seed.member(project, "owner", developer=bob, sign_in=None)
    assert await storage.members.update_role(eve.id, project.id, bob.id, "viewer") == "owner"
    assert await storage.members.delete_member(eve.id, project.id, ada) is True
    # A removed inviter's invitations end, but not the memberships that came of them.
    ended = await storage.developers.end_sign_in(ada, reported, describe=lambda _: [])
    assert set(ended.members) == {(project.id, eve.id), (project.id, mallory.id)}
    assert await roles(storage, project) == {ada: "owner", bob.id: "viewer"}
    found = present(await storage.projects.read_project(project.id))
    assert found.developer_id == ada
    assert await accept(open_code, eve.id, NOW) == "gone"


async def test_create_member_invitation_is_limited(storage: Storage, seed: Seed) -> None:
    """A project has at most `MEMBER_LIMIT` of each. Expired invitations do not count."""
    project = await seed.project()
    codes = [(await seed.invite(project))[1] for _ in range(MEMBER_LIMIT)]
    more = MemberInvitation("minv_more", project.id, "viewer", NOW, NOW + 1, "", project.developer_id)
    assert await storage.members.create_member_invitation(more, b"more") is False
    outcomes = [
        await storage.members.accept_member_invitation(code, (await seed.developer()).id, NOW) for code in codes
    ]
    assert outcomes == ["joined"] * (MEMBER_LIMIT - 1) + ["full"]
    assert await storage.members.create_member_invitation(more, b"more") is True


async def test_memberships_are_limited(storage: Storage, seed: Seed) -> None:
    """A developer who is a member of as many projects as allowed joins no more."""
    assert MEMBERSHIP_LIMIT == 2000
    accept = storage.members.accept_member_invitation
    grace = await seed.developer()
    await seed.project(grace)
    outcomes = []
    for _ in range(2):
        _, code_hash = await seed.invite(await seed.project())
        outcomes.append(await accept(code_hash, grace.id, NOW, membership_limit=2))
    assert outcomes == ["joined", "too_many"]


async def test_accept_member_invitation_keeps_the_limit_on_two_nodes(
    storage: Storage, seed: Seed, other_node: Storage
) -> None:
    """Of two developers who accept the invitations of two owners at once, only one gets the last place."""
    for _ in range(12):
        project = await seed.project()
        inviters = [project.developer_id, (await seed.member(project, "owner")).id]
        codes = [(await seed.invite(project, inviter_id=each))[1] for each in inviters]
        calls = [
            node.members.accept_member_invitation(code, (await seed.developer()).id, NOW, member_limit=3)
            for node, code in zip((storage, other_node), codes, strict=True)
        ]
        assert sorted(await asyncio.gather(*calls)) == ["full", "joined"]
        assert len(await roles(storage, project)) == 3
