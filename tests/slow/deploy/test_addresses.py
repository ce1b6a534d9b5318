"""Every documented way to change host, port and address: the service answers there, and the health check follows."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.ports import free_port
from tests.slow.docs.proxies import make_certificate
from tests.waiting import wait_until

from taproof.runtime.listener import bind_socket

ROOT = Path(__file__).parents[3]
CHECK = ROOT / "deploy/docker/healthcheck.py"
PORT, FILES = "PORT", "FILES"
TLS = {"TAPROOF_TLS_CERT": f"{FILES}/fullchain.pem", "TAPROOF_TLS_KEY": f"{FILES}/privkey.pem"}


def own_address() -> str:
    """Return an address of this machine that other machines can reach, or another one of loopback without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # Sends nothing.
        except OSError:
            return "127.0.0.2"
        address: str = probe.getsockname()[0]
        return address


WAYS: list[tuple[dict[str, str], list[str]]] = [
    ({}, []),
    *(({"TAPROOF_HOST": host}, []) for host in ("0.0.0.0", "::", "::1", "localhost", "127.0.0.9")),  # noqa: S104
    ({"TAPROOF_HOST": own_address()}, []),
    ({"TAPROOF_HOST": own_address()} | TLS, []),
    ({"TAPROOF_HOST": "::"} | TLS, []),
    ({"TAPROOF_TRUSTED_PROXY": "127.0.0.1/32"}, []),
    ({"TAPROOF_TRUSTED_PROXY": "0.0.0.0/0,::/0", "TAPROOF_HOST": "::"}, []),
    # As in a file with Windows line ends.
    ({"TAPROOF_PORT": f"{PORT}\r", "TAPROOF_HOST": "127.0.0.1\r"}, []),
    # A proxy for the way out, and a time zone.
    ({"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "TZ": "Asia/Kathmandu"}, []),
    ({"TAPROOF_WORKERS": "2"}, []),
    # As the command of a container: docker run … taproof serve --port 9000
    ({"TAPROOF_PORT": "9"}, ["--port", PORT]),
    ({"TAPROOF_PORT": "9", "TAPROOF_HOST": "192.0.2.1"}, [f"--port={PORT}", "--host=::"]),
    ({}, ["--tls-cert", f"{FILES}/fullchain.pem", "--tls-key", f"{FILES}/privkey.pem"]),
]


@contextmanager
def running(directory: Path, environment: dict[str, str], options: list[str]) -> Iterator[list[str]]:
    """Run the service as a container does, as the first process; yield the start of a command beside it."""
    # With --fork, the child of unshare is the first process. A user namespace allows this without being root.
    command = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable]
    log = directory / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "-m", "taproof", "serve", *options], cwd=directory, env=environment, stdout=out, stderr=out
        )

    def first() -> list[str]:
        assert process.poll() is None, log.read_text("utf-8")
        return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()

    try:
        [child] = wait_until(first, "the first process")
        yield ["nsenter", f"--target={child}", "--user", "--mount", "--pid", "--preserve-credentials", sys.executable]
    finally:
        process.kill()  # This also kills its child.
        process.wait()


def test_the_health_check_follows(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """The health check finds the service wherever a setting puts it, and prints its answer."""
    make_certificate(tmp_path)
    for given, options in WAYS:
        with subtests.test(given=given, options=options):
            _follows(tmp_path, given, options)


def _follows(directory: Path, given: dict[str, str], options: list[str]) -> None:
    port = str(free_port())

    def filled(text: str) -> str:
        return text.replace(PORT, port).replace(FILES, str(directory))

    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("TAPROOF_")}
    environment |= {
        "TAPROOF_PORT": port,
        "TAPROOF_BASE_URL": "https://signin.example.com",
        "TAPROOF_BOT_TOKEN": "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
        "TAPROOF_BOT_API_URL": "http://127.0.0.1:9",
        "TAPROOF_DATABASE_URL": f"sqlite:///{directory}/{port}.db",
    }
    environment |= {name: filled(value) for name, value in given.items()}
    with running(directory, environment, [filled(each) for each in options]) as beside:

        def ask(path: str) -> "subprocess.CompletedProcess[str]":
            command = [*beside, str(CHECK), path]
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

        wait_until(lambda: ask("/healthz").returncode == 0, "the health check")
        assert ask("/healthz").stdout == '{"status":"ok"}'
        assert "taproof_ready" in ask("/metrics").stdout
        refused = ask("/readyz")
        assert refused.returncode == 1
        assert "The answer is 503" in refused.stderr


def test_what_cannot_be_listened_on_says_what_to_do(tmp_path: Path) -> None:
    """Another machine's address and a used port end the start, each with its own advice."""
    with bind_socket("127.0.0.1", 0, shared=False) as taken:
        taken.listen()
        for host, port, advice in (
            ("127.0.0.1", taken.getsockname()[1], "Stop the program that uses this port"),
            ("198.51.100.123", free_port(), "Set --host (TAPROOF_HOST) to an address of this machine"),
        ):
            command = [sys.executable, "-m", "taproof", "serve", "--host", host, "--port", str(port)]
            command += ["--base-url", "https://signin.example.com", "--database", f"sqlite:///{tmp_path}/a.db"]
            command += ["--bot-token", "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1, done.stderr
            assert f"Cannot listen on {host}:{port}: " in done.stderr
            assert advice in done.stderr
