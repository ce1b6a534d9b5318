"""OpenID Connect clients on PostgreSQL. Each request of an authorization or a token reads its client."""

from typing import Final

from taproof.core.oidc.clients import SignInClient
from taproof.storage.batcher import Batcher
from taproof.storage.postgres.database import PostgresDatabase
from taproof.storage.queries.oidc import clients as queries
from taproof.storage.rows import sign_in_client_from

READ_CLIENTS: Final = f"{queries.SIGN_IN_CLIENT} WHERE c.id = ANY ($1::TEXT[])"
_READS: Final = 512


class PostgresOidcClients(queries.OidcClientQueries[PostgresDatabase]):
    """See `storage.protocol.OidcClientStorage`."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._clients = Batcher[str, SignInClient | None](self._read_clients, limit=_READS)

    async def close(self) -> None:
        """Finish the waiting calls."""
        await self._clients.close()

    async def read_client(self, client_id: str) -> SignInClient | None:
        return None if "\0" in client_id else await self._clients.run(client_id)

    async def _read_clients(self, client_ids: list[str]) -> list[SignInClient | None]:
        found = {row[0]: sign_in_client_from(row) for row in await self._database.fetch(READ_CLIENTS, client_ids)}
        return [found.get(each) for each in client_ids]
