"""Conformance: the OpenID Connect clients of projects."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

import pytest
from tests.databases import NOW
from tests.granting import grant
from tests.storage.seed import Seed, at_once, present

from taproof.core.accounts import AuditEntry
from taproof.core.clock import HOUR
from taproof.core.errors import InvalidRequest
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import ClientChanges, ClientSecret, OidcClient, SignInClient
from taproof.core.oidc.groups import NO_GROUPS, Groups
from taproof.core.oidc.model import RefusedMethod
from taproof.core.projects import Project, ProjectChanges
from taproof.storage.protocol import Storage

SECRET: Final = ClientSecret(b"n" * 32, "ocs_nnnn…nnnn")


def found(
    client: OidcClient, project: Project, secret_hash: bytes | None = b"h" * 32, version: int = 0
) -> SignInClient:
    """Return `read_client`'s answer for a client of `Seed.client`."""
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
    """The limit holds for concurrent calls on two nodes. Clients of other projects and deleted ones do not count."""
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
    """A field that is None stays unchanged, and a client keeps its secret."""
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


async def test_record_refused_method_once_an_hour(storage: Storage, seed: Seed) -> None:
    """Another kind replaces the record immediately, the same kind after an hour; a new auth_method erases it."""
    project = await seed.project()
    client, other = await seed.client(project), await seed.client(project)
    record, read = storage.oidc_clients.record_refused_method, storage.oidc_clients.read_refused_method
    for refused, recorded in (
        (RefusedMethod("post", NOW), True),
        (RefusedMethod("post", NOW + HOUR - 1), False),
        (RefusedMethod("none", NOW + 1), True),
        (RefusedMethod("none", NOW + 1 + HOUR), True),
    ):
        before = await read(client.id)
        assert await record(client.id, refused, "basic") == recorded
        assert await read(client.id) == (refused if recorded else before)
    assert not await record(client.id, RefusedMethod("basic", NOW + 9 * HOUR), "post")
    assert not await record("oidc_gone", RefusedMethod("post", NOW), "basic")
    assert await read(other.id) is None
    for changes, kept in ((ClientChanges(name="New"), True), (ClientChanges(auth_method="any"), False)):
        await storage.oidc_clients.update_client(project.developer_id, project.id, client.id, changes, seed.now)
        assert (await read(client.id) is not None) == kept


async def test_read_refused_method_of_an_unknown_client(storage: Storage) -> None:
    """An unknown client has no refused method."""
    assert await storage.oidc_clients.read_refused_method("oidc_gone") is None


async def test_delete_client_hides_it_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The client is hidden on every node immediately; the project's others stay."""
    project = await seed.project()
    client, other = await seed.client(project), await seed.client(project)
    assert await storage.oidc_clients.delete_client(project.developer_id, project.id, client.id)
    assert await other_node.oidc_clients.read_client(client.id) is None
    assert await storage.oidc_clients.list_clients(project.developer_id, project.id) == [other]
    assert not await storage.oidc_clients.delete_client(project.developer_id, project.id, client.id)


async def test_delete_project_deletes_its_clients(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A client that another node adds at the same time is deleted too."""
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
    """Every node immediately accepts only the new secret. A public client gets none."""
    project = await seed.project()
    client, public = await seed.client(project), await seed.client(project, auth_method="none")
    owned = (project.developer_id, project.id)
    assert await storage.oidc_clients.regenerate_client_secret(*owned, client.id, SECRET)
    expected = replace(client, secret_preview=SECRET.preview)
    assert await other_node.oidc_clients.read_client(client.id) == found(expected, project, SECRET.hash, 1)
    assert not await storage.oidc_clients.regenerate_client_secret(*owned, public.id, SECRET)
    assert await storage.oidc_clients.read_client(public.id) == found(public, project, None)


async def test_edit_groups_of_a_client(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Groups are created and replaced whole, and edited in the transaction that reads them.

    The client's row does not change.
    """
    project = await seed.project()
    first = Groups({"empty": (), "staff": ("1001", "2002")}, ("staff",))
    client = replace(await seed.client(project), id="oidc_groups", groups=first)
    owned = (project.developer_id, project.id, client.id)
    assert await storage.oidc_clients.create_client(project.developer_id, client, b"h" * 32)
    assert await storage.oidc_clients.read_client(client.id) == found(client, project)
    assert client in await storage.oidc_clients.list_clients(project.developer_id, project.id)
    changes = ClientChanges(groups={"a": ("1",), "staff": ()})
    changed = replace(client, groups=Groups({"a": ("1",), "staff": ()}, ("staff",)))
    assert await storage.oidc_clients.update_client(*owned, changes, seed.now) == changed
    with pytest.raises(InvalidRequest):
        await storage.oidc_clients.update_client(*owned, ClientChanges(name="No", groups={"a": ()}), seed.now)
    assert await storage.oidc_clients.read_client(client.id) == found(changed, project)
    added = await at_once(
        *(8, lambda node, each: node.oidc_clients.edit_groups(*owned, _adds(str(each + 10)), NOW)),
        *(storage, other_node),
    )
    assert all(added)
    members = present(await storage.oidc_clients.read_client(client.id)).client.groups.members
    assert members == {"a": ("1", *(str(each + 10) for each in range(8))), "staff": ()}
    stranger = await seed.developer()
    assert not await storage.oidc_clients.edit_groups(stranger.id, *owned[1:], _adds("9"), NOW)
    assert not await storage.oidc_clients.edit_groups(*owned[:2], "oidc_gone", _adds("9"), NOW)
    assert await storage.oidc_clients.delete_client(*owned)
    assert await storage.oidc_clients.create_client(project.developer_id, replace(client, groups=NO_GROUPS), b"h" * 32)
    assert present(await storage.oidc_clients.read_client(client.id)).client.groups == NO_GROUPS


def _adds(messenger_id: str) -> Callable[[Groups], Groups]:
    return lambda groups: groups.with_member("a", messenger_id, is_member=True)


async def test_export_groups_and_leave_them_when_erased(storage: Storage, seed: Seed) -> None:
    """The user leaves the groups of the developer's projects, or of all; the groups and their other members stay."""
    shop, game = await seed.project(), await seed.project()
    groups = Groups({"a": ("1001", "2002"), "b": ("1001",)}, ("b",))
    clients = [replace(await seed.client(project), groups=groups) for project in (shop, game)]
    for client, project in zip(clients, (shop, game), strict=True):
        owned = (project.developer_id, project.id, client.id)
        assert await storage.oidc_clients.edit_groups(*owned, lambda _: groups, NOW)
    exported = [{"client_id": each.id, "group_name": name} for each in clients for name in ("a", "b")]
    assert await storage.erasure.export_groups("1001", shop.developer_id) == exported[:2]
    assert sorted(await storage.erasure.export_groups("1001", None), key=str) == sorted(exported, key=str)
    described: list[list[str]] = []

    def describe(project_ids: Collection[str]) -> list[AuditEntry]:
        described.append(sorted(project_ids))
        return []

    assert await storage.erasure.erase_person("1001", shop.developer_id, "gone_1", 9, NOW, describe=describe)
    left = Groups({"a": ("2002",), "b": ()}, ("b",))
    assert [await _groups_of(storage, each) for each in clients] == [left, groups]
    assert await storage.erasure.erase_person("1001", None, "gone_2", 9, NOW, describe=describe)
    assert [await _groups_of(storage, each) for each in clients] == [left, left]
    assert described == [[shop.id], [game.id]]


async def test_an_erasure_holds_beside_an_edit_of_groups(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """An edit that has read the erased user does not write them back."""
    project = await seed.project()
    client = await seed.client(project)
    owned = (project.developer_id, project.id, client.id)
    groups = Groups({"a": tuple(sorted(str(each) for each in range(1001, 1101))), "b": ()})
    assert await storage.oidc_clients.edit_groups(*owned, lambda _: groups, NOW)
    erasures: list[asyncio.Task[int]] = []

    def erase_meanwhile(found: Groups) -> Groups:
        erase = other_node.erasure.erase_person("1001", None, "gone_1", 9, NOW, describe=lambda _: [])
        erasures.append(asyncio.create_task(erase))
        return found.with_member("b", "2002", is_member=True)

    assert await storage.oidc_clients.edit_groups(*owned, erase_meanwhile, NOW)
    assert await asyncio.gather(*erasures)
    left = await _groups_of(storage, client)
    assert left == Groups({"a": groups.members["a"][1:], "b": ("2002",)})


async def _groups_of(storage: Storage, client: OidcClient) -> Groups:
    return present(await storage.oidc_clients.read_client(client.id)).client.groups


async def test_leaving_the_allowed_groups_ends_grants(storage: Storage, seed: Seed) -> None:
    """The user's grants at this client end, and the client is notified; other users, clients and edits end nothing."""
    project = await seed.project()
    first, other = await seed.client(project), await seed.client(project)
    groups = Groups({"away": (), "staff": ("1001", "2002")}, ("staff",))
    uri = ClientChanges(backchannel_logout_uri="https://app.example/out")
    for client in (first, other):
        owned = (project.developer_id, project.id, client.id)
        await storage.oidc_clients.update_client(*owned, uri, NOW)
        assert await storage.oidc_clients.edit_groups(*owned, lambda _: groups, NOW)
    users = [MessengerIdentity(each, "Ada", "") for each in ("1001", "2002", "1001")]
    clients = (first, first, other)
    held = [await grant(storage, project.id, client.id, user, NOW) for client, user in zip(clients, users, strict=True)]

    async def reasons() -> list[str | None]:
        return [present(await storage.grants.read_grant(each.id)).ended_reason for each in held]

    owned = (project.developer_id, project.id, first.id)
    assert await storage.oidc_clients.edit_groups(*owned, _adds("9"), NOW)
    await storage.oidc_clients.update_client(*owned, ClientChanges(allowed_groups=("away", "staff")), NOW)
    assert await reasons() == [None, None, None]
    await storage.oidc_clients.update_client(*owned, ClientChanges(groups={"away": (), "staff": ("2002",)}), NOW + 1)
    assert await reasons() == ["removed", None, None]
    (logout,) = await storage.logouts.claim_logouts(NOW + 1, NOW + 2, 9)
    assert (logout.sid, logout.messenger_id) == (held[0].id, "1001")
    await storage.oidc_clients.update_client(*owned, ClientChanges(allowed_groups=("away",)), NOW + 2)
    assert await reasons() == ["removed", "removed", None]
