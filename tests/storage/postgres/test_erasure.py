"""Exports and erasures on PostgreSQL: their plans, which read one user's sessions only, and what runs beside them."""

import asyncio

import asyncpg
import pytest
from tests.databases import NOW, new_postgres
from tests.storage.postgres.plans import explain
from tests.storage.seed import Seed, present
from tests.waiting import until

from taproof.core.clock import DAY
from taproof.core.oidc.clients import ClientChanges
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
    """A page costs its own rows and one lookup per day, however many sessions other users have."""
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


async def test_an_erased_user_stays_out_of_groups_that_change_meanwhile(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: Seed
) -> None:
    """A change writes all members of a client again, and has read them before. So the erasure waits for it."""
    project = await seed.project()
    client = await seed.client(project)
    owned = (project.developer_id, project.id, client.id)
    changes = ClientChanges(groups={"staff": ("1001", "1002")})
    assert await postgres.oidc_clients.update_client(*owned, changes, NOW)

    async def waiting(number: int) -> bool:
        return await connection.fetchval("SELECT COUNT(*) FROM pg_locks WHERE NOT granted") == number

    async with connection.transaction():
        await connection.execute("SELECT 1 FROM oidc_group_members WHERE messenger_id = '' FOR UPDATE")
        changing = asyncio.ensure_future(
            postgres.oidc_clients.edit_groups(*owned, lambda groups: groups.with_group("new"), NOW)
        )
        await until(lambda: waiting(1))
        erasing = asyncio.ensure_future(
            postgres.erasure.erase_person("1001", None, "erased", 9, NOW, describe=lambda _: [])
        )
        await asyncio.wait([erasing], timeout=0.2)
    assert await changing
    assert await erasing == 1
    found = present(await postgres.oidc_clients.read_client(client.id))
    assert found.client.groups.members == {"new": (), "staff": ("1002",)}
