"""Conformance: reports, blocks, and requested phone numbers."""

import asyncio
from dataclasses import replace
from typing import get_args

import pytest
from tests.databases import NOW, expired_event
from tests.storage.seed import Seed, present

from taproof.contract.delivery import DeliveryState, EventType
from taproof.contract.project import ProjectEvent
from taproof.contract.session import SignInStatus
from taproof.core.clock import DAY, MINUTE
from taproof.core.deliveries import Event
from taproof.core.projects import NamedProject, Project, ProjectChanges
from taproof.core.prompts import PhoneRequest
from taproof.core.sessions import NewPhone, NewSession, Session
from taproof.storage.protocol import Storage

PHONE = NewPhone(b"encrypted \0", b"body with the number")


async def stored(storage: Storage, session: NewSession) -> Session:
    return present(await storage.sessions.read_session(session.key))


async def counts(storage: Storage, project: Project) -> tuple[int, int, int, int]:
    """Return confirmed, used, cancelled and reported of all days."""
    rows = await storage.counts.read_daily_counts([project.id], 0)
    return (
        sum(row.confirmed for row in rows),
        sum(row.used for row in rows),
        sum(row.cancelled for row in rows),
        sum(row.reported for row in rows),
    )


async def due_types(storage: Storage) -> list[str]:
    """Return the types of the events that are due, without keeping a lease."""
    return [each.event.type for each in await storage.deliveries.claim_deliveries(NOW, NOW, 10)]


@pytest.mark.parametrize("webhook_url", ["", "https://example.com/"])
async def test_report_session_cancels_a_pending_one(storage: Storage, seed: Seed, webhook_url: str) -> None:
    """The report has its time, its counts, and an event if a webhook is set; the prompt's context is erased."""
    project = await seed.project(webhook_url=webhook_url)
    new = await seed.opened(project, context="{}")
    event, other = seed.event(project, "auth.cancelled"), seed.event(project, "auth.reported")
    assert await storage.sessions.report_session(new.key, "1001", NOW + 1, {"pending": [event, other]}) == "cancelled"
    session = await stored(storage, new)
    assert (session.status, session.cancelled_at, session.reported_at) == ("cancelled", NOW + 1, NOW + 1)
    assert (session.used_at, session.identity, session.encrypted_phone) == (None, None, None)
    assert session.prompt is not None
    assert session.prompt.context is None
    assert await counts(storage, project) == (0, 0, 1, 1)
    delivered = await storage.deliveries.claim_deliveries(NOW, NOW, 10)
    assert [each.event for each in delivered] == ([event] if webhook_url else [])
    if webhook_url:
        assert [
            each.event_id for each in await storage.deliveries.find_deliveries(project.id, event.created_at, new.id)
        ] == [event.id]


async def test_report_session_lets_nobody_have_the_proof_of_a_confirmed_one(storage: Storage, seed: Seed) -> None:
    """A reported session counts as used without having been read: no reader or receiver ever gets its proof."""
    project = await seed.project(webhook_url="https://example.com/")
    new = await seed.confirmed(project)
    await seed.confirmed(project, "2002")
    assert await seed.report(new.key, "1001", NOW + 1, storage) == "used"
    session = await stored(storage, new)
    assert (session.status, session.used_at, session.cancelled_at) == ("used", None, None)
    assert (session.reported_at, session.identity) == (NOW + 1, seed.identity("1001"))
    assert await storage.sessions.consume_session(new.key, NOW + 2) is None
    assert await counts(storage, project) == (2, 0, 0, 1)
    assert await due_types(storage) == ["auth.confirmed"]
    (ended,) = await storage.deliveries.find_deliveries(project.id, NOW, new.id)
    assert (ended.state, ended.finished_at) == ("ended", NOW + 1)


async def test_report_session_ends_the_rereading(storage: Storage, seed: Seed) -> None:
    """A used session's result cannot be read again, and one that was reported before its first read not at all."""
    for bound, is_read in ((True, True), (True, False), (False, False)):
        project = await seed.project()
        new = await seed.confirmed(project, code_challenge=b"\x07" * 32 if bound else None)
        if is_read:
            assert await storage.sessions.consume_session(new.key, NOW + 1) is not None
            assert await storage.sessions.reread_session(new.key, NOW) is not None
        assert await seed.report(new.key, "1001", NOW + 2, storage) == "used"
        assert await storage.sessions.reread_session(new.key, 0) is None
        session = await stored(storage, new)
        assert (session.used_at, session.reported_at) == (NOW + 1 if is_read else None, NOW + 2)
        assert await counts(storage, project) == (1, int(is_read), 0, 1)


async def test_report_session_counts_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The report counts on the session's day; of concurrent reports on two nodes, the first one's time stays."""
    project = await seed.project()
    new = await seed.confirmed(project, at=NOW - DAY)
    reports = [
        seed.report(new.key, "1001", NOW + number, store) for number in range(4) for store in (storage, other_node)
    ]
    answers = await asyncio.gather(*reports)
    assert sorted(answers, key=str) == [None] * 7 + ["used"]
    (row,) = await storage.counts.read_daily_counts([project.id], 0)
    assert (row.day, row.reported) == (NOW // DAY - 1, 1)
    assert await seed.report(new.key, "1001", NOW + 9, storage) is None
    assert (await stored(storage, new)).reported_at in range(NOW, NOW + 4)


ALL_EVENTS = get_args(ProjectEvent)


@pytest.mark.parametrize("webhook_events", [ALL_EVENTS, ("auth.confirmed", "auth.cancelled")])
async def test_report_session_records_the_chosen_events(
    storage: Storage, seed: Seed, webhook_events: tuple[ProjectEvent, ...]
) -> None:
    """The events are recorded in the report's transaction, with its time, and only for the session's state."""
    states: tuple[SignInStatus, ...] = ("pending", "confirmed", "used")
    for state in states:
        project = await seed.project(webhook_url="https://example.com/", webhook_events=webhook_events)
        new = await (seed.opened(project) if state == "pending" else seed.confirmed(project))
        if state == "used":
            assert await storage.sessions.consume_session(new.key, NOW)
        kinds: list[EventType] = ["auth.cancelled", "auth.reported"] if state == "pending" else ["auth.reported"]
        by_status: dict[SignInStatus, list[Event]] = {
            each: [seed.event(project, "auth.reported", NOW + 1)] for each in get_args(SignInStatus)
        }
        by_status[state] = [seed.event(project, kind, NOW + 1) for kind in kinds]
        assert await storage.sessions.report_session(new.key, "1001", NOW + 1, by_status) is not None
        events = [each for each in by_status[state] if each.type in webhook_events]
        found = await storage.deliveries.find_deliveries(project.id, NOW + 1, new.id)
        assert [(each.event_id, each.type, each.state) for each in found] == [
            (each.id, each.type, "due") for each in events
        ]
        claimed = await storage.deliveries.claim_deliveries(NOW + 1, NOW + 1, 10)
        assert [each.event for each in claimed if each.event.project_id == project.id] == events


async def test_report_session_changes_nothing_else(storage: Storage, seed: Seed) -> None:
    """Sessions that another account opened, expired ones, and those of a deleted project do not change."""
    project, deleted = [await seed.project(webhook_url="https://example.com/") for _ in range(2)]
    unopened, unknown = await seed.session(project), seed.new_session(project)
    foreign, overdue, cancelled = [await seed.opened(project) for _ in range(3)]
    expired, gone = await seed.opened(project, at=NOW - DAY), await seed.opened(deleted)
    assert await storage.sessions.expire_sessions(NOW, 10, expired_event) == 1
    assert await storage.sessions.cancel_session(cancelled.key, "1001", NOW, seed.event(project, "auth.cancelled"))
    await seed.delete(deleted)

    async def seen() -> tuple[object, ...]:
        news = (unopened, unknown, foreign, overdue, cancelled, expired, gone)
        sessions = [await storage.sessions.read_session(each.key) for each in news]
        return sessions, await counts(storage, project), await due_types(storage)

    before = await seen()
    for new in (unopened, unknown, cancelled, expired, gone):
        assert await seed.report(new.key, "1001", NOW + 1, storage) is None
    assert await seed.report(foreign.key, "2002", NOW + 1, storage) is None
    assert await seed.report(overdue.key, "1001", overdue.expires_at, storage) is None
    assert await seen() == before


async def test_report_session_and_confirm_session_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Whichever is first, the session is reported and cannot be read; its counts match its state."""
    project = await seed.project()
    news = [await seed.opened(project, f"{number}") for number in range(20)]

    async def race(number: int, new: NewSession) -> None:
        user = f"{number}"
        await asyncio.gather(
            storage.sessions.confirm_session(new.key, seed.identity(user), NOW, seed.event(project)),
            seed.report(new.key, user, NOW, other_node),
        )

    await asyncio.gather(*(race(number, new) for number, new in enumerate(news)))
    sessions = [await stored(storage, new) for new in news]
    assert {session.status for session in sessions} <= {"cancelled", "used"}
    assert all(session.reported_at is not None for session in sessions)
    assert [await storage.sessions.consume_session(new.key, NOW) for new in news] == [None] * len(news)
    confirmed = sum(session.status == "used" for session in sessions)
    assert await counts(storage, project) == (confirmed, 0, len(news) - confirmed, len(news))


async def test_list_sign_ins_of_all_projects_and_of_one(storage: Storage, seed: Seed) -> None:
    """The list has the account's confirmed and used sessions, newest first, with their current state."""
    shop, blog = await seed.project(), await seed.project()
    one = await seed.confirmed(shop, at=NOW - 3 * DAY)
    two = await seed.confirmed(blog, at=NOW - 2 * DAY)
    three = await seed.confirmed(shop, at=NOW - DAY)
    assert await storage.sessions.consume_session(three.key, NOW) is not None
    assert await seed.report(one.key, "1001", NOW, storage) == "used"
    await seed.confirmed(shop, "2002")
    await seed.opened(shop)
    found = await storage.sessions.list_sign_ins("1001", NOW - 30 * DAY, 10, NOW)
    assert [(each.key, each.project_name, each.status) for each in found] == [
        (three.key, shop.name, "used"),
        (two.key, blog.name, "confirmed"),
        (one.key, shop.name, "used"),
    ]
    assert [each.reported_at for each in found] == [None, None, NOW]
    of_shop = await storage.sessions.list_sign_ins("1001", NOW - 30 * DAY, 10, NOW, project_id=shop.id)
    assert [each.key for each in of_shop] == [three.key, one.key]
    assert [each.key for each in await storage.sessions.list_sign_ins("1001", NOW - 30 * DAY, 2, NOW)] == [
        three.key,
        two.key,
    ]
    assert await storage.sessions.list_sign_ins("3003", 0, 10, NOW) == []
    assert await storage.sessions.list_sign_ins("1001\0", 0, 10, NOW) == []
    assert await storage.sessions.list_sign_ins("1001", 0, 10, NOW, project_id=f"{shop.id}\0") == []


async def test_list_sign_ins_begins_at_its_time(storage: Storage, seed: Seed) -> None:
    """The list has sign-ins created exactly at that time or later, without those of deleted projects."""
    gone, kept = await seed.project(), await seed.project()
    await seed.confirmed(gone)
    await seed.confirmed(kept, at=NOW - 1)
    first = await seed.confirmed(kept, at=NOW)
    await seed.delete(gone)
    assert [each.key for each in await storage.sessions.list_sign_ins("1001", NOW, 10, NOW)] == [first.key]


async def test_list_sign_ins_finds_every_project(storage: Storage, seed: Seed) -> None:
    """All of an account's projects are found, also with several sign-ins in some."""
    projects = [await seed.project() for _ in range(12)]
    for number, project in enumerate(projects):
        for _ in range(1 + number % 3):
            await seed.confirmed(project, at=NOW - number * DAY)
    found = await storage.sessions.list_sign_ins("1001", NOW - 30 * DAY, 100, NOW)
    assert {each.project_id for each in found} == {project.id for project in projects}
    assert len(found) == 24


async def test_unblock_project_ends_one_block(storage: Storage, seed: Seed) -> None:
    """One block of this account ends, once. `is_blocked` is for this account and project."""
    shop, blog = await seed.project(), await seed.project()
    assert await storage.users.block_project("1001", shop.id, NOW)
    assert not await storage.users.is_blocked("2002", shop.id)
    assert not await storage.users.is_blocked("1001", blog.id)
    assert await storage.users.block_project("1001", blog.id, NOW)
    assert not await storage.users.unblock_project("2002", shop.id)
    assert await storage.users.is_blocked("1001", shop.id)
    assert [await storage.users.unblock_project("1001", shop.id) for _ in range(2)] == [True, False]
    assert not await storage.users.is_blocked("1001", shop.id)
    assert await storage.users.is_blocked("1001", blog.id)


async def test_list_blocks_has_each_once_the_latest_first(storage: Storage, seed: Seed) -> None:
    """The list has an account's blocks, up to a limit, or that of one project."""
    shop, blog = await seed.project(), await seed.project()
    assert await storage.users.block_project("1001", shop.id, NOW)
    assert await storage.users.block_project("1001", blog.id, NOW + 1)
    assert not await storage.users.block_project("1001", shop.id, NOW + 2)
    named_shop, named_blog = NamedProject(shop.id, shop.name), NamedProject(blog.id, blog.name)
    assert await storage.users.list_blocks("1001", 10) == [named_blog, named_shop]
    assert await storage.users.list_blocks("1001", 1) == [named_blog]
    assert await storage.users.list_blocks("1001", 10, project_id=shop.id) == [named_shop]
    assert await storage.users.list_blocks("2002", 10) == []
    assert await storage.users.unblock_project("1001", shop.id)
    assert await storage.users.list_blocks("1001", 10, project_id=shop.id) == []


async def test_is_blocked_for_projects_only(storage: Storage, seed: Seed) -> None:
    """No row is stored for an invalid project id."""
    project = await seed.project()
    for project_id in ("proj_0000000000000000999999", f"{project.id}\0", ""):
        assert not await storage.users.block_project("1001", project_id, NOW)
        assert not await storage.users.is_blocked("1001", project_id)
    assert await storage.users.list_blocks("1001", 10) == []


async def test_block_project_from_two_nodes_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of two concurrent calls, one sets the block."""
    project = await seed.project()
    both = [store.users.block_project("1001", project.id, NOW) for store in (storage, other_node)]
    assert sorted(await asyncio.gather(*both)) == [False, True]


async def test_blocks_of_a_deleted_project_go_with_it(storage: Storage, seed: Seed) -> None:
    """The block is no longer listed, and is erased with the project."""
    developer = await seed.developer()
    project = await seed.project(developer)
    await storage.users.block_project("1001", project.id, NOW)
    await storage.projects.delete_project(developer.id, project.id)
    assert await storage.users.list_blocks("1001", 10) == []
    for _ in range(5):
        await storage.projects.purge_deleted_projects(100)
    assert not await storage.users.is_blocked("1001", project.id)


def request_of(session: NewSession, user: str = "1001", bot_id: int = 0, at: int = NOW) -> PhoneRequest:
    encrypted = b"encrypted \0 " + session.id.encode()
    return PhoneRequest(session.key, session.id, user, bot_id, encrypted, at, session.expires_at)


async def test_ask_for_phone_is_safe_to_repeat(storage: Storage, seed: Seed) -> None:
    """A repeated request keeps everything except the time, which only increases."""
    new = await seed.opened(await seed.project())
    request = request_of(new, bot_id=123456789012)
    assert await storage.users.read_phone_request(new.key) is None
    await storage.users.ask_for_phone(request)
    assert await storage.users.read_phone_request(new.key) == request
    await storage.users.ask_for_phone(replace(request, encrypted_token=b"other", messenger_id="2002", asked_at=NOW + 5))
    await storage.users.ask_for_phone(replace(request, asked_at=NOW - 5))
    assert await storage.users.read_phone_request(new.key) == replace(request, asked_at=NOW + 5)


async def test_read_phone_request_is_of_this_session(storage: Storage, seed: Seed) -> None:
    """The request belongs to this session only; a contact of another user, or to another bot, does not answer it."""
    project = await seed.project()
    asked, other = await seed.opened(project), await seed.opened(project)
    request = request_of(asked, bot_id=5)
    await storage.users.ask_for_phone(request)
    assert await storage.users.read_phone_request(asked.key) == request
    assert await storage.users.read_phone_request(other.key) is None
    assert await storage.users.find_phone_request("1001", 5) == request
    for user, bot_id in (("1001", 0), ("2002", 5), ("1001\0", 5)):
        assert await storage.users.find_phone_request(user, bot_id) is None


async def test_find_phone_request_is_the_one_that_was_asked_last(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """The last request is found in whatever state its session is, so a repeated contact goes nowhere else."""
    project = await seed.project()
    early, late = await seed.opened(project), await seed.opened(project)
    await storage.users.ask_for_phone(request_of(early, at=NOW + 5))
    # This node's clock is behind.
    await other_node.users.ask_for_phone(request_of(late, at=NOW))

    async def found() -> NewSession | None:
        request = await storage.users.find_phone_request("1001", 0)
        return next((each for each in (early, late) if request and each.key == request.key), None)

    assert await found() == late
    assert await storage.sessions.cancel_session(late.key, "1001", NOW, seed.event(project, "auth.cancelled"))
    assert await found() == late
    assert await storage.users.purge_phone_requests(NOW, 10) == 0
    for node in (storage, other_node):
        await node.users.ask_for_phone(request_of(early, at=NOW + 1))
        assert await found() == early
    await seed.delete(project)
    await seed.purge_projects(100)
    assert await found() == early


@pytest.mark.parametrize("ends", ["plan", "project"])
async def test_confirm_session_takes_no_phone_that_may_not_be_collected(
    storage: Storage, other_node: Storage, seed: Seed, ends: str
) -> None:
    """If plan or project stopped collecting after the request, the session is confirmed and no number is stored."""
    project = await seed.project(collect_phone=True, webhook_url="https://example.com/")
    new = await seed.opened(project)
    if ends == "plan":
        assert await other_node.plans.update_plan(project.developer_id, "free")
    else:
        changes = ProjectChanges(collect_phone=False)
        assert await other_node.projects.update_project(project.developer_id, project.id, changes, NOW)
    event = seed.event(project)
    assert await storage.sessions.confirm_session(new.key, seed.identity("1001"), NOW, event, PHONE)
    session = await stored(storage, new)
    assert (session.status, session.encrypted_phone) == ("confirmed", None)
    assert await storage.deliveries.read_event_body(event.id) == event.encrypted_body


async def test_confirm_session_keeps_the_phone_that_goes_with_it(storage: Storage, seed: Seed) -> None:
    """Consuming, rereading and listing return the number; a second Confirm changes nothing."""
    project = await seed.project(collect_phone=True, webhook_url="https://example.com/")
    new = await seed.opened(project, code_challenge=b"c" * 32)
    event = seed.event(project)
    assert await storage.sessions.confirm_session(new.key, seed.identity("1001"), NOW, event, PHONE)
    second = NewPhone(b"second", b"second body")
    assert not await storage.sessions.confirm_session(new.key, seed.identity("1001"), NOW, seed.event(project), second)
    assert await storage.deliveries.read_event_body(event.id) == PHONE.event_body
    polled = present(await storage.sessions.poll_session(new.key))
    assert polled.encrypted_phone == b"encrypted \0"
    consumed = present(await storage.sessions.consume_session(new.key, NOW))
    assert (consumed.encrypted_phone, consumed.session_id) == (b"encrypted \0", new.id)
    assert await storage.sessions.reread_session(new.key, NOW - 1) == consumed
    (listed,) = await storage.sessions.list_sessions([project.id], None, None, 5, NOW)
    assert listed.encrypted_phone == b"encrypted \0"


async def test_confirm_session_of_many_at_once_gives_each_its_own_phone(storage: Storage, seed: Seed) -> None:
    """Sessions with and without a number are confirmed in one statement, and each keeps its own."""
    project = await seed.project(collect_phone=True)
    made = [await seed.opened(project, user=str(2000 + number)) for number in range(12)]

    async def confirm(number: int, session: NewSession) -> object:
        phone = None if number % 3 == 0 else NewPhone(f"phone {number}".encode(), b"body")
        identity = seed.identity(str(2000 + number))
        return await storage.sessions.confirm_session(session.key, identity, NOW, seed.event(project), phone)

    assert all(await asyncio.gather(*(confirm(number, session) for number, session in enumerate(made))))
    for number, session in enumerate(made):
        consumed = present(await storage.sessions.consume_session(session.key, NOW))
        assert consumed.identity.messenger_id == str(2000 + number)
        assert consumed.encrypted_phone == (None if number % 3 == 0 else f"phone {number}".encode())


@pytest.mark.parametrize("state", ["due", "due and read", "leased", "delivered", "failed"])
async def test_report_session_keeps_a_confirmation_from_being_sent_again(
    storage: Storage, other_node: Storage, seed: Seed, state: str
) -> None:
    """An event in any state is not sent again, and a running attempt counts as interrupted.

    Re-encryption leaves its body out.
    """
    project = await seed.project(webhook_url="https://example.com/")
    mine = await seed.confirmed(project)
    if state == "due and read":
        assert await storage.sessions.consume_session(mine.key, NOW)
    elif state != "due":
        (delivery,) = await storage.deliveries.claim_deliveries(NOW, NOW + MINUTE, 10)
    if state in {"delivered", "failed"}:
        status: DeliveryState = "delivered" if state == "delivered" else "failed"
        assert await storage.deliveries.finish_attempt(delivery, seed.attempt(1, 500), status, NOW)
    (before,) = await storage.deliveries.list_deliveries(project.id, None, None, None, 10)
    assert await seed.report(mine.key, "1001", NOW + 1, storage) == "used"
    (after,) = await storage.deliveries.list_deliveries(project.id, None, None, None, 10)
    assert after.state == ("delivered" if state == "delivered" else "ended")
    assert after.finished_at == (before.finished_at or NOW + 1)
    assert (after.leased_until, after.interrupted) == (0, int(state == "leased"))
    for node in (storage, other_node):
        entry = seed.entry(project.developer_id, "delivery.resent")
        assert not await node.deliveries.resend_delivery(
            project.developer_id, after.event_id, NOW + 2 * MINUTE, entry=entry
        )
        assert await node.deliveries.claim_deliveries(NOW + DAY, NOW + DAY, 10) == []
    assert await storage.audit.list_audit_entries(project.developer_id, None, 10) == []
    assert (await storage.encrypted_values.list_encrypted_values("event_body", None, 10)).rows == []


async def test_report_session_and_resend_delivery_at_once_send_nothing(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """On two nodes, with a failed event, nothing is due afterwards, whichever is first."""
    project = await seed.project(webhook_url="https://example.com/")
    for number in range(20):
        mine = await seed.confirmed(project, user=str(number))
        (delivery,) = await storage.deliveries.claim_deliveries(NOW, NOW + MINUTE, 10)
        assert await storage.deliveries.finish_attempt(delivery, seed.attempt(1, 500), "failed", NOW)
        resend = other_node.deliveries.resend_delivery(project.developer_id, delivery.event.id, NOW + 1)
        report = seed.report(mine.key, str(number), NOW + 1, storage)
        await asyncio.gather(*((resend, report) if number % 2 else (report, resend)))
        assert await storage.deliveries.claim_deliveries(NOW + DAY, NOW + DAY, 10) == []


async def test_purge_phone_requests_erases_what_is_over(storage: Storage, seed: Seed) -> None:
    """Requests are erased exactly from their expiry on, at most `limit`, in any state of the session."""
    project = await seed.project()
    news = [await seed.opened(project, at=NOW - 10 * MINUTE + number) for number in range(4)]
    for new in news:
        await storage.users.ask_for_phone(request_of(new))
    assert await storage.users.purge_phone_requests(NOW - 1, 10) == 0
    assert await storage.users.purge_phone_requests(NOW + 2, 2) == 2
    assert await storage.users.purge_phone_requests(NOW + 2, 2) == 1
    assert await storage.users.purge_phone_requests(NOW + 2, 2) == 0
    left = [await storage.users.read_phone_request(new.key) is not None for new in news]
    assert left == [False, False, False, True]
