"""A transaction on SQLite never waits, because all other writes would wait behind it."""

import asyncio

import pytest
from tests.storage.seed import Seed

from taproof.storage.queries.transaction import Transaction
from taproof.storage.sqlite.store import SqliteStorage


async def test_a_transaction_that_waits_is_undone(sqlite: SqliteStorage, sqlite_seed: Seed) -> None:
    """A transaction that waits fails immediately, changes nothing, and does not affect other writes of its group."""

    async def work(transaction: Transaction) -> None:
        await transaction.fetch("DELETE FROM developers")
        await asyncio.sleep(0)

    developer = await sqlite_seed.developer()
    failed, other = await asyncio.gather(
        sqlite.database.in_transaction(work), sqlite_seed.developer(), return_exceptions=True
    )
    assert isinstance(failed, RuntimeError)
    assert await sqlite.developers.list_developers() == [developer, other]


async def test_a_transaction_gives_what_its_work_returns(sqlite: SqliteStorage) -> None:
    """The result is returned once it is durable; an exception rolls the transaction back."""

    async def work(transaction: Transaction) -> int:
        assert (
            await transaction.add("INSERT INTO leases (name, holder, held_until) VALUES ($1, $2, $3)", "a", "b", 1)
            == []
        )
        return len(await transaction.lock("SELECT name FROM leases"))

    assert await sqlite.database.in_transaction(work) == 1
    with pytest.raises(AssertionError):
        await sqlite.database.in_transaction(fail)
    assert await sqlite.database.read("SELECT name FROM leases") == [("a",)]


async def fail(transaction: Transaction) -> None:
    await transaction.fetch("DELETE FROM leases")
    raise AssertionError
