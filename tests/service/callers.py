"""The clients of one node that wait for decisions, and faults of the store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from tests.service.conftest import Node
from tests.waiting import until

from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project
from taproof.service.sessions.wait import UntilGone, WaitEnd, Waiting

LONG: Final = 120.0
"""Longer than any test may take, so a wait that ends sooner was woken."""
PATIENCE: Final = 60.0
USER: Final = "1001"
IDENTITY: Final = MessengerIdentity(USER, "Ada", "ada")


async def never() -> None:
    await asyncio.Event().wait()


@dataclass
class Callers:
    """The clients of one node."""

    node: Node
    tasks: list[asyncio.Task[WaitEnd]] = field(default_factory=list)

    @property
    def waiting(self) -> Waiting:
        return self.node.signin.waiting

    async def start(
        self,
        project: Project,
        token: str,
        seconds: float = LONG,
        until_gone: UntilGone = never,
        *,
        public: bool = True,
        seen_hint: str | None = None,
    ) -> asyncio.Task[WaitEnd]:
        """Call, and continue once the call waits or has its answer."""
        before = self.waiting.count
        call = self.waiting.wait(project.id, token, seconds, until_gone, public=public, seen_hint=seen_hint)
        task = asyncio.create_task(call)
        self.tasks.append(task)
        await until(lambda: task.done() or self.waiting.count > before)
        return task

    async def end_of(self, task: asyncio.Task[WaitEnd]) -> WaitEnd:
        async with asyncio.timeout(PATIENCE):
            return await task

    def assert_nothing_is_kept(self) -> None:
        assert self.waiting.count == 0
        assert not self.waiting._waited
        assert not self.waiting._by_project
        assert not self.waiting._needed.is_set()


@asynccontextmanager
async def open_callers(node: Node) -> AsyncIterator[Callers]:
    """Yield callers; assert at the end that nothing of their waits remains, however the calls ended."""
    callers = Callers(node)
    yield callers
    for task in callers.tasks:
        task.cancel()
    await asyncio.gather(*callers.tasks, return_exceptions=True)
    callers.assert_nothing_is_kept()


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[None]:
    stopping = asyncio.Event()
    task = asyncio.create_task(node.signin.waiting.run_until(stopping))
    await asyncio.sleep(0)
    try:
        yield
    finally:
        stopping.set()
        await asyncio.wait_for(task, PATIENCE)


def lose_every_signal(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch_decisions(*_: Any) -> None:
        await never()

    monkeypatch.setattr(node.storage.sessions, "watch_decisions", watch_decisions)
