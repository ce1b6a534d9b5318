"""Plans of users' requests on PostgreSQL: an account with very many sign-ins costs as much as one with two."""

import re

import asyncpg
import pytest
from tests.databases import NOW, new_postgres
from tests.storage.postgres.plans import explain
from tests.storage.seed import Seed

from taproof.core.clock import DAY
from taproof.storage.postgres import listing, statements
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.queries import users as user_queries

pytestmark = new_postgres
TODAY = NOW // DAY
DAYS = 30
TABLES = ("sessions_", "phone_requests", "webhook_events")
STORED = 3_000
"""The number of sessions of each day."""
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


@pytest.mark.parametrize("statistics", ["none", "current"])
async def test_what_a_user_asks_for_is_found_by_keys(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: Seed, statistics: str
) -> None:
    """An account's projects cost one lookup per project and day, a report and a contact one session each."""
    projects = [(await seed.project()).id for _ in range(3)]
    await postgres.sessions.prepare_days(TODAY - DAYS, TODAY)
    for day in range(TODAY - DAYS, TODAY + 1):
        await connection.execute(f"ALTER TABLE sessions_{day} SET (autovacuum_enabled = off)")
    await connection.execute(FILL, projects, TODAY - DAYS, TODAY, STORED)
    await connection.execute(COUNT)
    waiting = await seed.opened(await seed.project())
    await seed.asked_for_phone(waiting)
    if statistics == "current":
        await connection.execute("ANALYZE")
    values = ("1001", TODAY - DAYS, 500)
    read, plan = await explain(connection, listing.LIST_PROJECTS_OF_USER, *values, of=TABLES)
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
    read, plan = await explain(connection, statements.REPORT_SESSION, *reported, of=TABLES)
    assert read <= 8
    # By all that leads to it: a backlog has very many of the other columns' values.
    assert re.search(r'"Index Cond": "[^"]*type[^"]*auth.confirmed', plan)
    reported = (NOW, *waiting.key, "1001", NOW, ["pending"], *recorded)
    read, plan = await explain(connection, statements.REPORT_SESSION, *reported, of=TABLES)
    assert read <= 4
    assert f"sessions_{TODAY - 1}" not in plan
    for statement, asked in (
        (user_queries.FIND_PHONE_REQUEST, ("1001", 0)),
        (user_queries.READ_PHONE_REQUEST, tuple(waiting.key)),
    ):
        read, plan = await explain(connection, statement, *asked, of=TABLES)
        assert 1 <= read <= 4, plan
    found = await postgres.sessions.list_sign_ins("1001", NOW - DAYS * DAY, 10, NOW)
    assert len(found) == 10
    assert {each.identity.messenger_id for each in found if each.identity} == {"1001"}


# Each user signed in on two days; only the newest row describes the user.
FILL_DAYS = """
INSERT INTO user_days (developer_id, messenger_id, day, project_id, messenger_name, messenger_username, first_at,
  last_at, sign_ins)
SELECT 'dev_a', n::TEXT, $2::INTEGER - d, CASE n % 2 WHEN 0 THEN $1 ELSE 'proj_other' END,
  CASE d WHEN 0 THEN 'Ada' END, CASE d WHEN 0 THEN '' END, CASE d WHEN 0 THEN 1 END, CASE d WHEN 0 THEN n END,
  CASE d WHEN 0 THEN 2 END
FROM generate_series(1, $3::INTEGER) AS n, generate_series(0, 1) AS d"""


@pytest.mark.parametrize("statistics", ["none", "current"])
async def test_a_page_of_users_is_a_range_of_an_index(
    postgres: PostgresStorage, connection: asyncpg.Connection, statistics: str
) -> None:
    """However many users a project has, a page costs its own rows, and one user costs the rows of their days."""
    await postgres.sessions.prepare_days(TODAY - 5, TODAY)
    await connection.execute("ALTER TABLE user_days SET (autovacuum_enabled = off)")
    await connection.execute(FILL_DAYS, "proj_a", TODAY, 20_000)
    if statistics == "current":
        await connection.execute("ANALYZE")
    for statement, values, most in (
        (user_queries.LIST_USERS, ("proj_a", 10_000, "10000", 50), 50),
        (user_queries.READ_USER, ("proj_a", "10000"), 4),
    ):
        read, plan = await explain(connection, statement, *values)
        assert read <= most, plan
