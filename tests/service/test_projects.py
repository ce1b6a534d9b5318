"""Projects and their secrets (service-spec.md, Project; contract.md, Developer endpoints)."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import acting

from taproof.core.errors import InvalidRequest, InvalidSecretKey
from taproof.core.projects import ProjectChanges

if TYPE_CHECKING:
    from tests.service.conftest import Node


async def test_the_secret_key_is_recognised_and_nothing_else_is(node: "Node") -> None:
    """A missing, malformed, mistyped or different kind of key gives the same error."""
    project, secrets = await node.project()
    assert await node.projects.authenticate(secrets.secret_key) == project
    mistyped = secrets.secret_key[:-1] + ("a" if secrets.secret_key[-1] != "a" else "b")
    for bearer in (None, "", "sk_", mistyped, secrets.secret_key + " ", project.id, secrets.webhook_secret, "\ud800"):
        with pytest.raises(InvalidSecretKey):
            await node.projects.authenticate(bearer)


async def test_secrets_regenerated_by_two_at_once_belong_together(node: "Node", other_node: "Node") -> None:
    """Of two concurrent rotations, the key and the webhook secret of the same one are stored."""
    developer, project = await node.owned()
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


async def test_a_webhook_url_is_held_to_the_operators_addresses_and_ports(node: "Node") -> None:
    """The URL is checked at creation and at changes; a valid field beside a refused one is not stored."""
    developer, project = await node.owned()
    for url in ("https://10.0.0.1/", "https://localhost/", "https://example.com:22/", "http://localhost/"):
        changes = ProjectChanges(name="Other", webhook_url=url)
        with pytest.raises(InvalidRequest, match=r"^webhook_url "):
            await node.projects.update_project(acting(developer), project.id, changes)
        with pytest.raises(InvalidRequest, match=r"^webhook_url "):
            await node.projects.create_project(acting(developer), changes)
    assert await node.projects.list_projects(developer) == [project]


async def test_two_changes_at_once_are_both_kept(node: "Node", other_node: "Node") -> None:
    """Only the given fields change: a rename and a pause on two nodes do not undo each other."""
    developer, project = await node.owned()
    await asyncio.gather(
        node.projects.update_project(acting(developer), project.id, ProjectChanges(name="Renamed")),
        other_node.projects.update_project(acting(developer), project.id, ProjectChanges(is_active=False)),
    )
    assert await node.projects.read_project(developer, project.id) == replace(project, name="Renamed", is_active=False)
