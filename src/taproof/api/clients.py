"""The developer endpoints of a project's OpenID Connect clients (contract.md, OpenID provider).

`developer.py` authenticates each request and registers the routes.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

from taproof.api.models import DeletedAnswer, answer_model, described_as, list_model, request_model
from taproof.api.parameters import Caller, ProjectId, Writer, json_body
from taproof.contract.client import CLIENT_ID, ChangedOidcClient, ClientSecret, ClientUpdate, OidcClient
from taproof.contract.fields import described
from taproof.core.oidc.clients import client_changes
from taproof.service import json_fields
from taproof.service.oidc.clients import OidcClients

TAG: Final = "OpenID Connect clients"
ClientId = Annotated[str, described_as(CLIENT_ID)]
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


class ClientEndpoints:
    """The endpoints, one method each."""

    def __init__(self, clients: OidcClients) -> None:
        self._clients = clients

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

        With auth_method none, its secret is erased. A client without a secret gets one with basic or post.
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
        """Replace the client's secret. The old one stops working immediately. Takes no body."""
        secret = await self._clients.regenerate_client_secret(writer, project_id, client_id)
        return {"client_secret": secret}

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
        add(TAG, "POST", f"{client}/regenerate", cls.regenerate_client_secret, ClientSecretAnswer)
