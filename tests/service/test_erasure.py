"""Erase one user: in a developer's projects on their request, in all projects on the operator's."""

from typing import TYPE_CHECKING

from tests.databases import expired_event
from tests.service.conftest import acting

from taproof.core.accounts import Developer
from taproof.core.clock import DAY
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.sessions import Session
from taproof.service.erasure import Erasure

if TYPE_CHECKING:
    from tests.service.conftest import Node

PHONE = "+4915123456789"
ADA = MessengerIdentity("1001", "Ada Lovelace", "ada_l")


def erasure_of(node: "Node") -> Erasure:
    return Erasure(node.storage, node.clock, system_entropy, batch=3)


async def give_phone(node: "Node", project: Project) -> str:
    """Sign in with a phone number; return the session token."""
    token = await node.opened(project, ADA.messenger_id)
    assert (await node.signin.confirm_session(token, ADA)).outcome == "phone"
    assert (await node.signin.give_phone(ADA, ADA.messenger_id, PHONE, answers=lambda _: True)).outcome == "confirmed"
    return token


async def collecting(node: "Node", developer: Developer) -> Project:
    project, _ = await node.project(developer, webhook_url="https://example.com/")
    return await node.projects.update_project(acting(developer), project.id, ProjectChanges(collect_phone=True))


async def sessions_of(node: "Node", developer: Developer) -> list[Session]:
    return (
        await node.session_reader.list_sessions(developer, project_id=None, status=None, limit=200, cursor=None)
    ).sessions


async def test_nothing_of_a_user_is_left(node: "Node") -> None:
    """Confirmed, cancelled, expired and pending sessions are erased in steps, with phone numbers and events."""
    developer = await node.developer("pro")
    project = await collecting(node, developer)
    for _ in range(4):
        await give_phone(node, project)
        await node.signin.cancel_session(await node.opened(project), "1001")
        await node.opened(project)
        await node.opened(project, "2002")
        node.clock.now += DAY
    while await node.storage.sessions.expire_sessions(node.clock.now, 100, expired_event):
        pass
    waits = await node.opened(project)
    assert (await node.signin.confirm_session(waits, ADA)).outcome == "phone"
    before = await node.storage.counts.read_daily_users(developer.id, 0)
    assert await erasure_of(node).erase_user(acting(developer), "1001")
    left = await sessions_of(node, developer)
    assert len(left) == 4
    assert {session.opener_id for session in left} == {"2002"}
    assert await node.storage.deliveries.list_deliveries(project.id, None, None, None, 99) == []
    assert (await node.signin.give_phone(ADA, "1001", PHONE, answers=lambda _: True)).outcome == "unknown"
    assert await node.storage.counts.read_daily_users(developer.id, 0) == before
    assert not await erasure_of(node).erase_user(acting(developer), "1001")


async def test_the_operator_erases_everywhere_and_is_told_how_far(node: "Node") -> None:
    """The erasure covers the projects of all developers, and blocks; the reported number only grows."""
    projects = [(await node.project())[0] for _ in range(3)]
    for project in projects:
        await node.confirmed(project)
        await node.opened(project)
        await node.storage.users.block_project("1001", project.id, node.clock.now)
    told: list[int] = []
    rows = await erasure_of(node).erase_everywhere("1001", told.append)
    assert rows == 3 * 4  # Two sessions, a person and a block of each.
    assert told == sorted(told)
    assert told[-1] == rows
    assert await node.storage.users.list_blocks("1001", 9) == []
    assert await erasure_of(node).erase_everywhere("1001", told.append) == 0
