"""The walk through encrypted values costs only the rows of its pages."""

from typing import get_args

import pytest
from tests.storage.seed import Seed

from taproof.core.clock import DAY
from taproof.core.sessions import NewPhone
from taproof.storage.postgres import encrypted_values
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.queries.encrypted_values import ENCRYPTED_COLUMNS, LIST_ENCRYPTED, REPLACE_ENCRYPTED, EncryptedKind
from taproof.storage.sqlite.store import SqliteStorage


@pytest.mark.parametrize("kind", get_args(EncryptedKind))
def test_each_step_is_one_look_at_the_primary_key(kind: EncryptedKind, sqlite: SqliteStorage) -> None:
    """On SQLite, a page starts where the previous one ended, without sorting; a value is found by its key."""
    key = ENCRYPTED_COLUMNS[kind].before_all
    for statement, values in ((LIST_ENCRYPTED[kind], (*key, 10)), (REPLACE_ENCRYPTED[kind], (b"new", *key, b"old"))):
        (plan,) = [row[3] for row in sqlite.database.reader.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert plan.startswith("SEARCH "), plan
        assert "USING PRIMARY KEY" in plan, plan


async def test_a_page_of_phones_looks_at_one_day(postgres: PostgresStorage, dsn: str) -> None:
    """On PostgreSQL, one partition is planned, by its primary key, also for replacing a value."""
    today = 20_000
    await postgres.sessions.prepare_days(today - 3, today)
    for statement, values in (
        (encrypted_values.LIST_PHONES, (today, b"\x80", 10)),
        (REPLACE_ENCRYPTED["phone"], (b"new", today, b"\x80", b"old")),
    ):
        lines = [row[0] for row in await postgres.database.fetch(f"EXPLAIN {statement}", *values)]
        assert f"sessions_{today}_pkey" in "\n".join(lines)
        assert "Seq Scan" not in "\n".join(lines)
        assert f"sessions_{today - 1}" not in "\n".join(lines)


async def test_a_day_that_is_dropped_ends_no_walk(postgres: PostgresStorage, dsn: str) -> None:
    """If retention drops the day in which the last page ended, the walk continues with the next day."""
    seed = Seed(postgres)
    project = await seed.project(collect_phone=True)
    old, new = seed.now - 200 * DAY, seed.now
    sessions = [await seed.opened(project, at=at) for at in (old, old, new, new)]
    for each in sessions:
        at, event = each.created_at, seed.event(project)
        phone = NewPhone(b"encrypted", event.encrypted_body)
        assert await postgres.sessions.confirm_session(each.key, seed.identity("1001"), at, event, phone)
    page = await postgres.encrypted_values.list_encrypted_values("phone", None, 1)
    assert [row.key[0] for row in page.rows] == [old // DAY]
    while await postgres.sessions.purge_sessions(new // DAY, 1_000):
        pass
    names = []
    while page.after is not None:
        page = await postgres.encrypted_values.list_encrypted_values("phone", page.after, 1)
        names += [row.name for row in page.rows]
    assert sorted(names) == sorted(each.id for each in sessions[2:])
