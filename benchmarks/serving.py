"""Start servers for a part of the benchmark, on their core, and always stop them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import ROOT, SERVER_CORE, environment, fail

_STOP_SECONDS = 40


@dataclass(frozen=True, slots=True)
class Target:
    """A server that listens on 127.0.0.1, and the projects of its store."""

    port: int
    pid: int
    projects: tuple[str, ...]
    versions: dict[str, str]

    @property
    def pids(self) -> tuple[int, ...]:
        """Return its only process."""
        return (self.pid,)


@contextmanager
def running(database_url: str, *options: str, cores: str = str(SERVER_CORE)) -> Iterator[Target]:
    """Start benchmarks/server.py and finally stop it. It stops by itself if this process dies."""
    command = [sys.executable, "-m", "benchmarks.server", "--database", database_url, "--cores", cores]
    process = subprocess.Popen(
        [*command, *options],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl+C goes to this process, which then closes the server's standard input.
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        started = process.stdout.readline()
        if not started:
            fail("The server did not start; what it printed above says why.")
        told = json.loads(started)
        yield Target(told["port"], process.pid, tuple(told["projects"]), told["versions"])
        if process.poll() is not None:
            fail(f"The server ended by itself with {process.returncode}; what it printed above says why.")
    finally:
        process.stdin.close()
        stop(process)


def bare_url(directory: Path) -> str:
    """Return an empty database, for the bare app, which does not use it."""
    return f"sqlite:///{directory / 'bare.db'}"


def stop(process: "subprocess.Popen[str]") -> None:
    """Wait for a stopping process; kill it if it takes too long."""
    try:
        process.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
