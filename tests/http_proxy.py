"""An HTTP proxy on 127.0.0.1 for the only names that it knows: all lead to one port of this machine."""

import base64
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class HttpProxy:
    """The proxy, and the requests that it received.

    Attributes:
        target: the port that every name leads to.
        login: the `user:password` that it asks for.
        refusal: the status with which it refuses every request.
        idle: the seconds after which it cuts a connection on which the target sends nothing.
    """

    target: int
    login: str = ""
    refusal: int = 0
    idle: float | None = None
    port: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The value of a proxy variable that points to this proxy."""
        return f"http://{self.login}{'@' if self.login else ''}127.0.0.1:{self.port}"


@contextmanager
def http_proxy(target: int, **options: object) -> Iterator[HttpProxy]:
    """Serve a proxy for the port `target`."""
    proxy = HttpProxy(target, **options)  # type: ignore[arg-type]

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                _serve(proxy, self)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield proxy
        server.shutdown()


def _serve(proxy: HttpProxy, client: socketserver.StreamRequestHandler) -> None:
    line = client.rfile.readline().decode().strip()
    lines = []
    while header := client.rfile.readline().decode().strip():
        lines.append(header)
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
    proxy.asked.append(line.rpartition(" ")[0].partition("/bot")[0])
    expected = f"Basic {base64.b64encode(proxy.login.encode()).decode()}"
    status = proxy.refusal or (407 if proxy.login and headers.get("proxy-authorization") != expected else 0)
    if status:
        client.wfile.write(b"HTTP/1.1 %d No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)
        return
    method, url, _ = line.split()
    with socket.create_connection(("127.0.0.1", proxy.target)) as target:
        if method == "CONNECT":
            client.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            body = client.rfile.read(int(headers.get("content-length", 0)))
            kept = [each for each in lines if not each.lower().startswith(("proxy-", "connection"))]
            path = "/" + url.split("/", 3)[3]
            head = "\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Connection: close", "", ""])
            target.sendall(head.encode() + body)
        pumping = threading.Thread(target=_pump, args=(client.connection, target, None), daemon=True)
        pumping.start()
        _pump(target, client.connection, proxy.idle)


def _pump(source: socket.socket, destination: socket.socket, idle: float | None) -> None:
    with suppress(OSError):
        source.settimeout(idle)
        while chunk := source.recv(65_536):
            destination.sendall(chunk)
        destination.shutdown(socket.SHUT_WR)
