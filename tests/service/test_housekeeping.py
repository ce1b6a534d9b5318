"""Housekeeping erases old rows in bounded batches, and changes no number of analytics."""

import asyncio
import hashlib
import itertools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taproof.core.accounts import ConsoleSession, Developer, Invitation
from taproof.core.clock import DAY, HOUR, MINUTE
from taproof.core.deliveries import Event
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import ProjectNotFound, SessionNotFound, StoreUnavailable
from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.prompts import PhoneRequest
from taproof.core.sessions import NewSession, SessionKey
from taproof.service import housekeeping
from taproof.service.analytics import AnalyticsReader, Window
from taproof.service.housekeeping import Housekeeping
from taproof.service.webhooks import WebhookResponse
from taproof.storage.queries import deliveries
from taproof.storage.sqlite.store import SqliteStorage

if TYPE_CHECKING:
    from tests.service.conftest import Node

START = 20_000 * DAY
DEVELOPER = Developer("dev_1", "ada@example.com", "free", START)


# ---- the property: a purge changes no figure


class Step(NamedTuple):
    """First so many days go by, then this is done."""

    days: int
    kind: Literal["pending", "opened", "cancelled", "confirmed", "used", "delete", "sweep", "sweep all"]
    project: int
    user: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from((0, 0, 1, 2, 3, 5, 7, 29, 60, 90, 91, 92)),
        st.sampled_from(("pending", "opened", "cancelled", *["confirmed", "used", "sweep all"] * 3, "delete", "sweep")),
        st.integers(0, 1),
        st.integers(1, 2),
    ),
    max_size=30,
)


class Twin:
    """A store with its own housekeeping; the same steps on another one differ in what is purged only."""

    def __init__(self, path: Path, retention_days: int) -> None:
        self.now = START
        encryptor = Encryptor(new_master_key(system_entropy))
        self.storage = SqliteStorage.open(path, START)
        # Nothing here is about durability, and there are thousands of commits.
        self.storage.database.writer._connection.execute("PRAGMA synchronous = OFF").fetchall()
        self.housekeeping = Housekeeping(self.storage, encryptor, lambda: self.now, system_entropy, retention_days)
        self.analytics = AnalyticsReader(self.storage, lambda: self.now)
        self.projects = [
            Project(
                id=f"proj_{number:022d}",
                developer_id=DEVELOPER.id,
                name="Shop",
                secret_key_preview="sk_aaaa…zzzz",
                encrypted_webhook_secret=b"encrypted",
                webhook_url="https://example.com/",
                is_active=True,
                public_access=True,
                collect_phone=False,
                created_at=START,
            )
            for number in range(2)
        ]
        self._numbers = itertools.count()

    async def begin(self) -> None:
        await self.storage.developers.create_developer(DEVELOPER)
        for project in self.projects:
            await self.storage.projects.create_project(project, project.id.encode())

    async def take(self, step: Step) -> None:
        self.now += step.days * DAY
        project = self.projects[step.project]
        if step.kind == "sweep":
            await self.housekeeping.sweep()
        elif step.kind in {"delete", "sweep all"}:
            if step.kind == "delete":
                await self.storage.projects.delete_project(DEVELOPER.id, project.id)
            while await self.housekeeping.sweep():
                pass
        else:
            await self._session(step, project)

    async def _session(self, step: Step, project: Project) -> None:
        number = next(self._numbers)
        key = SessionKey(self.now // DAY, hashlib.sha256(b"%d" % number).digest())
        new = NewSession(key, f"sess_{number}", project.id, self.now, self.now + 10 * MINUTE)
        try:
            await self.storage.sessions.create_session(new, public=True)
        except ProjectNotFound:
            return
        if step.kind == "pending":
            return
        user = f"{step.user}"
        await self.storage.sessions.open_session(key, user, self.now)
        event = Event(f"evt_{number}", "auth.confirmed", project.id, b"encrypted", self.now)
        if step.kind == "cancelled":
            await self.storage.sessions.cancel_session(key, user, self.now, event)
        elif step.kind in {"confirmed", "used"}:
            await self.storage.sessions.confirm_session(key, MessengerIdentity(user, "Name", ""), self.now, event)
            if step.kind == "used":
                await self.storage.sessions.consume_session(key, self.now)

    async def figures(self) -> list[object]:
        """Return every figure that a developer can read."""
        projects = await self.storage.projects.list_projects(DEVELOPER.id)
        return [
            projects,
            *[
                await self.analytics.read_analytics(DEVELOPER, days=days, project_id=project_id)
                for days in get_args(Window)
                for project_id in (None, *(project.id for project in projects))
            ],
        ]


@settings(max_examples=settings().max_examples // 3)
@given(STEPS, st.sampled_from((1, 2, 30, 90, 91, 120)), st.sampled_from((1, 2, 100)))
@example([Step(0, "used", 0, 1), Step(2, "sweep all", 0, 1), Step(0, "used", 0, 1)], 1, 100)
def test_no_purge_changes_a_figure(steps: list[Step], retention_days: int, batch: int) -> None:
    """Analytics of 7, 30 and 90 days and the counts of projects are those of a store that keeps everything."""

    async def check() -> None:
        twins = [Twin(Path(directory) / f"{days}.db", days) for days in (retention_days, 10_000)]
        for twin in twins:
            await twin.begin()
        for step in [*steps, Step(0, "sweep all", 0, 0)]:
            for twin in twins:
                await twin.take(step)
            assert await twins[0].figures() == await twins[1].figures()
        for twin in twins:
            await twin.storage.close()

    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(housekeeping, "BATCH", batch)
        asyncio.run(check())


# ---- what goes, and what stays


async def sweep_all(swept: Housekeeping) -> int:
    """Sweep until nothing is left to do; return how many sweeps had more to do."""
    full = 0
    while await swept.sweep():
        full += 1
    return full


async def stored_sessions(node: "Node", developer: Developer) -> int:
    page = await node.session_reader.list_sessions(developer, project_id=None, status=None, limit=200, cursor=None)
    return len(page.sessions)


async def test_sessions_go_when_their_day_is_older_than_the_retention(node: "Node") -> None:
    """A session is there for the whole of its retention and gone a day later; its counts stay."""
    swept = Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 30)
    developer = await node.developer()
    project, _ = await node.project(developer)
    token = await node.confirmed(project)
    node.clock.now += 30 * DAY
    await sweep_all(swept)
    assert await stored_sessions(node, developer) == 1
    node.clock.now += DAY
    await sweep_all(swept)
    assert await stored_sessions(node, developer) == 0
    with pytest.raises(SessionNotFound):
        await node.signin.verify_session(project.id, token, public=True)
    assert (await node.projects.read_project(developer, project.id)).confirmed_count == 1


async def test_each_sweep_erases_one_batch(node: "Node") -> None:
    """A sweep leaves the rest to the next one, and returns that there is more."""
    swept = Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 1)
    developer = await node.developer()
    project, _ = await node.project(developer)
    for _ in range(housekeeping.BATCH + 5):
        await node.confirmed(project)
    node.clock.now += 2 * DAY
    assert await swept.sweep()
    assert await stored_sessions(node, developer) == 5
    assert not await swept.sweep()
    assert await stored_sessions(node, developer) == 0


async def test_expiry_is_counted_before_a_session_is_erased(node: "Node") -> None:
    """A process that starts after weeks still counts every session that nobody acted on, however many they are."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    for _ in range(2 * housekeeping.BATCH + 5):
        await node.pending(project)
        node.clock.now += 1  # So that they expire in another order than that in which they are erased.
    node.clock.now += 5 * DAY
    await sweep_all(Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 1))
    assert await stored_sessions(node, developer) == 0
    analytics = await node.analytics.read_analytics(developer, days=7, project_id=None)
    assert analytics.totals["expired"] == 2 * housekeeping.BATCH + 5


async def test_finished_webhook_events_go_and_due_ones_stay(node: "Node") -> None:
    """An event that is still to be sent is sent, however old it is; a finished one is kept for the retention."""
    swept = Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 2)
    project, _ = await node.project(webhook_url="https://example.com/")
    await node.confirmed(project, "1001")
    (finished,) = await node.webhooks.claim_deliveries(1)
    await node.webhooks.finish_attempt(finished, WebhookResponse(5, 204))
    await node.confirmed(project, "1002")
    events = "SELECT state FROM webhook_events"
    node.clock.now += 2 * DAY
    await sweep_all(swept)
    assert len(node.storage.database.rows(events, ())) == 2
    node.clock.now += 1
    await sweep_all(swept)
    assert node.storage.database.rows(events, ()) == [("due",)]
    assert len(await node.webhooks.claim_deliveries(9)) == 1


async def test_deliveries_of_a_removed_webhook_end_in_batches(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sweep ends one batch, and returns that there is more until none is left."""
    monkeypatch.setattr(deliveries, "ENDED_AT_ONCE", 3)
    swept = Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 90)
    project, _ = await node.project(webhook_url="https://example.com/")
    for _ in range(housekeeping.BATCH + 8):
        await node.confirmed(project)
    changes = ProjectChanges(webhook_url="")
    await node.storage.projects.update_project(project.developer_id, project.id, changes, node.clock.now)
    counts = "SELECT COUNT(*) FROM webhook_events WHERE state = 'ended'"
    seen = [node.storage.database.rows(counts, ())[0][0]]
    while await swept.sweep():
        seen.append(node.storage.database.rows(counts, ())[0][0])
    assert seen == [3, housekeeping.BATCH + 3, housekeeping.BATCH + 8]


async def test_who_confirmed_is_forgotten_once_no_window_counts_them(node: "Node") -> None:
    """With a short retention too the rows that count distinct users live as long as the widest window needs them."""
    swept = Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 1)
    project, _ = await node.project()
    await node.confirmed(project)
    node.clock.now += 91 * DAY
    await sweep_all(swept)
    assert len(node.storage.database.rows("SELECT 1 FROM user_days", ())) == 1
    node.clock.now += DAY
    await sweep_all(swept)
    assert node.storage.database.rows("SELECT 1 FROM user_days", ()) == []


async def test_access_to_the_console_that_is_over_is_erased(node: "Node") -> None:
    """A browser that was not seen for 12 hours, and an invitation whose time is over, in batches."""
    swept = Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 90)
    developers = [await node.developer() for _ in range(3)]
    now = node.clock.now
    for number in range(housekeeping.BATCH + 1):
        # One developer has no more than CONSOLE_SESSIONS_KEPT.
        session = ConsoleSession(f"cses_{number}", developers[number % 3].id, now, now, None, "::1", "Firefox")
        await node.storage.credentials.create_console_session(session, b"%d" % number)
    for days in (0, 1):
        invitation = Invitation(f"inv_{days}", "bob@example.com", "free", False, None, "Ada", now, now + days * DAY)  # noqa: FBT003
        await node.storage.developers.create_invitation(invitation, b"%d" % days)
    sessions, invitations = "SELECT COUNT(*) FROM console_sessions", "SELECT id FROM invitations"
    node.clock.now += 12 * HOUR - 1
    await sweep_all(swept)
    assert node.storage.database.rows(sessions, ()) == [(housekeeping.BATCH + 1,)]
    assert node.storage.database.rows(invitations, ()) == [("inv_1",)]
    node.clock.now += 1
    assert await swept.sweep()
    assert node.storage.database.rows(sessions, ()) == [(1,)]
    assert not await swept.sweep()
    assert node.storage.database.rows(sessions, ()) == [(0,)]
    assert node.storage.database.rows(invitations, ()) == [("inv_1",)]


async def test_requests_for_a_phone_number_go_after_their_session(node: "Node") -> None:
    """In batches, ten minutes after it is over: by then so is whatever was asked for before it."""
    project, _ = await node.project()
    count = "SELECT COUNT(*) FROM phone_requests"
    for number in range(housekeeping.BATCH + 1):
        token = await node.opened(project, f"{number}")
        session = await node.storage.sessions.read_session(session_key(token) or SessionKey(0, b""))
        assert session is not None
        request = PhoneRequest(
            session.key, session.id, f"{number}", 0, b"encrypted", session.created_at, session.expires_at
        )
        await node.storage.users.ask_for_phone(request)
    node.clock.now += 20 * MINUTE - 1
    await sweep_all(node.housekeeping)
    assert node.storage.database.rows(count, ()) == [(housekeeping.BATCH + 1,)]
    node.clock.now += 1
    assert await node.housekeeping.sweep()
    assert node.storage.database.rows(count, ()) == [(1,)]
    await sweep_all(node.housekeeping)
    assert node.storage.database.rows(count, ()) == [(0,)]


async def test_prompts_go_with_their_session(node: "Node") -> None:
    """In batches, five minutes after its expiry; one whose message must still be edited stays for an hour."""
    project, _ = await node.project()
    count = "SELECT COUNT(*) FROM prompts"
    for number in range(housekeeping.BATCH + 1):
        token = await node.opened(project, f"{number}")
        await node.signin.prompts.record_prompt(token, 0, f"{number}", 5, "en")
    await node.signin.withdraw_session(project.id, token, public=False)
    node.clock.now += 15 * MINUTE - 1
    await sweep_all(node.housekeeping)
    assert node.storage.database.rows(count, ()) == [(housekeeping.BATCH + 1,)]
    node.clock.now += 1
    await sweep_all(node.housekeeping)
    assert node.storage.database.rows(count, ()) == [(1,)]
    node.clock.now += HOUR
    await sweep_all(node.housekeeping)
    assert node.storage.database.rows(count, ()) == [(0,)]


async def test_room_for_new_days_is_made_once_a_day(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """Today and the next three; again when the day changes or when it failed, not each second."""
    asked: list[tuple[int, int]] = []
    troubles = [StoreUnavailable()]

    async def prepare_days(first_day: int, last_day: int) -> None:
        asked.append((first_day, last_day))
        if troubles:
            raise troubles.pop()

    monkeypatch.setattr(node.storage.sessions, "prepare_days", prepare_days)
    swept = Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 90)
    today = node.clock.now // DAY
    with pytest.raises(StoreUnavailable):
        await swept.sweep()
    await swept.sweep()
    await swept.sweep()
    node.clock.now += DAY
    await swept.sweep()
    assert asked == [(today, today + 3), (today, today + 3), (today + 1, today + 4)]


async def test_an_idle_sweep_writes_nothing(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """A write waits for the disk, so that a service at rest would keep it from resting."""
    project, _ = await node.project(webhook_url="https://example.com/")
    await node.confirmed(project)

    async def run(_write: object) -> None:
        raise AssertionError

    monkeypatch.setattr(node.storage.database.writer, "run", run)
    assert not await Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 1).sweep()
