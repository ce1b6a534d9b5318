"""The developer endpoints of a project's OpenID Connect clients (contract.md, OpenID provider).

`developer.py` authenticates each request and registers the routes.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

from taproof.api.models import DeletedAnswer, answer_model, described_as, list_model, request_model
from taproof.api.parameters import Caller, Cursor, Limit, ProjectId, Writer, json_body
from taproof.contract.client import (
    CLIENT_ID,
    GRANT_ID,
    ChangedOidcClient,
    ClientSecret,
    ClientUpdate,
    OidcClient,
    OidcGrant,
)
from taproof.contract.fields import described
from taproof.core.oidc.clients import client_changes
from taproof.service import json_fields
from taproof.service.oidc.client_grants import ClientGrants
from taproof.service.oidc.clients import OidcClients

TAG: Final = "OpenID Connect clients"
ClientId = Annotated[str, described_as(CLIENT_ID)]
GrantId = Annotated[str, described_as(GRANT_ID)]
_CHANGES: Final = described(ClientUpdate)
CreateClient: Final = request_model("CreateClient", "A new client.", _CHANGES, required=["name", "redirect_uris"])
UpdateClient: Final = request_model(
    "UpdateClient", "Changes to a client. Omitted fields keep their values.", _CHANGES, is_new=False
)
ClientAnswer: Final = answer_model("ClientAnswer", OidcClient, ClientUpdate)
ClientWithSecretAnswer: Final = answer_model("ClientWithSecretAnswer", ChangedOidcClient, ClientUpdate)
ClientSecretAnswer: Final = answer_model("ClientSecretAnswer", ClientSecret)
ClientListAnswer: Final = list_model(
    "ClientListAnswer", "All clients of a project, oldest first.", "clients", ClientAnswer
)
GrantPageAnswer: Final = list_model(
    "GrantPageAnswer",
    "A page of the users who are signed in to a client, the latest sign-in first.",
    "grants",
    answer_model("GrantAnswer", OidcGrant),
    in_pages=True,
)


class ClientEndpoints:
    """The endpoints, one method each."""

    def __init__(self, clients: OidcClients, grants: ClientGrants) -> None:
        self._clients = clients
        self._grants = grants

    async def list_clients(self, caller: Caller, project_id: ProjectId) -> dict[str, Any]:
        """Return all OpenID Connect clients of a project, oldest first."""
        found = await self._clients.list_clients(caller, project_id)
        return {"clients": [json_fields.client(each) for each in found]}

    async def create_client(
        self, writer: Writer, project_id: ProjectId, body: Annotated[dict[str, Any], json_body(CreateClient)]
    ) -> dict[str, Any]:
        """Create an OpenID Connect client. Keep its client_secret: it is shown only once."""
        created = await self._clients.create_client(writer, project_id, client_changes(body))
        return json_fields.client(*created)

    async def read_client(self, caller: Caller, project_id: ProjectId, client_id: ClientId) -> dict[str, Any]:
        """Return one OpenID Connect client."""
        return json_fields.client(await self._clients.read_client(caller, project_id, client_id))

    async def update_client(
        self,
        writer: Writer,
        project_id: ProjectId,
        client_id: ClientId,
        body: Annotated[dict[str, Any], json_body(UpdateClient)],
    ) -> dict[str, Any]:
        """Change an OpenID Connect client. Omitted fields keep their values.

        With auth_method none, its secret is erased. A client without a secret gets one with any other auth_method.
        """
        changed = await self._clients.update_client(writer, project_id, client_id, client_changes(body))
        return json_fields.client(*changed)

    async def delete_client(self, writer: Writer, project_id: ProjectId, client_id: ClientId) -> DeletedAnswer:
        """Delete an OpenID Connect client. Applications that use it can no longer sign users in."""
        await self._clients.delete_client(writer, project_id, client_id)
        return DeletedAnswer(deleted=True)

    async def regenerate_client_secret(
        self, writer: Writer, project_id: ProjectId, client_id: ClientId
    ) -> dict[str, Any]:
        """Replace the client's secret. The old one and all refresh tokens stop working immediately. Takes no body."""
        secret = await self._clients.regenerate_client_secret(writer, project_id, client_id)
        return {"client_secret": secret}

    async def list_grants(
        self, caller: Caller, project_id: ProjectId, client_id: ClientId, *, limit: Limit = 50, cursor: Cursor = None
    ) -> dict[str, Any]:
        """Return the sign-ins at a client that can be ended, the latest first.

        These are the sign-ins with a refresh token, or all of them if the client has a backchannel_logout_uri.
        """
        page = await self._grants.list_grants(caller, project_id, client_id, limit=limit, cursor=cursor)
        return {"grants": [json_fields.grant(each) for each in page.grants], "next_cursor": page.next_cursor}

    async def end_grant(
        self, writer: Writer, project_id: ProjectId, client_id: ClientId, grant_id: GrantId
    ) -> DeletedAnswer:
        """Sign a user out of a client.

        Its tokens stop working immediately, and its backchannel_logout_uri is notified.
        """
        await self._grants.end_grant(writer, project_id, client_id, grant_id)
        return DeletedAnswer(deleted=True)

    @classmethod
    def add_routes(cls, add: Callable[..., None]) -> None:
        """Register every endpoint at its path with `add`, as `developer.py` does."""
        clients = "/projects/{project_id}/clients"
        client = f"{clients}/{{client_id}}"
        add(TAG, "GET", clients, cls.list_clients, ClientListAnswer)
        add(TAG, "POST", clients, cls.create_client, ClientWithSecretAnswer)
        add(TAG, "GET", client, cls.read_client, ClientAnswer)
        add(TAG, "PATCH", client, cls.update_client, ClientWithSecretAnswer)
        add(TAG, "DELETE", client, cls.delete_client)
        add(TAG, "GET", f"{client}/grants", cls.list_grants, GrantPageAnswer)
        add(TAG, "DELETE", f"{client}/grants/{{grant_id}}", cls.end_grant)
        add(TAG, "POST", f"{client}/regenerate", cls.regenerate_client_secret, ClientSecretAnswer)
