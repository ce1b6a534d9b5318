"""Projects and their secrets (service-spec.md, Project; contract.md, Developer endpoints)."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import acting

from taproof.contract.account import Plan
from taproof.core.errors import InvalidRequest, InvalidSecretKey, ProjectNotFound, TooManyProjects
from taproof.core.identifiers import is_key, is_project_id
from taproof.core.projects import ProjectChanges
from taproof.service import projects
from taproof.service.projects import Rotation

if TYPE_CHECKING:
    from tests.service.conftest import Node


async def test_a_new_project_gives_its_secrets_once(node: "Node") -> None:
    """The secret key is in the answer and nowhere else: the store holds a hash, a preview and an encrypted secret."""
    developer = await node.developer()
    project, secrets = await node.project(developer)
    assert is_project_id(project.id)
    assert is_key(secrets.secret_key, "sk")
    assert secrets.webhook_secret.startswith("whsec_")
    assert (project.is_active, project.public_access, project.webhook_url) == (True, True, "")
    assert secrets.secret_key[7:-4] not in project.secret_key_preview
    stored = repr(node.storage.database.reader.execute("SELECT * FROM projects").fetchall())
    assert secrets.secret_key not in stored
    assert secrets.webhook_secret not in stored
    assert secrets.webhook_secret.encode() not in project.encrypted_webhook_secret
    assert await node.projects.list_projects(developer) == [project]
    assert await node.projects.read_project(developer, project.id) == project
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == Rotation(
        secrets.webhook_secret, None, None
    )


async def test_the_secret_key_is_recognised_and_nothing_else_is(node: "Node") -> None:
    """Missing, malformed, mistyped, of another kind: one and the same error."""
    project, secrets = await node.project()
    assert await node.projects.authenticate(secrets.secret_key) == project
    mistyped = secrets.secret_key[:-1] + ("a" if secrets.secret_key[-1] != "a" else "b")
    for bearer in (None, "", "sk_", mistyped, secrets.secret_key + " ", project.id, secrets.webhook_secret, "\ud800"):
        with pytest.raises(InvalidSecretKey):
            await node.projects.authenticate(bearer)


async def test_regenerate_kills_both_old_secrets_at_once(node: "Node", other_node: "Node") -> None:
    """On every node: the old key opens nothing, the new one does; the webhook secret is new as well."""
    developer = await node.developer()
    project, old = await node.project(developer)
    new = await node.projects.regenerate_secrets(acting(developer), project.id)
    assert new.secret_key != old.secret_key
    assert new.webhook_secret != old.webhook_secret
    with pytest.raises(InvalidSecretKey):
        await other_node.projects.authenticate(old.secret_key)
    assert (await other_node.projects.authenticate(new.secret_key)).id == project.id
    assert (
        await other_node.projects.read_webhook_secret(acting(developer), project.id)
    ).webhook_secret == new.webhook_secret


async def test_secrets_regenerated_by_two_at_once_belong_together(node: "Node", other_node: "Node") -> None:
    """Of two rotations at the same instant one wins whole: never one's key with the other's webhook secret."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    for _ in range(5):
        made = await asyncio.gather(
            *(each.projects.regenerate_secrets(acting(developer), project.id) for each in (node, other_node) * 2)
        )
        found = await node.projects.read_webhook_secret(acting(developer), project.id)
        (winner,) = [secrets for secrets in made if secrets.webhook_secret == found.webhook_secret]
        assert (await node.projects.authenticate(winner.secret_key)).id == project.id
        for loser in made:
            if loser is not winner:
                with pytest.raises(InvalidSecretKey):
                    await node.projects.authenticate(loser.secret_key)


async def test_another_developers_project_does_not_exist(node: "Node") -> None:
    """404 and never 403, for every call; and nothing of it changes."""
    owner, stranger = await node.developer(), await node.developer()
    project, secrets = await node.project(owner)
    for project_id in (project.id, "proj_" + "0" * 22):
        with pytest.raises(ProjectNotFound):
            await node.projects.read_project(stranger, project_id)
        with pytest.raises(ProjectNotFound):
            await node.projects.read_webhook_secret(acting(stranger), project_id)
    calls = [
        node.projects.promote_webhook_secret,
        node.projects.regenerate_secrets,
        node.projects.delete_project,
    ]
    for project_id in (project.id, "proj_" + "0" * 22):
        for call in calls:
            with pytest.raises(ProjectNotFound):
                await call(acting(stranger), project_id)
        with pytest.raises(ProjectNotFound):
            await node.projects.update_project(acting(stranger), project_id, ProjectChanges(name="Mine"))
        with pytest.raises(ProjectNotFound):
            await node.projects.rotate_webhook_secret(acting(stranger), project_id, 24)
    assert await node.projects.list_projects(stranger) == []
    assert await node.projects.read_project(owner, project.id) == project
    assert (await node.projects.authenticate(secrets.secret_key)).id == project.id


@pytest.mark.parametrize("project_id", ["", "x", "proj_\0" + "0" * 20, "proj_\ud800" + "0" * 20, "P" * 1_000_000])
async def test_malformed_ids_are_invalid_requests(node: "Node", project_id: str) -> None:
    """Refused before the store is asked."""
    developer = await node.developer()
    with pytest.raises(InvalidRequest):
        await node.projects.read_project(developer, project_id)
    for call in (
        node.projects.promote_webhook_secret,
        node.projects.regenerate_secrets,
        node.projects.delete_project,
    ):
        with pytest.raises(InvalidRequest):
            await call(acting(developer), project_id)
    with pytest.raises(InvalidRequest, match="project id"):
        await node.projects.rotate_webhook_secret(acting(developer), project_id, 24)
    with pytest.raises(InvalidRequest):
        await node.projects.update_project(acting(developer), project_id, ProjectChanges())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (ProjectChanges(name=""), "name"),
        (ProjectChanges(name="   "), "name"),
        (ProjectChanges(name="x" * 101), "name"),
        (ProjectChanges(name="x" * 1_000_000), "name"),
        (ProjectChanges(name="a\0b"), "name"),
        (ProjectChanges(name="a\nb"), "name"),
        (ProjectChanges(name="\u202e\u200b"), "name"),
        (ProjectChanges(name="\ud800"), "name"),
        (ProjectChanges(webhook_url="http://example.com/"), "webhook_url"),
        (ProjectChanges(webhook_url="http://localhost/"), "webhook_url"),
        (ProjectChanges(webhook_url="javascript:alert(1)"), "webhook_url"),
        (ProjectChanges(webhook_url="https://a:b@example.com/"), "webhook_url"),
        (ProjectChanges(webhook_url="https://10.0.0.1/"), "webhook_url"),
        (ProjectChanges(webhook_url="https://localhost/"), "webhook_url"),
        (ProjectChanges(webhook_url="https://example.com:22/"), "webhook_url"),
        (ProjectChanges(collect_phone=True), "collect_phone"),
    ],
)
async def test_bad_fields_are_refused_by_name_and_change_nothing(
    node: "Node", changes: ProjectChanges, field: str
) -> None:
    """The sentence begins with the field; a good field beside it is not taken over; creation refuses the same."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    with pytest.raises(InvalidRequest, match=f"^{field} "):
        await node.projects.update_project(acting(developer), project.id, replace(changes, is_active=False))
    with pytest.raises(InvalidRequest, match=f"^{field} "):
        await node.projects.create_project(
            acting(developer),
            ProjectChanges(
                name=changes.name if changes.name is not None else "Shop",
                webhook_url=changes.webhook_url or "",
                collect_phone=bool(changes.collect_phone),
            ),
        )
    assert await node.projects.list_projects(developer) == [project]


@pytest.mark.parametrize(("plan", "allowed"), [("free", False), ("pro", True), ("business", True)])
async def test_phones_are_collected_on_paid_plans_only(node: "Node", plan: Plan, allowed: bool) -> None:  # noqa: FBT001 — a table's column.
    """service-spec.md, Limits. Switching it off is open to everybody."""
    developer = await node.developer(plan)
    project, _ = await node.project(developer)
    if allowed:
        changed = await node.projects.update_project(acting(developer), project.id, ProjectChanges(collect_phone=True))
        assert changed.collect_phone
    else:
        with pytest.raises(InvalidRequest, match="pro and business"):
            await node.projects.update_project(acting(developer), project.id, ProjectChanges(collect_phone=True))
    changed = await node.projects.update_project(acting(developer), project.id, ProjectChanges(collect_phone=False))
    assert not changed.collect_phone


async def test_a_developer_has_so_many_projects(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and answers list them all. Deleting one makes room; the sentence says so."""
    monkeypatch.setattr(projects, "PROJECT_LIMIT", 2)
    developer = await node.developer()
    first, _ = await node.project(developer)
    await node.project(developer)
    with pytest.raises(TooManyProjects, match="Delete or leave some"):
        await node.project(developer)
    await node.project(await node.developer())
    await node.projects.delete_project(acting(developer), first.id)
    await node.project(developer)
    assert len(await node.projects.list_projects(developer)) == 2


async def test_names_are_trimmed(node: "Node") -> None:
    """contract.md: 1 to 100 characters after trimming."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    changed = await node.projects.update_project(
        acting(developer), project.id, ProjectChanges(name="  " + "x" * 100 + "\n")
    )
    assert changed.name == "x" * 100


async def test_two_changes_at_once_are_both_kept(node: "Node", other_node: "Node") -> None:
    """Only the given fields change: a rename and a pause on two nodes do not undo each other."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await asyncio.gather(
        node.projects.update_project(acting(developer), project.id, ProjectChanges(name="Renamed")),
        other_node.projects.update_project(acting(developer), project.id, ProjectChanges(is_active=False)),
    )
    assert await node.projects.read_project(developer, project.id) == replace(project, name="Renamed", is_active=False)


async def test_a_deleted_project_is_gone_with_its_key(node: "Node") -> None:
    """At once, and a second deletion finds nothing."""
    developer = await node.developer()
    project, secrets = await node.project(developer)
    await node.projects.delete_project(acting(developer), project.id)
    with pytest.raises(ProjectNotFound):
        await node.projects.delete_project(acting(developer), project.id)
    with pytest.raises(InvalidSecretKey):
        await node.projects.authenticate(secrets.secret_key)
    assert await node.projects.list_projects(developer) == []
