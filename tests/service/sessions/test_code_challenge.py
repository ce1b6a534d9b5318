"""Bound sessions: only the holder of the verifier reads the answer (RFC 7636), repeatedly for a minute."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.databases import every_driver
from tests.service.callers import Callers, never, open_callers
from tests.service.conftest import acting
from tests.waiting import until

from taproof.core.errors import (
    CodeVerifierMissing,
    SessionNotFound,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project
from taproof.core.sessions import PolledSession, SessionKey
from taproof.sdk.code_challenge import code_challenge, new_code_verifier
from taproof.service.sessions.results import VerifyResult
from taproof.service.sessions.wait import SESSION_LIMIT, WaitEnd

if TYPE_CHECKING:
    from tests.service.conftest import Node

USER = "1001"


async def start(node: "Node", project: Project, verifier: str, *, confirmed: bool = True) -> str:
    """Return the token of a session that is bound to `verifier`."""
    created = await node.signin.create_session(project.id, public=True, code_challenge=code_challenge(verifier))
    await node.signin.open_session(created.session_token, USER)
    if confirmed:
        assert (await node.signin.confirm_session(created.session_token, MessengerIdentity(USER, "Ada", "ada"))).changed
    return created.session_token


async def read(node: "Node", project: Project, token: str, verifier: str | None) -> VerifyResult:
    return await node.signin.verify_session(project.id, token, public=True, code_verifier=verifier)


@every_driver
async def test_stolen_links_read_nothing(node: "Node", *, soak: bool) -> None:
    """No wrong verifier reads a bound session by its token, and every holder reads its own session."""
    project, _ = await node.project()
    verifiers = [new_code_verifier() for _ in range(500 if soak else 50)]
    tokens = await asyncio.gather(*(start(node, project, verifier) for verifier in verifiers))
    guesses = [None, *(new_code_verifier() for _ in range(19))]
    stolen = await asyncio.gather(
        *(read(node, project, token, guess) for token in tokens for guess in guesses), return_exceptions=True
    )
    assert len(stolen) == 20 * len(tokens)
    assert {type(answer) for answer in stolen} == {CodeVerifierMissing, SessionNotFound}
    answers = await asyncio.gather(
        *(read(node, project, token, verifier) for token, verifier in zip(tokens, verifiers, strict=True))
    )
    assert all(answer.proof for answer in answers)


async def test_the_proof_stays_the_same_when_a_rotation_ends_by_itself(node: "Node") -> None:
    """The rotation ends between two reads, and the second proof is still signed with the first one's secret."""
    developer, project = await node.owned()
    rotation = await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)
    assert rotation.promoted_at is not None
    node.clock.now = rotation.promoted_at - 1
    verifier = new_code_verifier()
    token = await start(node, project, verifier)
    first = await read(node, project, token, verifier)
    node.clock.now = rotation.promoted_at + 1
    assert await read(node, project, token, verifier) == first


async def test_who_asks_with_a_wrong_verifier_takes_no_place_meanwhile(
    node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any number of callers with a wrong verifier take no place, even while the verifier is being checked."""
    project, _ = await node.project()
    verifier = new_code_verifier()
    async with open_callers(node) as callers:
        token = await start(node, project, verifier, confirmed=False)
        poll_session, looked_up = node.storage.sessions.poll_session, asyncio.Event()

        async def slowly(key: SessionKey) -> PolledSession | None:
            await looked_up.wait()
            return await poll_session(key)

        monkeypatch.setattr(node.storage.sessions, "poll_session", slowly)
        wrong = [None, "\ud800" * 43, new_code_verifier()] * SESSION_LIMIT
        thieves = [await start_waiting(callers, project, token, each) for each in wrong]
        monkeypatch.undo()
        holders = [await start_waiting(callers, project, token, verifier) for _ in range(SESSION_LIMIT)]
        one_more = node.signin.waiting.wait(project.id, token, 30, never, public=True, code_verifier=verifier)
        assert await asyncio.wait_for(one_more, 60) == "no_place"
        looked_up.set()
        assert {await callers.end_of(thief) for thief in thieves} == {"over"}
        assert not any(holder.done() for holder in holders)
        await node.signin.confirm_session(token, MessengerIdentity(USER, "Ada", "ada"))
        assert {await callers.end_of(holder) for holder in holders} == {"over"}


async def start_waiting(
    callers: Callers, project: Project, token: str, verifier: str | None
) -> "asyncio.Task[WaitEnd]":
    before = callers.waiting.count
    call = callers.waiting.wait(project.id, token, 30, never, public=True, code_verifier=verifier)
    task = asyncio.create_task(call)
    callers.tasks.append(task)
    await until(lambda: callers.waiting.count > before)
    return task
