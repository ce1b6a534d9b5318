"""Conformance: the members of projects, their rights, and the invitations that add members."""

import asyncio
import dataclasses
import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.databases import NOW
from tests.storage.conformance.test_erasure import erase_all

from taproof.contract.member import Role
from taproof.core.accounts import Developer, MemberInvitation, ProjectItem, RemovedDeveloper
from taproof.core.clock import DAY
from taproof.core.errors import InsufficientRole, LastOwner, ProjectsNeedOwner
from taproof.core.identifiers import new_session_id
from taproof.core.oidc.clients import ClientChanges, ClientSecret
from taproof.core.projects import Project, ProjectChanges
from taproof.core.roles import PERMITTED, ROLES, ProjectAction
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.conftest import Seed


async def invite(
    storage: Storage, seed: "Seed", project: Project, role: Role = "developer", inviter_id: str = ""
) -> tuple[MemberInvitation, bytes]:
    """Store an invitation by the project's developer, or by another inviter; return it with its code's hash."""
    sources = (inviter_id or project.developer_id, None, "sess_source")
    invitation = MemberInvitation(seed.name("minv"), project.id, role, NOW, NOW + DAY, "grace@example.com", *sources)
    code_hash = hashlib.sha256(invitation.id.encode()).digest()
    assert await storage.members.create_member_invitation(invitation, code_hash)
    return invitation, code_hash


async def join(storage: Storage, seed: "Seed", project: Project, role: Role, at: int = NOW) -> Developer:
    """Return a new developer who joined a project with an invitation."""
    developer = await seed.developer()
    _, code_hash = await invite(storage, seed, project, role)
    assert await storage.members.accept_member_invitation(code_hash, developer.id, at) == "joined"
    return developer


async def daily_users(storage: Storage, developer_id: str, first_day: int) -> list[tuple[int, ...]]:
    found = await storage.counts.read_daily_users(developer_id, first_day)
    return [(each.day, each.unique_users, each.latest_users) for each in found]


async def roles(storage: Storage, project: Project) -> dict[str, Role]:
    return {each.developer_id: each.role for each in await storage.members.list_members(project.id)}


async def test_read_member_invitation_finds_an_open_one(storage: Storage, seed: "Seed", other_node: Storage) -> None:
    """By the hash of its code, until it expires."""
    invitation, code_hash = await invite(storage, seed, await seed.project(), "viewer")
    assert await other_node.members.read_member_invitation(code_hash, NOW) == invitation
    assert await storage.members.read_member_invitation(code_hash, NOW + DAY) is None
    assert await storage.members.read_member_invitation(b"none", NOW) is None


async def test_list_member_invitations_is_newest_first(storage: Storage, seed: "Seed") -> None:
    """Of one project, until they expire."""
    project = await seed.project()
    first, second = [(await invite(storage, seed, project))[0] for _ in range(2)]
    await invite(storage, seed, await seed.project())
    assert await storage.members.list_member_invitations(project.id, NOW) == [second, first]
    assert await storage.members.list_member_invitations(project.id, NOW + DAY) == []


async def test_delete_member_invitation_ends_its_link(storage: Storage, seed: "Seed") -> None:
    """Only in its own project, and once."""
    project, other = await seed.project(), await seed.project()
    invitation, code_hash = await invite(storage, seed, project)
    delete = storage.members.delete_member_invitation
    assert await delete(other.developer_id, other.id, invitation.id) is False
    assert await delete(other.developer_id, project.id, invitation.id) is False
    assert await delete(project.developer_id, project.id, invitation.id) is True
    assert await delete(project.developer_id, project.id, invitation.id) is False
    assert await storage.members.accept_member_invitation(code_hash, other.developer_id, NOW) == "gone"


async def test_accept_member_invitation_works_once(storage: Storage, seed: "Seed", other_node: Storage) -> None:
    """For one of several callers, for a developer who is no member yet, and until it expires."""
    project = await seed.project()
    ada, grace = project.developer_id, await seed.developer()
    _, code_hash = await invite(storage, seed, project)
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


async def test_list_members_is_in_the_order_of_joining(storage: Storage, seed: "Seed") -> None:
    """With each member's current address and inviter."""
    project = await seed.project()
    grace = await join(storage, seed, project, "viewer", NOW + 1)
    found = [
        (each.email, each.role, each.created_at, each.invited_by)
        for each in await storage.members.list_members(project.id)
    ]
    assert found == [
        (f"{project.developer_id}@example.com", "owner", NOW, ""),
        (grace.email, "viewer", NOW + 1, "grace@example.com"),
    ]


async def test_read_member_project_shows_a_members_projects(storage: Storage, seed: "Seed") -> None:
    """A member's projects are read, listed, named and counted, with role and plan. Those of a former member are not."""
    project = await seed.project()
    grace = await join(storage, seed, project, "viewer")
    found = await storage.projects.read_member_project(grace.id, project.id)
    assert found is not None
    assert (found, found.role, found.plan) == (project, "viewer", "free")
    assert await storage.projects.list_projects(grace.id) == [project]
    assert await storage.projects.read_projects(grace.id, [project.id]) == [project]
    assert [each.project_id for each in await storage.projects.name_projects(grace.id)] == [project.id]
    assert await storage.projects.count_projects(grace.id) == 1
    await storage.members.delete_member(grace.id, project.id, grace.id)
    assert await storage.projects.read_member_project(grace.id, project.id) is None
    assert await storage.projects.list_projects(grace.id) == []
    assert await storage.projects.count_projects(grace.id) == 0


async def test_read_role_is_a_members_role(storage: Storage, seed: "Seed") -> None:
    """None for anyone else."""
    project = await seed.project()
    grace = await join(storage, seed, project, "viewer")
    assert await storage.members.read_role(grace.id, project.id) == "viewer"
    assert await storage.members.read_role(grace.id, "proj_none") is None
    assert await storage.members.read_role("dev_none", project.id) is None


async def test_read_roles_is_across_projects(storage: Storage, seed: "Seed") -> None:
    """Each role once."""
    grace = await seed.developer()
    assert await storage.members.read_roles(grace.id) == set()
    for _ in range(2):
        await seed.project(grace)
    _, code_hash = await invite(storage, seed, await seed.project(), "viewer")
    await storage.members.accept_member_invitation(code_hash, grace.id, NOW)
    assert await storage.members.read_roles(grace.id) == {"owner", "viewer"}


async def test_update_role_returns_the_previous_one(storage: Storage, seed: "Seed") -> None:
    """And None if one of the two is no member."""
    project = await seed.project()
    ada, grace = project.developer_id, await join(storage, seed, project, "viewer")
    assert await storage.members.update_role(ada, project.id, grace.id, "developer") == "viewer"
    assert await storage.members.update_role(ada, project.id, "dev_none", "viewer") is None
    assert await storage.members.update_role("dev_none", project.id, grace.id, "viewer") is None
    assert await roles(storage, project) == {ada: "owner", grace.id: "developer"}


async def test_delete_member_lets_anyone_leave(storage: Storage, seed: "Seed") -> None:
    """Once; only owners remove others."""
    project = await seed.project()
    ada = project.developer_id
    grace, bob = [await join(storage, seed, project, "developer") for _ in range(2)]
    assert await storage.members.delete_member(ada, project.id, "dev_none") is False
    assert await storage.members.delete_member("dev_none", project.id, ada) is False
    with pytest.raises(InsufficientRole):
        await storage.members.delete_member(grace.id, project.id, bob.id)
    assert await storage.members.delete_member(grace.id, project.id, grace.id) is True
    assert await storage.members.delete_member(grace.id, project.id, grace.id) is False
    assert await storage.members.delete_member(ada, project.id, bob.id) is True
    assert await roles(storage, project) == {ada: "owner"}


async def test_the_last_owner_stays(storage: Storage, seed: "Seed") -> None:
    """The only owner neither leaves nor gets another role; with a second owner, the plan moves to that one."""
    project = await seed.project()
    ada = project.developer_id
    await join(storage, seed, project, "developer")
    for change in (
        storage.members.delete_member(ada, project.id, ada),
        storage.members.update_role(ada, project.id, ada, "viewer"),
    ):
        with pytest.raises(LastOwner):
            await change
    assert await storage.members.update_role(ada, project.id, ada, "owner") == "owner"
    grace = await join(storage, seed, project, "owner")
    assert await storage.members.delete_member(grace.id, project.id, ada) is True
    moved = await storage.projects.read_project(project.id)
    assert moved is not None
    assert moved.developer_id == grace.id
    with pytest.raises(LastOwner):
        await storage.members.delete_member(grace.id, project.id, grace.id)


async def test_two_owners_leave_at_once(storage: Storage, seed: "Seed", other_node: Storage) -> None:
    """On two nodes, one of them leaves and the other stays: a project is never without an owner."""
    for _ in range(8):
        project = await seed.project()
        owners = [project.developer_id, (await join(storage, seed, project, "owner")).id]
        results = await asyncio.gather(
            storage.members.delete_member(owners[0], project.id, owners[0]),
            other_node.members.update_role(owners[1], project.id, owners[1], "viewer"),
            return_exceptions=True,
        )
        assert sum(isinstance(each, LastOwner) for each in results) == 1, results
        assert list((await roles(storage, project)).values()).count("owner") == 1


Change = Callable[[Storage, "Seed", Project, str], Awaitable[Any]]


def _changes() -> dict[str, tuple[ProjectAction, Change]]:
    """Return each change of a project by a member: the action it needs, and the call."""

    async def of_client(storage: Storage, seed: "Seed", project: Project, developer_id: str, method: str) -> Any:
        client = await seed.client(project)
        values = {
            "update_client": (ClientChanges(name="New"), seed.now),
            "delete_client": (),
            "regenerate_client_secret": (ClientSecret(b"n" * 32, "ocs_bbbb…zzzz"),),
        }[method]
        call = getattr(storage.oidc_clients, method)
        return await call(developer_id, project.id, client.id, *values)

    async def create_client(storage: Storage, seed: "Seed", project: Project, developer_id: str) -> Any:
        client = await seed.client(project)
        await storage.oidc_clients.delete_client(project.developer_id, project.id, client.id)
        return await storage.oidc_clients.create_client(developer_id, client, b"h" * 32)

    async def resend(storage: Storage, seed: "Seed", project: Project, developer_id: str) -> Any:
        return await storage.deliveries.resend_delivery(developer_id, (await seed.due_event(project)).id, NOW)

    async def revoke(storage: Storage, seed: "Seed", project: Project, developer_id: str) -> Any:
        invitation, _ = await invite(storage, seed, project)
        return await storage.members.delete_member_invitation(developer_id, project.id, invitation.id)

    async def change_role(storage: Storage, seed: "Seed", project: Project, developer_id: str) -> Any:
        other = await join(storage, seed, project, "viewer")
        return await storage.members.update_role(developer_id, project.id, other.id, "developer")

    async def remove(storage: Storage, seed: "Seed", project: Project, developer_id: str) -> Any:
        other = await join(storage, seed, project, "viewer")
        return await storage.members.delete_member(developer_id, project.id, other.id)

    async def invite_other(storage: Storage, seed: "Seed", project: Project, developer_id: str) -> Any:
        invitation = MemberInvitation(seed.name("minv"), project.id, "viewer", NOW, NOW + 1, "", developer_id)
        return await storage.members.create_member_invitation(invitation, invitation.id.encode())

    async def promote(storage: Storage, _: "Seed", project: Project, developer_id: str) -> Any:
        await storage.projects.rotate_webhook_secret(project.developer_id, project.id, b"n", NOW, NOW + DAY)
        return await storage.projects.promote_webhook_secret(developer_id, project.id, NOW)

    async def erase(storage: Storage, seed: "Seed", project: Project, developer_id: str) -> Any:
        await seed.confirmed(project, "77")
        return await storage.erasure.erase_sessions("77", project.id, developer_id, 10, describe=lambda _: [])

    async def erase_person(storage: Storage, seed: "Seed", project: Project, developer_id: str) -> Any:
        await seed.confirmed(project, "77")
        return await storage.erasure.erase_person("77", developer_id, seed.name("gone"), 10, describe=lambda _: [])

    return {
        "update": ("write", lambda s, _, p, d: s.projects.update_project(d, p.id, ProjectChanges(name="New"), NOW)),
        "regenerate": ("secrets", lambda s, _, p, d: s.projects.regenerate_secrets(d, p.id, d.encode(), "sk_", b"x")),
        "rotate": ("secrets", lambda s, _, p, d: s.projects.rotate_webhook_secret(d, p.id, b"n", NOW, NOW + DAY)),
        "promote": ("secrets", promote),
        "create_client": ("write", create_client),
        **{
            method: ("write", lambda s, seed, p, d, method=method: of_client(s, seed, p, d, method))  # type: ignore[misc]
            for method in ("update_client", "delete_client", "regenerate_client_secret")
        },
        "resend": ("write", resend),
        "erase_sessions": ("write", erase),
        "erase_person": ("write", erase_person),
        "invite": ("members", invite_other),
        "revoke": ("members", revoke),
        "change_role": ("members", change_role),
        "remove": ("members", remove),
        "delete_project": ("delete", lambda s, _, p, d: s.projects.delete_project(d, p.id)),
    }


CHANGES = _changes()


async def test_each_change_needs_its_role(storage: Storage, seed: "Seed") -> None:
    """Of each role, of a former member and of a stranger: what `core.roles` permits is made, nothing else."""
    failures = []
    for name, (action, change) in CHANGES.items():
        callers: list[tuple[str, Role | None]] = [
            *((role, role) for role in ROLES),
            ("former", None),
            ("stranger", None),
        ]
        for who, role in callers:
            project = await seed.project(webhook_url="https://example.com/")
            developer = await seed.developer()
            if who != "stranger":
                developer = await join(storage, seed, project, role or "owner")
            if who == "former":
                await storage.members.delete_member(project.developer_id, project.id, developer.id)
            may = role is not None and action in PERMITTED[role]
            try:
                result = bool(await change(storage, seed, project, developer.id))
            except InsufficientRole:
                result = "refused" if role else "told of the project"  # type: ignore[assignment]
            # An erasure is limited to the projects in which the role permits it.
            refused = "refused" if role and name != "erase_person" else False
            if result != (True if may else refused):
                failures.append((name, who, result))
    assert failures == []


async def test_a_removed_member_changes_nothing_more(storage: Storage, seed: "Seed", other_node: Storage) -> None:
    """A change that runs while its member is removed on another node is made before the removal ends, or not at all."""
    for _ in range(8):
        project = await seed.project()
        member = await join(storage, seed, project, "developer")
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


async def test_an_invitation_ends_with_its_inviters_right(storage: Storage, seed: "Seed") -> None:
    """So nobody joins by the link of someone who was removed or may no longer invite."""
    project = await seed.project()
    for end in ("removed", "demoted"):
        inviter = await join(storage, seed, project, "owner")
        _, code_hash = await invite(storage, seed, project, inviter_id=inviter.id)
        if end == "removed":
            await storage.members.delete_member(project.developer_id, project.id, inviter.id)
        else:
            await storage.members.update_role(project.developer_id, project.id, inviter.id, "developer")
        assert await storage.members.accept_member_invitation(code_hash, (await seed.developer()).id, NOW) == "gone"


async def test_the_plan_follows_the_owner(storage: Storage, seed: "Seed") -> None:
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
    _, code_hash = await invite(storage, seed, moving, "owner")
    assert await storage.members.accept_member_invitation(code_hash, grace.id, NOW) == "joined"
    assert (await used(ada), await used(grace)) == (3, 2)
    assert await daily_users(storage, ada.id, day - 1) == [(day - 1, 1, 0), (day, 2, 2)]
    assert await daily_users(storage, grace.id, day) == [(day, 4, 4)]
    assert await storage.members.delete_member(ada.id, moving.id, ada.id)
    found = await storage.projects.read_project(moving.id)
    assert found is not None
    assert (found.developer_id, found.collect_phone) == (grace.id, False)
    assert (await used(ada), await used(grace)) == (1, 5)
    assert await daily_users(storage, ada.id, day - 1) == [(day, 1, 1)]
    assert await daily_users(storage, grace.id, day - 1) == [(day - 1, 1, 0), (day, 4, 4)]
    await seed.confirmed(moving, "2", NOW + 1)
    assert (await used(grace), await daily_users(storage, grace.id, day)) == (5, [(day, 4, 4)])
    totals = await storage.counts.read_daily_totals(grace.id, day)
    assert [(each.requested, each.confirmed) for each in totals] == [(5, 5)]
    assert await storage.projects.delete_project(grace.id, moving.id)
    while await storage.projects.purge_deleted_projects(100):
        pass
    assert (await used(ada), await used(grace)) == (1, 4)


async def test_erasing_in_shared_projects_keeps_the_counts(storage: Storage, seed: "Seed") -> None:
    """A member erases a user in the projects that they share, and nowhere else. The user then counts as two people."""
    day = NOW // DAY
    for of_shared, of_private, expected in (
        ((0,), (0,), [(day, 2, 2)]),
        ((1,), (0,), [(day, 1, 1), (day + 1, 1, 1)]),
        ((0, 1), (0,), [(day, 2, 1), (day + 1, 1, 1)]),
    ):
        ada = await seed.developer()
        shared, private = await seed.project(ada), await seed.project(ada)
        grace = await join(storage, seed, shared, "developer")
        for project, days in ((shared, of_shared), (private, of_private)):
            for each in days:
                await seed.confirmed(project, "7", NOW + each * DAY)
        assert await erase_all(storage, "7", grace.id)
        found = await storage.sessions.list_sessions([shared.id, private.id], None, None, 10, NOW)
        assert {each.project_id for each in found} == {private.id}
        assert await daily_users(storage, ada.id, day) == expected
        assert await storage.projects.delete_project(ada.id, shared.id)
        while await storage.projects.purge_deleted_projects(100):
            pass
        left = [each for each in await daily_users(storage, ada.id, day) if each[1:] != (0, 0)]
        assert left == [(day, 1, 1)]


async def test_list_project_entries_is_of_all_developers(storage: Storage, seed: "Seed") -> None:
    """A project's log has the entries of all developers about it, newest first, and no others."""
    project = await seed.project()
    grace = await join(storage, seed, project, "developer")
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


async def test_remove_developer_ends_everything(storage: Storage, seed: "Seed", other_node: Storage) -> None:
    """Credentials, memberships and invitations; a project passes to the successor, or to its other owner."""
    ada, grace, bob = [
        await seed.developer(name) for name in ("ada@example.org", "grace@example.org", "bob@example.org")
    ]
    alone, shared, joined = await seed.project(ada), await seed.project(ada), await seed.project(bob)
    for project, developer, role in ((shared, grace, "owner"), (joined, ada, "developer")):
        _, code_hash = await invite(storage, seed, project, role)  # type: ignore[arg-type]
        assert await storage.members.accept_member_invitation(code_hash, developer.id, NOW) == "joined"
    await seed.confirmed(alone, "1")
    await seed.confirmed(shared, "1")
    _, open_code = await invite(storage, seed, alone, inviter_id=ada.id)
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
    removed = await storage.developers.remove_developer(grace.id, NOW, delete_projects=True, describe=lambda _: [])
    assert removed is not None
    assert removed.deleted == ((shared.id, shared.name),)
    assert await storage.projects.read_project(shared.id) is None


async def test_end_sign_in_ends_memberships(storage: Storage, seed: "Seed") -> None:
    """A report removes the members who joined by the sign-in and those whom they invited, and restores the owner."""
    project = await seed.project()
    ada, eve, mallory, bob = project.developer_id, *[await seed.developer() for _ in range(3)]
    reported = new_session_id(NOW, lambda count: b"\xff" * count)
    codes = {}
    for number, (inviter_id, sign_in) in enumerate(((ada, reported), (ada, reported), (ada, None))):
        invitation = MemberInvitation(
            seed.name("minv"), project.id, "owner", NOW, NOW + DAY, "", inviter_id, None, sign_in
        )
        codes[number] = invitation.id.encode()
        assert await storage.members.create_member_invitation(invitation, codes[number])
    accept = storage.members.accept_member_invitation
    assert await accept(codes[0], eve.id, NOW) == "joined"
    _, code_hash = await invite(storage, seed, project, "owner", eve.id)
    assert await accept(code_hash, mallory.id, NOW) == "joined"
    assert await accept(codes[2], bob.id, NOW) == "joined"
    assert await storage.members.update_role(eve.id, project.id, bob.id, "viewer") == "owner"
    assert await storage.members.delete_member(eve.id, project.id, ada) is True
    # A removed inviter's invitations end, but not the memberships that came of them.
    ended = await storage.developers.end_sign_in(ada, reported, describe=lambda _: [])
    assert set(ended.members) == {(project.id, eve.id), (project.id, mallory.id)}
    assert await roles(storage, project) == {ada: "owner", bob.id: "viewer"}
    found = await storage.projects.read_project(project.id)
    assert found is not None
    assert found.developer_id == ada
    assert await accept(codes[1], eve.id, NOW) == "gone"
