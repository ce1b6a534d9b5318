"""The plans of an export and an erasure on PostgreSQL: they read one user's sessions, and nobody else's."""

import asyncpg
import pytest
from tests.databases import NOW, new_postgres
from tests.storage.postgres.plans import explain
from tests.storage.seed import Seed

from taproof.core.clock import DAY
from taproof.storage.postgres.erasure import EXPORT_SESSIONS
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.queries.erasure import FIND_PROJECT, FIND_PROJECT_OF_DEVELOPER, FIND_SESSIONS

pytestmark = new_postgres
TODAY = NOW // DAY
DAYS = 30
# Nobody opened half of the sessions. Most of the others are those of one account in another developer's project.
FILL = """
INSERT INTO sessions (day, token_hash, id, project_id, status, created_at, expires_at, opener_id)
SELECT d, sha256((d::TEXT || ' ' || n)::BYTEA), 'sess_' || n, $1, 'expired', d * 86400000::BIGINT + n, 0,
  CASE WHEN n % 2 = 0 THEN NULL WHEN n % 10 = 1 THEN n::TEXT ELSE '1001' END
FROM generate_series($2::INTEGER, $3::INTEGER) AS d, generate_series(1, 1000) AS n"""


@pytest.mark.parametrize("statistics", ["none", "current"])
async def test_one_user_is_found_by_an_index(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: Seed, statistics: str
) -> None:
    """A page costs its own rows and a look at each day, however many sessions others and the account elsewhere have."""
    mine, others = await seed.project(), await seed.project()
    await postgres.sessions.prepare_days(TODAY - DAYS, TODAY)
    for day in range(TODAY - DAYS, TODAY + 1):
        await connection.execute(f"ALTER TABLE sessions_{day} SET (autovacuum_enabled = off)")
    await connection.execute(FILL, others.id, TODAY - DAYS, TODAY)
    opened = [await seed.opened(mine, at=NOW - day * DAY) for day in range(DAYS) for _ in range(3)]
    if statistics == "current":
        await connection.execute("ANALYZE")
    await connection.execute("SET enable_sort = off")  # As `Transaction.read_in_order` does.
    for statement, values, most in (
        (FIND_PROJECT, ("1001", ""), DAYS + 1),
        (FIND_PROJECT, ("nobody", ""), 0),
        (FIND_PROJECT_OF_DEVELOPER, (mine.developer_id, "", "1001"), 1),
        (FIND_PROJECT_OF_DEVELOPER, (mine.developer_id, "", "nobody"), 0),
        (FIND_SESSIONS, ("1001", mine.id, 10), 10),
        (FIND_SESSIONS, ("nobody", mine.id, 10), 0),
        (EXPORT_SESSIONS, ("1001", mine.id, *opened[40].key, 10), 13),
        (EXPORT_SESSIONS, ("1001", others.id, TODAY - 3, b"\x80", 100), 100),
    ):
        read, plan = await explain(connection, statement, *values, of=("sessions_", "webhook_events"))
        assert read <= most, plan
        assert "opener_id_project_id_day_token_hash" in plan
        assert '"Seq Scan"' not in plan.replace('"Relation Name": "projects"', "")
