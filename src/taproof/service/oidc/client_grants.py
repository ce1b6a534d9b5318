"""The users who are signed in to a client, for the developers of its project."""

from dataclasses import dataclass

from taproof.core.accounts import Actor, Developer
from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import GrantNotFound
from taproof.core.oidc.grants import LogoutFailure, OidcGrant
from taproof.service.audit import audit_entry
from taproof.service.oidc.clients import OidcClients
from taproof.service.paging import read_cursor, write_cursor
from taproof.service.project_access import reading_project
from taproof.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class GrantPage:
    """One page of grants. `next_cursor` requests the next page; None on the last page."""

    grants: list[OidcGrant]
    next_cursor: str | None


class ClientGrants:
    """Lists and ends the grants of clients. See `OidcClients` for what all methods raise."""

    def __init__(self, storage: Storage, clients: OidcClients, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clients = clients
        self._clock = clock
        self._entropy = entropy

    async def list_grants(
        self, developer: Developer, project_id: str, client_id: str, *, limit: int, cursor: str | None
    ) -> GrantPage:
        """Return a page of at most `limit` live grants of a client, newest first.

        Raises:
            InvalidRequest: the cursor is malformed.
        """
        before = None if cursor is None else read_cursor(cursor, "auth")
        async with reading_project(self._storage, developer, project_id):
            await self._clients.read_client(developer, project_id, client_id)
            found = await self._storage.grants.list_grants(project_id, client_id, before, self._clock(), limit + 1)
        last = found[limit - 1] if len(found) > limit else None
        return GrantPage(found[:limit], None if last is None else write_cursor(last.created_at, last.id))

    async def end_grant(self, actor: Actor, project_id: str, client_id: str, grant_id: str) -> None:
        """End a grant, and notify the client to sign the user out. Its tokens stop working immediately.

        Raises:
            GrantNotFound: the client has no such grant, or it has ended.
        """
        await self._clients.read_client(actor.developer, project_id, client_id, "write")
        now = self._clock()
        # The log is kept for longer than the user's data, so the entry does not name the user.
        details = {"project_id": project_id, "grant_id": grant_id}
        entry = audit_entry(
            *(actor, "client.grant_ended", now, self._entropy),
            subject=client_id,
            details=details,
            project_id=project_id,
        )
        owned = (actor.developer.id, project_id, client_id)
        if not await self._storage.grants.end_client_grant(*owned, grant_id, now, entry=entry):
            raise GrantNotFound

    async def read_logout_failure(self, developer: Developer, project_id: str, client_id: str) -> LogoutFailure | None:
        """Return the last failed attempt to notify the client of a user's sign-out; None if it was notified since."""
        async with reading_project(self._storage, developer, project_id):
            await self._clients.read_client(developer, project_id, client_id)
            return await self._storage.logouts.read_logout_failure(project_id, client_id)
