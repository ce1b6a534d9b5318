"""Forms have limits of time and size; a broken form ends as a page and is not logged as a bug."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from tests.console.browsing import Shown
from tests.console.conftest import Installation, Visitor

from taproof.console.forms import read_form
from taproof.core.errors import InvalidRequest
from taproof.core.projects import Project

SIGN_IN = "/console/sign-in"
FORM = b"application/x-www-form-urlencoded"

Message = MutableMapping[str, Any]


async def post(
    console: Installation, receive: Callable[[], Awaitable[Message]], *headers: tuple[bytes, bytes]
) -> Shown:
    """Send the form of the sign-in page with a body that arrives as `receive` returns it."""
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "scheme": "https",
        "path": SIGN_IN,
        "query_string": b"",
        "client": ("192.0.2.1", 4000),
        "server": ("console.example", 443),
        "headers": [(b"host", b"console.example"), (b"sec-fetch-site", b"same-origin"), (b"content-type", FORM)],
    }
    scope["headers"] += headers
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await console.app.app(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Shown(httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=content))


def arriving(*messages: Message) -> Callable[[], Awaitable[Message]]:
    """Return a `receive` that returns these messages and then waits forever."""
    left = list(messages)

    async def receive() -> Message:
        if left:
            return left.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    return receive


def part(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def read(body: bytes, content_type: bytes = FORM) -> dict[str, str]:
    scope = {"type": "http", "headers": [(b"content-type", content_type)]}
    return await read_form(Request(scope, arriving(part(body, more=False))))


@pytest.mark.parametrize("begun", [[], [part(b"next=%2Fcon")]], ids=range(2))
async def test_a_form_that_is_cut_short_is_no_bug(
    console: Installation, capsys: pytest.CaptureFixture[str], begun: list[Message]
) -> None:
    """A client that disconnects in the middle of a form leaves nothing in the log."""
    shown = await post(console, arriving(*begun, {"type": "http.disconnect"}), (b"content-length", b"100"))
    assert shown.status == 400
    assert "before the whole body arrived" in shown.text
    assert capsys.readouterr() == ("", "")


async def test_a_form_that_is_announced_too_large_is_not_read(console: Installation) -> None:
    """An announced length of more than 16 KiB is refused with a page, and the connection is closed."""
    async with asyncio.timeout(60):
        shown = await post(console, arriving(), (b"content-length", b"16385"))
    assert (shown.status, shown.response.headers["connection"]) == (413, "close")
    assert shown.heading == "Something went wrong"


async def test_a_form_in_parts_is_put_together() -> None:
    """A form that arrives in pieces, without a length, is read whole."""
    pieces = arriving(part(b"a=%C3"), part(b"%A9&b=+1+"), part(b"", more=False))
    scope = {"type": "http", "headers": [(b"content-type", FORM)]}
    assert await read_form(Request(scope, pieces)) == {"a": "é", "b": "1"}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"a=%ff", FORM),
        (b"a=\xc3\xa9", FORM),
        (b"&".join(b"a=1" for _ in range(51)), FORM),
        (b"{}", b"application/json"),
        (b"a=1", b""),
        (b"a=1", b"text/plain; application/x-www-form-urlencoded"),
        (b"a=1", b"multipart/form-data; boundary=x"),
    ],
)
async def test_an_invalid_form_is_refused(body: bytes, content_type: bytes) -> None:
    """Other types, text that is not UTF-8, and too many fields are refused with a sentence."""
    with pytest.raises(InvalidRequest):
        await read(body, content_type)


async def test_the_type_may_have_parameters() -> None:
    """Parameters after the type and its case do not matter."""
    assert await read(b"a=1", b"Application/X-WWW-Form-Urlencoded ; charset=UTF-8") == {"a": "1"}


async def test_a_form_of_a_session_that_has_ended_changes_nothing(
    console: Installation, visitor: Visitor, project: Project
) -> None:
    """A session that ends while a form arrives is refused at its end."""

    async def slow_form() -> AsyncIterator[bytes]:
        yield b"confirmation="
        await console.services.console_sessions.delete_console_sessions(visitor.actor)
        yield project.id.encode()

    headers = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
    path = f"/console/projects/{project.id}/delete"
    answer = await visitor.client.post(path, content=slow_form(), headers=headers)
    assert answer.status_code == 401
    assert "You were signed out before the change was made, so nothing was changed." in answer.text
    assert await console.services.projects.read_project(visitor.developer, project.id) == project
