"""Conformance: the counters that every figure is read from."""

from dataclasses import replace

from tests.storage.seed import Seed

from taproof.core.clock import DAY
from taproof.core.counts import DailyCounts, DailyUsers
from taproof.storage.protocol import Storage


async def test_read_daily_counts_keeps_to_the_window_and_the_projects(storage: Storage, seed: Seed) -> None:
    """The window includes its first day; only these projects count."""
    one, two, foreign = await seed.project(), await seed.project(), await seed.project()
    today = seed.now // DAY
    for project in (one, two, foreign):
        for days_ago in (0, 6, 7):
            await seed.session(project, at=seed.now - days_ago * DAY)
    found = await storage.counts.read_daily_counts([one.id, two.id], today - 6)
    blank = DailyCounts("", 0, requested=1)
    assert sorted(found, key=lambda row: (row.project_id, row.day)) == [
        replace(blank, project_id=project.id, day=day) for project in (one, two) for day in (today - 6, today)
    ]
    assert await storage.counts.read_daily_counts([], 0) == []


async def test_read_daily_users_counts_people_and_not_sign_ins(storage: Storage, seed: Seed) -> None:
    """A person who signs in to two projects many times on many days counts once on each day and once in total."""
    ada = await seed.developer()
    shop, forum = await seed.project(ada), await seed.project(ada)
    today = seed.now // DAY
    for project, user, days_ago in (
        (shop, "1", 0),
        (shop, "1", 0),
        (forum, "1", 0),
        (forum, "1", 2),
        (forum, "2", 2),
        (shop, "3", 1),
    ):
        await seed.confirmed(project, user, at=seed.now - days_ago * DAY)
    assert await storage.counts.read_daily_users(ada.id, 0) == [
        DailyUsers(today - 2, unique_users=2, latest_users=1),
        DailyUsers(today - 1, unique_users=1, latest_users=1),
        DailyUsers(today, unique_users=1, latest_users=1),
    ]
    assert [row.day for row in await storage.counts.read_daily_users(ada.id, today - 1)] == [today - 1, today]


async def test_read_daily_totals_adds_up_a_developers_projects(storage: Storage, seed: Seed) -> None:
    """Totals are by day from the first one on, without other developers' projects."""
    ada, bob = await seed.developer(), await seed.developer()
    first, second, of_bob = await seed.project(ada), await seed.project(ada), await seed.project(bob)
    today = seed.now // DAY
    for project in (first, second, of_bob):
        await seed.session(project, (today - 1) * DAY)
        await seed.opened(project)
    await seed.session(first, (today - 8) * DAY)
    found = await storage.counts.read_daily_totals(ada.id, today - 7)
    assert [(row.project_id, row.day, row.requested, row.opened) for row in found] == [
        ("", today - 1, 2, 0),
        ("", today, 2, 2),
    ]
    assert await storage.counts.read_daily_totals("dev_nobody", 0) == []
