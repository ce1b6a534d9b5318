"""A body that does not arrive ends as a 400; nothing else is cancelled, and nothing runs while nobody reads."""

import asyncio
from typing import Any

import pytest

from taproof.core.errors import InvalidRequest
from taproof.web import body as body_reading
from taproof.web import body_deadline, json_body
from taproof.web.body_deadline import BodyDeadline

SCOPE = {"type": "http", "headers": [(b"content-type", b"application/json"), (b"content-length", b"2")]}


async def never() -> Any:
    await asyncio.Event().wait()


async def at_once() -> Any:
    return {"type": "http.request", "body": b"{}", "more_body": False}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_deadline, "_EVERY", 0.001)
    monkeypatch.setattr(body_reading, "_deadline", BodyDeadline(3))


async def test_a_body_that_never_comes_is_refused_and_its_task_lives_on() -> None:
    """The request is answered with a sentence; the cancellation goes no further."""
    with pytest.raises(InvalidRequest, match="took longer"):
        await json_body.read_json_object(SCOPE, never)
    assert await json_body.read_json_object(SCOPE, at_once) == {}
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancelled_request_stays_cancelled() -> None:
    """Whoever else cancels the task, such as a server that drains, is obeyed."""
    task = asyncio.create_task(json_body.read_json_object(SCOPE, never))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_only_the_late_one_is_refused() -> None:
    """One slow client ends nobody else's request."""
    slow = asyncio.create_task(json_body.read_json_object(SCOPE, never))
    while not slow.done():
        assert await json_body.read_json_object(SCOPE, at_once) == {}
        await asyncio.sleep(0)
    assert isinstance(slow.exception(), InvalidRequest)


async def test_nothing_is_kept_of_what_was_read() -> None:
    """Neither a task nor a timer stays behind."""
    for _ in range(100):
        await json_body.read_json_object(SCOPE, at_once)
    deadline = body_reading._deadline
    assert deadline._reading == {}
    for _ in range(1_000):
        if deadline._loop is None:
            break
        await asyncio.sleep(0.001)
    assert deadline._loop is None
    assert deadline._late == set()
