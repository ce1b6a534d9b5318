"""Webhook events on PostgreSQL only: batches, deadlocks, plans and late attempts."""

import asyncio
import random
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from tests.databases import NOW, new_postgres
from tests.postgres_server import execute
from tests.storage.postgres.plans import explain
from tests.storage.seed import Seed

from taproof.contract.delivery import DeliveryState
from taproof.core.clock import DAY, SECOND
from taproof.core.deliveries import Delivery
from taproof.core.page_cursor import PageCursor
from taproof.core.projects import ProjectChanges
from taproof.storage.postgres import deliveries, transaction
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.queries.deliveries import ENDED_AT_ONCE
from taproof.storage.rows import attempt_values, columns, finish_values

LEASE = 30 * SECOND
URL = "https://example.com/"
# More due events than one transaction ends.
BACKLOG = """
INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id)
SELECT $2 || n, 'auth.confirmed', 'x', n, 'due', $3, 0, 0, $1 FROM generate_series(1, $4::INTEGER) AS n"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def finish_columns(*items: tuple[Delivery, DeliveryState], seed: Seed) -> list[tuple[Any, ...]]:
    """Return the values of `FINISH_ATTEMPTS`."""
    return columns(
        (*finish_values(each, attempt, state, NOW), *attempt_values(each.event.id, attempt)[1:], True)
        for each, state in items
        for attempt in [seed.attempt(each.attempt)]
    )


async def test_an_endpoint_that_works_once_in_a_batch_works(postgres: PostgresStorage, seed: Seed) -> None:
    """The order of attempts in one batch is unknown, so a success counts."""
    projects = [await seed.project(webhook_url=URL) for _ in range(2)]
    for succeeding in (7, 3, 0, 9):
        for number in range(10):
            await seed.due_event(projects[number % 2], NOW - 10 + number)
        held = await postgres.deliveries.claim_deliveries(NOW, NOW + LEASE, 100)
        states: list[DeliveryState] = ["delivered" if number == succeeding else "failed" for number in range(10)]
        # The first call leaves at once, alone; the others wait for it, and leave together.
        first = asyncio.create_task(seed.attempted(await seed.claimed(projects[0]), "failed"))
        await asyncio.sleep(0)
        assert all(await asyncio.gather(first, *map(seed.attempted, held, states)))
        failing = [
            found.webhook_failing_since for each in projects if (found := await postgres.projects.read_project(each.id))
        ]
        assert failing == [None if number == succeeding % 2 else NOW for number in range(2)]


async def test_nodes_that_touch_the_same_events_never_wait_in_a_circle(
    postgres: PostgresStorage, other_node: PostgresStorage, dsn: str, seed: Seed
) -> None:
    """Finishing, releasing, resending, turning off, changing the URL and erasing never deadlock."""
    chance = random.Random(4)  # noqa: S311 — an order of calls.
    ada = await seed.developer()
    projects = [await seed.project(ada, webhook_url=URL) for _ in range(4)]
    stores = (postgres, other_node)
    for turn in range(8):
        await asyncio.gather(*(seed.due_event(projects[number % 4]) for number in range(60)))
        for project in projects[:2]:
            await postgres.database.fetch(BACKLOG, project.id, f"{seed.name('evt')}_", NOW + DAY, ENDED_AT_ONCE + 20)
        held = await postgres.deliveries.claim_deliveries(NOW, NOW + LEASE, 100)
        steps: list[Coroutine[Any, Any, object]] = []
        for delivery in chance.sample(held, len(held)):
            state: DeliveryState = chance.choice(("delivered", "failed", "due"))
            due_at = NOW + DAY
            steps.append(
                chance.choice(stores).deliveries.finish_attempt(delivery, seed.attempt(turn + 1), state, due_at)
            )
            # The late one of two workers: fenced, and it waits for the locks of the other.
            steps.append(
                chance.choice(stores).deliveries.finish_attempt(delivery, seed.attempt(turn + 1), "due", due_at)
            )
        for store in stores:
            steps.append(store.deliveries.release_deliveries(chance.sample(held, 20), NOW + DAY))
            steps += [
                store.deliveries.resend_delivery(ada.id, each.event.id, NOW + DAY) for each in chance.sample(held, 5)
            ]
            project = chance.choice(projects)
            steps.append(store.deliveries.turn_off_webhook(project.id, URL, "failing", NOW, NOW))
            project = chance.choice(projects)
            steps.append(store.deliveries.turn_off_webhook(project.id, URL, "gone", NOW, None))
            project = chance.choice(projects)
            steps.append(store.projects.update_project(ada.id, project.id, ProjectChanges(webhook_url=""), NOW))
            project = chance.choice(projects)
            steps.append(store.projects.update_project(ada.id, project.id, ProjectChanges(webhook_url=URL), NOW))
            steps += [store.deliveries.end_deliveries(5) for _ in range(3)]
            steps.append(store.deliveries.purge_events(NOW + DAY, 20))
            steps.append(store.deliveries.claim_deliveries(NOW + DAY, NOW + DAY, 20))
        if turn == 6:
            steps.append(postgres.projects.delete_project(ada.id, projects[3].id))
            steps += [store.projects.purge_deleted_projects(40) for store in stores]
        chance.shuffle(steps)
        await asyncio.gather(*steps)
        if turn == 6:
            projects[3] = projects[2]
        for project in projects:
            await postgres.projects.update_project(ada.id, project.id, ProjectChanges(webhook_url=URL), NOW)
    assert execute(dsn, DEADLOCKS).strip() == "0"
    orphans = (
        "SELECT COUNT(*) FROM webhook_attempts a WHERE NOT EXISTS (SELECT FROM webhook_events WHERE id = event_id)"
    )
    assert execute(dsn, orphans).strip() == "0"


async def test_an_attempt_that_outlives_its_project_leaves_nothing(
    postgres: PostgresStorage, connection: asyncpg.Connection, dsn: str, seed: Seed
) -> None:
    """If another node records an attempt while the project is erased, nothing of it is left."""
    project = await seed.project(webhook_url=URL)
    delivery = await seed.claimed(project)
    async with connection.transaction():
        values = finish_columns((delivery, "failed"), seed=seed)
        assert len(await connection.fetch(deliveries.FINISH_ATTEMPTS, *values)) == 1
        assert await postgres.projects.delete_project(project.developer_id, project.id)
        await seed.purge_projects()
    tables = ("webhook_events", "webhook_attempts", "webhook_endpoints", "deleted_projects")
    counts = [f"SELECT COUNT(*) FROM {table}" for table in tables]  # noqa: S608 — constants.
    assert execute(dsn, *counts).split() == ["1"] * 4
    execute(dsn, "UPDATE deleted_projects SET deleted_at = deleted_at - INTERVAL '61 seconds'")
    await seed.purge_projects()
    assert execute(dsn, *counts).split() == ["0"] * 4


async def test_an_attempt_written_down_while_its_event_is_erased_goes_too(
    postgres: PostgresStorage, connection: asyncpg.Connection, dsn: str, seed: Seed
) -> None:
    """A deletion that waited for the event does not see the new attempt; the schema erases it."""
    project = await seed.project(webhook_url=URL)
    delivery = await seed.claimed(project)
    finishing = connection.transaction()
    await finishing.start()
    await connection.fetch(deliveries.FINISH_ATTEMPTS, *finish_columns((delivery, "failed"), seed=seed))
    erasing = asyncio.create_task(postgres.database.fetch("DELETE FROM webhook_events"))
    async with asyncio.timeout(60):
        while not await connection.fetchval("SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert not erasing.done()
            await asyncio.sleep(0.01)
    await finishing.commit()
    await erasing
    assert execute(dsn, "SELECT COUNT(*) FROM webhook_attempts").strip() == "0"


@new_postgres
@pytest.mark.parametrize("statistics", ["none", "of a quiet hour"])
async def test_statements_read_the_events_that_they_need(
    postgres: PostgresStorage, connection: asyncpg.Connection, seed: Seed, statistics: str
) -> None:
    """An index finds the events in its order, whatever their number and the statistics."""
    project = await seed.project(webhook_url=URL)
    fill = """
    INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id)
    SELECT 'evt_' || $2::TEXT || n, 'auth.confirmed', repeat('x', 400)::BYTEA, n, $2, n, $3, 0, $1
    FROM generate_series(1, 20000) AS n"""
    await connection.execute(fill, project.id, "delivered", 0)
    if statistics != "none":
        await connection.execute("ANALYZE")
    await connection.execute(fill, project.id, "due", NOW + LEASE)
    delivery = Delivery(
        seed.event(project), project.developer_id, URL, project.webhook_secrets, 1, 0, NOW + LEASE, endpoint_fails=False
    )
    held = [replace(delivery, event=replace(delivery.event, id=f"evt_due{number}")) for number in range(1, 257)]
    list_values = (project.id, ["due", "delivered"], ["auth.confirmed"], *PageCursor(NOW, ""), 256)
    for statement, values in (
        (deliveries.FINISH_ATTEMPTS, finish_columns(*((each, "due") for each in held), seed=seed)),
        (deliveries.RELEASE_DELIVERIES, [*columns((each.event.id, NOW + LEASE) for each in held), NOW]),
        (deliveries.LIST_DELIVERIES, list_values),
        (deliveries.CLAIM_DELIVERIES, (NOW + 2 * LEASE, NOW + LEASE, 256, [], [], [])),
        (transaction.END_DELIVERIES, (NOW, project.id, 256)),
    ):
        before = transaction.NO_SORT if statement in {deliveries.CLAIM_DELIVERIES, transaction.END_DELIVERIES} else ""
        if statement == transaction.END_DELIVERIES:
            before += "; UPDATE projects SET webhook_url = ''"
        read, plan = await explain(connection, statement, *values, of=("webhook_events",), before=before)
        assert 256 <= read <= 4 * 256, plan


# ---- values
