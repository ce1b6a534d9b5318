"""Sign users in to a client directly in the store, for tests of what shows or ends their grants."""

import hashlib

from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.grants import NewGrant, RefreshHashes
from taproof.core.sessions import SessionKey
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.queries.oidc.grants import create_grant
from taproof.storage.queries.transaction import Transaction
from taproof.storage.sqlite.store import SqliteStorage


async def grant(
    storage: Storage,
    project_id: str,
    client_id: str,
    identity: MessengerIdentity,
    now: int,
    *,
    keeps: bool = True,
) -> NewGrant:
    """Store a grant; without `keeps`, it has no refresh token."""
    named = hashlib.sha256(f"{client_id} {identity.messenger_id}".encode())
    new = NewGrant(
        id=f"auth_{named.hexdigest()[:22]}",
        client_id=client_id,
        client_version=0,
        project_id=project_id,
        session=SessionKey(0, named.digest()),
        identity=identity,
        scopes="openid offline_access" if keeps else "openid",
        auth_time=now - MINUTE,
        created_at=now,
        refresh=RefreshHashes(named.digest(), b"secret") if keeps else None,
    )

    async def create(transaction: Transaction) -> None:
        await create_grant(transaction, new)

    assert isinstance(storage, SqliteStorage | PostgresStorage)
    await storage.database.in_transaction(create)
    return new
