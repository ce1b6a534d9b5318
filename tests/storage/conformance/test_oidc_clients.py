"""Conformance: the OpenID Connect clients of projects."""

import asyncio
from dataclasses import replace
from typing import Final

import pytest
from tests.storage.seed import Seed, at_once, present

from taproof.core.oidc.clients import ClientChanges, ClientSecret, OidcClient, SignInClient
from taproof.core.projects import Project, ProjectChanges
from taproof.storage.protocol import Storage

SECRET: Final = ClientSecret(b"n" * 32, "ocs_nnnn…nnnn")


def found(
    client: OidcClient, project: Project, secret_hash: bytes | None = b"h" * 32, version: int = 0
) -> SignInClient:
    """Return what `read_client` answers for a client of `Seed.client`."""
    own = (project.texts, project.logo_url)
    devices_since = client.created_at if "device_code" in client.grant_types else None
    settings = (project.is_active, project.public_access, project.same_device, *own)
    values = (client, secret_hash, devices_since, project.developer_id, project.name, *settings)
    return SignInClient(*values, version=version)


async def test_create_client_keeps_every_field(storage: Storage, seed: Seed) -> None:
    """Names and redirect URIs come back as they were given; a public client has no secret."""
    project = await seed.project()
    uris = ("https://app.example/cb?a=b&c=%2F", "http://[::1]:8000/", "com.example.app:/cb")
    client = OidcClient(
        "oidc_new",
        project.id,
        'Кафе \'"☕"',
        uris,
        "none",
        "ES256",
        "synthetic",
        86_400,
        ("authorization_code",),
        None,
        seed.now,
    )
    assert await storage.oidc_clients.create_client(project.developer_id, client, None)
    assert await storage.oidc_clients.read_client("oidc_new") == found(client, project, None)


async def test_create_client_stops_at_the_limit(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of any number created at once on two nodes. Clients of other projects do not count, nor do deleted ones."""
    project = await seed.project()
    client = await seed.client(project)
    await seed.client(await seed.project())
    new, ada_id = [replace(client, id=seed.name("oidc")) for _ in range(6)], project.developer_id
    made = await at_once(
        *(6, lambda node, each: node.oidc_clients.create_client(ada_id, new[each], b"h", limit=3)),
        *(storage, other_node),
    )
    assert sorted(made) == [False] * 4 + [True] * 2
    assert await storage.oidc_clients.delete_client(project.developer_id, project.id, client.id)
    assert await storage.oidc_clients.create_client(project.developer_id, new[made.index(False)], b"h", limit=3)


async def test_read_client_knows_its_project(storage: Storage, seed: Seed) -> None:
    """The project's name and flags are the current ones; many calls at once get their own clients."""
    project, other = await seed.project(), await seed.project(public_access=False)
    client, of_other = await seed.client(project), await seed.client(other)
    ids = (client.id, "oidc_gone", of_other.id, "oidc_\0", client.id)
    answers = await asyncio.gather(*(storage.oidc_clients.read_client(each) for each in ids))
    assert answers == [found(client, project), None, found(of_other, other), None, found(client, project)]
    changes = ProjectChanges(
        name="New name", is_active=False, texts={"tr": {"button_label": "Giriş"}}, logo_url="https://a.example/"
    )
    changed = present(await storage.projects.update_project(project.developer_id, project.id, changes, seed.now))
    assert await storage.oidc_clients.read_client(client.id) == found(client, changed)


async def test_list_clients_is_oldest_first_and_the_projects_own(storage: Storage, seed: Seed) -> None:
    """Another developer sees none of them."""
    project, bob = await seed.project(), await seed.developer()
    late = await seed.client(project, created_at=seed.now + 1)
    first, second = await seed.client(project), await seed.client(project)
    await seed.client(await seed.project())
    assert await storage.oidc_clients.list_clients(project.developer_id, project.id) == [first, second, late]
    for developer_id, project_id in ((bob.id, project.id), (project.developer_id, "proj_\0")):
        assert await storage.oidc_clients.list_clients(developer_id, project_id) == []


@pytest.mark.parametrize(
    "changes",
    [
        ClientChanges(),
        ClientChanges(name="New name"),
        ClientChanges(redirect_uris=("com.example.app:/cb",)),
        ClientChanges(signing_alg="ES256", email="synthetic", id_token_lifetime=300),
        ClientChanges(grant_types=("authorization_code",)),
        ClientChanges(post_logout_redirect_uris=("https://a.example/",), backchannel_logout_uri="https://b.example/"),
        ClientChanges("All", ("https://all.example/",), "post", "ES256", "synthetic", 301, ("device_code",)),
    ],
)
async def test_update_client_changes_only_what_is_given(storage: Storage, seed: Seed, changes: ClientChanges) -> None:
    """None leaves a field alone, and a client that has a secret keeps it."""
    project = await seed.project()
    client, other = await seed.client(project), await seed.client(project)
    expected = replace(client, **changes.given())
    owned = (project.developer_id, project.id, client.id)
    answer = await storage.oidc_clients.update_client(*owned, changes, seed.now, secret=SECRET)
    assert answer == expected
    # `version` counts the changes that end what the client's users have: here, the loss of refresh tokens.
    version = int("refresh_token" not in expected.grant_types)
    assert await storage.oidc_clients.read_client(client.id) == found(expected, project, version=version)
    assert await storage.oidc_clients.read_client(other.id) == found(other, project)


async def test_update_client_gives_and_takes_the_secret(storage: Storage, seed: Seed) -> None:
    """A client without a secret gets one with its new method, and loses it when it becomes public."""
    project = await seed.project()
    client = await seed.client(project)
    public = replace(client, auth_method="none", secret_preview=None)
    again = replace(client, auth_method="post", secret_preview=SECRET.preview)
    for changes, expected, secret_hash, version in (
        (ClientChanges(auth_method="none"), public, None, 1),
        (ClientChanges(name=client.name), public, None, 1),
        (ClientChanges(auth_method="post"), again, SECRET.hash, 2),
    ):
        owned = (project.developer_id, project.id, client.id)
        assert await storage.oidc_clients.update_client(*owned, changes, seed.now, secret=SECRET) == expected
        assert await storage.oidc_clients.read_client(client.id) == found(expected, project, secret_hash, version)


async def test_delete_client_hides_it_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """On every node; the others of its project stay."""
    project = await seed.project()
    client, other = await seed.client(project), await seed.client(project)
    assert await storage.oidc_clients.delete_client(project.developer_id, project.id, client.id)
    assert await other_node.oidc_clients.read_client(client.id) is None
    assert await storage.oidc_clients.list_clients(project.developer_id, project.id) == [other]
    assert not await storage.oidc_clients.delete_client(project.developer_id, project.id, client.id)


async def test_delete_project_deletes_its_clients(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Also one that another node adds at the same instant."""
    kept = await seed.client(await seed.project())
    for _ in range(5):
        project = await seed.project()
        client = await seed.client(project)
        new = replace(client, id=seed.name("oidc"))
        await asyncio.gather(
            storage.projects.delete_project(project.developer_id, project.id),
            other_node.oidc_clients.create_client(project.developer_id, new, b"h"),
        )
        assert await storage.oidc_clients.list_clients(project.developer_id, project.id) == []
        assert await storage.oidc_clients.read_client(new.id) is None
        assert await other_node.oidc_clients.read_client(client.id) is None
    assert await storage.oidc_clients.read_client(kept.id) is not None


async def test_regenerate_client_secret_replaces_it_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Every node knows only the new one. A public client gets none."""
    project = await seed.project()
    client, public = await seed.client(project), await seed.client(project, auth_method="none")
    owned = (project.developer_id, project.id)
    assert await storage.oidc_clients.regenerate_client_secret(*owned, client.id, SECRET)
    expected = replace(client, secret_preview=SECRET.preview)
    assert await other_node.oidc_clients.read_client(client.id) == found(expected, project, SECRET.hash, 1)
    assert not await storage.oidc_clients.regenerate_client_secret(*owned, public.id, SECRET)
    assert await storage.oidc_clients.read_client(public.id) == found(public, project, None)
