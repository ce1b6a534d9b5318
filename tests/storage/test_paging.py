"""The pages of sessions; Hypothesis draws the sessions, the limit and the filter."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.databases import Database, expired_event

from taproof.contract.session import SignInStatus
from taproof.core.clock import MINUTE
from taproof.core.page_cursor import PageCursor
from taproof.core.projects import Project
from taproof.core.sessions import NewSession, Session
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed

STATUSES: tuple[SignInStatus, ...] = ("pending", "confirmed", "cancelled", "expired", "used")
EDGE = 10 * MINUTE


async def make_session(seed: "Seed", project: Project, created_at: int, status: SignInStatus) -> NewSession:
    """Store a session that is, or at `seed.now` is seen as, `status`."""
    if status in {"pending", "expired"}:
        return await seed.session(project, created_at)
    if status == "cancelled":
        session = await seed.opened(project, at=created_at)
        await seed.storage.sessions.cancel_session(session.key, "1001", created_at, seed.event(project))
        return session
    session = await seed.confirmed(project, at=created_at)
    if status == "used":
        await seed.storage.sessions.consume_session(session.key, created_at)
    return session


async def walk(
    storage: Storage, projects: list[str], status: SignInStatus | None, limit: int, now: int
) -> list[Session]:
    """Return all pages put together."""
    found: list[Session] = []
    before: PageCursor | None = None
    while page := await storage.sessions.list_sessions(projects, status, before, limit, now):
        assert len(page) <= limit
        found += page
        before = PageCursor(page[-1].created_at, page[-1].id)
    return found


def test_pages_hold_every_session_exactly_once(new_database: Database, new_seed: "Callable[[Storage], Seed]") -> None:
    """Any limit, any filter, equal instants, several projects, expiry half written down: newest first, none twice."""

    async def check(seed: "Seed", drawn: list[tuple[int, int, SignInStatus]], limit: int, swept: int) -> None:
        sessions = seed.storage.sessions
        # What earlier examples left pending would be swept first.
        while await sessions.expire_sessions(seed.now, 1_000, expired_event):
            pass
        projects = [await seed.project() for _ in range(3)]
        instants = [seed.now - (EDGE if status == "expired" else 0) - minutes * MINUTE for _, minutes, status in drawn]
        stored = await asyncio.gather(
            *(make_session(seed, projects[each[0]], at, each[2]) for each, at in zip(drawn, instants, strict=True))
        )
        made = [(each.created_at, each.id, status) for each, (_, _, status) in zip(stored, drawn, strict=True)]
        await sessions.expire_sessions(seed.now, swept, expired_event)
        for asked in (None, *STATUSES):
            found = await walk(seed.storage, [project.id for project in projects], asked, limit, seed.now)
            expected = sorted((each for each in made if asked in {None, each[2]}), reverse=True)
            assert [(session.created_at, session.id, session.status) for session in found] == expected

    with new_database(quick=True) as open_store, asyncio.Runner() as runner:
        seed = new_seed(runner.run(open_store()))

        @given(
            drawn=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from(STATUSES)), max_size=25),
            limit=st.integers(1, 7),
            swept=st.integers(0, 3),
        )
        def examples(drawn: list[tuple[int, int, SignInStatus]], limit: int, swept: int) -> None:
            runner.run(check(seed, drawn, limit, swept))

        try:
            examples()
        finally:
            runner.run(seed.storage.close())
