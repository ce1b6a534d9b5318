"""Erase one user: in a developer's projects on their request, in all projects on the operator's."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.databases import expired_event
from tests.service.conftest import acting

from taproof.core.accounts import Developer
from taproof.core.clock import DAY, MINUTE
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed, InvalidRequest
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.core.sessions import Session
from taproof.service import erasure as erasure_service
from taproof.service.erasure import Erasure

if TYPE_CHECKING:
    from tests.service.conftest import Node

BOTH = pytest.mark.parametrize("driver", ["sqlite", "postgres"])
PHONE = "+4915123456789"
ADA = MessengerIdentity("1001", "Ada Lovelace", "ada_l")


def erasure_of(node: "Node") -> Erasure:
    return Erasure(node.storage, node.clock, system_entropy)


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


@BOTH
async def test_nothing_of_a_user_is_left(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """Confirmed, cancelled, expired and pending ones of several days, with phone, events and requests; step by step."""
    monkeypatch.setattr(erasure_service, "BATCH", 3)
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


async def test_what_the_client_waits_for_is_gone(node: "Node") -> None:
    """Its session is not found any more; whoever holds the link is told nothing of it."""
    project, _ = await node.project()
    token = await node.opened(project)
    await erasure_of(node).erase_everywhere("1001", lambda _: None)
    with pytest.raises(Exception, match="no such session"):
        await node.signin.verify_session(project.id, token, public=True)
    assert (await node.signin.confirm_session(token, ADA)).outcome == "unknown"


async def test_the_operator_erases_everywhere_and_is_told_how_far(node: "Node") -> None:
    """In the projects of all developers, blocks too; the figure that is told only grows."""
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


@pytest.mark.parametrize("user", ["", "ada", "1" * 21, "１", "1\n"])
async def test_what_is_no_messenger_id_is_refused(node: "Node", user: str) -> None:
    """By both."""
    developer = await node.developer()
    with pytest.raises(InvalidRequest, match="digits only"):
        await erasure_of(node).erase_user(acting(developer), user)
    with pytest.raises(InvalidRequest, match="digits only"):
        await erasure_of(node).erase_everywhere(user, lambda _: None)


@BOTH
async def test_sign_ins_go_on_meanwhile(node: "Node", other_node: "Node") -> None:
    """On another node: each of the user's sign-ins is whole or gone, and nobody else's is touched."""
    developer = await node.developer()
    project, _ = await node.project(developer, webhook_url="https://example.com/")

    async def sign_in(user: str) -> None:
        token = await other_node.pending(project)
        await other_node.signin.open_session(token, user)
        await other_node.signin.confirm_session(token, replace(ADA, messenger_id=user))

    users = ["1001", "2002"] * 8
    erasing = [erasure_of(node).erase_everywhere("1001", lambda _: None) for _ in range(3)]
    await asyncio.gather(*map(sign_in, users), *erasing)
    sessions = {session.id: session for session in await sessions_of(node, developer)}
    found = {
        each.session_id for each in await node.storage.deliveries.list_deliveries(project.id, None, None, None, 99)
    }
    assert found == {each.id for each in sessions.values() if each.status == "confirmed"}
    assert [each.opener_id for each in sessions.values()].count("2002") == 8
    assert await erasure_of(node).erase_everywhere("2002", lambda _: None) == 8 + 1
    await erasure_of(node).erase_everywhere("1001", lambda _: None)
    assert await sessions_of(node, developer) == []
    assert await node.storage.deliveries.list_deliveries(project.id, None, None, None, 99) == []


# ---- phone numbers where developers look


async def test_a_phone_number_is_opened_for_its_developer(node: "Node") -> None:
    """In the list and by its id; a session without one has none."""
    developer = await node.developer("business")
    project = await collecting(node, developer)
    await give_phone(node, project)
    node.clock.now += MINUTE
    await node.opened(project)
    pending, confirmed = await sessions_of(node, developer)
    assert pending.identity is None
    assert confirmed.identity == replace(ADA, messenger_phone=PHONE)
    assert (await node.session_reader.read_session(developer, confirmed.id)).identity == confirmed.identity
    stored = node.storage.database.rows("SELECT encrypted_phone FROM sessions WHERE encrypted_phone IS NOT NULL", ())
    assert PHONE.encode() not in stored[0][0]


async def test_a_phone_number_of_another_session_is_refused(node: "Node", capfd: pytest.CaptureFixture[str]) -> None:
    """Ciphertexts that were swapped open nowhere: the list has the sessions without a number, and no proof is made."""
    developer = await node.developer("business")
    project = await collecting(node, developer)
    tokens = [await give_phone(node, project) for _ in range(2)]
    rows = node.storage.database.rows("SELECT id, encrypted_phone FROM sessions", ())
    for (session_id, _), (_, encrypted) in zip(rows, rows[::-1], strict=True):
        write = "UPDATE sessions SET encrypted_phone = ? WHERE id = ?"
        node.storage.database.writer._connection.execute(write, (encrypted, session_id))
    assert [session.identity for session in await sessions_of(node, developer)] == [ADA, ADA]
    printed = "".join(capfd.readouterr())
    assert printed.count("phone_unreadable") == 2
    assert PHONE[1:] not in printed
    with pytest.raises(DecryptionFailed) as refused:
        await node.signin.verify_session(project.id, tokens[0], public=True)
    assert PHONE[1:] not in str(refused.value)
