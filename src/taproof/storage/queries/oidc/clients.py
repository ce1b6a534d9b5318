"""The OpenID Connect clients of projects. Deleting a project deletes its clients: see `queries/projects.py`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from taproof.core.accounts import AuditEntry
from taproof.core.oidc.clients import CLIENT_LIMIT, ClientChanges, ClientSecret, OidcClient, SignInClient
from taproof.core.oidc.groups import Groups
from taproof.core.oidc.model import REFUSAL_KEPT_FOR, RefusedMethod
from taproof.storage.queries.database import Queries, point_read
from taproof.storage.queries.oidc.grants import OF_USER_AT_CLIENT, end_grants
from taproof.storage.queries.rights import change_as_member, require_role
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import client_change_values, client_from, client_values, sign_in_client_from

_COLUMNS: Final = (
    *("id", "project_id", "name", "redirect_uris", "auth_method", "signing_alg", "email", "id_token_lifetime"),
    *("grant_types", "secret_preview", "created_at", "post_logout_redirect_uris", "backchannel_logout_uri"),
)
# A text with a line for each row, so that no sign-in needs a second read.
_GROUPS: Final = """(
  SELECT string_agg(g.is_allowed || ' ' || g.messenger_id || ' ' || g.group_name, '\n'
    ORDER BY g.group_name, g.messenger_id)
  FROM oidc_group_members g WHERE g.client_id = c.id)"""
_CLIENT: Final = f"{', '.join(f'c.{name}' for name in _COLUMNS)}, {_GROUPS}"
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
READ_CHANGED: Final = f"SELECT {_CLIENT} FROM oidc_clients c WHERE c.id = $1"
LIST_CLIENTS: Final = f"""
SELECT {_CLIENT} FROM oidc_clients c JOIN project_members m ON m.project_id = c.project_id
WHERE m.developer_id = $1 AND c.project_id = $2 ORDER BY c.created_at, c.id"""
_CHANGED: Final = (
    *("name", "redirect_uris", "auth_method", "signing_alg", "email", "id_token_lifetime", "grant_types"),
    *("post_logout_redirect_uris", "backchannel_logout_uri"),
)
_METHOD: Final = f"COALESCE(${_CHANGED.index('auth_method') + 1}, auth_method)"
_GRANT_TYPES: Final = f"COALESCE(${_CHANGED.index('grant_types') + 1}, grant_types)"
# A client without a secret gets the given one with its new method. A client that has one keeps it. Without the grant
# type, `devices_since` becomes null, which ends the sign-ins of devices: see `queries/oidc/authorizations.py`. Another
# `version` ends the grants of users: see `queries/oidc/grants.py`.
UPDATE_CLIENT: Final = f"""
UPDATE oidc_clients SET {", ".join(f"{name} = COALESCE(${index}, {name})" for index, name in enumerate(_CHANGED, 1))},
  secret_hash = CASE {_METHOD} WHEN 'none' THEN NULL ELSE COALESCE(secret_hash, $10) END,
  secret_preview = CASE {_METHOD} WHEN 'none' THEN NULL ELSE COALESCE(secret_preview, $11) END,
  devices_since = CASE WHEN {_GRANT_TYPES} LIKE '%device_code%' THEN COALESCE(devices_since, $12) END,
  refused_method = CASE {_METHOD} WHEN auth_method THEN refused_method END,
  refused_at = CASE {_METHOD} WHEN auth_method THEN refused_at END,
  version = version + CASE WHEN ({_METHOD} = 'none') <> (secret_hash IS NULL)
    OR (grant_types LIKE '%refresh_token%' AND {_GRANT_TYPES} NOT LIKE '%refresh_token%') THEN 1 ELSE 0 END
WHERE id = $13 AND project_id = $14
RETURNING id"""
LOCK_CLIENT: Final = "SELECT 1 FROM oidc_clients WHERE id = $1 AND project_id = $2"
DELETE_CLIENT: Final = "DELETE FROM oidc_clients WHERE id = $1 AND project_id = $2 RETURNING id"
DELETE_CLIENTS: Final = "DELETE FROM oidc_clients WHERE project_id = $1 RETURNING id"
DELETE_GROUPS: Final = "DELETE FROM oidc_group_members WHERE client_id = $1"
ADD_GROUP_MEMBER: Final = """
INSERT INTO oidc_group_members (client_id, messenger_id, group_name, is_allowed) VALUES ($1, $2, $3, $4)"""
REPLACE_CLIENT_SECRET: Final = """
UPDATE oidc_clients SET secret_hash = $1, secret_preview = $2, version = version + 1
WHERE id = $3 AND project_id = $4 AND auth_method <> 'none' RETURNING id"""
RECORD_REFUSED_METHOD: Final = """
UPDATE oidc_clients SET refused_method = $1, refused_at = $2
WHERE id = $3 AND auth_method = $4 AND (refused_at IS NULL OR refused_at <= $5 OR refused_method <> $1) RETURNING id"""
READ_REFUSED_METHOD: Final = (
    "SELECT refused_method, refused_at FROM oidc_clients WHERE id = $1 AND refused_at IS NOT NULL"
)


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
            await _store_groups(transaction, client.id, client.groups)
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
        All grants of users end if it takes the grant `refresh_token`, or if the client gets or loses its secret. Those
        of users who leave the allowed groups end too, and the client is told.

        Raises:
            InvalidRequest: an allowed group is no group of the client.
        """
        values = (*client_change_values(changes), *(secret or (None, None)), now, client_id, project_id)

        async def change(transaction: Transaction) -> OidcClient | None:
            if not await require_role(transaction, developer_id, project_id, "write"):
                return None
            if not await transaction.fetch(UPDATE_CLIENT, *values):
                return None
            client = client_from((await transaction.fetch(READ_CHANGED, client_id))[0])
            await transaction.add_entry(entry)
            if changes.groups is None and changes.allowed_groups is None:
                return client
            groups = client.groups.changed(changes.groups, changes.allowed_groups)
            await _change_groups(transaction, client, groups, now)
            return replace(client, groups=groups)

        return await self._database.in_transaction(change)

    async def edit_groups(
        self,
        developer_id: str,
        project_id: str,
        client_id: str,
        edit: Callable[[Groups], Groups],
        now: int,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Change the groups of a client to what `edit` returns for its current groups. Errors of `edit` are passed on.

        The grants of users who leave the allowed groups end at `now` (ms), and the client is told. Return False if this
        developer's project has no such client.
        """

        async def change(transaction: Transaction) -> bool:
            if not await require_role(transaction, developer_id, project_id, "write"):
                return False
            if not await transaction.lock(LOCK_CLIENT, client_id, project_id):
                return False
            client = client_from((await transaction.fetch(READ_CHANGED, client_id))[0])
            groups = edit(client.groups)
            if groups != client.groups:
                await _change_groups(transaction, client, groups, now)
                await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(change)

    async def record_refused_method(self, client_id: str, refused: RefusedMethod, auth_method: str) -> bool:
        """Record that a client authenticated with the wrong method, unless the same was recorded within the hour.

        Return False if nothing was recorded, also because the client has another `auth_method` now. A change of it
        erases what was recorded.
        """
        values = (*refused, client_id, auth_method, refused.at - REFUSAL_KEPT_FOR)
        return bool(await self._database.change(RECORD_REFUSED_METHOD, *values))

    async def read_refused_method(self, client_id: str) -> RefusedMethod | None:
        """Return how a client last authenticated with the wrong method."""
        found = await self._database.read(READ_REFUSED_METHOD, client_id)
        return RefusedMethod(*found[0]) if found else None

    async def delete_client(
        self, developer_id: str, project_id: str, client_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """Delete a client. Return False if this developer's project has no such client."""

        async def delete(transaction: Transaction) -> bool:
            if not await require_role(transaction, developer_id, project_id, "write"):
                return False
            if not await transaction.fetch(DELETE_CLIENT, client_id, project_id):
                return False
            await transaction.fetch(DELETE_GROUPS, client_id)
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(delete)

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


async def delete_clients(transaction: Transaction, project_id: str) -> None:
    """Delete all clients of a project."""
    for (client_id,) in await transaction.fetch(DELETE_CLIENTS, project_id):
        await transaction.fetch(DELETE_GROUPS, client_id)


async def _change_groups(transaction: Transaction, client: OidcClient, groups: Groups, now: int) -> None:
    """Replace the groups of a client, and end the grants of the members who may no longer sign in.

    Users who were in no group before keep their grants, which give nothing while other groups are allowed: see
    `REFRESH_GRANT`. So the cost depends on the number of members only.
    """
    await _store_groups(transaction, client.id, groups)
    members = sorted({each for ids in client.groups.members.values() for each in ids})
    for messenger_id in members:
        if client.groups.admits(messenger_id) and not groups.admits(messenger_id):
            await transaction.lock_user(client.project_id, messenger_id)
            values = (messenger_id, client.project_id, client.id)
            await end_grants(transaction, OF_USER_AT_CLIENT, values, now, "removed")


async def _store_groups(transaction: Transaction, client_id: str, groups: Groups) -> None:
    """Replace the groups of a client, whose row this transaction has locked."""
    await transaction.fetch(DELETE_GROUPS, client_id)
    for messenger_id, name, is_allowed in groups.rows():
        await transaction.add(ADD_GROUP_MEMBER, client_id, messenger_id, name, int(is_allowed))
