"""Plans of what a user asks for on PostgreSQL: as cheap for an account with very many sign-ins as for one with two."""

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.databases import NOW, new_postgres

from taproof.core.clock import DAY
from taproof.core.prompts import PhoneRequest
from taproof.storage.postgres import database, listing, statements
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.queries import users as user_queries

if TYPE_CHECKING:
    from tests.storage.seed import Seed

pytestmark = new_postgres
TODAY = NOW // DAY
DAYS = 30
STORED = 3_000
"""Sessions of each day."""
# Half of them one account's, in three projects; the others many accounts'.
FILL = """
INSERT INTO sessions (day, token_hash, id, project_id, status, created_at, expires_at, messenger_id, opener_id)
SELECT d, sha256((d::TEXT || '.' || n)::BYTEA), 'sess_' || d || '_' || n, ($1::TEXT[])[1 + n % 3], 'used',
  d * 86400000::BIGINT + n, d * 86400000::BIGINT + n + 600000, u.name, u.name
FROM generate_series($2::INTEGER, $3::INTEGER) AS d, generate_series(1, $4::INTEGER) AS n,
  LATERAL (SELECT CASE n % 2 WHEN 0 THEN '1001' ELSE n::TEXT || '5' END AS name) AS u"""

# The store counts a session in the statement that creates it.
COUNT = """
INSERT INTO daily_counts (project_id, day, requested)
SELECT project_id, day, COUNT(*) FROM sessions GROUP BY project_id, day"""

# Nothing of a project could be sent for a long time.
BACKLOG = """
INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
  session_id)
SELECT 'evt_' || n, 'auth.confirmed', repeat('x', 400)::BYTEA, n, 'due', n, 0, 0, $1, 'sess_' || n
FROM generate_series(1, $2) AS n"""


@pytest.fixture
async def connection(dsn: str, postgres: PostgresStorage) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn, server_settings=database._SETTINGS)
    yield connection
    await connection.close()


@pytest.fixture
def seed(new_seed: "Callable[[Storage], Seed]", postgres: PostgresStorage) -> "Seed":
    return new_seed(postgres)


def rows_read(plan: dict[str, Any]) -> float:
    """Return how many sessions and requests the scans of a plan have looked at."""
    read = sum(rows_read(each) for each in plan.get("Plans", ()))
    if (
        plan.get("Relation Name", "").startswith(("sessions_", "phone_requests", "webhook_events"))
        and "Scan" in plan["Node Type"]
    ):
        read += (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return read


async def explain(connection: asyncpg.Connection, statement: str, *values: Any) -> tuple[float, str]:
    """Run a statement without keeping what it does; return how many rows it looked at, and its plan."""
    transaction = connection.transaction()
    await transaction.start()
    (explained,) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *values)
    await transaction.rollback()
    return rows_read(json.loads(explained[0])[0]["Plan"]), explained[0]


@pytest.mark.parametrize("statistics", ["none", "current"])
async def test_what_a_user_asks_for_is_found_by_keys(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: "Seed", statistics: str
) -> None:
    """The projects of an account cost one look per project and day, a report and a contact one session each."""
    projects = [(await seed.project()).id for _ in range(3)]
    await postgres.sessions.prepare_days(TODAY - DAYS, TODAY)
    for day in range(TODAY - DAYS, TODAY + 1):
        await connection.execute(f"ALTER TABLE sessions_{day} SET (autovacuum_enabled = off)")
    await connection.execute(FILL, projects, TODAY - DAYS, TODAY, STORED)
    await connection.execute(COUNT)
    waiting = await seed.opened(await seed.project())
    await postgres.users.ask_for_phone(
        PhoneRequest(waiting.key, waiting.id, "1001", 0, b"encrypted", NOW, waiting.expires_at)
    )
    if statistics == "current":
        await connection.execute("ANALYZE")
    values = ("1001", TODAY - DAYS, 500)
    read, plan = await explain(connection, listing.LIST_PROJECTS_OF_USER, *values)
    assert read <= (DAYS + 1) * (len(projects) + 1) * 2
    assert "Seq Scan" not in plan
    shop = await seed.project(webhook_url="https://example.com/")
    confirmed = await seed.confirmed(shop)
    await connection.execute("ALTER TABLE webhook_events SET (autovacuum_enabled = off)")
    await connection.execute(BACKLOG, shop.id, 20_000)
    if statistics == "current":
        await connection.execute("ANALYZE webhook_events")
    event = seed.event(shop, "auth.cancelled")
    recorded = [[event.id], [event.type], [event.encrypted_body], [event.created_at]]
    reported = (NOW, *confirmed.key, "1001", NOW, ["confirmed"], *recorded)
    read, plan = await explain(connection, statements.REPORT_SESSION, *reported)
    assert read <= 8
    # By all that leads to it: a backlog has very many of the other columns' values.
    assert re.search(r'"Index Cond": "[^"]*type[^"]*auth.confirmed', plan)
    reported = (NOW, *waiting.key, "1001", NOW, ["pending"], *recorded)
    read, plan = await explain(connection, statements.REPORT_SESSION, *reported)
    assert read <= 4
    assert f"sessions_{TODAY - 1}" not in plan
    for statement, asked in (
        (user_queries.FIND_PHONE_REQUEST, ("1001", 0)),
        (user_queries.READ_PHONE_REQUEST, tuple(waiting.key)),
    ):
        read, plan = await explain(connection, statement, *asked)
        assert 1 <= read <= 4, plan
    found = await postgres.sessions.list_sign_ins("1001", NOW - DAYS * DAY, 10, NOW)
    assert len(found) == 10
    assert {each.identity.messenger_id for each in found if each.identity} == {"1001"}
