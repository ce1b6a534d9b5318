"""Prepares the store of a sandbox: a developer with an access token, and a project with a client for the demo."""

from dataclasses import dataclass
from typing import Final

from taproof.core.accounts import Actor, Developer
from taproof.core.errors import DeveloperExists, InvalidAccessToken, InvalidRequest, TooManyClients
from taproof.core.oidc.clients import ClientChanges, OidcClient
from taproof.core.projects import Project, ProjectChanges
from taproof.service.developers import Developers
from taproof.service.oidc.clients import OidcClients
from taproof.service.projects import Projects

EMAIL: Final = "sandbox@localhost"
DEMO_PATH: Final = "/demo"
_DEMO: Final = "Kite & Kettle"
"""The name of the demo's shop, its project and its client."""
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


async def seed(
    developers: Developers, projects: Projects, clients: OidcClients, base_url: str, kept_token: str | None = None
) -> Seed:
    """Find or create the developer, the project and its client.

    `kept_token`, from an earlier start, stays the developer's access token if it still works. Otherwise, a new one
    replaces those of earlier starts.
    """
    try:
        developer = await developers.create_developer(EMAIL, "business", via="service")
    except DeveloperExists:
        developer = await developers.read_developer(EMAIL)
    itself = Actor(developer, "service")
    access_token = kept_token if kept_token is not None and await _works(developers, kept_token, developer) else None
    if access_token is None:
        for token in await developers.list_access_tokens(developer.id):
            if token.name == _TOKEN_NAME:
                await developers.delete_access_token(itself, token.id)
        access_token = (await developers.create_access_token(itself, _TOKEN_NAME)).plaintext
    project = next((each for each in await projects.list_projects(developer) if each.name == _DEMO), None)
    if project is None:
        project, _ = await projects.create_project(itself, ProjectChanges(name=_DEMO))
    try:
        client = await _seed_client(clients, itself, project.id, f"{base_url}{DEMO_PATH}")
    except (InvalidRequest, TooManyClients):  # The rest of the sandbox works without the client.
        client = None
    return Seed(developer, project, access_token, client)


async def _works(developers: Developers, access_token: str, developer: Developer) -> bool:
    try:
        _, owner = await developers.authenticate(access_token)
    except InvalidAccessToken:
        return False
    return owner.id == developer.id


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
