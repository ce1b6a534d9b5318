"""The data that a sandbox starts with."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
from tests.databases import NOW, sqlite_database

from taproof.core.accounts import Actor
from taproof.core.address_rules import AddressRules
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.oidc.clients import ClientChanges, OidcClient
from taproof.sandbox.seed import seed
from taproof.service.developers import Developers
from taproof.service.oidc.clients import OidcClients
from taproof.service.projects import Projects


class Parts(NamedTuple):
    """The use cases on an empty store."""

    developers: Developers
    projects: Projects
    clients: OidcClients


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    with sqlite_database() as open_store:
        storage = await open_store()
        projects = Projects(
            storage,
            Encryptor(new_master_key(system_entropy)),
            lambda: NOW,
            system_entropy,
            address_rules=AddressRules(),
            webhook_ports=frozenset(),
            allow_loopback_http=True,
        )
        clients = OidcClients(storage, lambda: NOW, system_entropy)
        yield Parts(Developers(storage, lambda: NOW, system_entropy), projects, clients)
        await storage.close()


async def test_each_start_finds_the_client_of_the_demo(parts: Parts) -> None:
    """Starts share one public client. Its redirect URI follows the base URL, and those of other applications stay."""
    developers, projects, clients = parts

    async def start(base_url: str = "http://127.0.0.1:4711") -> OidcClient:
        client = (await seed(developers, projects, clients, base_url)).client
        assert client is not None
        return client

    first = await start()
    assert (first.name, first.auth_method) == ("Kite & Kettle", "none")
    assert first.redirect_uris == ("http://127.0.0.1:4711/demo",)
    assert await start() == first
    seeded = await seed(developers, projects, clients, "http://shop.localhost:4711")
    assert seeded.client is None, "No redirect URI may begin like that; the sandbox starts all the same."
    itself, added = Actor(seeded.developer, "service"), "http://127.0.0.1/callback"
    changes = ClientChanges(redirect_uris=(*first.redirect_uris, added))
    await clients.update_client(itself, first.project_id, first.id, changes)
    moved = await start("https://sandbox.example")
    assert (moved.id, moved.redirect_uris) == (first.id, ("https://sandbox.example/demo", added))
    # A client that got a secret is of no use to a page in a browser.
    await clients.update_client(itself, first.project_id, first.id, ClientChanges(auth_method="basic"))
    assert (await start()).id != first.id
    assert len(await clients.list_clients(seeded.developer, first.project_id)) == 2


async def test_the_token_stays_while_it_works(parts: Parts) -> None:
    """A stored token is used again. One that was revoked, or that is another developer's, is replaced, also by name."""
    base_url = "http://127.0.0.1:4711"
    first = await seed(*parts, base_url)
    assert (await seed(*parts, base_url, first.access_token)).access_token == first.access_token
    other = Actor(await parts.developers.create_developer("ada@example.com", "free"), "service")
    foreign = (await parts.developers.create_access_token(other, "laptop")).plaintext
    second = await seed(*parts, base_url, foreign)
    assert second.access_token not in {first.access_token, foreign}
    [token] = await parts.developers.list_access_tokens(first.developer.id)
    await parts.developers.delete_access_token(Actor(first.developer, "service"), token.id)
    third = await seed(*parts, base_url, second.access_token)
    assert third.access_token != second.access_token
    assert len(await parts.developers.list_access_tokens(first.developer.id)) == 1
