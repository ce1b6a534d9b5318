"""The OpenID Connect clients of projects. Deleting a project deletes its clients: see `queries/projects.py`."""

from typing import Final

from taproof.core.accounts import AuditEntry
from taproof.core.oidc.clients import CLIENT_LIMIT, ClientChanges, ClientSecret, OidcClient, SignInClient
from taproof.storage.queries.database import Queries, point_read
from taproof.storage.queries.rights import change_as_member, require_role
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import client_change_values, client_from, client_values, sign_in_client_from

_COLUMNS: Final = (
    *("id", "project_id", "name", "redirect_uris", "auth_method", "signing_alg", "email", "id_token_lifetime"),
    *("grant_types", "secret_preview", "created_at", "post_logout_redirect_uris", "backchannel_logout_uri"),
)
_CLIENT: Final = ", ".join(f"c.{name}" for name in _COLUMNS)
# The lock makes a second call count after the first commits, and a deletion of the project find the new client.
FIND_PROJECT: Final = "SELECT 1 FROM projects WHERE id = $1"
CREATE_CLIENT: Final = f"""
INSERT INTO oidc_clients ({", ".join(_COLUMNS)}, secret_hash, devices_since)
SELECT {", ".join(f"${index}" for index in range(1, len(_COLUMNS) + 3))}
WHERE (SELECT COUNT(*) FROM oidc_clients WHERE project_id = $2) < ${len(_COLUMNS) + 3} RETURNING id"""
READ_CLIENT: Final = point_read(
    sign_in_client_from,
    f"""{_CLIENT}, c.version, c.secret_hash, c.devices_since, p.developer_id, p.name, p.is_active, p.public_access,
  p.same_device, p.texts, p.logo_url""",
    "oidc_clients c JOIN projects p ON p.id = c.project_id",
    "c.id",
)
LIST_CLIENTS: Final = f"""
SELECT {_CLIENT} FROM oidc_clients c JOIN project_members m ON m.project_id = c.project_id
WHERE m.developer_id = $1 AND c.project_id = $2 ORDER BY c.created_at, c.id"""
_CHANGED: Final = (
    *("name", "redirect_uris", "auth_method", "signing_alg", "email", "id_token_lifetime", "grant_types"),
    *("post_logout_redirect_uris", "backchannel_logout_uri"),
)
_METHOD: Final = f"COALESCE(${_CHANGED.index('auth_method') + 1}, auth_method)"
_GRANTS: Final = f"COALESCE(${_CHANGED.index('grant_types') + 1}, grant_types)"
# A client without a secret gets the given one with its new method. A client that has one keeps it. Without the grant,
# `devices_since` becomes null, which ends the sign-ins of devices: see `queries/oidc/authorizations.py`. Another
# `version` ends the grants of users: see `queries/oidc/grants.py`.
UPDATE_CLIENT: Final = f"""
UPDATE oidc_clients SET {", ".join(f"{name} = COALESCE(${index}, {name})" for index, name in enumerate(_CHANGED, 1))},
  secret_hash = CASE {_METHOD} WHEN 'none' THEN NULL ELSE COALESCE(secret_hash, $10) END,
  secret_preview = CASE {_METHOD} WHEN 'none' THEN NULL ELSE COALESCE(secret_preview, $11) END,
  devices_since = CASE WHEN {_GRANTS} LIKE '%device_code%' THEN COALESCE(devices_since, $12) END,
  version = version + CASE WHEN ({_METHOD} = 'none') <> (secret_hash IS NULL)
    OR (grant_types LIKE '%refresh_token%' AND {_GRANTS} NOT LIKE '%refresh_token%') THEN 1 ELSE 0 END
WHERE id = $13 AND project_id = $14
RETURNING {", ".join(_COLUMNS)}"""
DELETE_CLIENT: Final = "DELETE FROM oidc_clients WHERE id = $1 AND project_id = $2 RETURNING id"
DELETE_CLIENTS: Final = "DELETE FROM oidc_clients WHERE project_id = $1"
REPLACE_CLIENT_SECRET: Final = """
UPDATE oidc_clients SET secret_hash = $1, secret_preview = $2, version = version + 1
WHERE id = $3 AND project_id = $4 AND auth_method <> 'none' RETURNING id"""


class OidcClientQueries(Queries):
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

        async def create(transaction: Transaction) -> bool:
            if not await require_role(transaction, developer_id, client.project_id, "write"):
                return False
            if not await transaction.lock(FIND_PROJECT, client.project_id):
                return False
            since = client.created_at if "device_code" in client.grant_types else None
            if not await transaction.add(CREATE_CLIENT, *client_values(client), secret_hash, since, limit):
                return False
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(create)

    async def read_client(self, client_id: str) -> SignInClient | None:
        """Return a client with its secret's hash and the data of its project. Every sign-in needs this read."""
        return await self._database.find(READ_CLIENT, client_id)

    async def list_clients(self, developer_id: str, project_id: str) -> list[OidcClient]:
        """Return the clients of a developer's project, oldest first."""
        return [client_from(row) for row in await self._database.read(LIST_CLIENTS, developer_id, project_id)]

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
        All grants of users end if it takes the grant `refresh_token`, or if the client gets or loses its secret.
        """
        member = (developer_id, project_id)
        values = (*client_change_values(changes), *(secret or (None, None)), now, client_id, project_id)
        changed = await change_as_member(self._database, member, "write", UPDATE_CLIENT, *values, entry=entry)
        return client_from(changed[0]) if changed else None

    async def delete_client(
        self, developer_id: str, project_id: str, client_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """Delete a client. Return False if this developer's project has no such client."""
        member, values = (developer_id, project_id), (client_id, project_id)
        return bool(await change_as_member(self._database, member, "write", DELETE_CLIENT, *values, entry=entry))

    async def regenerate_client_secret(
        self,
        developer_id: str,
        project_id: str,
        client_id: str,
        secret: ClientSecret,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Replace a client's secret, which ends all grants of its users.

        Return False if this developer's project has no such client with a secret.
        """
        member, values = (developer_id, project_id), (*secret, client_id, project_id)
        changed = await change_as_member(self._database, member, "write", REPLACE_CLIENT_SECRET, *values, entry=entry)
        return bool(changed)
