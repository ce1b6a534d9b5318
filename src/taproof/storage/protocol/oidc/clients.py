"""The interface of `store.oidc_clients`."""

from typing import Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.oidc.clients import CLIENT_LIMIT, ClientChanges, ClientSecret, OidcClient, SignInClient


class OidcClientStorage(Protocol):
    """The OpenID Connect clients of projects. Deleting a project deletes its clients."""

    async def create_client(
        self,
        developer_id: str,
        client: OidcClient,
        secret_hash: bytes | None,
        *,
        limit: int = CLIENT_LIMIT,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Store a client. Return False if this developer has no such project, or if it has `limit` clients."""

    async def read_client(self, client_id: str) -> SignInClient | None:
        """Return a client with its secret's hash and the data of its project. Every sign-in needs this read."""

    async def list_clients(self, developer_id: str, project_id: str) -> list[OidcClient]:
        """Return the clients of a developer's project, oldest first."""

    async def update_client(
        self,
        developer_id: str,
        project_id: str,
        client_id: str,
        changes: ClientChanges,
        now: int,
        *,
        secret: ClientSecret | None = None,
        entry: AuditEntry | None = None,
    ) -> OidcClient | None:
        """Change the fields that are not None. Return None if this developer's project has no such client.

        If the new `auth_method` is "none", the client's secret is erased. Otherwise, a client that has no secret gets
        `secret`. A change to an `auth_method` with a secret must give one, because the client may have none.

        Sign-ins of devices that began before `now` (ms) end if the change takes the grant `device_code` or gives it.
        """

    async def delete_client(
        self, developer_id: str, project_id: str, client_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """Delete a client. Return False if this developer's project has no such client."""

    async def regenerate_client_secret(
        self,
        developer_id: str,
        project_id: str,
        client_id: str,
        secret: ClientSecret,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Replace a client's secret. Return False if this developer's project has no such client with a secret."""
