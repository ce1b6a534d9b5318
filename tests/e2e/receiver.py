"""An application's webhook server on loopback, which keeps its requests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.waiting import wait_until


@dataclass
class Delivered:
    """A request, with the names of its headers in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """Echoes each request; `/gone` answers 410, `/broken` fails. No answer is sent until `go_on` is set."""

    def __init__(self) -> None:
        self.delivered: list[Delivered] = []
        self.go_on = threading.Event()
        self.go_on.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.delivered.append(Delivered(self.path, headers, body))
                receiver.go_on.wait(30)
                self.send_response({"/gone": 410, "/broken": 500}.get(self.path, 200))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def wait_for(self, count: int) -> list[Delivered]:
        wait_until(lambda: len(self.delivered) >= count, f"{count} webhooks")
        return self.delivered


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Yield a receiver while it serves."""
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.go_on.set()
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()
