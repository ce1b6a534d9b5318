"""Conformance: every process is notified of a decision, whichever process makes it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.databases import expired_event
from tests.storage.seed import Seed, present

from taproof.core.clock import DAY
from taproof.core.errors import StoreUnavailable
from taproof.core.projects import Project
from taproof.core.sessions import FoundState, Hint, NewSession, Refused, SessionKey
from taproof.storage.protocol import Storage

WatchDecisions = Callable[
    [Callable[[SessionKey], None], asyncio.Event, Callable[[SessionKey, Hint], None]], Coroutine[Any, Any, None]
]
PATIENCE = 60.0


class Watch:
    """A waiter on one store, and the notifications that it got."""

    def __init__(self, watch_decisions: WatchDecisions, seed: Seed) -> None:
        self.needed = asyncio.Event()
        self.needed.set()
        self.told: list[SessionKey] = []
        self.hints: list[tuple[SessionKey, Hint]] = []
        self._news = asyncio.Event()
        self._seed = seed
        self.task = asyncio.create_task(watch_decisions(self._wake, self.needed, self._notice))

    def _notice(self, key: SessionKey, hint: Hint) -> None:
        self.hints.append((key, hint))

    def _wake(self, key: SessionKey) -> None:
        self.told.append(key)
        self._news.set()

    async def hears(self, *keys: SessionKey) -> bool:
        """Return whether the waiter is notified of all of these in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while not set(keys) <= set(self.told):
                    await self._news.wait()
                    self._news.clear()
        return set(keys) <= set(self.told)

    async def warm_up(self, project: Project) -> None:
        """Wait until the store listens, because earlier decisions may be missed."""
        before = len(self.told)
        async with asyncio.timeout(60):
            while len(self.told) == before:
                with contextlib.suppress(StoreUnavailable):
                    await cancel(self._seed, project)
                await asyncio.sleep(0.01)


async def cancel(seed: Seed, project: Project, store: Storage | None = None) -> SessionKey:
    session = await seed.opened(project)
    assert await (store or seed.storage).sessions.cancel_session(session.key, "1001", seed.now, seed.event(project))
    return session.key


async def confirm(seed: Seed, project: Project, store: Storage) -> SessionKey:
    session = await seed.opened(project)
    assert await store.sessions.confirm_session(session.key, seed.identity("1001"), seed.now, seed.event(project))
    return session.key


@asynccontextmanager
async def watching(watch_decisions: WatchDecisions, seed: Seed, project: Project) -> AsyncIterator[Watch]:
    watch = Watch(watch_decisions, seed)
    try:
        await watch.warm_up(project)
        yield watch
    finally:
        watch.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch.task


async def test_watch_decisions_tells_every_watcher(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A hundred concurrent decisions through two processes reach the watchers of both."""
    project = await seed.project()
    async with (
        watching(storage.sessions.watch_decisions, seed, project) as one,
        watching(other_node.sessions.watch_decisions, seed, project) as two,
    ):
        keys = await asyncio.gather(
            *(decide(seed, project, store) for decide in (confirm, cancel) for store in (storage, other_node) * 25)
        )
        assert await one.hears(*keys)
        assert await two.hears(*keys)


async def test_watch_decisions_tells_of_decisions_only(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Creating, opening, reading, using and expiring a session, and a tap without effect, notify nobody."""
    project = await seed.project()
    used, late = await seed.confirmed(project), await seed.session(project, at=seed.now - 3_600_000)
    async with watching(other_node.sessions.watch_decisions, seed, project) as watch:
        created, opened = await seed.session(project), await seed.opened(project)
        await storage.sessions.poll_session(opened.key)
        assert await storage.sessions.consume_session(used.key, seed.now) is not None
        assert await storage.sessions.expire_sessions(seed.now, 10, expired_event) == 1
        for foreign in ("1002", ""):
            assert not await storage.sessions.confirm_session(
                opened.key, seed.identity(foreign), seed.now, seed.event(project)
            )
            assert not await storage.sessions.cancel_session(opened.key, foreign, seed.now, seed.event(project))
        assert not await storage.sessions.cancel_session(opened.key, "1001", opened.expires_at, seed.event(project))
        # What is decided last is heard last: with it all that could have been told before has been.
        assert await watch.hears(await confirm(seed, project, storage))
        undecided: tuple[NewSession, ...] = (created, opened, late)
        assert not {session.key for session in undecided} & set(watch.told)


async def test_watch_decisions_tells_of_new_hints(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Each change of a hint is reported once with the hint, in order, and not as a decision.

    A repetition is not reported.
    """
    project = await seed.project()
    async with watching(other_node.sessions.watch_decisions, seed, project) as watch:
        keys = [(await seed.session(project)).key for _ in range(120)]
        opened = await asyncio.gather(
            *(storage.sessions.open_session(key, "1001", seed.now, "choosing") for key in keys)
        )
        assert all(opened)
        assert not await storage.sessions.open_session(keys[0], "1002", seed.now)
        assert [await storage.sessions.set_hint(keys[0], "phone_asked") for _ in range(2)] == [True, False]
        assert await watch.hears(await confirm(seed, project, storage))
        mine = [told for told in watch.hints if told[0] in keys]
        assert sorted(mine) == sorted([*((key, "choosing") for key in keys), (keys[0], "phone_asked")])
        assert [hint for key, hint in mine if key == keys[0]] == ["choosing", "phone_asked"]
        assert not set(keys) & set(watch.told)


async def test_watch_decisions_may_rest_while_nobody_waits(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The watch may pause, also before the first client. Once somebody waits again, decisions are reported again."""
    project = await seed.project()
    watch = Watch(other_node.sessions.watch_decisions, seed)
    for _ in range(3):
        watch.needed.clear()
        await asyncio.sleep(0.05)  # Nothing shows whether the store rests. If it does not yet, this shows less.
        await cancel(seed, project, storage)
        watch.needed.set()
        await watch.warm_up(project)
        assert await watch.hears(await confirm(seed, project, storage))
    watch.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watch.task


async def test_watch_decisions_goes_on_until_it_is_cancelled(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """An unavailable store does not end a watch; cancelling ends it immediately, also during a pause."""
    project = await seed.project()
    async with watching(other_node.sessions.watch_decisions, seed, project) as watch:
        await other_node.close()
        await asyncio.sleep(0.1)
        assert not watch.task.done()
    resting = Watch(storage.sessions.watch_decisions, seed)
    resting.needed.clear()
    await asyncio.sleep(0.05)
    resting.task.cancel()
    done, _ = await asyncio.wait([resting.task, watch.task], timeout=PATIENCE)
    assert len(done) == 2
    assert watch.task.cancelled()  # It had not ended by itself.


async def test_expire_session_of_many_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Polls of overdue sessions of three days and two projects: each is expired and counted once, with its own event.

    A session is not expired before its end or after a decision, and no decision follows, even one made before the end.
    """
    told = await seed.project(webhook_url="https://example.com/", webhook_events=("auth.expired",))
    silent = await seed.project()
    sessions = [await seed.opened((told, silent)[number % 2], at=seed.now - number % 3 * DAY) for number in range(24)]
    decided = await seed.confirmed(silent)
    assert not await storage.sessions.expire_session(sessions[0].key, sessions[0].expires_at - 1, expired_event)
    calls = [(store, each) for each in (*sessions, decided) for store in (storage, other_node)]
    late = seed.now + DAY
    ended = await asyncio.gather(
        *(store.sessions.expire_session(each.key, late, expired_event) for store, each in calls)
    )
    assert [first + second for first, second in zip(ended[::2], ended[1::2], strict=True)] == [1] * 24 + [0]
    at, event = sessions[0].expires_at - 1, seed.event(told)
    assert not await storage.sessions.confirm_session(sessions[0].key, seed.identity("1001"), at, event)
    found = [present(await storage.sessions.read_session(each.key)).status for each in (*sessions, decided)]
    assert found == ["expired"] * 24 + ["confirmed"]
    counts = await storage.counts.read_daily_counts([told.id, silent.id], 0)
    assert [row.expired for row in counts] == [4] * 6
    due = await storage.deliveries.claim_deliveries(late, late + 1, 100)
    assert sorted(each.event.id for each in due) == sorted(
        f"evt_{each.id.removeprefix('sess_')}" for each in sessions[::2]
    )


async def test_a_refusal_has_the_state_that_the_statement_found(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Every refused change of a pending session returns its state; without a session, the refusal has none."""
    project = await seed.project()
    made = {name: await seed.opened(project) for name in ("foreign", "cancelled", "withdrawn", "used", "expired")}
    made["unopened"] = await seed.session(project)
    at, sessions = seed.now, other_node.sessions
    assert await sessions.cancel_session(made["cancelled"].key, "1001", at, seed.event(project, "auth.cancelled"))
    assert await sessions.withdraw_session(made["withdrawn"].key, at)
    assert await sessions.confirm_session(made["used"].key, seed.identity("1001"), at, seed.event(project))
    assert await sessions.consume_session(made["used"].key, at)
    until = made["used"].expires_at
    states = {
        "foreign": FoundState("pending", "1001", until, None, None, 0),
        "cancelled": FoundState("cancelled", "1001", until, None, at, 0),
        "withdrawn": FoundState("cancelled", "1001", until, None, at, 1),
        "used": FoundState("used", "1001", until, at, None, 0),
        "expired": FoundState("pending", "1001", until, None, None, 0),
        "unopened": FoundState("pending", None, until, None, None, 0),
    }
    keys = {name: new.key for name, new in made.items()} | {"unknown": SessionKey(seed.now // DAY, b"?" * 32)}
    for name, key in keys.items():
        user = "1002" if name == "foreign" else "1001"
        now = until if name == "expired" else at
        calls = [
            storage.sessions.confirm_session(key, seed.identity(user), now, seed.event(project)),
            storage.sessions.await_return(key, seed.identity(user), now, b"c" * 32),
            storage.sessions.renew_return(key, user, now, b"c" * 32),
            storage.sessions.cancel_session(key, user, now, seed.event(project, "auth.cancelled")),
        ]
        calls += [] if name == "unopened" else [storage.sessions.open_session(key, user, now)]
        calls += [] if name in {"foreign", "unopened"} else [storage.sessions.withdraw_session(key, now)]
        assert await asyncio.gather(*calls) == [Refused(states.get(name))] * len(calls), name
    await seed.delete(project)
    key = made["foreign"].key
    assert await storage.sessions.open_session(made["unopened"].key, "1001", at) == Refused(None)
    assert await storage.sessions.cancel_session(key, "1001", at, seed.event(project)) == Refused(None)
    assert await storage.sessions.withdraw_session(key, at) == Refused(None)
