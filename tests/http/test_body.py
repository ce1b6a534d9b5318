"""A body that does not arrive in time is answered with 400.

Nothing else is cancelled, and no timer runs between bodies.
"""

import asyncio
from typing import Any

import pytest

from taproof.core.errors import InvalidRequest
from taproof.http.body import BodiesInTime, BodyDeadline, read_json_object

SCOPE = {"type": "http", "headers": [(b"content-type", b"application/json"), (b"content-length", b"2")]}


async def never() -> Any:
    await asyncio.Event().wait()


async def at_once() -> Any:
    return {"type": "http.request", "body": b"{}", "more_body": False}


async def read(receive: Any, deadline: BodyDeadline) -> Any:
    return await read_json_object(SCOPE, receive, deadline=deadline)


@pytest.fixture
def deadline() -> BodyDeadline:
    return BodyDeadline(3, every=0.001)


async def test_a_body_that_never_comes_is_refused_and_its_task_lives_on(deadline: BodyDeadline) -> None:
    """The request is answered with a sentence; the cancellation does not spread."""
    with pytest.raises(InvalidRequest, match="took longer"):
        await read(never, deadline)
    assert await read(at_once, deadline) == {}
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancelled_request_stays_cancelled(deadline: BodyDeadline) -> None:
    """A cancellation from elsewhere, such as a stopping server, takes effect."""
    task = asyncio.create_task(read(never, deadline))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_only_the_late_one_is_refused(deadline: BodyDeadline) -> None:
    """One slow client does not end the requests of others."""
    slow = asyncio.create_task(read(never, deadline))
    while not slow.done():
        assert await read(at_once, deadline) == {}
        await asyncio.sleep(0)
    assert isinstance(slow.exception(), InvalidRequest)


async def test_no_timer_remains_after_a_body(deadline: BodyDeadline, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bodies share one timer. When no body is being read, it does not start again."""
    loop, timers = asyncio.get_running_loop(), []
    call_later = loop.call_later

    def noting(delay: float, callback: Any, *arguments: Any, **more: Any) -> Any:
        timers.append(getattr(callback, "__self__", None))
        return call_later(delay, callback, *arguments, **more)

    monkeypatch.setattr(loop, "call_later", noting)
    for _ in range(100):
        await read(at_once, deadline)
    await asyncio.sleep(0.1)
    assert timers.count(deadline) == 1


# ---- the wrapper, for applications that read bodies by themselves


class Slow:
    """A client that sends some parts of a body and never the rest; `sent` is the answer that it gets."""

    def __init__(self, *parts: bytes, ends: bool = False) -> None:
        self._parts = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        if ends:
            self._parts[-1]["more_body"] = False
        self.sent: list[Any] = []

    async def receive(self) -> Any:
        return self._parts.pop(0) if self._parts else await never()

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def read_all(_scope: Any, receive: Any, send: Any) -> None:
    """Answer 200 once the whole body has arrived, 499 when the client has disconnected."""
    more, status = True, 200
    while more:
        message = await receive()
        more = message.get("more_body", False)
        status = 499 if message["type"] == "http.disconnect" else status
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("parts", [[], [b"a"], [b"a"] * 5])
async def test_other_applications_wait_no_longer(parts: list[bytes]) -> None:
    """A body that arrives too slowly is answered once, with the same sentence as everywhere."""
    client = Slow(*parts)
    await BodiesInTime(read_all, 0.01)({"type": "http"}, client.receive, client.send)
    assert [message.get("status") for message in client.sent] == [400, None]
    assert b"took longer than 0.01 seconds" in client.sent[1]["body"]


async def test_other_applications_get_bodies_that_come_in_time() -> None:
    """After a whole body, an application may wait without a limit for the disconnect, as long polls do."""
    client = Slow(b"a", b"b", ends=True)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await read_all(scope, receive, send)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await receive()

    await BodiesInTime(app, 0.01)({"type": "http"}, client.receive, client.send)
    assert [message.get("status") for message in client.sent] == [200, None]


async def test_an_answer_in_progress_is_finished() -> None:
    """A client that is answered before its whole body has arrived gets that whole answer, and no second one."""
    client = Slow(b"a")

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": []})
        await receive()
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.body", "body": b"too large"})

    await BodiesInTime(app, 0.01)({"type": "http"}, client.receive, client.send)
    assert [message.get("status", message.get("body")) for message in client.sent] == [413, b"too large"]


async def test_lifespan_events_pass() -> None:
    """Start and stop of the application have no body."""
    seen = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    await BodiesInTime(app, 0.01)({"type": "lifespan"}, never, Slow().send)
    assert seen == ["lifespan"]
