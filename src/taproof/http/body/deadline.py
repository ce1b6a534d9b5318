"""Bounds how long request bodies may take to arrive, at next to no cost for those that are there at once.

`asyncio.timeout` makes and cancels a timer for each request: 5 µs of the 100 that a whole poll takes. Here one timer a
second looks after all bodies that are being read, and none runs while there are none.
"""

import asyncio
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taproof.core.errors import InvalidRequest
from taproof.http.errors import send_error

_EVERY: Final = 1.0


class BodyDeadline:
    """Cancels the tasks whose reading takes longer than `seconds`, give or take one."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._reading: dict[asyncio.Task[Any], int] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._ticks = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> asyncio.Task[Any]:
        """Note that the current task begins to read; return it, for `end`."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 — coroutines run in tasks.
        self._reading[task] = self._ticks
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.get_running_loop()
            self._loop.call_later(_EVERY, self._tick)
        return task

    def end(self, task: asyncio.Task[Any]) -> bool:
        """Note that the task reads no more; tell whether it was cancelled for being late, and not by anybody else."""
        self._reading.pop(task, None)
        if task not in self._late:
            return False
        self._late.discard(task)
        return task.uncancel() == 0

    def _tick(self) -> None:
        self._ticks += 1
        for task, begun in self._reading.items():
            if self._ticks - begun > self._seconds and task not in self._late:
                self._late.add(task)
                task.cancel()
        if self._reading and self._loop is not None:
            self._loop.call_later(_EVERY, self._tick)
        else:
            self._loop = None


class BodiesInTime:
    """ASGI middleware for applications that read bodies by themselves: a body that is late is the end of its request.

    To the application it looks as if the client had gone away; the client gets the answer that it gets elsewhere.

    Args:
        app: the application.
        seconds: how long a whole body may take to arrive.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        deadline = asyncio.get_running_loop().time() + self._seconds
        is_whole = is_late = is_answered = False

        async def receive_in_time() -> Message:
            nonlocal is_whole, is_late
            if is_whole:  # What comes now is only the end of the connection, which may take as long as it likes.
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                is_late = True
                return {"type": "http.disconnect"}
            is_whole = not message.get("more_body", False)
            return message

        async def send_unless_late(message: Message) -> None:
            nonlocal is_answered
            if not is_late or is_answered:
                is_answered = True
                await send(message)

        await self._app(scope, receive_in_time, send_unless_late)
        if is_late and not is_answered:
            await send_error(send, InvalidRequest(late_sentence(self._seconds)))


def late_sentence(seconds: float) -> str:
    """Return what is said of a body that took longer than so many seconds."""
    return f"The body took longer than {seconds:g} seconds. Send it again."
