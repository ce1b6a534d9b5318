"""The places of waiting calls are limited, freed immediately, and released when the service stops."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.callers import IDENTITY, LONG, PATIENCE, USER, Callers, never, open_callers, running
from tests.service.conftest import Node, key_of, waits_with
from tests.waiting import until

from taproof.core.errors import StoreUnavailable
from taproof.core.sessions import SessionKey
from taproof.service.sessions import wait
from taproof.service.sessions.wait import WaitEnd


@pytest.fixture
async def callers(node: Node) -> AsyncIterator[Callers]:
    async with open_callers(node) as callers:
        yield callers


# ---- places


async def test_gone_and_decided_at_once_is_gone(node: Node, callers: Callers) -> None:
    """A client that disconnected does not consume the proof, even if the decision arrives at the same time."""
    project, _ = await node.project()
    token = await node.opened(project)
    gone = asyncio.Event()

    async def until_gone() -> None:
        await gone.wait()

    call = await callers.start(project, token, LONG, until_gone)
    await asyncio.sleep(0.01)
    key = key_of(token)
    gone.set()
    await asyncio.sleep(0)
    callers.waiting.wake(key)
    assert await callers.end_of(call) == "gone"


@pytest.mark.parametrize(
    ("waiting_options", "same_project", "same_session"),
    [({"process_limit": 3}, False, False), ({"project_limit": 3}, True, False), ({"session_limit": 3}, True, True)],
)
async def test_bounds(node: Node, callers: Callers, *, same_project: bool, same_session: bool) -> None:
    """Over each limit, a call gets no place and does not affect waiting ones; a freed place is used again."""
    project, _ = await node.project()
    token = await node.pending(project)

    async def one_more() -> asyncio.Task[WaitEnd]:
        of = project if same_project else (await node.project())[0]
        return await callers.start(of, token if same_session else await node.pending(of))

    calls = [await one_more() for _ in range(3)]
    assert await callers.end_of(await one_more()) == "no_place"
    assert not any(call.done() for call in calls)
    if same_project:
        other, _ = await node.project()
        assert not (await callers.start(other, await node.pending(other))).done()
    calls[0].cancel()
    await until(calls[0].done)
    assert not (await one_more()).done()


def test_the_documents_state_the_bounds() -> None:
    """docs/reference/long-poll.md states the limits."""
    page = " ".join((Path(__file__).parents[3] / "docs/reference/long-poll.md").read_text("utf-8").split())
    process, project, session = (f"{each:,}" for each in (wait.PROCESS_LIMIT, wait.PROJECT_LIMIT, wait.SESSION_LIMIT))
    assert f"At most {process} calls wait in one process, {project} of them for one project and {session}" in page


# ---- the life of the service


async def test_stop_answers_all(node: Node, callers: Callers) -> None:
    """When the service stops, all waiting calls end immediately and later ones do not wait, so draining is quick."""
    project, _ = await node.project()
    stopping = asyncio.Event()
    part = asyncio.create_task(node.signin.waiting.run_until(stopping))
    calls = [await callers.start(project, await node.pending(project)) for _ in range(3)]
    assert not part.done()
    stopping.set()
    assert [await callers.end_of(call) for call in calls] == ["over"] * 3
    await asyncio.wait_for(part, PATIENCE)
    assert await callers.end_of(await callers.start(project, await node.pending(project))) == "no_place"


@waits_with(after_a_bug=0.001, look_every=0.001)
async def test_bugs_and_an_absent_store_are_survived(
    node: Node, other_node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a bug in the store's signals or failing reads, later decisions are still answered."""
    watch_decisions, poll_session = node.storage.sessions.watch_decisions, node.storage.sessions.poll_session
    watched: list[Exception] = [RuntimeError("watch"), StoreUnavailable()]
    polled: list[Exception] = [RuntimeError("poll"), StoreUnavailable()]

    async def failing_watch(*told: Any) -> None:
        if watched:
            raise watched.pop()
        await watch_decisions(*told)

    async def failing_poll(key: SessionKey) -> Any:
        if polled:
            raise polled.pop()
        return await poll_session(key)

    project, _ = await node.project()
    token = await node.opened(project)
    call = await callers.start(project, token)
    monkeypatch.setattr(node.storage.sessions, "watch_decisions", failing_watch)
    monkeypatch.setattr(node.storage.sessions, "poll_session", failing_poll)
    async with running(node):
        await until(lambda: not watched and not polled)
        assert not call.done()
        await other_node.signin.confirm_session(token, IDENTITY)
        assert await callers.end_of(call) == "over"


async def test_the_store_rests_while_nobody_waits(
    node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`needed`, which the store obeys, is set exactly while somebody waits."""
    asked: list[asyncio.Event] = []

    async def watch_decisions(_wake: Any, needed: asyncio.Event, _notice: Any) -> None:
        asked.append(needed)
        await never()

    monkeypatch.setattr(node.storage.sessions, "watch_decisions", watch_decisions)
    async with running(node):
        await until(lambda: bool(asked))
        project, _ = await node.project()
        token = await node.opened(project)
        assert not asked[0].is_set()
        calls = [await callers.start(project, token) for _ in range(2)]
        assert asked[0].is_set()
        await node.signin.cancel_session(token, USER)
        await asyncio.gather(*calls)
        assert not asked[0].is_set()
