"""Conformance: the list of sessions, page by page."""

from typing import TYPE_CHECKING

from tests.databases import expired_event

from taproof.contract.session import SignInStatus
from taproof.core.clock import MINUTE
from taproof.core.page_cursor import PageCursor
from taproof.core.sessions import Session
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed

STATUSES: tuple[SignInStatus, ...] = ("pending", "confirmed", "cancelled", "expired", "used")
EDGE = 10 * MINUTE


async def in_every_state(storage: Storage, seed: "Seed", created_at: int) -> dict[str, SignInStatus]:
    """Make a project with one session in each stored state, all created at one instant; return states by id."""
    project = await seed.project()
    made: dict[str, SignInStatus] = {(await seed.session(project, created_at)).id: "pending"}
    cancelled = await seed.opened(project, at=created_at)
    await storage.sessions.cancel_session(cancelled.key, "1001", created_at, seed.event(project))
    used = await seed.confirmed(project, at=created_at)
    await storage.sessions.consume_session(used.key, created_at)
    confirmed = await seed.confirmed(project, at=created_at)
    return made | {cancelled.id: "cancelled", used.id: "used", confirmed.id: "confirmed"}


async def test_list_sessions_shows_what_a_reader_sees(storage: Storage, seed: "Seed") -> None:
    """Pending until the edge, expired from it on, written down or not; each status filter agrees with no filter."""
    made = await in_every_state(storage, seed, seed.now)
    projects = [(await storage.developers.list_developers())[0].id]
    projects = [project.id for project in await storage.projects.list_projects(projects[0])]
    for written, now in ((False, seed.now + EDGE - 1), (False, seed.now + EDGE), (True, seed.now + EDGE)):
        if written:
            assert await storage.sessions.expire_sessions(now, 10, expired_event) == 1
        late = now >= seed.now + EDGE
        expected = {name: "expired" if late and status == "pending" else status for name, status in made.items()}
        everything = await storage.sessions.list_sessions(projects, None, None, 100, now)
        assert {session.id: session.status for session in everything} == expected
        for status in STATUSES:
            of_status = await storage.sessions.list_sessions(projects, status, None, 100, now)
            assert of_status == [session for session in everything if session.status == status]


async def test_list_sessions_shows_whole_sessions(storage: Storage, seed: "Seed") -> None:
    """An item is the session that `read_session` returns."""
    project = await seed.project()
    for session in (await seed.session(project), await seed.opened(project), await seed.confirmed(project)):
        (listed,) = [
            each
            for each in await storage.sessions.list_sessions([project.id], None, None, 9, seed.now)
            if each.id == session.id
        ]
        assert listed == await storage.sessions.read_session(session.key)


async def test_list_sessions_keeps_to_the_projects_asked_for(storage: Storage, seed: "Seed") -> None:
    """No project, no sessions; a foreign project's sessions never show."""
    mine, foreign = await seed.project(), await seed.project()
    of_mine = await seed.session(mine)
    await seed.session(foreign)
    assert await storage.sessions.list_sessions([], None, None, 10, seed.now) == []
    assert [each.id for each in await storage.sessions.list_sessions([mine.id], None, None, 10, seed.now)] == [
        of_mine.id
    ]


async def test_list_sessions_is_not_disturbed_by_new_ones(storage: Storage, seed: "Seed") -> None:
    """Sessions that are created while somebody walks the pages neither repeat nor push out an older one."""
    project = await seed.project()
    made = [await seed.session(project) for _ in range(9)]
    found: list[Session] = []
    before: PageCursor | None = None
    while page := await storage.sessions.list_sessions([project.id], None, before, 2, seed.now):
        found += page
        before = PageCursor(page[-1].created_at, page[-1].id)
        await seed.session(project, at=seed.now + 1)
    assert [session.id for session in found] == sorted((session.id for session in made), reverse=True)
