"""Housekeeping erases old rows in bounded batches, and changes no figure of the analytics."""

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.service.conftest import START, HandClock, Node

from taproof.core.accounts import ConsoleSession, Invitation
from taproof.core.clock import DAY, HOUR, MINUTE
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import ProjectNotFound, StoreUnavailable
from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.prompts import PhoneRequest
from taproof.core.sessions import SessionKey
from taproof.service.analytics import Window
from taproof.service.housekeeping import Housekeeping
from taproof.service.webhooks import WebhookResponse
from taproof.storage.queries import deliveries
from taproof.storage.sqlite.store import SqliteStorage

BEGIN = 20_000 * DAY


# ---- the property: a purge changes no figure


class Step(NamedTuple):
    """A number of days to let pass, and an action after them."""

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


class Twin(Node):
    """A store with its own housekeeping; two stores with the same steps differ only in what is purged."""

    def __init__(self, path: Path, retention_days: int, batch: int) -> None:
        storage = SqliteStorage.open(path, BEGIN)
        # Nothing here is about durability, and there are thousands of commits.
        storage.database.writer.connection.execute("PRAGMA synchronous = OFF").fetchall()
        super().__init__(storage, Encryptor(new_master_key(system_entropy)), HandClock())
        self.clock.now = BEGIN
        self.housekeeping = housekeeping_of(self, retention_days, batch)

    async def begin(self) -> None:
        self.owner = await self.developer()
        self.shops = [(await self.project(self.owner, webhook_url="https://example.com/"))[0] for _ in range(2)]

    async def take(self, step: Step) -> None:
        self.clock.now += step.days * DAY
        shop, user = self.shops[step.project], f"{step.user}"
        match step.kind:
            case "sweep":
                await self.housekeeping.sweep()
            case "delete" | "sweep all":
                if step.kind == "delete":
                    await self.storage.projects.delete_project(self.owner.id, shop.id)
                await sweep_all(self.housekeeping)
            case _:
                with contextlib.suppress(ProjectNotFound):  # It may be deleted.
                    await self.sign_in(step.kind, shop, user)

    async def sign_in(self, kind: str, shop: Project, user: str) -> None:
        token = await self.pending(shop)
        if kind != "pending":
            await self.signin.open_session(token, user)
        if kind == "cancelled":
            await self.signin.cancel_session(token, user)
        if kind in {"confirmed", "used"}:
            await self.signin.confirm_session(token, MessengerIdentity(user, "Name", ""))
        if kind == "used":
            await self.signin.verify_session(shop.id, token, public=True)

    async def figures(self) -> list[object]:
        """Return every figure that a developer can read."""
        living = {shop.id: shop for shop in await self.storage.projects.list_projects(self.owner.id)}
        shops = [living[shop.id] for shop in self.shops if shop.id in living]
        found: list[object] = [(shop.sessions_count, shop.confirmed_count) for shop in shops]
        for days in get_args(Window):
            for project_id in (None, *(shop.id for shop in shops)):
                seen = await self.analytics.read_analytics(self.owner, days=days, project_id=project_id)
                found.append(replace(seen, projects=[]))
        return found


@settings(max_examples=settings().max_examples // 3)
@given(STEPS, st.sampled_from((1, 2, 30, 90, 91, 120)), st.sampled_from((1, 2, 100)))
@example([Step(0, "used", 0, 1), Step(2, "sweep all", 0, 1), Step(0, "used", 0, 1)], 1, 100)
def test_no_purge_changes_a_figure(steps: list[Step], retention_days: int, batch: int) -> None:
    """Analytics of 7, 30 and 90 days and the counts of projects equal those of a store that keeps everything."""

    async def check() -> None:
        twins = [Twin(Path(directory) / f"{days}.db", days, batch) for days in (retention_days, 10_000)]
        for twin in twins:
            await twin.begin()
        for step in [*steps, Step(0, "sweep all", 0, 0)]:
            for twin in twins:
                await twin.take(step)
            assert await twins[0].figures() == await twins[1].figures()
        for twin in twins:
            await twin.storage.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check())


# ---- what goes, and what stays

BATCH = 3


def housekeeping_of(node: Node, retention_days: int, batch: int = BATCH) -> Housekeeping:
    return Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, retention_days, batch=batch)


async def sweep_all(swept: Housekeeping) -> int:
    """Sweep until nothing is left to do; return how many sweeps had more to do."""
    full = 0
    while await swept.sweep():
        full += 1
    return full


def count(node: Node, query: str) -> int:
    return len(node.storage.database.rows(query, ()))


async def _sessions(node: Node, project: Project) -> None:
    for _ in range(BATCH + 1):
        await node.confirmed(project)


async def _console_sessions(node: Node, project: Project) -> None:
    for number in range(BATCH + 1):
        session = ConsoleSession(
            f"cses_{number}", project.developer_id, node.clock.now, node.clock.now, None, "::1", "Firefox"
        )
        await node.storage.credentials.create_console_session(session, b"%d" % number)


async def _phone_requests(node: Node, project: Project) -> None:
    for number in range(BATCH + 1):
        token = await node.opened(project, f"{number}")
        session = await node.storage.sessions.read_session(session_key(token) or SessionKey(0, b""))
        assert session is not None
        request = PhoneRequest(
            session.key, session.id, f"{number}", 0, b"encrypted", session.created_at, session.expires_at
        )
        await node.storage.users.ask_for_phone(request)


async def _prompts(node: Node, project: Project) -> None:
    for number in range(BATCH + 1):
        token = await node.opened(project, f"{number}")
        await node.signin.prompts.record_prompt(token, 0, f"{number}", 5, "en")


@pytest.mark.parametrize(
    ("arrange", "rows", "lifetime"),
    [
        # A day of sessions goes when it is older than the retention, here of one day.
        (_sessions, "SELECT 1 FROM sessions", 2 * DAY - START % DAY),
        (_console_sessions, "SELECT 1 FROM console_sessions", 12 * HOUR),
        # Ten minutes after the session is over: by then so is whatever was asked for before it.
        (_phone_requests, "SELECT 1 FROM phone_requests", 20 * MINUTE),
        (_prompts, "SELECT 1 FROM prompts", 15 * MINUTE),
    ],
)
async def test_rows_go_in_batches_when_nobody_needs_them(
    node: Node, arrange: Callable[[Node, Project], Awaitable[None]], rows: str, lifetime: int
) -> None:
    """Rows are erased exactly when they are due. A sweep erases one batch, and returns whether more remain."""
    swept = housekeeping_of(node, 1)
    project, _ = await node.project()
    await arrange(node, project)
    node.clock.now += lifetime - 1
    await sweep_all(swept)
    assert count(node, rows) == BATCH + 1
    node.clock.now += 1
    assert await swept.sweep()
    assert count(node, rows) == 1
    await sweep_all(swept)
    assert count(node, rows) == 0


async def test_expired_invitations_go(node: Node) -> None:
    """Invitations that have not expired stay."""
    now = node.clock.now
    for days in (0, 1):
        invitation = Invitation(f"inv_{days}", "bob@example.com", "free", False, None, "Ada", now, now + days * DAY)  # noqa: FBT003
        await node.storage.developers.create_invitation(invitation, b"%d" % days)
    await sweep_all(housekeeping_of(node, 90))
    assert node.storage.database.rows("SELECT id FROM invitations", ()) == [("inv_1",)]


async def test_a_prompt_that_must_still_be_edited_stays_for_an_hour(node: Node) -> None:
    """The session was cancelled by its application, so the message must lose its buttons before the row is erased."""
    project, _ = await node.project()
    token = await node.opened(project)
    await node.signin.prompts.record_prompt(token, 0, "1001", 5, "en")
    await node.signin.withdraw_session(project.id, token, public=False)
    for passed, left in ((15 * MINUTE, 1), (HOUR, 0)):
        node.clock.now += passed
        await sweep_all(housekeeping_of(node, 90))
        assert count(node, "SELECT 1 FROM prompts") == left


async def test_expiry_is_counted_before_a_session_is_erased(node: Node) -> None:
    """A process that starts after weeks still counts every abandoned session, however many there are."""
    developer, project = await node.owned()
    for _ in range(2 * BATCH + 2):
        await node.pending(project)
        node.clock.now += 1  # So that they expire in another order than that in which they are erased.
    node.clock.now += 5 * DAY
    await sweep_all(housekeeping_of(node, 1))
    assert count(node, "SELECT 1 FROM sessions") == 0
    analytics = await node.analytics.read_analytics(developer, days=7, project_id=None)
    assert analytics.totals["expired"] == 2 * BATCH + 2


async def test_finished_webhook_events_go_and_due_ones_stay(node: Node) -> None:
    """A due event is sent, however old it is; a finished one is kept for the retention."""
    swept = housekeeping_of(node, 2)
    project, _ = await node.project(webhook_url="https://example.com/")
    await node.confirmed(project, "1001")
    (finished,) = await node.webhooks.claim_deliveries(1)
    await node.webhooks.finish_attempt(finished, WebhookResponse(5, 204))
    await node.confirmed(project, "1002")
    for passed, left in ((2 * DAY, 2), (1, 1)):
        node.clock.now += passed
        await sweep_all(swept)
        assert count(node, "SELECT 1 FROM webhook_events") == left
    assert len(await node.webhooks.claim_deliveries(9)) == 1


async def test_deliveries_of_a_removed_webhook_end_in_batches(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sweep ends one batch, and returns that there is more until none is left."""
    monkeypatch.setattr(deliveries, "ENDED_AT_ONCE", 1)
    project, _ = await node.project(webhook_url="https://example.com/")
    for _ in range(BATCH + 2):
        await node.confirmed(project)
    changes = ProjectChanges(webhook_url="")
    await node.storage.projects.update_project(project.developer_id, project.id, changes, node.clock.now)
    ended = "SELECT 1 FROM webhook_events WHERE state = 'ended'"
    seen = [count(node, ended)]
    swept = housekeeping_of(node, 90)
    while await swept.sweep():
        seen.append(count(node, ended))
    assert seen == [1, BATCH + 1, BATCH + 2]


async def test_who_confirmed_is_forgotten_once_no_window_counts_them(node: Node) -> None:
    """Even with a short retention, the rows that count distinct users are kept for the widest window."""
    project, _ = await node.project()
    await node.confirmed(project)
    for days, left in ((91, 1), (1, 0)):
        node.clock.now += days * DAY
        await sweep_all(housekeeping_of(node, 1))
        assert count(node, "SELECT 1 FROM user_days") == left


async def test_room_for_new_days_is_made_once_a_day(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions for today and the next three days are created once a day, and after a failure."""
    asked: list[tuple[int, int]] = []
    troubles = [StoreUnavailable()]

    async def prepare_days(first_day: int, last_day: int) -> None:
        asked.append((first_day, last_day))
        if troubles:
            raise troubles.pop()

    monkeypatch.setattr(node.storage.sessions, "prepare_days", prepare_days)
    swept = housekeeping_of(node, 90)
    today = node.clock.now // DAY
    with pytest.raises(StoreUnavailable):
        await swept.sweep()
    await swept.sweep()
    await swept.sweep()
    node.clock.now += DAY
    await swept.sweep()
    assert asked == [(today, today + 3), (today, today + 3), (today + 1, today + 4)]


async def test_an_idle_sweep_writes_nothing(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every write waits for the disk, so a sweep with nothing to do writes nothing."""
    project, _ = await node.project(webhook_url="https://example.com/")
    await node.confirmed(project)

    async def run(_write: object) -> None:
        raise AssertionError

    monkeypatch.setattr(node.storage.database.writer, "run", run)
    assert not await housekeeping_of(node, 1).sweep()
