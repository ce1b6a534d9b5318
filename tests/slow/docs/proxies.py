"""Start real proxies with the configurations of docs/how-to/tls-and-proxies.md; only ports, paths and times differ."""

import contextlib
import os
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.docs.blocks import ROOT, block_of
from tests.ports import free_port

PAGE = "how-to/tls-and-proxies.md"
HOST = "signin.example.com"
PATIENCE = 60.0


@dataclass(frozen=True)
class Kind:
    """One of the proxies.

    Attributes:
        language: of its block on the page.
        program: the path of Debian's program.
        arguments: of the program; DIRECTORY is replaced.
        listen: the text on the page with its port, and what replaces it; PORT is replaced.
        around: what the file has before and after the page's text.
        file: a file of deploy/ instead of the page.
    """

    language: str
    program: str
    arguments: str
    listen: tuple[str, str]
    around: tuple[str, str] = ("", "")
    file: str = ""

    @property
    def text(self) -> str:
        """The published configuration, in front of 127.0.0.1:8080."""
        if not self.file:
            return block_of(PAGE, self.language).text
        text = (ROOT / "deploy" / self.file).read_text("utf-8")
        text = text.replace("{$DOMAIN}", HOST).replace("taproof:8080", "127.0.0.1:8080")
        return text.replace("admin off", "admin off\n\tauto_https disable_redirects")


_PLACES = "".join(
    f"{name}_temp_path DIRECTORY/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
KINDS = {
    "caddy": Kind(
        "caddyfile",
        "/usr/bin/caddy",
        "run --adapter caddyfile --config DIRECTORY/caddy.conf",
        (
            f"{HOST} {{",
            f"https://{HOST}:PORT {{\n\tbind 127.0.0.1\n\ttls DIRECTORY/fullchain.pem DIRECTORY/privkey.pem",
        ),
        ("{\n\tadmin off\n\tauto_https disable_redirects\n}\n", ""),
    ),
    "compose": Kind(
        "caddyfile",
        "/usr/bin/caddy",
        "run --adapter caddyfile --config DIRECTORY/compose.conf",
        (
            f"{HOST} {{",
            f"https://{HOST}:PORT {{\n\tbind 127.0.0.1\n\ttls DIRECTORY/fullchain.pem DIRECTORY/privkey.pem",
        ),
        ("", ""),
        "compose/Caddyfile",
    ),
    "haproxy": Kind(
        "haproxy",
        "/usr/sbin/haproxy",
        "-db -f DIRECTORY/haproxy.conf",
        ("bind :443 ssl", "bind 127.0.0.1:PORT ssl"),
    ),
    "nginx": Kind(
        "nginx",
        "/usr/sbin/nginx",
        "-e DIRECTORY/nginx.log -p DIRECTORY -c DIRECTORY/nginx.conf",
        ("listen 443 ssl;", "listen 127.0.0.1:PORT ssl;"),
        (
            f"daemon off; pid DIRECTORY/pid;\nevents {{}}\nhttp {{ access_log off; {_PLACES}\n",
            "\n}\n",
        ),
    ),
}


@dataclass(frozen=True)
class Proxy:
    """A running proxy; `trust` is for clients of it."""

    port: int
    trust: ssl.SSLContext

    @property
    def base_url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


def make_certificate(directory: Path) -> None:
    """Write fullchain.pem, privkey.pem and, with both, signin.pem."""
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={HOST}"
    names = ["-addext", f"subjectAltName=DNS:{HOST},IP:127.0.0.1"]
    files = ["-keyout", str(directory / "privkey.pem"), "-out", str(directory / "fullchain.pem")]
    subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    both = [(directory / name).read_text("ascii") for name in ("fullchain.pem", "privkey.pem")]
    (directory / "signin.pem").write_text("".join(both), "ascii")


@contextlib.contextmanager
def run_proxy(
    name: str, directory: Path, service_port: int, changes: Mapping[str, str] | None = None
) -> Iterator[Proxy]:
    """Start a proxy in front of a service, and wait until it forwards. `changes` replaces more of the page's text."""
    kind, port = KINDS[name], free_port()
    assert Path(kind.program).exists(), f"Install {name}: the page's configuration is tried out with it."
    make_certificate(directory)
    page = kind.text
    fixed = {kind.listen[0]: kind.listen[1], "127.0.0.1:8080": f"127.0.0.1:{service_port}"}
    for old, new in (fixed | dict(changes or {})).items():
        assert old in page, old
        page = page.replace(old, new)
    filled = _filling(directory, port)
    (directory / f"{name}.conf").write_text(filled(kind.around[0] + page + kind.around[1]), "utf-8")
    with (directory / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [kind.program, *filled(kind.arguments).split()],
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(directory), "XDG_DATA_HOME": str(directory)},
        )
    proxy = Proxy(port, ssl.create_default_context(cafile=str(directory / "fullchain.pem")))
    try:
        _wait_until_it_forwards(proxy, process, directory / f"{name}.log")
        yield proxy
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _filling(directory: Path, port: int) -> Callable[[str], str]:
    paths = {f"/etc/{name}/": f"{directory}/" for name in KINDS}

    def filled(text: str) -> str:
        for old, new in ({"DIRECTORY": str(directory), "PORT": str(port)} | paths).items():
            text = text.replace(old, new)
        return text

    return filled


def _wait_until_it_forwards(proxy: Proxy, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    with client_of(proxy) as client:
        while True:
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < deadline, log.read_text("utf-8")
            with contextlib.suppress(httpx.TransportError):
                if client.get("/readyz").status_code == 200:
                    return
            time.sleep(0.05)


def client_of(proxy: Proxy) -> httpx.Client:
    return httpx.Client(base_url=proxy.base_url, verify=proxy.trust, headers={"Host": HOST}, timeout=60)
