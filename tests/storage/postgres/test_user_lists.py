"""The plans of the lists of users on PostgreSQL: a page reads one row for each user on it."""

import json
from typing import Any

import asyncpg
import pytest
from tests.databases import NOW, new_postgres

from taproof.core.clock import DAY
from taproof.storage.postgres import database
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.queries.users import LIST_USERS, READ_USER

pytestmark = new_postgres
TODAY = NOW // DAY
# Each user signed in on two days; only the newest row describes the user.
FILL = """
INSERT INTO user_days (developer_id, messenger_id, day, project_id, messenger_name, messenger_username, first_at,
  last_at, sign_ins)
SELECT 'dev_a', n::TEXT, $2::INTEGER - d, CASE n % 2 WHEN 0 THEN $1 ELSE 'proj_other' END,
  CASE d WHEN 0 THEN 'Ada' END, CASE d WHEN 0 THEN '' END, CASE d WHEN 0 THEN 1 END, CASE d WHEN 0 THEN n END,
  CASE d WHEN 0 THEN 2 END
FROM generate_series(1, $3::INTEGER) AS n, generate_series(0, 1) AS d"""


def rows_read(plan: dict[str, Any]) -> float:
    """Return how many rows the scans of a plan have looked at."""
    read = sum(rows_read(each) for each in plan.get("Plans", ()))
    if plan["Node Type"].endswith("Scan"):
        read += (plan.get("Actual Rows", 0) + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return read


@pytest.mark.parametrize("statistics", ["none", "current"])
async def test_a_page_of_users_is_a_range_of_an_index(dsn: str, postgres: PostgresStorage, statistics: str) -> None:
    """However many users a project has, a page costs its own rows, and one user costs the rows of their days."""
    await postgres.sessions.prepare_days(TODAY - 5, TODAY)
    connection = await asyncpg.connect(dsn, server_settings=database._SETTINGS)
    await connection.execute("ALTER TABLE user_days SET (autovacuum_enabled = off)")
    await connection.execute(FILL, "proj_a", TODAY, 20_000)
    if statistics == "current":
        await connection.execute("ANALYZE")
    for statement, values, most in (
        (LIST_USERS, ("proj_a", 10_000, "10000", 50), 50),
        (READ_USER, ("proj_a", "10000"), 4),
    ):
        (explained,) = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *values)
        assert rows_read(json.loads(explained[0])[0]["Plan"]) <= most, explained[0]
    await connection.close()
