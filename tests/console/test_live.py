"""The stream of the list of sessions: its content, its access, its limits, and its end."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.console.conftest import SESSION_COOKIE, Installation, Visitor
from tests.waiting import until

from taproof.console.guard import SECURITY_HEADERS
from taproof.console.live import StreamLimits
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable
from taproof.core.identifiers import new_id
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project

PATH = "/console/sessions/live"
QUICK = StreamLimits(look_every=0.005)
PATIENCE = 60.0
"""Seconds until a test gives up; none waits so long when all is well."""


@dataclass
class Message:
    """One event of a stream; a comment has none but `text`."""

    text: str

    @property
    def fields(self) -> dict[str, str]:
        return dict(line.split(": ", 1) for line in self.text.split("\n") if not line.startswith(":"))

    @property
    def rows(self) -> str:
        assert self.fields["event"] == "rows"
        return str(json.loads(self.fields["data"])["rows"])


class Client:
    """One client of a stream, over ASGI itself: httpx's transport hands over an answer only when it is whole."""

    def __init__(self, visitor: Visitor, console: Installation, query: str, headers: dict[str, str]) -> None:
        cookie = f"{SESSION_COOKIE}={visitor.client.cookies[SESSION_COOKIE]}"
        sent = {"host": "console.example", "cookie": cookie} | headers
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "scheme": "https",
            "path": PATH,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("192.0.2.1", 1),
            "server": ("console.example", 443),
        }
        self.reads = asyncio.Event()
        self.reads.set()
        self.gone = asyncio.Event()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self._asked = False
        self._app = console.app.app
        self._arrived: asyncio.Queue[str] = asyncio.Queue()
        self._rest = ""

    def call(self) -> "asyncio.Task[None]":
        self.task = asyncio.create_task(self._run())
        return self.task

    async def _run(self) -> None:
        await self._app(self.scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if self._asked:
            await self.gone.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Any) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.ended = not message.get("more_body", False)
            self._arrived.put_nowait(message["body"].decode())

    async def next(self) -> Message:
        """Return the next event or comment."""
        while "\n\n" not in self._rest:
            async with asyncio.timeout(PATIENCE):
                self._rest += await self._arrived.get()
        text, _, self._rest = self._rest.partition("\n\n")
        return Message(text)

    async def news(self) -> Message:
        """Return the next event, whatever comments come before."""
        while True:
            message = await self.next()
            if "event" in message.fields:
                return message

    async def end(self) -> None:
        """Wait until the stream has ended, whatever is sent before."""
        async with asyncio.timeout(PATIENCE):
            await self.task


class Streams:
    """Opens streams, and asserts that none stays open."""

    def __init__(self, console: Installation) -> None:
        self._console = console
        self.clients: list[Client] = []

    async def open(self, visitor: Visitor, query: str = "", **headers: str) -> Client:
        """Ask for a stream, and wait until it is refused or has begun."""
        client = Client(visitor, self._console, query, headers)
        self.clients.append(client)
        client.call()
        await until(lambda: client.status)
        return client

    async def until_count(self, count: int) -> None:
        await until(lambda: self._console.app.live.count == count, f"{count} streams")


@pytest.fixture
async def streams(console: Installation) -> AsyncIterator[Streams]:
    console.app.live.limits = QUICK
    opened = Streams(console)
    yield opened
    for client in opened.clients:
        client.gone.set()
        await client.end()
    assert console.app.live.count == 0


async def test_changes_are_sent(visitor: Visitor, console: Installation, streams: Streams, project: Project) -> None:
    """The stream sends the rows as the page shows them: at first, with each new session, and with each change."""
    client = await streams.open(visitor)
    assert "There are no sessions yet" in (await client.news()).rows
    started = await visitor.start_session(project.id)
    assert "Waiting for the user to open the link." in (await client.news()).rows
    await console.messenger.open(started.deeplink)
    assert ">Opened, waiting for the user’s decision.<" in (await client.news()).rows
    await console.messenger.confirm(started.deeplink)
    last = await client.news()
    assert "Ada Lovelace" in last.rows
    shown = await visitor.get("/console/sessions")
    assert last.rows in shown.html
    assert shown.one(".//tbody").get("data-version") == last.fields["id"]


async def test_time_alone_changes_rows(
    visitor: Visitor, console: Installation, streams: Streams, project: Project
) -> None:
    """A session that expires without a write changes its row, as does a confirmed one that is not read in time."""
    await visitor.confirm(project.id)
    await visitor.start_session(project.id)
    client = await streams.open(visitor)
    first = await client.news()
    assert "Pending" in first.rows
    assert "not used yet" in first.rows
    console.clock.now += 11 * 60_000
    second = await client.news()
    assert "The link was never opened." in second.rows
    assert "never used" in second.rows


async def test_the_stream_has_the_filters_of_its_page(visitor: Visitor, streams: Streams, project: Project) -> None:
    """Sessions outside the filters are not sent; the link to the next page keeps the filters."""
    blog, _ = await visitor.create_project("Blog")
    await visitor.start_session(project.id)
    client = await streams.open(visitor, f"project_id={blog.id}&status=pending")
    assert "No session matches" in (await client.news()).rows
    for _ in range(51):
        await visitor.start_session(blog.id)
    message = await client.news()
    while message.rows.count("data-session") < 50:
        message = await client.news()
    assert "Shop" not in message.rows
    while not json.loads(message.fields["data"])["older"]:
        message = await client.news()
    older = json.loads(message.fields["data"])["older"]
    assert older.startswith(f"/console/sessions?project_id={blog.id}&status=pending&cursor=")


async def test_a_reconnecting_browser_gets_only_changes(
    visitor: Visitor, console: Installation, streams: Streams
) -> None:
    """A browser that reconnects reports its version; the same rows are not sent twice, but comments, to stay open."""
    console.app.live.limits = replace(QUICK, comment_every=0.02)
    shop, _ = await visitor.create_project()
    first = await (await streams.open(visitor)).news()
    client = await streams.open(visitor, **{"last-event-id": first.fields["id"]})
    assert (await client.next()).text == "retry: 2000"
    for _ in range(3):
        assert (await client.next()).text == ":"
    await visitor.start_session(shop.id)
    assert "Pending" in (await client.news()).rows


async def test_no_name_can_make_an_event(visitor: Visitor, console: Installation, streams: Streams) -> None:
    """A line break in a name starts no field, and a tag in it is only text."""
    shop, _ = await visitor.create_project("<script>1</script>\u202e")
    evil = MessengerIdentity("1", "x\n\nevent: signed-out\ndata: {}\n\n\r\u2028\u2029<b>", "\revent: signed-out")
    await visitor.confirm(shop.id, evil)
    client = await streams.open(visitor)
    message = await client.news()
    assert [line.partition(":")[0] for line in message.text.splitlines()] == ["id", "event", "data"]
    assert "<b>" not in message.rows
    assert "<script>" not in message.rows
    assert "\u202e" not in message.rows
    assert "&lt;script&gt;" in message.rows


async def test_a_session_that_ended_ends_its_streams(
    visitor: Visitor, console: Installation, streams: Streams, project: Project
) -> None:
    """A browser that was signed out elsewhere receives no further rows, and is told so."""
    client = await streams.open(visitor)
    await client.news()
    await console.services.console_sessions.delete_console_sessions(visitor.actor)
    await visitor.start_session(project.id)
    message = await client.news()
    assert message.fields == {"event": "signed-out", "data": "{}"}
    await client.end()
    assert client.ended


async def test_a_deleted_project_ends_its_stream(
    visitor: Visitor, console: Installation, streams: Streams, project: Project
) -> None:
    """The deletion of the project ends the stream and is reported."""
    client = await streams.open(visitor, f"project_id={project.id}")
    await client.news()
    await console.services.projects.delete_project(visitor.actor, project.id)
    assert (await client.news()).fields["event"] == "project-gone"
    await client.end()


async def test_others_see_nothing(visitor: Visitor, stranger: Visitor, console: Installation, streams: Streams) -> None:
    """Sessions of other developers change nothing in a stream, and their projects have no stream."""
    console.app.live.limits = replace(QUICK, comment_every=0.02)
    shop, _ = await visitor.create_project("Secret shop")
    own, other = await streams.open(visitor), await streams.open(stranger)
    await own.news()
    assert "There are no sessions yet" in (await other.news()).rows
    await visitor.confirm(shop.id)
    assert "Secret shop" in (await own.news()).rows
    for _ in range(3):
        assert (await other.next()).text == ":"
    refused = await streams.open(stranger, f"project_id={shop.id}")
    unknown = await streams.open(stranger, f"project_id={new_id('proj', system_entropy)}")
    assert (refused.status, unknown.status) == (404, 404)


async def test_nobody_but_developers_has_a_stream(console: Installation, visitor: Visitor, streams: Streams) -> None:
    """Without a valid session the sign-in page answers; wrong filters are refused with a status."""
    assert (await streams.open(visitor, "status=lost")).status == 400
    assert (await streams.open(visitor, "messenger_id=ada")).status == 400
    await console.services.console_sessions.delete_console_sessions(visitor.actor)
    assert (await streams.open(visitor)).status == 303


async def test_the_answer_is_a_stream(visitor: Visitor, streams: Streams) -> None:
    """The stream has the type that browsers expect, is never cached or buffered, and has the security headers."""
    client = await streams.open(visitor)
    assert client.status == 200
    assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert client.headers["cache-control"] == "no-store"
    assert client.headers["x-accel-buffering"] == "no"
    assert "content-length" not in client.headers
    for name, value in SECURITY_HEADERS:
        assert client.headers[name.decode()] == value.decode()


async def test_head_is_answered_at_once(visitor: Visitor, console: Installation) -> None:
    """A HEAD request gets the headers and takes no place."""
    answer = await visitor.client.head(PATH)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert console.app.live.count == 0


async def test_places_of_one_developer(visitor: Visitor, stranger: Visitor, streams: Streams) -> None:
    """The sixth stream of a developer is refused; other developers are not, and a closed stream frees its place."""
    clients = [await streams.open(visitor) for _ in range(QUICK.developer)]
    refused = await streams.open(visitor)
    assert (refused.status, refused.headers["retry-after"]) == (503, "30")
    assert refused.ended
    assert (await streams.open(stranger)).status == 200
    clients[0].gone.set()
    await clients[0].end()
    assert (await streams.open(visitor)).status == 200


async def test_places_of_the_process(
    visitor: Visitor, stranger: Visitor, console: Installation, streams: Streams
) -> None:
    """There is also a limit for all developers together."""
    console.app.live.limits = replace(QUICK, process=2)
    await streams.open(visitor)
    client = await streams.open(stranger)
    assert (await streams.open(stranger)).status == 503
    client.gone.set()
    await client.end()
    assert (await streams.open(stranger)).status == 200


async def test_a_stream_has_a_lifetime(visitor: Visitor, console: Installation, streams: Streams) -> None:
    """A stream ends regularly after its lifetime, so that the browser reconnects."""
    console.app.live.limits = replace(QUICK, lifetime=0.05)
    client = await streams.open(visitor)
    await client.end()
    assert client.ended


async def test_a_slow_client_delays_nobody(visitor: Visitor, console: Installation, streams: Streams) -> None:
    """A client that does not read takes no memory; when it reads again, it gets the current rows once."""
    console.app.live.limits = replace(QUICK, farewell=0.01)
    shop, _ = await visitor.create_project()
    slow, quick = await streams.open(visitor), await streams.open(visitor)
    await slow.news()
    await quick.news()
    slow.reads.clear()
    sent = []
    for _ in range(10):
        await visitor.start_session(shop.id)
        sent.append((await quick.news()).rows)
    slow.reads.set()
    received = [(await slow.news()).rows]
    while received[-1] != sent[-1]:
        received.append((await slow.news()).rows)
    assert len(received) <= 2
    slow.reads.clear()
    await visitor.start_session(shop.id)
    await quick.news()
    console.app.live.close()
    await slow.end()
    await quick.end()


async def test_closing_ends_all_streams(
    visitor: Visitor, stranger: Visitor, console: Installation, streams: Streams
) -> None:
    """When the service stops, every stream ends and no new one starts."""
    stopping = asyncio.Event()
    part = asyncio.create_task(console.app.live.run_until(stopping))
    clients = [await streams.open(visitor), await streams.open(stranger)]
    stopping.set()
    for client in clients:
        await client.end()
        assert client.ended
    await part
    assert (await streams.open(visitor)).status == 503


async def test_a_stream_survives_an_unavailable_store(
    visitor: Visitor, console: Installation, streams: Streams, monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    """A failing store does not end the stream; once the store is back, changes are sent again."""
    client = await streams.open(visitor)
    await client.news()
    storage = console.storage
    for part, name in ((storage.sessions, "list_sessions"), (storage.credentials, "read_console_session")):
        tried = asyncio.Event()

        async def fail(*_: object, tried: asyncio.Event = tried, **__: object) -> None:
            tried.set()
            raise StoreUnavailable

        with monkeypatch.context() as away:
            away.setattr(part, name, fail)
            async with asyncio.timeout(PATIENCE):
                await tried.wait()
        await visitor.start_session(project.id)
        assert "Pending" in (await client.news()).rows


async def test_a_bug_ends_the_stream_and_is_logged(
    visitor: Visitor, console: Installation, streams: Streams, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A failure in the stream ends it, and the log says where it happened."""
    client = await streams.open(visitor)
    await client.news()

    async def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(console.storage.sessions, "list_sessions", fail)
    await client.end()
    assert client.ended
    assert "ZeroDivisionError" in capsys.readouterr().out
