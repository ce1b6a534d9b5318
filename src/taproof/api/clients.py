"""The developer endpoints of a project's OpenID Connect clients (contract.md, OpenID provider).

`developer.py` authenticates each request and registers the routes. The models follow the rules in `schemas.py`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, WithJsonSchema

from taproof.api.parameters import Caller, Writer, json_body
from taproof.api.schemas import DeletedAnswer, Name, ProjectId, StrictRequest, Time
from taproof.core.oidc.clients import (
    CLIENT_DEFAULTS,
    GRANT_TYPES,
    MAX_LIFETIME,
    MIN_LIFETIME,
    AuthMethod,
    ClientChanges,
    EmailClaim,
    SigningAlg,
)
from taproof.core.oidc.redirect_uris import REDIRECT_URI_LENGTH, REDIRECT_URIS_LIMIT
from taproof.service import json_fields
from taproof.service.oidc.clients import OidcClients

TAG: Final = "OpenID Connect clients"
_AFTER_HOST: Final = r"(:[0-9]{1,5})?([/?][!$-)+-;=?-\[\]_a-z~%@]*)?"
_REDIRECT_URI: Final = (
    rf"^(https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+){_AFTER_HOST}|http://(127\.0\.0\.1|\[::1\]|localhost){_AFTER_HOST}"
    r"|[a-z][a-z0-9-]*(\.[a-z0-9-]+)+:[!$-)+-;=?-\[\]_a-z~%@]*)$"
)

ClientId = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": "^oidc_[A-Za-z0-9]{16,40}$"}),
    Field(description="The client's id.", examples=["oidc_6Fh2YzQw8sVb1KdTnXcR3L"]),
]
RedirectUris = Annotated[
    list[str],
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string", "maxLength": REDIRECT_URI_LENGTH, "pattern": _REDIRECT_URI},
            "minItems": 1,
            "maxItems": REDIRECT_URIS_LIMIT,
        }
    ),
    Field(
        description="The addresses to which users can return. A sign-in must name one of them exactly, except for the "
        "port of a loopback address. https://; http:// for 127.0.0.1, [::1] and localhost only; or an app's own scheme "
        "that contains a dot.",
        examples=[["https://grafana.example/login/generic_oauth"]],
    ),
]
Method = Annotated[
    AuthMethod,
    Field(
        description="How the client sends its secret to the token endpoint: basic (in the Authorization header), post "
        "(in the body), or none. A client without a secret, such as an app or a page, must use PKCE."
    ),
]
Algorithm = Annotated[SigningAlg, Field(description="The algorithm that signs the client's ID tokens.")]
Email = Annotated[
    EmailClaim,
    Field(
        description="synthetic: ID tokens contain an e-mail address made from the user's id, with email_verified "
        "false. No message can be sent to it."
    ),
]
Lifetime = Annotated[
    int,
    WithJsonSchema({"type": "integer", "minimum": MIN_LIFETIME, "maximum": MAX_LIFETIME}),
    Field(description="The lifetime of ID tokens in seconds.", examples=[CLIENT_DEFAULTS.id_token_lifetime]),
]
GrantTypes = Annotated[
    list[str],
    WithJsonSchema({"type": "array", "items": {"type": "string", "enum": list(GRANT_TYPES)}, "minItems": 1}),
    Field(
        description="How the client signs users in, at least one: authorization_code (in a browser), device_code (on a "
        "device that shows a code, RFC 8628). Any other use is refused with unauthorized_client. Removing one ends the "
        "sign-ins that use it. The order and duplicates do not matter.",
        examples=[list(CLIENT_DEFAULTS.grant_types or ())],
    ),
]


class _ClientRequest(StrictRequest):
    def as_changes(self) -> ClientChanges:
        """Return the fields that were sent, in the form that the services accept."""
        fields: dict[str, Any] = self.model_dump(exclude_unset=True)
        for name in ("redirect_uris", "grant_types"):
            if name in fields:
                fields[name] = tuple(fields[name])
        return ClientChanges(**fields)


class CreateClient(_ClientRequest):
    """A new client."""

    name: Name = Field(description="The name of the application, up to 100 characters.", examples=["Grafana"])
    redirect_uris: RedirectUris
    auth_method: Method = "basic"
    signing_alg: Algorithm = "RS256"
    email: Email = "none"
    id_token_lifetime: Lifetime = 3600
    grant_types: GrantTypes = Field(default_factory=lambda: ["authorization_code"])


class UpdateClient(_ClientRequest):
    """Changes to a client. Omitted fields keep their values."""

    name: Name = Field(default_factory=str, description="The name of the application.", examples=["Grafana"])
    redirect_uris: RedirectUris = Field(default_factory=list)
    auth_method: Method = Field(default_factory=lambda: "basic")
    signing_alg: Algorithm = Field(default_factory=lambda: "RS256")
    email: Email = Field(default_factory=lambda: "none")
    id_token_lifetime: Lifetime = Field(default_factory=int)
    grant_types: GrantTypes = Field(default_factory=list)


class ClientAnswer(BaseModel):
    """A client, with a preview of its secret."""

    client_id: ClientId
    name: str = Field(examples=["Grafana"])
    redirect_uris: RedirectUris
    auth_method: Method
    signing_alg: Algorithm
    email: Email
    id_token_lifetime: Lifetime
    grant_types: GrantTypes
    client_secret_preview: str | None = Field(description="null: the client has no secret.", examples=["ocs_a1B2…Wx9z"])
    created_at: Time


class ClientWithSecretAnswer(ClientAnswer):
    """A client and, if it has a new one, its secret. The secret is shown only once."""

    client_secret: str = Field(
        default_factory=str,
        description="Shown only once. Omitted if the client has no secret, or keeps the one it has.",
        examples=["ocs_" + "a1B2c3D" * 7],
    )


class ClientSecretAnswer(BaseModel):
    """A client's new secret, shown only once."""

    client_secret: str = Field(description="Shown only once.", examples=["ocs_" + "a1B2c3D" * 7])


class ClientListAnswer(BaseModel):
    """All clients of a project, oldest first."""

    clients: list[ClientAnswer]


class ClientEndpoints:
    """The endpoints, one method each."""

    def __init__(self, clients: OidcClients) -> None:
        self._clients = clients

    async def list_clients(self, caller: Caller, project_id: ProjectId) -> ClientListAnswer:
        """Return all OpenID Connect clients of a project, oldest first."""
        found = await self._clients.list_clients(caller, project_id)
        return ClientListAnswer(clients=[ClientAnswer(**json_fields.client(each)) for each in found])

    async def create_client(
        self, writer: Writer, project_id: ProjectId, body: Annotated[CreateClient, json_body(CreateClient)]
    ) -> ClientWithSecretAnswer:
        """Create an OpenID Connect client. Keep its client_secret: it is shown only once."""
        created = await self._clients.create_client(writer, project_id, body.as_changes())
        return ClientWithSecretAnswer(**json_fields.client_with_secret(*created))

    async def read_client(self, caller: Caller, project_id: ProjectId, client_id: ClientId) -> ClientAnswer:
        """Return one OpenID Connect client."""
        return ClientAnswer(**json_fields.client(await self._clients.read_client(caller, project_id, client_id)))

    async def update_client(
        self,
        writer: Writer,
        project_id: ProjectId,
        client_id: ClientId,
        body: Annotated[UpdateClient, json_body(UpdateClient)],
    ) -> ClientWithSecretAnswer:
        """Change an OpenID Connect client. Omitted fields keep their values.

        With auth_method none, its secret is erased. A client without a secret gets one with basic or post.
        """
        changed = await self._clients.update_client(writer, project_id, client_id, body.as_changes())
        return ClientWithSecretAnswer(**json_fields.client_with_secret(*changed))

    async def delete_client(self, writer: Writer, project_id: ProjectId, client_id: ClientId) -> DeletedAnswer:
        """Delete an OpenID Connect client. Applications that use it can no longer sign users in."""
        await self._clients.delete_client(writer, project_id, client_id)
        return DeletedAnswer(deleted=True)

    async def regenerate_client_secret(
        self, writer: Writer, project_id: ProjectId, client_id: ClientId
    ) -> ClientSecretAnswer:
        """Replace the client's secret. The old one stops working immediately. Takes no body."""
        secret = await self._clients.regenerate_client_secret(writer, project_id, client_id)
        return ClientSecretAnswer(client_secret=secret)

    def add_routes(self, add: Callable[..., None]) -> None:
        """Register every endpoint at its path with `add`, as `DeveloperApi` does."""
        clients = "/projects/{project_id}/clients"
        client = f"{clients}/{{client_id}}"
        add(TAG, "GET", clients, self.list_clients)
        add(TAG, "POST", clients, self.create_client, CreateClient)
        add(TAG, "GET", client, self.read_client)
        add(TAG, "PATCH", client, self.update_client, UpdateClient)
        add(TAG, "DELETE", client, self.delete_client)
        add(TAG, "POST", f"{client}/regenerate", self.regenerate_client_secret)
