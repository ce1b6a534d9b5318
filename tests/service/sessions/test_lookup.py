"""Sessions as a developer finds them: by token, and with their deliveries."""

from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import acting

from taproof.contract.session import SignInStatus
from taproof.core.accounts import Developer
from taproof.core.clock import MINUTE, SECOND
from taproof.core.entropy import system_entropy
from taproof.core.errors import ProjectNotFound, SessionNotFound
from taproof.core.identifiers import new_session_token
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import Session
from taproof.service.webhooks import WebhookResponse

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"


async def listed(node: "Node", developer: Developer, status: SignInStatus | None = None) -> list[Session]:
    page = await node.session_reader.list_sessions(developer, project_id=None, status=status, limit=9, cursor=None)
    return page.sessions


async def only(node: "Node", developer: Developer) -> Session:
    (found,) = await listed(node, developer)
    return found


async def test_a_session_is_read_by_its_token(node: "Node") -> None:
    """A session is found by its token as by its id, in every state, until its project is deleted."""
    developer, project = await node.owned()
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
    """Another developer's token, an unknown one and a malformed one give the same answer."""
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


async def test_a_session_leads_to_its_deliveries(node: "Node") -> None:
    """A decided session has the one event of its decision, with every attempt and its answer, and no other."""
    developer, project = await node.owned(webhook_url=URL)
    made = {}
    for decision in ("confirm", "cancel"):
        for _ in range(2):
            token = await node.opened(project)
            session_id = (await listed(node, developer, "pending"))[0].id
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


async def test_the_deliveries_of_somebody_elses_session_do_not_exist(node: "Node") -> None:
    """A developer learns nothing about another developer's session."""
    developer, project = await node.owned(webhook_url=URL)
    await node.confirmed(project)
    with pytest.raises(ProjectNotFound):
        await node.deliveries.find_deliveries(await node.developer(), await only(node, developer))
