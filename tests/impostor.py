"""An HTTP server on loopback with scripted answers: a hostile service, or an application."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

Answer = tuple[int, dict[str, str], bytes]
"""The status, the headers and the body."""


class Call(NamedTuple):
    """A request as it arrived."""

    line: str
    """The method and the path."""
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Impostor:
    """Answers each path with the first of its answers, which is removed unless it is the last, or with `default`."""

    server: ThreadingHTTPServer
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    default: Answer = (404, {}, b"")
    received: list[Call] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def lines(self) -> list[str]:
        return [each.line for each in self.received]

    def answer(self, path: str) -> Answer:
        left = self.answers.get(path, [self.default])
        return left.pop(0) if len(left) > 1 else left[0]

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def impostor() -> Iterator[Impostor]:
    class Handler(BaseHTTPRequestHandler):
        def handle_call(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            made.received.append(Call(f"{self.command} {self.path}", self.headers.items(), body))
            status, headers, content = made.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = handle_call  # noqa: N815 — the names are http.server's.

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    made = Impostor(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.stop()
    thread.join()
