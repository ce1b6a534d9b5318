"""Waiting for a decision: every transition out of pending wakes the call, and none is missed."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.service.callers import (
    IDENTITY,
    LONG,
    USER,
    Callers,
    lose_every_signal,
    open_callers,
    running,
)
from tests.service.conftest import Node, acting, key_of, waits_with
from tests.waiting import until

from taproof.core.errors import StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.core.session_state import SESSION_LIFETIME
from taproof.core.sessions import PolledSession, SessionKey
from taproof.service.sessions import wait


@pytest.fixture
async def callers(node: Node) -> AsyncIterator[Callers]:
    async with open_callers(node) as callers:
        yield callers


# ---- what wakes


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_decision_here_wakes_its_own_callers(node: Node, callers: Callers, *, confirmed: bool) -> None:
    """A decision in this process immediately ends the waits for that session and no others."""
    project, _ = await node.project()
    token, other = await node.opened(project), await node.opened(project, "1002")
    call, others = await callers.start(project, token), await callers.start(project, other)
    if confirmed:
        await node.signin.confirm_session(token, IDENTITY)
    else:
        await node.signin.cancel_session(token, USER)
    assert await callers.end_of(call) == "over"
    assert not others.done()
    seen = await node.signin.verify_session(project.id, token, public=True)
    assert seen.status == ("confirmed" if confirmed else "cancelled")


async def test_a_tap_that_decides_nothing_wakes_nobody(node: Node, callers: Callers) -> None:
    """Opening the link, and a stranger's tap, leave the session pending, so the client continues to wait."""
    project, _ = await node.project()
    token, other = await node.pending(project), await node.opened(project, "1002")
    call, later = await callers.start(project, token), await callers.start(project, other)
    await node.signin.open_session(token, USER)
    await node.signin.confirm_session(token, MessengerIdentity("666", "Eve", "eve"))
    await node.signin.cancel_session(token, "666")
    await node.signin.cancel_session(other, "1002")
    assert await callers.end_of(later) == "over"
    assert not call.done()


@waits_with(look_every=3_600.0)
async def test_a_decision_elsewhere_wakes(node: Node, other_node: Node, callers: Callers) -> None:
    """The store signals a decision of another process, so the wait does not last until the next check."""
    async with running(node):
        project, _ = await node.project()
        async with asyncio.timeout(60):
            while True:  # A decision is missed if the store does not listen yet.
                token = await node.opened(project)
                call = await callers.start(project, token)
                await other_node.signin.confirm_session(token, IDENTITY)
                if (await asyncio.wait([call], timeout=1))[0]:
                    break
        assert call.result() == "over"


async def test_a_lost_signal_loses_no_answer(
    node: Node, other_node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store does not signal a decision of another process, the next check of the session finds it."""
    lose_every_signal(node, monkeypatch)
    async with running(node):
        project, _ = await node.project()
        token = await node.opened(project)
        call, other = await callers.start(project, token), await callers.start(project, await node.pending(project))
        await other_node.signin.confirm_session(token, IDENTITY)
        assert await callers.end_of(call) == "over"
        assert not other.done()


@waits_with(look_every=0.01)
async def test_every_session_is_looked_at_within_a_second(
    node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session with waiting calls is read at least once a second, as long as they wait."""
    assert wait.LOOK_EVERY + wait.GATHER < 1
    lose_every_signal(node, monkeypatch)
    looks = 0
    poll_session = node.storage.sessions.poll_session

    async def counting(key: SessionKey) -> PolledSession | None:
        nonlocal looks
        looks += 1
        return await poll_session(key)

    monkeypatch.setattr(node.storage.sessions, "poll_session", counting)
    async with running(node):
        project, _ = await node.project()
        call = await callers.start(project, await node.pending(project))
        await until(lambda: looks > 5)
        assert not call.done()


@waits_with(chunk=7, look_every=0.001)
async def test_very_many_are_looked_at_in_small_chunks(
    node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checking very many sessions gives others the event loop in between, and reaches each session."""
    lose_every_signal(node, monkeypatch)
    project, _ = await node.project()
    tokens = await asyncio.gather(*(node.pending(project) for _ in range(40)))
    for token in tokens:
        await callers.start(project, token)
    at_once, most, seen = 0, 0, set()
    poll_session = node.storage.sessions.poll_session

    async def slow(key: SessionKey) -> PolledSession | None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        seen.add(key)
        return await poll_session(key)

    monkeypatch.setattr(node.storage.sessions, "poll_session", slow)
    async with running(node):
        await until(lambda: len(seen) == len(tokens))
    assert most == 7


async def test_a_clock_that_is_behind_ends_no_wait_early(node: Node, callers: Callers) -> None:
    """Expiry follows the wall clock: if that does not move, the wait lasts as long as requested."""
    project, _ = await node.project()
    token = await node.pending(project)
    node.clock.now += SESSION_LIFETIME - 5
    loop = asyncio.get_running_loop()
    began = loop.time()
    call = await callers.start(project, token, 0.1)
    assert await callers.end_of(call) == "over"
    assert loop.time() - began >= 0.1


async def test_a_clock_that_is_set_forward_expires(
    node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the wall clock jumps past the ten minutes, the next check finds the session expired."""
    lose_every_signal(node, monkeypatch)
    async with running(node):
        project, _ = await node.project()
        call = await callers.start(project, await node.pending(project))
        node.clock.now += SESSION_LIFETIME
        assert await callers.end_of(call) == "over"


async def test_a_deleted_project_ends_the_wait(node: Node, callers: Callers) -> None:
    """The wait ends as soon as the session is gone."""
    developer, project = await node.owned()
    async with running(node):
        call = await callers.start(project, await node.pending(project))
        await node.projects.delete_project(acting(developer), project.id)
        assert await callers.end_of(call) == "over"


async def test_a_decision_during_the_first_look(node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call registers before its first read, so a decision after that read is not missed."""
    project, _ = await node.project()
    token = await node.opened(project)
    poll_session = node.storage.sessions.poll_session

    async def poll_then_confirm(key: SessionKey) -> PolledSession | None:
        polled = await poll_session(key)
        await node.signin.confirm_session(token, IDENTITY)
        return polled

    monkeypatch.setattr(node.storage.sessions, "poll_session", poll_then_confirm)
    assert await callers.end_of(await callers.start(project, token)) == "over"


# ---- hints


async def test_a_hint_wakes_those_that_ask_for_hints(node: Node, callers: Callers) -> None:
    """Opening the link ends the calls that know another hint, and no others; a hint that is already known ends none."""
    project, _ = await node.project()
    token, other = await node.pending(project), await node.pending(project)
    asking = [await callers.start(project, token, seen_hint="waiting") for _ in range(2)]
    knowing = await callers.start(project, other, seen_hint="waiting")
    silent = await callers.start(project, token)
    await node.signin.open_session(token, USER)
    assert [await callers.end_of(call) for call in asking] == ["over", "over"]
    knowing_now = await callers.start(project, token, seen_hint="opened")
    await node.signin.open_session(token, USER)
    node.signin.waiting.notice(key_of(token), "opened")
    await asyncio.sleep(0)
    assert not any(call.done() for call in (knowing, silent, knowing_now))
    for stale in ("waiting", "", "a hint of a later release"):
        assert await callers.end_of(await callers.start(project, token, seen_hint=stale)) == "over"
    await node.signin.confirm_session(token, IDENTITY)
    assert [await callers.end_of(call) for call in (silent, knowing_now)] == ["over", "over"]


@pytest.mark.parametrize(("signal", "waiting_options"), [(True, {"look_every": 3_600.0}), (False, {})])
async def test_a_hint_set_elsewhere_wakes(
    node: Node, other_node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch, *, signal: bool
) -> None:
    """A hint set by another process wakes the call by the store's signal, or else by the next check."""
    if not signal:
        lose_every_signal(node, monkeypatch)
    async with running(node):
        project, _ = await node.project()
        async with asyncio.timeout(60):
            while True:  # A hint is missed if the store does not listen yet.
                token = await node.pending(project)
                call = await callers.start(project, token, seen_hint="waiting")
                silent = await callers.start(project, token)
                await other_node.signin.open_session(token, USER)
                if (await asyncio.wait([call], timeout=2))[0]:
                    break
        assert call.result() == "over"
        assert not silent.done()


# ---- what is not waited for


async def test_what_would_not_be_pending_is_not_waited_for(node: Node, callers: Callers) -> None:
    """Refused and decided reads are answered immediately, because waiting would only hold a place."""
    project, _ = await node.project()
    other, _ = await node.project()
    private, _ = await node.project(public_access=False)
    confirmed, token = await node.confirmed(project), await node.pending(project)
    for of, each, seconds in [
        (project, confirmed, LONG),
        (other, token, LONG),
        (project, "no token", LONG),
        (project, token[:-3] + "AAA", LONG),
        (private, await node.pending(private), LONG),
        (project, token, 0),
    ]:
        assert await callers.end_of(await callers.start(of, each, seconds)) == "over"
    call = await callers.start(private, await node.pending(private), public=False)
    assert not call.done()


async def test_the_store_is_away_at_the_first_look(
    node: Node, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store cannot be read, the caller gets the error, and the place is free again."""

    async def away(_: SessionKey) -> None:
        raise StoreUnavailable

    project, _ = await node.project()
    token = await node.pending(project)
    monkeypatch.setattr(node.storage.sessions, "poll_session", away)
    with pytest.raises(StoreUnavailable):
        await callers.end_of(await callers.start(project, token))
