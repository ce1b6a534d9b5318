"""The data that a sandbox starts with."""

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


async def test_each_start_finds_the_client_of_the_demo() -> None:
    """Starts share one public client. Its redirect URI follows the base URL, and those of other applications stay."""
    with sqlite_database() as open_store:
        storage = await open_store()
        clients = OidcClients(storage, lambda: NOW, system_entropy)
        developers = Developers(storage, lambda: NOW, system_entropy)
        projects = Projects(
            storage,
            Encryptor(new_master_key(system_entropy)),
            lambda: NOW,
            system_entropy,
            address_rules=AddressRules(),
            webhook_ports=frozenset(),
            allow_loopback_http=True,
        )

        async def start(base_url: str = "http://127.0.0.1:8080") -> OidcClient:
            client = (await seed(developers, projects, clients, base_url)).client
            assert client is not None
            return client

        first = await start()
        assert (first.name, first.auth_method) == ("Demo", "none")
        assert first.redirect_uris == ("http://127.0.0.1:8080/demo",)
        assert await start() == first
        seeded = await seed(developers, projects, clients, "http://shop.localhost:8080")
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
        await storage.close()
