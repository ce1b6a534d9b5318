"""Prompts on PostgreSQL take their locks in the documented order."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import asyncpg
import pytest
from tests.databases import NOW
from tests.storage.seed import Seed
from tests.waiting import until

from taproof.core.prompts import ShownPrompt
from taproof.core.sessions import NewSession
from taproof.storage.postgres.store import PostgresStorage

BOT = 7_000_000_001
_HOLD = "SELECT FROM prompts WHERE day = $1 AND token_hash = $2 FOR UPDATE NOWAIT"


async def blocked_by(postgres: PostgresStorage, connection: asyncpg.Connection) -> None:
    """Wait until somebody waits for a lock of this connection."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))"
    await until(lambda: postgres.database.fetch(waiting, connection.get_server_pid()))


@pytest.mark.parametrize("change", ["withdraw", "erase"])
async def test_prompts_are_locked_in_the_order_of_their_keys(
    postgres: PostgresStorage, seed: Seed, dsn: str, connection: asyncpg.Connection, change: str
) -> None:
    """Whatever their order in the table, the rows are locked by key, so that there is no deadlock."""
    project = await seed.project()
    first, last = sorted([await seed.opened(project) for _ in range(2)], key=lambda each: each.key)
    for each in (last, first):
        await postgres.prompts.record_prompt(ShownPrompt(each.key, BOT, "1001", 5, "en"))
    async with connection.transaction():
        await connection.execute(_HOLD, *first.key)
        work = asyncio.gather(*_changes(postgres, change, (last, first)))
        await blocked_by(postgres, connection)
        await connection.execute(_HOLD, *last.key)
    await work


def _changes(postgres: PostgresStorage, change: str, of: tuple[NewSession, ...]) -> list[Coroutine[Any, Any, object]]:
    if change == "withdraw":
        return [postgres.sessions.withdraw_session(each.key, NOW) for each in of]
    return [postgres.erasure.erase_person("1001", None, "usr_erased", 10, NOW, describe=lambda _: [])]


async def test_record_prompt_returns_the_hint_that_it_waited_for(
    postgres: PostgresStorage, seed: Seed, connection: asyncpg.Connection
) -> None:
    """Another node records that the user blocked the bot, while the message that is sent shows otherwise."""
    new = await seed.opened(await seed.project())
    async with connection.transaction():
        await connection.execute(
            "UPDATE sessions SET hint = 'unreachable' WHERE day = $1 AND token_hash = $2", *new.key
        )
        recorded = asyncio.create_task(postgres.prompts.record_prompt(ShownPrompt(new.key, BOT, "1001", 5, "en")))
        await blocked_by(postgres, connection)
    assert await recorded == "unreachable"
