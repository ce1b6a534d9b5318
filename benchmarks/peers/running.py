"""Start a peer on loopback, pinned to its core, and always stop it with its children."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.machine import SERVER_CORE
from benchmarks.peers.catalog import HERE, PYTHON_HOME, Peer, node

_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 20
_THREADS: Final = 4
"""Threads of one gunicorn worker of the kind that keeps connections. One to four make little difference."""

Address = tuple[str, int] | str
"""A host and a port, or the path of a socket."""

_NGINX: Final = """\
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port};
    default_type application/json;
    location / {{ return 200 '{{"status": "pending"}}'; }}
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class Running:
    """A listening peer: on one port, or on one for each process that does not share a port."""

    peer: Peer
    ports: tuple[int, ...]
    pids: tuple[int, ...]
    """The started processes, Redis among them, without their children."""

    @property
    def port(self) -> int:
        """Return the port for the load."""
        return self.ports[0]


@contextmanager
def running(
    peer: Peer, directory: Path, *, processes: int | None = None, cores: Sequence[int] = (SERVER_CORE,)
) -> Iterator[Running]:
    """Start a peer with files in the directory, and finally stop it.

    Every process may use all the given cores. It gets SIGTERM if this process dies without stopping it.
    """
    count = peer.processes if processes is None else processes
    if not 1 <= count <= peer.most_processes:
        raise ValueError(f"{peer.name} runs in at most {peer.most_processes} processes")
    shared_port = peer.program != "node"  # The workers of gunicorn and nginx share a port.
    ports = tuple(_free_port() for _ in range(1 if shared_port else count))
    started: list[subprocess.Popen[bytes]] = []
    log = directory / "peer.log"
    try:
        with log.open("wb") as output:

            def start(command: list[str], address: Address) -> None:
                process = subprocess.Popen(
                    [*_wrapper(cores), *command],
                    cwd=HERE,
                    env=_environment(directory),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,  # A separate process group, which is ended as a whole.
                )
                started.append(process)
                _wait_until_listening(peer, address, process, log)

            if peer.program == "gunicorn":
                _create_tables(peer, directory, output.fileno())
            if peer.database == "redis":
                start(_redis(directory), _redis_socket(directory))
            for port in ports:
                # One after the other, because the first one creates the tables.
                start(_command(peer, directory, port, count), ("127.0.0.1", port))
        yield Running(peer, ports, tuple(process.pid for process in started))
    finally:
        for process in started:
            _stop(process)


def _wrapper(cores: Sequence[int]) -> list[str]:
    return ["setpriv", "--pdeathsig", "TERM", "taskset", "--cpu-list", ",".join(map(str, cores))]


def _environment(directory: Path) -> dict[str, str]:
    return os.environ | {"NODE_ENV": "production", "PEER_DATABASE": str(directory / "peer.db")}


def _command(peer: Peer, directory: Path, port: int, processes: int) -> list[str]:
    if peer.program == "nginx":
        configuration = directory / "nginx.conf"
        configuration.write_text(_NGINX.format(directory=directory, port=port), encoding="utf-8")
        return ["nginx", "-p", str(directory), "-c", str(configuration), "-e", "stderr"]
    if peer.program == "node":
        database = {"sqlite": [str(directory / "peer.db")], "redis": [_redis_socket(directory)]}
        return [node(), peer.script, str(port), *database.get(peer.database, [])]
    command = [str(PYTHON_HOME / "bin" / "gunicorn"), f"{peer.script}:application", "--bind", f"127.0.0.1:{port}"]
    command += ["--worker-class", "gthread", "--workers", str(processes), "--threads", str(_THREADS)]
    return [*command, "--keep-alive", "75", "--no-control-socket"]


def _redis_socket(directory: Path) -> str:
    return str(directory / "redis.sock")


def _redis(directory: Path) -> list[str]:
    """Return the command of a Redis that keeps what it answers: the append-only file is synced before each answer."""
    command = ["redis-server", "--port", "0", "--unixsocket", _redis_socket(directory), "--dir", str(directory)]
    return [*command, "--save", "", "--appendonly", "yes", "--appendfsync", "always"]


def _create_tables(peer: Peer, directory: Path, output: int) -> None:
    command = [str(PYTHON_HOME / "bin" / "python"), f"{peer.script}.py"]
    subprocess.run(command, cwd=HERE, env=_environment(directory), check=True, stdout=output, stderr=output)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_listening(peer: Peer, address: Address, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as probe:
            probe.settimeout(1)
            probe.connect(address)
            return
        time.sleep(0.05)
    raise SystemExit(f"{peer.name} did not start. It printed:\n{log.read_text('utf-8', 'replace')[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the whole group, gently at first: its first process may be gone while others still run."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_STOP_SECONDS)
