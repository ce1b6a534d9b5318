"""Conformance: the users of a project in pages, and the export of one user's data."""

import asyncio
import random
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import pytest
from tests.databases import NOW
from tests.storage.conformance.test_erasure import URL, erase_all
from tests.storage.seed import Seed, run

from taproof.core.clock import DAY, MINUTE
from taproof.core.counts import ProjectUser
from taproof.core.errors import InsufficientRole, ProjectNotFound
from taproof.core.page_cursor import PageCursor
from taproof.core.prompts import ShownPrompt
from taproof.core.sessions import SessionKey
from taproof.service.user_export import REST
from taproof.storage.export.format import TABLES
from taproof.storage.protocol import Storage
from taproof.storage.queries.erasure import FIRST_DAY, FIRST_KEY, DaysCursor, Row
from taproof.storage.queries.rights import ADD_MEMBER

COUNTERS = {"daily_counts", "daily_users"}


def user(messenger_id: str, first_at: int, last_at: int, sign_ins: int, reports: int = 0) -> ProjectUser:
    """Return a user with the name that the seed gives."""
    return ProjectUser(
        messenger_id, f"User {messenger_id}", f"user_{messenger_id}", first_at, last_at, sign_ins, reports
    )


async def test_list_users_by_last_sign_in(storage: Storage, seed: Seed) -> None:
    """Each user is listed once, with first and last sign-in, their number and the reports; pages do not overlap."""
    shop, other = await seed.project(), await seed.project()
    for name, at in (("1", 0), ("2", 1), ("1", DAY), ("1", DAY + 5), ("3", 1), ("2", 3)):
        await seed.confirmed(shop, name, NOW + at)
    reported = await seed.confirmed(shop, "3", NOW + 2)
    assert await seed.report(reported.key, "3", NOW + 3)
    await seed.confirmed(other, "4")
    await seed.opened(shop, "5")
    listed = [
        user("1", NOW, NOW + DAY + 5, 3),
        user("2", NOW + 1, NOW + 3, 2),
        user("3", NOW + 1, NOW + 2, 2, 1),
    ]
    assert await storage.users.list_users(shop.id, None, 9) == listed
    assert await storage.users.list_users(shop.id, PageCursor(NOW + 3, "2"), 1) == listed[2:]
    assert await storage.users.list_users(shop.id, PageCursor(NOW + 2, "3"), 9) == []
    assert await storage.users.list_users("proj_\0", None, 9) == []


async def test_list_users_after_a_late_confirm_of_an_earlier_day(storage: Storage, seed: Seed) -> None:
    """A session opened before midnight belongs to the day before, and still updates the user."""
    shop = await seed.project()
    await seed.confirmed(shop, at=NOW + DAY)
    await seed.confirmed(shop, at=NOW)
    (listed,) = await storage.users.list_users(shop.id, None, 9)
    assert (listed.messenger_id, listed.sign_ins) == ("1001", 2)


async def test_list_users_counts_each_of_many_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Two nodes confirm at the same instant, on two days: every sign-in is counted."""
    shop = await seed.project()
    opened = [await seed.opened(shop, str(number % 3), NOW + number % 2 * DAY) for number in range(24)]

    async def confirm(number: int) -> None:
        at = NOW + number % 2 * DAY
        node = (storage, other_node)[number % 4 // 2]
        identity = seed.identity(str(number % 3))
        assert await node.sessions.confirm_session(opened[number].key, identity, at, seed.event(shop, at=at))

    await asyncio.gather(*map(confirm, range(24)))
    listed = await storage.users.list_users(shop.id, None, 9)
    assert {each.messenger_id: each.sign_ins for each in listed} == {"0": 8, "1": 8, "2": 8}
    users = await storage.counts.read_daily_users(shop.developer_id, 0)
    assert [(row.unique_users, row.latest_users) for row in users] == [(3, 0), (3, 3)]


async def test_read_user_of_a_project(storage: Storage, seed: Seed) -> None:
    """The user is as in the list; users without a sign-in to this project, and erased ones, are not found."""
    shop, game = await seed.project(), await seed.project()
    await seed.confirmed(shop)
    assert await storage.users.read_user(shop.id, "1001") == user("1001", NOW, NOW, 1)
    for project_id, name in ((game.id, "1001"), (shop.id, "2"), (shop.id, "\0")):
        assert await storage.users.read_user(project_id, name) is None
    await erase_all(storage, "1001", shop.developer_id)
    assert await storage.users.read_user(shop.id, "1001") is None
    assert await storage.users.list_users(shop.id, None, 9) == []
    await seed.confirmed(shop, at=NOW + MINUTE)
    assert await storage.users.read_user(shop.id, "1001") == user("1001", NOW + MINUTE, NOW + MINUTE, 1)


async def stored(storage: Storage) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return all rows of all tables."""
    found = {}
    for table, columns in TABLES.items():
        read = f"SELECT {', '.join(each.name for each in columns)} FROM {table}"  # noqa: S608 — our own names.
        found[table] = Counter(await run(storage, read))
    return found


async def exported(
    storage: Storage, name: str, developer_id: str | None, limit: int = 3
) -> dict[str, set[tuple[Any, ...]]]:
    """Export as the service does, and return the rows by table; no row may come twice."""
    found: dict[str, list[Row]] = defaultdict(list)
    project, erasure = "", storage.erasure
    while following := await erasure.find_project(name, developer_id, project):
        project, key = following, FIRST_KEY
        while (rows := await erasure.export_sessions(name, project, developer_id, key, limit))["sessions"]:
            assert len(rows["sessions"]) <= limit
            for table, some in rows.items():
                found[table] += some
            key = SessionKey(rows["sessions"][-1]["day"], rows["sessions"][-1]["token_hash"])
    day = FIRST_DAY
    while days := await erasure.export_days(name, developer_id, day, limit):
        found["user_days"] += days
        day = DaysCursor(days[-1]["developer_id"], days[-1]["day"], days[-1]["project_id"])
    for table in REST if developer_id is None else ():
        after: Row | None = None
        while rest := await erasure.export_rest(name, table, after, limit):
            found[table] += rest
            after = rest[-1]
    assert all(len({tuple(row.values()) for row in rows}) == len(rows) for rows in found.values())
    return {table: {tuple(row.values()) for row in rows} for table, rows in found.items() if rows}


async def live(storage: Storage, seed: Seed, projects: list[Any], draw: random.Random) -> None:
    """Let three users make random sign-ins in some projects on some days."""
    shop, name, at = draw.choice(projects), draw.choice(("1001", "2002", "3003")), NOW - draw.randrange(3) * DAY
    match draw.randrange(5):
        case 0:
            await storage.users.block_project(name, shop.id, at)
        case 1:
            reported = await seed.confirmed(shop, name, at)
            await seed.report(reported.key, name, at)
        case 2:
            await seed.confirmed(shop, name, at)
        case _:
            opened = await seed.opened(shop, name, at)
            await storage.prompts.record_prompt(ShownPrompt(opened.key, 0, name, draw.randrange(99), "en"))
            await seed.asked_for_phone(opened, name)
            if draw.randrange(2):
                event = seed.event(shop, "auth.cancelled", at)
                await storage.sessions.cancel_session(opened.key, name, at, event)


@pytest.mark.parametrize("number", range(4))
async def test_export_sessions_and_person_as_erasing_removes_them(storage: Storage, seed: Seed, number: int) -> None:
    """An export contains every row that erasing removes, and no other: of one developer, then of all."""
    draw = random.Random(number)  # noqa: S311 — a test that can be repeated.
    ada, bob, eve = [await seed.developer() for _ in range(3)]
    projects = [await seed.project(each, webhook_url=URL) for each in (ada, ada, bob, eve)]
    await run(storage, ADD_MEMBER, projects[2].id, ada.id, "developer", NOW, "")
    await run(storage, ADD_MEMBER, projects[3].id, ada.id, "viewer", NOW, "")
    for _ in range(40):
        await live(storage, seed, projects, draw)
    for delivery in await storage.deliveries.claim_deliveries(NOW, NOW + MINUTE, 9):
        await seed.attempted(delivery, "delivered")
    for developer_id in (ada.id, None):
        before, found = await stored(storage), await exported(storage, "1001", developer_id)
        assert {"sessions", "webhook_events"} <= found.keys()
        await erase_all(storage, "1001", developer_id)
        after = await stored(storage)
        removed = {table: set(rows - after[table]) for table, rows in before.items() if table not in COUNTERS}
        assert found == {table: rows for table, rows in removed.items() if rows}
    assert await exported(storage, "1001", None) == {}


async def test_export_sessions_of_this_account_and_for_a_writer_only(storage: Storage, seed: Seed) -> None:
    """The rows of one call belong together. Other accounts' sessions are left out, and viewers get nothing."""
    shop, other = await seed.project(webhook_url=URL), await seed.project()
    mine = await seed.confirmed(shop)
    await seed.confirmed(shop, "2002")
    await seed.confirmed(other)
    await run(storage, ADD_MEMBER, shop.id, other.developer_id, "viewer", NOW, "")
    export = partial(storage.erasure.export_sessions, "1001", shop.id)
    rows = await export(shop.developer_id, FIRST_KEY, 9)
    assert {table: len(found) for table, found in rows.items() if found} == {"sessions": 1, "webhook_events": 1}
    assert rows["sessions"][0]["id"] == rows["webhook_events"][0]["session_id"] == mine.id
    assert not any((await export(shop.developer_id, mine.key, 9)).values())
    with pytest.raises(InsufficientRole):
        await export(other.developer_id, FIRST_KEY, 9)
    with pytest.raises(ProjectNotFound):
        await export("dev_none", FIRST_KEY, 9)


async def test_is_kept_until_it_is_erased(storage: Storage, seed: Seed) -> None:
    """Only an unerased session of this account counts."""
    shop = await seed.project()
    mine = await seed.confirmed(shop)
    assert await storage.erasure.is_kept("1001", mine.key)
    assert not await storage.erasure.is_kept("2002", mine.key)
    await erase_all(storage, "1001", shop.developer_id)
    assert not await storage.erasure.is_kept("1001", mine.key)


async def test_export_rest_leaves_out_what_belongs_to_a_session(storage: Storage, seed: Seed) -> None:
    """Blocks belong to the user. Prompts and requests are here only if their session is gone."""
    shop, other = await seed.project(), await seed.project()
    for project in (shop, other):
        await seed.confirmed(project)
        await storage.users.block_project("1001", project.id, NOW)
    opened = await seed.opened(shop)
    await storage.prompts.record_prompt(ShownPrompt(opened.key, 0, "1001", 5, "en"))
    assert (await exported(storage, "1001", None)).keys() == {"sessions", "user_days", "blocks", "prompts"}
    assert await storage.erasure.export_rest("1001", "prompts", None, 9) == []
    assert "blocks" not in await exported(storage, "1001", shop.developer_id)


async def test_export_days_of_one_developer(storage: Storage, seed: Seed) -> None:
    """The days of the account in the projects that the developer may change, or in all."""
    shop, other = await seed.project(), await seed.project()
    for project in (shop, other):
        await seed.confirmed(project)
        await seed.confirmed(project, "2002")
    for developer_id, ids in ((shop.developer_id, {shop.id}), (None, {shop.id, other.id}), ("dev_none", set())):
        days = await storage.erasure.export_days("1001", developer_id, FIRST_DAY, 9)
        assert {row["project_id"] for row in days} == ids
        assert len(days) == len(ids)
