"""The OpenID Connect clients of a project and their secrets (contract.md, OpenID provider)."""

import dataclasses
from collections.abc import Callable
from typing import Final

from taproof.contract.audit import AuditAction
from taproof.core.accounts import Actor, AuditEntry, Developer
from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import ClientNotFound, InvalidRequest, TooManyClients
from taproof.core.identifiers import is_client_id, key_hash, key_preview, new_id, new_key
from taproof.core.oidc.clients import (
    CLIENT_DEFAULTS,
    ClientChanges,
    ClientSecret,
    OidcClient,
    checked_changes,
)
from taproof.core.oidc.groups import NO_GROUPS, Groups
from taproof.core.oidc.model import RefusedMethod
from taproof.core.roles import ProjectAction
from taproof.service.audit import audit_entry
from taproof.service.project_access import read_project_for, reading_project
from taproof.storage.protocol import Storage

_PUBLIC: Final = 'This client has no secret, because its auth_method is "none".'


class OidcClients:
    """Creates, changes and deletes clients.

    A method that takes a project id raises InvalidRequest if the id is malformed, ProjectNotFound if the developer has
    no such project, and InsufficientRole if their role does not permit the change. A malformed client id also raises
    InvalidRequest, and an unknown one ClientNotFound. A call that raises changes nothing.

    A new secret is returned in plaintext, and cannot be retrieved later.
    """

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    async def create_client(
        self, actor: Actor, project_id: str, wanted: ClientChanges
    ) -> tuple[OidcClient, str | None]:
        """Create a client, and return it with its secret; None for a public client.

        Raises:
            InvalidRequest: a field is invalid; the error's sentence names it.
            TooManyClients: the project has `CLIENT_LIMIT` clients.
        """
        await read_project_for(self._storage, actor.developer, project_id, "write")
        wanted = checked_changes(
            dataclasses.replace(wanted, name=wanted.name or "", redirect_uris=wanted.redirect_uris or ())
        )
        settings = {**CLIENT_DEFAULTS.given(), **wanted.given()}
        told = settings | _logged(wanted)
        groups = NO_GROUPS.changed(settings.pop("groups"), settings.pop("allowed_groups"))
        plaintext, secret = (None, None) if settings["auth_method"] == "none" else self._new_secret()
        now = self._clock()
        client = OidcClient(
            id=new_id("oidc", self._entropy),
            project_id=project_id,
            secret_preview=secret.preview if secret else None,
            created_at=now,
            groups=groups,
            **settings,
        )
        entry = self._entry(actor, "client.created", client, told, now)
        secret_hash = secret.hash if secret else None
        if not await self._storage.oidc_clients.create_client(actor.developer.id, client, secret_hash, entry=entry):
            await read_project_for(self._storage, actor.developer, project_id)  # It may have been deleted just now.
            raise TooManyClients
        return client, plaintext

    async def list_clients(self, developer: Developer, project_id: str) -> list[OidcClient]:
        """Return the clients of a project, oldest first."""
        async with reading_project(self._storage, developer, project_id):
            return await self._storage.oidc_clients.list_clients(developer.id, project_id)

    async def read_client(
        self, developer: Developer, project_id: str, client_id: str, action: ProjectAction = "read"
    ) -> OidcClient:
        """Return one client to a developer whose role permits `action`."""
        async with reading_project(self._storage, developer, project_id, action):
            if not is_client_id(client_id):
                raise InvalidRequest("The client id must be oidc_ followed by 16 to 40 letters and digits.")
            found = await self._storage.oidc_clients.read_client(client_id)
        if found is None or found.client.project_id != project_id:
            raise ClientNotFound
        return found.client

    async def read_refused_method(self, client: OidcClient) -> RefusedMethod | None:
        """Return how a client last authenticated with the wrong method."""
        return await self._storage.oidc_clients.read_refused_method(client.id)

    async def update_client(
        self, actor: Actor, project_id: str, client_id: str, changes: ClientChanges
    ) -> tuple[OidcClient, str | None]:
        """Change the fields that are not None, and return the client with its new secret; None if it has no new one.

        A public client gets a secret with any `auth_method` but "none", which erases the secret. Without
        a grant, sign-ins that use it end.

        Raises:
            InsufficientScope: the acting credential may only read.
            InvalidRequest: a field is invalid; the error's sentence names it.
        """
        actor.grant.require("write")  # Also for an empty request, because the response contains the whole client.
        client = await self.read_client(actor.developer, project_id, client_id, "write")
        changes = checked_changes(changes)
        # The client may become public after it was read, so any change to a method with a secret brings one.
        plaintext, secret = self._new_secret() if changes.auth_method not in {None, "none"} else (None, None)
        details = changes.given() | _logged(changes)
        now = self._clock()
        entry = self._entry(actor, "client.updated", client, details, now) if details else None
        owned = (actor.developer.id, project_id, client_id)
        changed = await self._storage.oidc_clients.update_client(*owned, changes, now, secret=secret, entry=entry)
        if changed is None:
            raise ClientNotFound
        return changed, plaintext if secret is not None and changed.secret_preview == secret.preview else None

    async def edit_groups(
        self, actor: Actor, project_id: str, client_id: str, edit: Callable[[Groups], Groups], group_name: str
    ) -> None:
        """Change one group of a client, in the same transaction in which its current groups are read.

        Args:
            actor: the developer, and the credential used.
            project_id: the project of the client.
            client_id: the client.
            edit: returns the new groups. Its InvalidRequest is passed on.
            group_name: the group, for the audit log, which does not name members, because it outlives users' data.
        """
        client = await self.read_client(actor.developer, project_id, client_id, "write")
        now = self._clock()
        entry = self._entry(actor, "client.updated", client, {"group": group_name}, now)
        owned = (actor.developer.id, project_id, client_id)
        if not await self._storage.oidc_clients.edit_groups(*owned, edit, now, entry=entry):
            raise ClientNotFound

    async def delete_client(self, actor: Actor, project_id: str, client_id: str) -> None:
        """Delete a client. Applications that use it can no longer sign users in."""
        client = await self.read_client(actor.developer, project_id, client_id, "write")
        entry = self._entry(actor, "client.deleted", client, {"name": client.name}, self._clock())
        owned = (actor.developer.id, project_id, client_id)
        if not await self._storage.oidc_clients.delete_client(*owned, entry=entry):
            raise ClientNotFound

    async def regenerate_client_secret(self, actor: Actor, project_id: str, client_id: str) -> str:
        """Replace a client's secret, and return the new one. The old one stops working immediately.

        Raises:
            InvalidRequest: the client is public.
        """
        client = await self.read_client(actor.developer, project_id, client_id, "write")
        plaintext, secret = self._new_secret()
        entry = self._entry(actor, "client.secret_regenerated", client, {"name": client.name}, self._clock())
        owned = (actor.developer.id, project_id, client_id)
        if not await self._storage.oidc_clients.regenerate_client_secret(*owned, secret, entry=entry):
            await self.read_client(
                actor.developer, project_id, client_id, "write"
            )  # It may have been deleted just now.
            raise InvalidRequest(_PUBLIC)
        return plaintext

    def _new_secret(self) -> tuple[str, ClientSecret]:
        plaintext = new_key("ocs", self._entropy)
        return plaintext, ClientSecret(key_hash(plaintext), key_preview(plaintext))

    def _entry(
        self, actor: Actor, action: AuditAction, client: OidcClient, details: dict[str, object], now: int
    ) -> AuditEntry:
        details = {"project_id": client.project_id, **details}
        project_id = client.project_id
        return audit_entry(actor, action, now, self._entropy, subject=client.id, details=details, project_id=project_id)


def _logged(changes: ClientChanges) -> dict[str, object]:
    """Return the groups as the audit log shows them: with the number of members, because it outlives users' data."""
    return {} if changes.groups is None else {"groups": {name: len(ids) for name, ids in changes.groups.items()}}
