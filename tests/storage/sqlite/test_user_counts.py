"""The counts of distinct users against a brute-force recount: Hypothesis draws who signs in where and when."""

import asyncio
from collections import defaultdict
from typing import Literal, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from tests.storage.seed import Seed

from taproof.core.clock import DAY

FIRST_DAY = 20_000
LAST_DAY = FIRST_DAY + 4


class Step(NamedTuple):
    """`number` is the user of a confirm and the batch size of a purge; days before `day` are forgotten."""

    kind: Literal["confirm", "delete", "purge", "forget"]
    project: int
    number: int
    day: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(("confirm", "confirm", "confirm", "confirm", "delete", "purge", "forget")),
        st.integers(0, 3),
        st.integers(1, 4),
        st.integers(FIRST_DAY, LAST_DAY),
    ),
    max_size=40,
)


def recount(seen: set[tuple[str, int]], first: int) -> dict[int, tuple[int, int]]:
    """Return each day's distinct users, and how many of them were never seen later, from the users of each day.

    The result starts at the day `first`, because only the later figures of forgotten days are exact.
    """
    by_day: dict[int, set[str]] = defaultdict(set)
    for user, day in seen:
        by_day[day].add(user)
    last = {user: max(day for other, day in seen if other == user) for user, _ in seen}
    people = {day: (len(users), sum(last[user] == day for user in users)) for day, users in by_day.items()}
    return {day: figures for day, figures in people.items() if day >= first}


def test_counts_of_people_equal_a_recount(quick: tuple[Seed, asyncio.Runner]) -> None:
    """The counts match in any order of days, projects, users, deletions and purges, and during a deletion."""

    async def check(seed: Seed, steps: list[Step]) -> None:
        storage = seed.storage
        # What earlier examples left would be purged first.
        await seed.purge_projects(1_000)
        while await storage.counts.purge_user_days(LAST_DAY + 1, 1_000):
            pass
        ada, bob = await seed.developer(), await seed.developer()
        projects = [await seed.project(owner) for owner in (ada, ada, ada, bob)]
        alive = dict(enumerate(projects))
        seen: dict[int, set[tuple[str, int]]] = {number: set() for number in alive}
        kept = FIRST_DAY
        for step in steps:
            project = alive.get(step.project)
            if step.kind == "purge":
                await storage.projects.purge_deleted_projects(step.number)
            elif step.kind == "forget":
                while await storage.counts.purge_user_days(step.day, step.number):
                    pass
                kept = max(kept, step.day)
            elif project is None or (step.kind == "confirm" and step.day < kept):
                # Nobody confirms a session of a day that was forgotten: it lies longer back than one can be pending.
                continue
            elif step.kind == "delete":
                await seed.delete(project)
                del alive[step.project]
            else:
                await seed.confirmed(project, f"{step.number}", at=step.day * DAY)
                seen[step.project].add((f"{step.number}", step.day))
            # A living project's own figures are exact at every moment, whatever is being erased beside it.
            for number, living in alive.items():
                rows = await storage.counts.read_daily_counts([living.id], kept)
                assert {row.day: (row.unique_users, row.latest_users) for row in rows} == recount(seen[number], kept)
        await seed.purge_projects(2)
        for owner in (ada, bob):
            own = [seen[number] for number, project in alive.items() if project.developer_id == owner.id]
            people: set[tuple[str, int]] = set().union(*own)
            figures = await storage.counts.read_daily_users(owner.id, kept)
            # A day may be left with zeros once the last project that it counted is erased.
            some = {row.day: (row.unique_users, row.latest_users) for row in figures if row.unique_users}
            assert some == recount(people, kept)
            assert all(row.latest_users == 0 for row in figures if not row.unique_users)
            for first in range(kept, LAST_DAY + 1):
                since = {user for user, day in people if day >= first}
                assert sum(row.latest_users for row in figures if row.day >= first) == len(since)

    seed, runner = quick

    @given(STEPS)
    def examples(steps: list[Step]) -> None:
        runner.run(check(seed, steps))

    examples()
