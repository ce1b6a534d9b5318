"""Conformance: the users of a project in pages, and the export of one user's data."""

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.databases import NOW
from tests.storage.conformance.test_erasure import URL, erase_all, request_phone

from taproof.core.clock import DAY, MINUTE
from taproof.core.counts import ProjectUser
from taproof.core.model import PageCursor, SessionKey, ShownPrompt
from taproof.storage.export.format import TABLES
from taproof.storage.protocol import Storage
from taproof.storage.protocol.erasure import Rows
from taproof.storage.queries.rights import ADD_MEMBER

if TYPE_CHECKING:
    from tests.storage.conftest import Seed

COUNTERS = {"daily_counts", "daily_users"}


def user(messenger_id: str, first_at: int, last_at: int, sign_ins: int, reports: int = 0) -> ProjectUser:
    """Return a user with the name that the seed gives."""
    return ProjectUser(
        messenger_id, f"User {messenger_id}", f"user_{messenger_id}", first_at, last_at, sign_ins, reports
    )


async def test_list_users_by_last_sign_in(storage: Storage, seed: "Seed") -> None:
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


async def test_list_users_after_a_late_confirm_of_an_earlier_day(storage: Storage, seed: "Seed") -> None:
    """A session that was opened before midnight belongs to the day before, and changes the user all the same."""
    shop = await seed.project()
    await seed.confirmed(shop, at=NOW + DAY)
    await seed.confirmed(shop, at=NOW)
    (listed,) = await storage.users.list_users(shop.id, None, 9)
    assert (listed.messenger_id, listed.sign_ins) == ("1001", 2)


async def test_list_users_counts_each_of_many_at_once(storage: Storage, other_node: Storage, seed: "Seed") -> None:
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


async def test_read_user_of_a_project(storage: Storage, seed: "Seed") -> None:
    """As in the list; nobody who has not signed in to this project, or who was erased."""
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


async def test_list_opened_finds_what_erase_opened_erases(storage: Storage, seed: "Seed") -> None:
    """Page by page; nothing in a project of another developer."""
    shop, other = await seed.project(), await seed.project()
    mine = [await seed.opened(shop, at=NOW + number) for number in range(3)]
    await seed.opened(shop, "2002")
    (of,) = await storage.erasure.list_opened_days(shop.developer_id, None, 9)
    found: list[SessionKey] = []
    page = await storage.erasure.list_opened("1001", of, None, 2, developer_id=shop.developer_id)
    while page.after is not None:
        found += page.keys
        page = await storage.erasure.list_opened("1001", of, page.after, 2)
    assert {*found, *page.keys} == {each.key for each in mine}
    refused = await storage.erasure.list_opened("1001", of, None, 9, developer_id=other.developer_id)
    assert refused == ([], None)


async def stored(storage: Storage) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return all rows of all tables."""
    found = {}
    for table, columns in TABLES.items():
        read = f"SELECT {', '.join(each.name for each in columns)} FROM {table}"  # noqa: S608 — our own names.
        found[table] = Counter(tuple(row) for row in await storage.database.read(read))  # type: ignore[attr-defined]
    return found


async def exported(storage: Storage, name: str, developer_id: str | None) -> dict[str, set[tuple[Any, ...]]]:
    """Export as the service does, and return the rows by table."""
    keys = dict.fromkeys(await storage.erasure.list_sign_ins(name, developer_id))
    for of in await storage.erasure.list_opened_days(developer_id, None, 999):
        page = await storage.erasure.list_opened(name, of, None, 999, developer_id=developer_id)
        keys |= dict.fromkeys(page.keys)
    parts: list[Rows] = [await storage.erasure.export_sessions(name, list(keys))]
    parts.append(await storage.erasure.export_person(name, developer_id))
    return {
        table: {tuple(row.values()) for part in parts for row in part.get(table, [])}
        for table in {table for part in parts for table, rows in part.items() if rows}
    }


async def live(storage: Storage, seed: "Seed", projects: list[Any], draw: random.Random) -> None:
    """Let three users do something in some project on some day."""
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
            await request_phone(storage, opened, name)
            if draw.randrange(2):
                event = seed.event(shop, "auth.cancelled", at)
                await storage.sessions.cancel_session(opened.key, name, at, event)


@pytest.mark.parametrize("number", range(4))
async def test_export_sessions_and_person_as_erasing_removes_them(storage: Storage, seed: "Seed", number: int) -> None:
    """An export contains every row that erasing removes, and no other: of one developer, then of all."""
    draw = random.Random(number)  # noqa: S311 — a test that can be repeated.
    ada, bob, eve = [await seed.developer() for _ in range(3)]
    projects = [await seed.project(each, webhook_url=URL) for each in (ada, ada, bob, eve)]
    await storage.database.add(ADD_MEMBER, projects[2].id, ada.id, "developer", NOW, "")  # type: ignore[attr-defined]
    await storage.database.add(ADD_MEMBER, projects[3].id, ada.id, "viewer", NOW, "")  # type: ignore[attr-defined]
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


async def test_export_sessions_of_this_account_only(storage: Storage, seed: "Seed") -> None:
    """A key of another account's session exports nothing of it."""
    shop = await seed.project(webhook_url=URL)
    mine, others = await seed.confirmed(shop), await seed.confirmed(shop, "2002")
    rows = await storage.erasure.export_sessions("1001", [mine.key, others.key])
    assert {table: len(found) for table, found in rows.items() if found} == {"sessions": 1, "webhook_events": 1}
    assert rows["sessions"][0]["id"] == rows["webhook_events"][0]["session_id"] == mine.id
    assert not any((await storage.erasure.export_sessions("\0", [mine.key])).values())


async def test_export_person_of_one_developer(storage: Storage, seed: "Seed") -> None:
    """The days on which the user signed in; blocks belong to the user, so no developer sees them."""
    shop, other = await seed.project(), await seed.project()
    for project in (shop, other):
        await seed.confirmed(project)
        await storage.users.block_project("1001", project.id, NOW)
    rows = await storage.erasure.export_person("1001", shop.developer_id)
    assert [row["project_id"] for row in rows["user_days"]] == [shop.id]
    assert "blocks" not in rows
    rows = await storage.erasure.export_person("1001", None)
    assert [len(rows[table]) for table in ("user_days", "blocks", "prompts")] == [2, 2, 0]
