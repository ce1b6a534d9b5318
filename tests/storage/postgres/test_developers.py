"""Developers on PostgreSQL only: locks while an invitation is accepted, and text with a NUL."""

import asyncio

import asyncpg
from tests.databases import NOW
from tests.storage.seed import Seed

from taproof.core.accounts import Developer
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.postgres.transaction import LOCK_DEVELOPERS


async def test_whoever_takes_up_an_invitation_holds_up_nobody_else(postgres: PostgresStorage, dsn: str) -> None:
    """During the acceptance, reads and wrong codes are answered immediately; another valid code waits."""
    seed = Seed(postgres)
    ada = await seed.developer()
    _, token_hash = await seed.access_token(ada)
    _, cookie_hash = await seed.console_session(ada)
    _, code_hash = await seed.invitation("bob@example.com")
    bob = Developer("dev_bob", "bob@example.com", "free", NOW, messenger_id="1001")
    other = await asyncpg.connect(dsn)
    async with asyncio.timeout(60):
        async with other.transaction():
            await other.execute(LOCK_DEVELOPERS)
            accepting = asyncio.create_task(postgres.developers.accept_invitation(code_hash, bob, NOW))
            assert await postgres.developers.accept_invitation(b"?" * 32, bob, NOW) == "gone"
            assert await postgres.credentials.read_access_token(token_hash) is not None
            assert await postgres.credentials.read_console_session(cookie_hash, NOW, 0) is not None
            assert await postgres.developers.read_developer(ada.email) == ada
            # What it judges by is what is there when its turn comes.
            await other.execute("UPDATE developers SET messenger_id = '1001'")
            assert not accepting.done()
        assert await accepting == "identity_taken"
    await other.close()
