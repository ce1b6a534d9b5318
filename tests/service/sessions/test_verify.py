"""A sign-in as the client sees it: creating and reading sessions (service-spec.md, Public session endpoints)."""

import asyncio
from typing import TYPE_CHECKING

import jwt
import pytest
from tests.service.conftest import acting

from taproof.core.clock import DAY
from taproof.core.errors import (
    InvalidRequest,
    MessengerUnavailable,
    ProjectNotFound,
    SessionNotFound,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import SessionKey
from taproof.service.sessions.results import VerifyResult

if TYPE_CHECKING:
    from tests.service.conftest import Node

UNKNOWN_PROJECT = "proj_" + "0" * 22
UNKNOWN_TOKEN = "A" * 43
NO_TIME = {"verify_exp": False, "verify_iat": False}


def claims_of(proof: str | None, secret: str) -> dict[str, object]:
    assert proof is not None
    claims: dict[str, object] = jwt.decode(proof, secret, algorithms=["HS256"], options=NO_TIME)  # type: ignore[arg-type]
    return claims


async def test_nothing_is_created_while_the_messenger_is_unknown(node: "Node") -> None:
    """A session that nobody could open would only count as abandoned, so it is not created."""
    project, _ = await node.project()
    node.link.base = None
    with pytest.raises(MessengerUnavailable):
        await node.signin.create_session(project.id, public=True)
    assert await node.storage.counts.read_daily_counts([project.id], 0) == []


async def test_malformed_ids_are_invalid_requests(node: "Node") -> None:
    """A malformed id is 400 instead of 404, because the caller's settings are wrong. The sentence names the field."""
    project, _ = await node.project()
    for project_id in ("", "proj_", "x", "sess_" + "0" * 22, "proj_" + "0" * 21 + "\0", "proj_\ud800"):
        with pytest.raises(InvalidRequest, match="project_id"):
            await node.signin.create_session(project_id, public=True)
        for token in (UNKNOWN_TOKEN, "malformed"):
            with pytest.raises(InvalidRequest, match="project_id"):
                await node.signin.verify_session(project_id, token, public=True)
    for token in ("", "x", "A" * 44, "A" * 42 + "B", "\ud800" * 43, "A" * 42 + "\0"):
        with pytest.raises(InvalidRequest, match="session_token"):
            await node.signin.verify_session(project.id, token, public=True)


async def test_unknown_and_foreign_sessions_are_not_found(node: "Node") -> None:
    """A session of another project is not found, and the attempt does not use it up."""
    project, _ = await node.project()
    foreign, _ = await node.project()
    token = await node.confirmed(foreign)
    for public in (True, False):
        with pytest.raises(SessionNotFound):
            await node.signin.verify_session(project.id, UNKNOWN_TOKEN, public=public)
        with pytest.raises(SessionNotFound):
            await node.signin.verify_session(project.id, token, public=public)
        with pytest.raises(ProjectNotFound):
            await node.signin.verify_session(UNKNOWN_PROJECT, token, public=public)
        with pytest.raises(ProjectNotFound):
            await node.signin.create_session(UNKNOWN_PROJECT, public=public)
    assert (await node.signin.verify_session(foreign.id, token, public=True)).proof is not None


async def test_the_one_read_carries_everything_and_later_ones_nothing(node: "Node") -> None:
    """The first read has the identity, confirmed_at and a new proof; later reads say `used`."""
    project, secrets = await node.project()
    token = await node.opened(project)
    assert await node.signin.verify_session(project.id, token, public=True) == VerifyResult("pending", hint="opened")
    node.clock.now += 1_234
    confirmed_at = node.clock.now
    identity = MessengerIdentity("1001", "Ada", "")
    await node.signin.confirm_session(token, identity)
    node.clock.now += 30 * DAY
    answer = await node.signin.verify_session(project.id, token, public=True)
    assert (answer.status, answer.identity, answer.confirmed_at) == ("confirmed", identity, confirmed_at)
    assert claims_of(answer.proof, secrets.webhook_secret) == {
        "messenger_id": "1001",
        "messenger_name": "Ada",
        "messenger_username": "",
        "project_id": project.id,
        "session_token": token,
        "iss": "taproof",
        "iat": node.clock.now // 1000,
        "exp": node.clock.now // 1000 + 300,
    }
    for public in (True, False):
        assert await node.signin.verify_session(project.id, token, public=public) == VerifyResult("used")


async def test_secrets_regenerated_between_read_and_consume_sign_with_the_new_one(
    node: "Node", other_node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """No proof is signed with the old secret after its replacement."""
    developer = await node.developer()
    project, old = await node.project(developer)
    token = await node.confirmed(project)
    consume = node.storage.sessions.consume_session
    new = []

    async def interrupted(*arguments: object) -> object:
        new.append(await other_node.projects.regenerate_secrets(acting(developer), project.id))
        return await consume(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(node.storage.sessions, "consume_session", interrupted)
    answer = await node.signin.verify_session(project.id, token, public=True)
    assert claims_of(answer.proof, new[0].webhook_secret)["session_token"] == token
    with pytest.raises(jwt.InvalidSignatureError):
        claims_of(answer.proof, old.webhook_secret)


async def test_a_project_deleted_between_read_and_consume_gives_no_proof(
    node: "Node", other_node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer carries no identity for a deleted project."""
    developer, project = await node.owned()
    token = await node.confirmed(project)
    poll_session = node.storage.sessions.poll_session

    async def interrupted(key: SessionKey) -> object:
        found = await poll_session(key)
        await other_node.projects.delete_project(acting(developer), project.id)
        return found

    monkeypatch.setattr(node.storage.sessions, "poll_session", interrupted)
    answer = await node.signin.verify_session(project.id, token, public=True)
    assert (answer.identity, answer.proof) == (None, None)
    monkeypatch.undo()
    with pytest.raises(ProjectNotFound):
        await node.signin.verify_session(project.id, token, public=True)


async def test_a_client_that_hangs_up_leaves_the_store_whole(node: "Node") -> None:
    """A read that is cancelled at any await leaves the session unchanged or used: there are never two proofs."""
    project, _ = await node.project()
    for steps in range(6):
        token = await node.confirmed(project)
        reading = asyncio.create_task(node.signin.verify_session(project.id, token, public=True))
        for _ in range(steps):
            await asyncio.sleep(0)
        reading.cancel()
        (first,) = await asyncio.gather(reading, return_exceptions=True)
        later = await node.signin.verify_session(project.id, token, public=True)
        session = await node.stored(token)
        assert session.status == "used"
        if isinstance(first, VerifyResult):
            assert later == VerifyResult("used")
