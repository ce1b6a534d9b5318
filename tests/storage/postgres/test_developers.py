"""Developers on PostgreSQL only: locks while an invitation is accepted, and text with a NUL."""

import asyncio
from typing import TYPE_CHECKING

import asyncpg
from tests.databases import NOW

from taproof.core.accounts import Developer
from taproof.core.page_cursor import PageCursor
from taproof.storage.postgres.transaction import _LOCK_DEVELOPERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.storage.seed import Seed

    from taproof.storage.postgres.store import PostgresStorage
    from taproof.storage.protocol import Storage


async def test_whoever_takes_up_an_invitation_holds_up_nobody_else(
    postgres: "PostgresStorage", dsn: str, new_seed: "Callable[[Storage], Seed]"
) -> None:
    """Meanwhile reads and wrong codes are answered at once; another valid code waits."""
    seed = new_seed(postgres)
    ada = await seed.developer()
    _, token_hash = await seed.access_token(ada)
    _, cookie_hash = await seed.console_session(ada)
    _, code_hash = await seed.invitation("bob@example.com")
    bob = Developer("dev_bob", "bob@example.com", "free", NOW, messenger_id="1001")
    other = await asyncpg.connect(dsn)
    async with asyncio.timeout(60):
        async with other.transaction():
            await other.execute(_LOCK_DEVELOPERS)
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


async def test_text_with_a_nul_finds_nobody(postgres: "PostgresStorage", new_seed: "Callable[[Storage], Seed]") -> None:
    """PostgreSQL refuses such text and SQLite finds nothing; callers see the same result."""
    seed = new_seed(postgres)
    session, _ = await seed.console_session(await seed.developer())
    assert await postgres.developers.read_developer_by_messenger_id("1\0") is None
    assert not await postgres.developers.delete_invitation("inv_\0")
    assert await postgres.credentials.list_console_sessions("dev_\0", NOW, 0) == []
    assert not await postgres.credentials.delete_console_session(session.developer_id, f"{session.id}\0")
    assert await postgres.credentials.delete_console_sessions("dev_\0") == 0
    await postgres.credentials.touch_console_session(f"{session.id}\0", NOW)
    assert await postgres.audit.list_audit_entries("dev_\0", None, 9) == []
    assert await postgres.audit.list_audit_entries(session.developer_id, PageCursor(NOW, "\0"), 9) == []
