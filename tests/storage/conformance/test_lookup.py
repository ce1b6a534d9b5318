"""Conformance: the lookups of a session's page and of the list's filters."""

import asyncio
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.databases import expired_event
from tests.storage.seed import Seed, present

from taproof.contract.delivery import EventType
from taproof.contract.session import SignInStatus
from taproof.core.clock import DAY, MINUTE
from taproof.core.page_cursor import PageCursor
from taproof.core.projects import Project
from taproof.core.sessions import NewSession, Session
from taproof.storage.protocol import Storage

STATUSES: tuple[SignInStatus, ...] = ("pending", "confirmed", "cancelled", "expired", "used")
EDGE = 10 * MINUTE
URL = "https://example.com/"


async def in_state(seed: Seed, project: Project, status: SignInStatus, at: int, user: str = "1001") -> NewSession:
    """Store a session that was created at `at` and opened by `user`, in the state `status`."""
    storage = seed.storage
    if status in {"confirmed", "used"}:
        session = await seed.confirmed(project, user, at)
    else:
        session = await seed.opened(project, user, at)
    if status == "used":
        assert await storage.sessions.consume_session(session.key, at) is not None
    if status == "cancelled":
        assert await storage.sessions.cancel_session(session.key, user, at, seed.event(project, "auth.cancelled", at))
    if status == "expired":
        assert await storage.sessions.expire_sessions(at + EDGE, 1, expired_event) == 1
    return session


class Made(NamedTuple):
    """A session drawn by Hypothesis: its age in minutes and its state."""

    project: int
    age: int
    status: SignInStatus
    user: str

    def seen(self) -> SignInStatus:
        """Return its status as a reader sees it."""
        return "expired" if self.status == "pending" and self.age >= 10 else self.status


# Instants that several sessions share, both edges of expiry, the days of one week, and those before it.
AGES = st.sampled_from((0, 1, 9, 10, 11, 1_440, 1_441, 2_880, 20_000))
DRAWN = st.builds(Made, st.integers(0, 2), AGES, st.sampled_from(STATUSES), st.sampled_from(("1001", "1002")))


async def store(seed: Seed, projects: list[Project], drawn: list[Made]) -> dict[str, Made]:
    """Store the sessions; expired ones first, while nothing else is pending."""
    expired = [each for each in drawn if each.status == "expired"]
    others = [each for each in drawn if each.status != "expired"]
    ended = await asyncio.gather(
        *(seed.opened(projects[each.project], each.user, seed.now - each.age * MINUTE) for each in expired)
    )
    # Each at its own time, because a sweep looks at its own day; it also takes what earlier examples left.
    swept = [
        await seed.storage.sessions.expire_sessions(at + EDGE, 10_000, expired_event)
        for at in sorted({x.created_at for x in ended})
    ]
    assert sum(swept) >= len(expired)
    rest = await asyncio.gather(
        *(
            in_state(seed, projects[each.project], each.status, seed.now - each.age * MINUTE, each.user)
            for each in others
        )
    )
    return {session.id: each for session, each in zip([*ended, *rest], [*expired, *others], strict=True)}


def test_filters_together_leave_what_each_of_them_leaves(quick: tuple[Seed, asyncio.Runner]) -> None:
    """With any status, times and account, the pages have every matching session once, newest first, and no other."""

    async def check(
        seed: Seed, drawn: list[Made], since: int | None, until: int | None, user: str | None, limit: int
    ) -> None:
        sessions = seed.storage.sessions
        projects = [await seed.project() for _ in range(3)]
        made = await store(seed, projects, drawn)
        for status in (None, *STATUSES):
            expected = sorted(
                (
                    (seed.now - each.age * MINUTE, session_id, each.seen())
                    for session_id, each in made.items()
                    if status in {None, each.seen()}
                    and (since is None or each.age <= since)
                    and (until is None or each.age > until)
                    and (user is None or (each.user == user and each.status in {"confirmed", "used"}))
                ),
                reverse=True,
            )
            found: list[Session] = []
            before = None if until is None else PageCursor(seed.now - until * MINUTE, "")
            while page := await sessions.list_sessions(
                [project.id for project in projects],
                status,
                before,
                limit,
                seed.now,
                since=0 if since is None else seed.now - since * MINUTE,
                messenger_id=user,
            ):
                assert len(page) <= limit
                found += page
                before = PageCursor(page[-1].created_at, page[-1].id)
            assert [(each.created_at, each.id, each.status) for each in found] == expected

    seed, runner = quick

    @given(
        drawn=st.lists(DRAWN, max_size=14),
        since=st.none() | AGES,
        until=st.none() | AGES,
        user=st.sampled_from((None, "1001", "1002", "9")),
        limit=st.integers(1, 5),
    )
    def examples(drawn: list[Made], since: int | None, until: int | None, user: str | None, limit: int) -> None:
        runner.run(check(seed, drawn, since, until, user, limit))

    examples()


async def test_times_that_nothing_lies_between_leave_nothing(storage: Storage, seed: Seed) -> None:
    """Times in the future, before the first day or in reverse order, and unknown accounts, give an empty page."""
    project = await seed.project()
    await seed.session(project)
    for before, since in (
        (None, seed.now + 1),
        (None, 253_402_300_799_999),
        (PageCursor(-62_135_596_800_000, ""), 0),
        (PageCursor(seed.now, ""), 0),
        (PageCursor(seed.now - 30 * DAY, ""), seed.now),
    ):
        assert await storage.sessions.list_sessions([project.id], None, before, 9, seed.now, since=since) == []
    assert await storage.sessions.list_sessions([], None, None, 10, seed.now) == []
    await seed.confirmed(project)
    for nobody in ("", "100", "10010", "9" * 30, "1001\0", "1001 "):
        assert await storage.sessions.list_sessions([project.id], None, None, 9, seed.now, messenger_id=nobody) == []
    far = PageCursor(253_402_300_799_999, "")
    found = await storage.sessions.list_sessions([project.id], None, far, 9, seed.now, since=-62_135_596_800_000)
    assert len(found) == 2


async def test_sessions_of_a_node_whose_clock_is_ahead_are_listed(storage: Storage, seed: Seed) -> None:
    """These sessions are in a future day of this node. They are listed with a time, an account or no filter."""
    project = await seed.project()
    ahead = seed.now + 3 * MINUTE + DAY - seed.now % DAY
    session = await seed.confirmed(project, at=ahead)
    for since, before in ((0, None), (ahead, None), (0, PageCursor(ahead + 1, ""))):
        for user in (None, "1001"):
            found = await storage.sessions.list_sessions(
                [project.id], None, before, 9, seed.now, since=since, messenger_id=user
            )
            assert [each.id for each in found] == [session.id]


@pytest.mark.parametrize("status", STATUSES)
async def test_read_session_by_id_returns_it_in_every_state(storage: Storage, seed: Seed, status: SignInStatus) -> None:
    """The session is returned whole, with its current state, among others of the same time."""
    projects = [await seed.project() for _ in range(3)]
    made = [await in_state(seed, project, status, seed.now) for project in projects for _ in range(2)]
    ids = [project.id for project in projects]
    for session in made:
        found = await storage.sessions.read_session_by_id(ids, seed.now, session.id, seed.now)
        assert found == await storage.sessions.read_session(session.key)
        late = present(await storage.sessions.read_session_by_id(ids, seed.now, session.id, seed.now + EDGE))
        assert late.status == ("expired" if status == "pending" else status)


async def test_read_session_by_id_keeps_to_what_is_asked_for(storage: Storage, seed: Seed) -> None:
    """Another project, time or id, or none, finds nothing and does not fail."""
    project, foreign = await seed.project(), await seed.project()
    session = await seed.session(project)
    assert await storage.sessions.read_session_by_id([], seed.now, session.id, seed.now) is None
    assert await storage.sessions.read_session_by_id([foreign.id], seed.now, session.id, seed.now) is None
    for created_at in (seed.now - 1, seed.now + 1, 0, 62**7 - 1):
        assert await storage.sessions.read_session_by_id([project.id], created_at, session.id, seed.now) is None
    for session_id in ("", session.id[:-1], f"{session.id}\0", f"{session.id} "):
        assert await storage.sessions.read_session_by_id([project.id], seed.now, session_id, seed.now) is None
    await seed.delete(project)
    assert await storage.sessions.read_session_by_id([project.id, foreign.id], seed.now, session.id, seed.now) is None


async def decided(seed: Seed, project: Project, event_type: EventType, at: int) -> tuple[str, str]:
    """Decide a new session at `at`; return its id and the event's."""
    session, event = await seed.opened(project, at=at - 5), seed.event(project, event_type, at)
    if event_type == "auth.confirmed":
        assert await seed.storage.sessions.confirm_session(session.key, seed.identity("1001"), at, event)
    else:
        assert await seed.storage.sessions.cancel_session(session.key, "1001", at, event)
    return session.id, event.id


async def test_an_event_names_its_session(storage: Storage, seed: Seed) -> None:
    """Wherever a delivery is read, it has the id of its own session, even if many are decided at the same time."""
    projects = [await seed.project(webhook_url=URL) for _ in range(2)]
    types: tuple[EventType, ...] = ("auth.confirmed", "auth.cancelled")
    sessions = await asyncio.gather(
        *(decided(seed, projects[number % 2], types[number // 2 % 2], seed.now) for number in range(24))
    )
    expected = {event_id: session_id for session_id, event_id in sessions}
    listed = [
        record
        for project in projects
        for record in await storage.deliveries.list_deliveries(project.id, None, None, None, 100)
    ]
    assert {record.event_id: record.session_id for record in listed} == expected
    for number, (session_id, event_id) in enumerate(sessions):
        project = projects[number % 2]
        record = present(await storage.deliveries.read_delivery(project.developer_id, event_id))
        assert record.session_id == session_id
        assert await storage.deliveries.find_deliveries(project.id, seed.now, session_id) == [record]


async def test_find_deliveries_shows_them_in_every_state(storage: Storage, seed: Seed) -> None:
    """Due, claimed, delivered, failed, ended and resent deliveries are found with their attempts, each once."""
    project = await seed.project(webhook_url=URL)
    session_id, event_id = await decided(seed, project, "auth.cancelled", seed.now)

    async def check(state: str, attempts: int) -> None:
        (record,) = await storage.deliveries.find_deliveries(project.id, seed.now, session_id)
        assert record == await storage.deliveries.read_delivery(project.developer_id, event_id)
        assert (record.state, len(record.attempts)) == (state, attempts)

    await check("due", 0)
    (delivery,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + MINUTE, 10)
    await check("due", 0)
    assert await seed.attempted(delivery, "failed")
    await check("failed", 1)
    assert await storage.deliveries.resend_delivery(project.developer_id, event_id, seed.now + 9)
    (delivery,) = await storage.deliveries.claim_deliveries(seed.now + 9, seed.now + MINUTE, 10)
    assert await seed.attempted(delivery, "delivered", seed.now + 9)
    await check("delivered", 2)
    assert await storage.deliveries.resend_delivery(project.developer_id, event_id, seed.now + 10)
    assert await storage.deliveries.turn_off_webhook(project.id, URL, "gone", seed.now + 11, None)
    await check("ended", 2)


async def test_find_deliveries_keeps_to_the_session(storage: Storage, seed: Seed) -> None:
    """Deliveries of another session, time or project, tests, and sessions without a webhook are not found."""
    project, other = [await seed.project(webhook_url=URL) for _ in range(2)]
    session_id, _ = await decided(seed, project, "auth.confirmed", seed.now)
    await decided(seed, project, "auth.confirmed", seed.now)
    test = seed.event(project, "webhook.test")
    assert await storage.deliveries.record_delivery(project.developer_id, test, seed.attempt(), "failed")
    record = present(await storage.deliveries.read_delivery(project.developer_id, test.id))
    assert record.session_id is None
    assert len(await storage.deliveries.find_deliveries(project.id, seed.now, session_id)) == 1
    for project_id, at, asked in (
        (project.id, seed.now - 1, session_id),
        (project.id, seed.now, f"{session_id} "),
        (project.id, seed.now, f"{session_id}\0"),
        (other.id, seed.now, session_id),
        (f"{project.id}\0", seed.now, session_id),
    ):
        assert await storage.deliveries.find_deliveries(project_id, at, asked) == []
    silent = await seed.project()
    unheard, _ = await decided(seed, silent, "auth.confirmed", seed.now)
    assert await storage.deliveries.find_deliveries(silent.id, seed.now, unheard) == []
    await seed.delete(project)
    assert await storage.deliveries.find_deliveries(project.id, seed.now, session_id) == []


async def test_list_sessions_shows_whole_sessions(storage: Storage, seed: Seed) -> None:
    """An item is the session that `read_session` returns."""
    project = await seed.project()
    for session in (await seed.session(project), await seed.opened(project), await seed.confirmed(project)):
        (listed,) = [
            each
            for each in await storage.sessions.list_sessions([project.id], None, None, 9, seed.now)
            if each.id == session.id
        ]
        assert listed == await storage.sessions.read_session(session.key)
