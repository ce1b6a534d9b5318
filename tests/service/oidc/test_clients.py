"""OpenID Connect clients: the stored form of a secret, and the entries of the audit log."""

import json
from typing import TYPE_CHECKING

from tests.service.conftest import acting

from taproof.core.entropy import system_entropy
from taproof.core.oidc.clients import CLIENT_DEFAULTS, ClientChanges
from taproof.service.oidc.clients import OidcClients

if TYPE_CHECKING:
    from tests.service.conftest import Node

NEW = ClientChanges(name=" Grafana ", redirect_uris=("https://grafana.example/cb",))


async def test_changes_of_a_client_are_told_without_its_secrets(node: "Node") -> None:
    """Each change adds one entry with the stored values and the project; an empty change adds none."""
    clients = OidcClients(node.storage, node.clock, system_entropy)
    developer = await node.developer()
    project, _ = await node.project(developer)
    actor, project_id = acting(developer), {"project_id": project.id}
    client, first = await clients.create_client(actor, project.id, NEW)
    await clients.update_client(actor, project.id, client.id, ClientChanges())
    node.clock.now += 1
    _, none = await clients.update_client(actor, project.id, client.id, ClientChanges(auth_method="post"))
    node.clock.now += 1
    second = await clients.regenerate_client_secret(actor, project.id, client.id)
    node.clock.now += 1
    await clients.delete_client(actor, project.id, client.id)
    entries = (await node.audit.list_audit_entries(developer, limit=50, cursor=None)).entries
    told = [(each.action, json.loads(each.details)) for each in entries if each.subject == client.id]
    name = {"name": "Grafana"}
    lists = {"redirect_uris": ["https://grafana.example/cb"], "grant_types": ["authorization_code"]}
    settings = CLIENT_DEFAULTS.given() | lists | {"post_logout_redirect_uris": [], "allowed_groups": []}
    assert told == [
        ("client.deleted", project_id | name),
        ("client.secret_regenerated", project_id | name),
        ("client.updated", project_id | {"auth_method": "post"}),
        ("client.created", project_id | name | settings),
    ]
    assert (none, first is None) == (None, False)
    assert not [each for each in entries if "ocs_" in each.details]
    assert first != second
