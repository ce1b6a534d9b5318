"""Looking up sessions on PostgreSQL only: skipped days, and plans."""

import asyncpg
import pytest
from tests.databases import NOW, new_postgres
from tests.storage.postgres.plans import explain
from tests.storage.seed import Seed

from taproof.contract.session import SignInStatus
from taproof.core.clock import DAY, MINUTE
from taproof.core.page_cursor import PageCursor
from taproof.storage.postgres import deliveries, listing
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.queries.listing import session_walks
from taproof.storage.rows import columns, page_start

TODAY = NOW // DAY
STORED = 20_000
# All but every hundredth are used, by one account; the others are of each other status in turn, by many accounts.
FILL = """
INSERT INTO sessions (day, token_hash, id, project_id, status, created_at, expires_at, messenger_id)
SELECT $1, sha256(n::TEXT::BYTEA), 'sess_' || n, $2,
  CASE WHEN n % 100 > 0 THEN 'used' ELSE (ARRAY['pending', 'confirmed', 'cancelled', 'expired'])[n / 100 % 4 + 1] END,
  $3::BIGINT - n, $3::BIGINT + 600000 - n, CASE WHEN n % 100 > 0 THEN '1001' WHEN n / 100 % 4 = 1 THEN n::TEXT END
FROM generate_series(1, $4) AS n"""


@new_postgres
@pytest.mark.parametrize("statistics", ["none", "of a quiet hour", "current"])
async def test_a_page_reads_the_sessions_that_it_shows(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: Seed, statistics: str
) -> None:
    """For any combination of filters and statistics, no walk reads more rows than it returns."""
    project = await seed.project()
    await postgres.sessions.prepare_days(TODAY - 1, TODAY)
    if statistics == "of a quiet hour":
        await connection.execute(FILL, TODAY, project.id, NOW, 50)
        await connection.execute("ANALYZE")
        await connection.execute("DELETE FROM sessions")
    else:
        await connection.execute(f"ALTER TABLE sessions_{TODAY} SET (autovacuum_enabled = off)")
    await connection.execute(FILL, TODAY, project.id, NOW, STORED)
    if statistics == "current":
        await connection.execute("ANALYZE")
    statuses: tuple[SignInStatus | None, ...] = (None, "pending", "confirmed", "cancelled", "expired", "used")
    for status in statuses:
        for user in (None, "1001", "9900"):
            for since in (0, NOW - STORED // 2):
                for before in (None, PageCursor(NOW - STORED // 4, "")):
                    walks = session_walks(status, page_start(before), since, NOW + 9 * MINUTE, user)
                    if not walks:
                        continue
                    statement = listing.LIST_SESSIONS_OF_USER if user else listing.LIST_SESSIONS
                    values = (TODAY - 1, TODAY, 10, *([user] if user else []))
                    read, _ = await explain(
                        *(connection, statement, [project.id], *columns(walks), *values),
                        of=("sessions_",),
                        before=listing.ONE_SNAPSHOT_IN_ORDER,
                    )
                    # Of each walk a page at most; a plan may look at one row past its end.
                    assert read <= len(walks) * 11, (status, user, since, before)


async def test_a_session_is_found_by_one_walk_for_each_project_and_status(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: Seed
) -> None:
    """Only the session's day is searched, without reading its other sessions."""
    project = await seed.project()
    await postgres.sessions.prepare_days(TODAY - 1, TODAY)
    await connection.execute(f"ALTER TABLE sessions_{TODAY} SET (autovacuum_enabled = off)")
    await connection.execute(FILL, TODAY, project.id, NOW, STORED)
    values = ([project.id, "proj_2"], ["pending", "used"], TODAY, NOW - 777, "sess_777")
    read, plan = await explain(connection, listing.FIND_SESSION, *values, of=("sessions_",))
    assert read == 1
    assert f"sessions_{TODAY - 1}" not in plan
    assert (await postgres.sessions.read_session_by_id([project.id], NOW - 777, "sess_777", NOW)) is not None


@new_postgres
@pytest.mark.parametrize("statistics", ["none", "current"])
async def test_the_deliveries_of_a_session_are_found_among_those_of_its_instant(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: Seed, statistics: str
) -> None:
    """The number of the project's deliveries does not matter: there is no index by session, and none is needed."""
    project = await seed.project(webhook_url="https://example.com/")
    await connection.execute("ALTER TABLE webhook_events SET (autovacuum_enabled = off)")
    await connection.execute(
        """
        INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts,
          project_id, session_id)
        SELECT 'evt_' || n, 'auth.confirmed', repeat('x', 400)::BYTEA, n / 3, 'delivered', n, 0, 1, $1, 'sess_' || n
        FROM generate_series(1, $2) AS n""",
        project.id,
        STORED,
    )
    if statistics == "current":
        await connection.execute("ANALYZE")
    values = (project.id, ["due", "delivered"], ["auth.confirmed", "auth.cancelled"], 3_000, "sess_9001")
    read, _ = await explain(connection, deliveries.FIND_DELIVERIES, *values, of=("webhook_events",))
    assert 1 <= read <= 3
    (found,) = await postgres.deliveries.find_deliveries(project.id, 3_000, "sess_9001")
    assert found.event_id == "evt_9001"
