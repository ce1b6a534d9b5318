"""Prepares the store of a sandbox: a developer with a new access token, and a project with a client for the demo."""

from dataclasses import dataclass
from typing import Final

from taproof.core.accounts import Actor, Developer
from taproof.core.errors import DeveloperExists, InvalidRequest, TooManyClients
from taproof.core.model import Project, ProjectChanges
from taproof.core.oidc.clients import ClientChanges, OidcClient
from taproof.service.developers import Developers
from taproof.service.oidc.clients import OidcClients
from taproof.service.projects import Projects

EMAIL: Final = "sandbox@localhost"
DEMO_PATH: Final = "/demo"
_DEMO: Final = "Demo"
"""The name of the project and of its client."""
_TOKEN_NAME: Final = "sandbox"  # noqa: S105 — the label of a token, not a token.


@dataclass(frozen=True, slots=True)
class Seed:
    """The sandbox's developer, its project, an access token in plaintext, and the demo's OpenID Connect client.

    `client` is None if the base URL cannot be part of a redirect URI, such as http://shop.localhost:8080.
    """

    developer: Developer
    project: Project
    access_token: str
    client: OidcClient | None


async def seed(developers: Developers, projects: Projects, clients: OidcClients, base_url: str) -> Seed:
    """Find or create the developer, the project and its client; replace the access token from the last start."""
    try:
        developer = await developers.create_developer(EMAIL, "business", via="service")
    except DeveloperExists:
        developer = await developers.read_developer(EMAIL)
    itself = Actor(developer, "service")
    for token in await developers.list_access_tokens(developer.id):
        if token.name == _TOKEN_NAME:
            await developers.delete_access_token(itself, token.id)
    access_token = await developers.create_access_token(itself, _TOKEN_NAME)
    project = next((each for each in await projects.list_projects(developer) if each.name == _DEMO), None)
    if project is None:
        project, _ = await projects.create_project(itself, ProjectChanges(name=_DEMO))
    try:
        client = await _seed_client(clients, itself, project.id, f"{base_url}{DEMO_PATH}")
    except (InvalidRequest, TooManyClients):  # The rest of the sandbox works without the client.
        client = None
    return Seed(developer, project, access_token.plaintext, client)


async def _seed_client(clients: OidcClients, itself: Actor, project_id: str, redirect_uri: str) -> OidcClient:
    """Find or create the client, and replace the demo's redirect URI if the base URL has changed since."""
    for client in await clients.list_clients(itself.developer, project_id):
        if (client.name, client.auth_method) == (_DEMO, "none"):
            # Redirect URIs that the developer has added for other applications stay.
            added = (uri for uri in client.redirect_uris if not uri.endswith(DEMO_PATH))
            if redirect_uri not in client.redirect_uris:
                changes = ClientChanges(redirect_uris=(redirect_uri, *added))
                client, _ = await clients.update_client(itself, project_id, client.id, changes)  # noqa: PLW2901
            return client
    wanted = ClientChanges(name=_DEMO, redirect_uris=(redirect_uri,), auth_method="none")
    client, _ = await clients.create_client(itself, project_id, wanted)
    return client
