"""Sessions as a developer looks them up: the filters of the list, one by its id, and what was sent about it."""

from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import acting

from taproof.contract.session import SignInStatus
from taproof.core.accounts import Developer
from taproof.core.clock import DAY, MINUTE, SECOND
from taproof.core.entropy import system_entropy
from taproof.core.errors import InvalidRequest, ProjectNotFound, SessionNotFound
from taproof.core.identifiers import new_session_id, new_session_token
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project
from taproof.core.sessions import Session
from taproof.service.webhooks import WebhookResponse

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"


async def listed(
    node: "Node",
    developer: Developer,
    *,
    status: SignInStatus | None = None,
    since: int | None = None,
    until: int | None = None,
    messenger_id: str | None = None,
    limit: int = 2,
) -> list[Session]:
    """Return all pages put together."""
    found: list[Session] = []
    cursor = None
    while True:
        page = await node.session_reader.list_sessions(
            developer,
            project_id=None,
            status=status,
            limit=limit,
            cursor=cursor,
            since=since,
            until=until,
            messenger_id=messenger_id,
        )
        found += page.sessions
        cursor = page.next_cursor
        if cursor is None:
            return found


async def only(node: "Node", developer: Developer) -> Session:
    (found,) = await listed(node, developer)
    return found


# ---- the list


async def test_a_time_is_from_its_beginning_to_before_its_end(node: "Node") -> None:
    """On every page: what was created at `since` is in, what was created at `until` is not."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    start = node.clock.now
    for _ in range(5):
        for _ in range(2):
            await node.pending(project)
        node.clock.now += 1
    for since, until, expected in (
        (None, None, [4, 4, 3, 3, 2, 2, 1, 1, 0, 0]),
        (1, 4, [3, 3, 2, 2, 1, 1]),
        (1, None, [4, 4, 3, 3, 2, 2, 1, 1]),
        (None, 1, [0, 0]),
        (2, 3, [2, 2]),
        (2, 2, []),
        (3, 1, []),
        (5, None, []),
        (None, 0, []),
    ):
        found = await listed(
            node,
            developer,
            since=None if since is None else start + since,
            until=None if until is None else start + until,
        )
        assert [session.created_at - start for session in found] == expected
        assert len({session.id for session in found}) == len(found)


async def test_all_filters_go_together(node: "Node") -> None:
    """One person, one status, one day, over all projects: only what fits all of them, page by page."""
    developer = await node.developer()
    projects = [(await node.project(developer))[0] for _ in range(2)]
    midnight = node.clock.now - node.clock.now % DAY + DAY
    for day in range(3):
        node.clock.now = midnight + day * DAY
        for user in ("1001", "1002"):
            for number in range(4):
                token = await node.confirmed(projects[number % 2], user)
                if number < 2:
                    await node.signin.verify_session(projects[number].id, token, public=False)
    found = await listed(
        node,
        developer,
        status="used",
        since=midnight + DAY,
        until=midnight + 2 * DAY,
        messenger_id="1002",
        limit=1,
    )
    assert {session.project_id for session in found} == {project.id for project in projects}
    assert {(each.created_at, each.status, each.identity and each.identity.messenger_id) for each in found} == {
        (midnight + DAY, "used", "1002")
    }
    assert len(await listed(node, developer, messenger_id="1001")) == 12


@pytest.mark.parametrize(
    "messenger_id", ["", "x", "-1", "1 ", "1\n", "1\0", "\u0661", "\ud800", "1" * 21, "1" * 10_000]
)
async def test_what_is_no_messenger_id_is_refused(node: "Node", messenger_id: str) -> None:
    """The sentence names the field; nothing of it reaches the store."""
    developer = await node.developer()
    with pytest.raises(InvalidRequest, match=r"^messenger_id "):
        await listed(node, developer, messenger_id=messenger_id)


# ---- one session


async def test_a_session_is_read_by_its_id(node: "Node") -> None:
    """As the list shows it, at every stage, and also after a month."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    token = await node.confirmed(project)
    session = await only(node, developer)
    assert await node.session_reader.read_session(developer, session.id) == session
    await node.signin.verify_session(project.id, token, public=False)
    node.clock.now += 30 * DAY
    used = await node.session_reader.read_session(developer, session.id)
    assert (used.status, used.used_at) == ("used", session.created_at)
    assert [used] == await listed(node, developer)


async def test_a_session_is_read_by_its_token(node: "Node") -> None:
    """As by its id, before and after it was consumed, and expired from that instant on; a project's end ends that."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    token = await node.confirmed(project)
    session = await only(node, developer)
    assert await node.session_reader.read_session_by_token(developer, token) == session
    await node.signin.verify_session(project.id, token, public=False)
    assert (await node.session_reader.read_session_by_token(developer, token)).status == "used"
    token = await node.pending(project)
    node.clock.now += 10 * MINUTE
    assert (await node.session_reader.read_session_by_token(developer, token)).status == "expired"
    await node.projects.delete_project(acting(developer), project.id)
    with pytest.raises(SessionNotFound):
        await node.session_reader.read_session_by_token(developer, token)


async def test_a_token_of_somebody_else_leads_nowhere(node: "Node") -> None:
    """Another developer's, with projects or without, one that never was, and what is no token: all the same."""
    owner, stranger = await node.developer(), await node.developer()
    await node.project(stranger)
    token = await node.pending((await node.project(owner))[0])
    told = set()
    for who, sought in (
        (stranger, token),
        (await node.developer(), token),
        (owner, new_session_token(node.clock.now, system_entropy)),
        (owner, token + "="),
        (owner, ""),
        (owner, "\ud800" * 43),
    ):
        with pytest.raises(SessionNotFound) as raised:
            await node.session_reader.read_session_by_token(who, sought)
        told.add(raised.value.sentence)
    assert len(told) == 1


async def test_a_session_is_seen_to_expire(node: "Node") -> None:
    """From the instant that its time is over, written down or not."""
    developer = await node.developer()
    await node.pending((await node.project(developer))[0])
    session = await only(node, developer)
    for later, status in ((10 * MINUTE - 1, "pending"), (10 * MINUTE, "expired")):
        node.clock.now = session.created_at + later
        assert (await node.session_reader.read_session(developer, session.id)).status == status


async def test_a_session_of_somebody_else_does_not_exist(node: "Node") -> None:
    """Another developer's, one of a deleted project, one that never was, and what is no id: all the same."""
    owner, stranger = await node.developer(), await node.developer()
    project, _ = await node.project(owner)
    await node.project(stranger)
    await node.pending(project)
    session = await only(node, owner)
    told = set()
    for who, session_id in (
        (stranger, session.id),
        (await node.developer(), session.id),
        (owner, new_session_id(session.created_at, system_entropy)),
        (owner, new_session_id(62**7 - 1, system_entropy)),
        (owner, ""),
        (owner, "sess_" + "a" * 22),
        (owner, f"{session.id}\0"),
        (owner, session.id[:-1] + "\ud800"),
    ):
        with pytest.raises(SessionNotFound) as raised:
            await node.session_reader.read_session(who, session_id)
        told.add(raised.value.sentence)
    assert len(told) == 1
    await node.projects.delete_project(acting(owner), project.id)
    with pytest.raises(SessionNotFound):
        await node.session_reader.read_session(owner, session.id)


# ---- what was sent about it


async def hooked(node: "Node") -> tuple[Developer, Project]:
    developer = await node.developer()
    project, _ = await node.project(developer, webhook_url=URL)
    return developer, project


async def test_a_session_leads_to_its_deliveries(node: "Node") -> None:
    """Confirmed or cancelled: the one event of its decision, with every attempt and its answer, and nobody else's."""
    developer, project = await hooked(node)
    made = {}
    for decision in ("confirm", "cancel"):
        for _ in range(2):
            token = await node.opened(project)
            session_id = (await listed(node, developer, status="pending"))[0].id
            node.clock.now += SECOND
            if decision == "confirm":
                made[session_id] = "auth.confirmed"
                await node.signin.confirm_session(token, MessengerIdentity("1001", "Ada", ""))
            else:
                made[session_id] = "auth.cancelled"
                await node.signin.cancel_session(token, "1001")
    for delivery in await node.webhooks.claim_deliveries(10):
        await node.webhooks.finish_attempt(delivery, WebhookResponse(5, 200, body=b"taken"))
    sessions = await listed(node, developer)
    assert len(sessions) == 4
    for session in sessions:
        (found,) = await node.deliveries.find_deliveries(developer, session)
        assert (found.record.type, found.record.session_id) == (made[session.id], session.id)
        assert (found.record.state, found.answers, found.sending) == ("delivered", ("taken",), False)


async def test_a_session_that_nothing_was_sent_about_has_no_deliveries(node: "Node") -> None:
    """Undecided, or decided while its project had no webhook: none, and no failure."""
    developer, project = await hooked(node)
    await node.opened(project)
    silent, _ = await node.project(developer)
    await node.confirmed(silent)
    for session in await listed(node, developer):
        assert await node.deliveries.find_deliveries(developer, session) == []


async def test_the_deliveries_of_somebody_elses_session_do_not_exist(node: "Node") -> None:
    """A developer with another developer's session learns nothing more about it."""
    developer, project = await hooked(node)
    await node.confirmed(project)
    with pytest.raises(ProjectNotFound):
        await node.deliveries.find_deliveries(await node.developer(), await only(node, developer))
