"""A developer with many projects causes a bounded number of statements, none on SQLite's event loop."""

from collections.abc import Awaitable, Callable
from operator import attrgetter
from typing import Any

import pytest
from tests.databases import NOW
from tests.storage.seed import Seed

from taproof.storage.sqlite.store import SqliteStorage

MANY = 60
PAGE = 5


async def many_projects(seed: Seed) -> list[str]:
    """Make projects of one developer with a few sessions each, whose times are mixed."""
    ada = await seed.developer()
    ids = []
    for number in range(MANY):
        project = await seed.project(ada, created_at=NOW + number)
        ids.append(project.id)
        for place in range(3):
            await seed.session(project, NOW - (number * 7 + place * 11) % 97)
    return ids


def statements(sqlite: SqliteStorage) -> tuple[list[str], list[str]]:
    """Return lists of the statements that run on the event loop, and in the thread, from here on."""
    on_loop: list[str] = []
    in_thread: list[str] = []

    def into(found: list[str]) -> Callable[..., bool]:
        def note(_cursor: object, statement: str, _values: object) -> bool:
            found.append(statement)
            return True

        return note

    sqlite.database.reader.exec_trace = into(on_loop)
    sqlite.database.lookup.exec_trace = into(in_thread)
    return on_loop, in_thread


async def test_a_page_across_projects_needs_no_statement_for_each(sqlite: SqliteStorage, sqlite_seed: Seed) -> None:
    """Each of five walks takes one statement, and each session of the page one more, for any number of projects."""
    ids = await many_projects(sqlite_seed)
    on_loop, in_thread = statements(sqlite)
    found = await sqlite.sessions.list_sessions(ids, None, None, PAGE, NOW)
    assert len(found) == PAGE
    assert len(on_loop) == 0
    assert 5 < len(in_thread) <= 2 + 5 + 4 * PAGE


@pytest.mark.parametrize(
    "name",
    ["counts.read_daily_totals", "counts.read_daily_users", "projects.list_projects", "projects.name_projects"],
)
async def test_sums_across_projects_are_one_statement_beside_the_loop(
    sqlite: SqliteStorage, sqlite_seed: Seed, name: str
) -> None:
    """Sums that grow with projects and days are calculated in the thread."""
    project = (await sqlite.projects.read_project((await many_projects(sqlite_seed))[0])) or None
    assert project is not None
    on_loop, in_thread = statements(sqlite)
    call: Callable[..., Awaitable[Any]] = attrgetter(name)(sqlite)
    await (call(project.developer_id) if name.startswith("projects.") else call(project.developer_id, 0))
    assert len(on_loop) == 0
    assert len(in_thread) == 3  # BEGIN, the statement and COMMIT.
