"""A real PgBouncer in front of a PostgreSQL server, from Debian's package `pgbouncer`."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from tests.ports import free_port
from tests.server_logs import server_logs
from tests.waiting import PATIENCE

HOST: Final = "127.0.0.1"
SERVER_CONNECTIONS: Final = 3
"""Fewer than the clients have, so that a client's transactions rarely get the same server connection twice."""
# PgBouncer refuses to run as root. This account owns nothing and exists on every system.
_UNPRIVILEGED: Final = "nobody"


def program() -> str:
    """Return the path of PgBouncer.

    Raises:
        RuntimeError: it is not installed; no test is skipped.
    """
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise RuntimeError("No PgBouncer: install Debian's package pgbouncer (scripts/setup.sh test does).")
    return found


class PgBouncer:
    """A separate PgBouncer on a free port, for every database of one server."""

    def __init__(self, server: str, directory: Path, mode: str) -> None:
        """Create its configuration for the server of that DSN; `start` starts it."""
        upstream = urlsplit(server)
        self.port = free_port()
        self._configuration = directory / "pgbouncer.ini"
        self._log = directory / "pgbouncer.log"
        self._process: subprocess.Popen[bytes] | None = None
        password = f" password={upstream.password}" if upstream.password else ""
        user = f"user={upstream.username}{password}"
        # Every other option has its default, as in most installations.
        self._configuration.write_text(
            f"""[databases]
* = host={upstream.hostname} port={upstream.port or 5432} {user}
[pgbouncer]
listen_addr = {HOST}
listen_port = {self.port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {SERVER_CONNECTIONS}
max_client_conn = 500
""",
            encoding="utf-8",
        )

    def dsn(self, database: str) -> str:
        """Return the DSN of a database through PgBouncer, given the direct one."""
        return urlunsplit(urlsplit(database)._replace(netloc=f"postgres@{HOST}:{self.port}"))

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [program(), str(self._configuration)],
                stdout=log,
                stderr=log,
                cwd="/",
                user=_UNPRIVILEGED if os.geteuid() == 0 else None,
            )
        server_logs[self._log] = self._process
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.port)):
                return
            time.sleep(0.02)
        raise RuntimeError(f"PgBouncer did not start:\n{self._log.read_text(errors='replace')}")

    def kill(self) -> None:
        """Kill it as a crash would, with all of its connections."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def running_pgbouncer(server: str, mode: str = "transaction") -> Iterator[PgBouncer]:
    """Yield a running PgBouncer in front of the server of that DSN."""
    with tempfile.TemporaryDirectory(prefix="taproof-pgbouncer-") as directory:
        # The unprivileged account must be able to read the configuration.
        Path(directory).chmod(0o755)
        bouncer = PgBouncer(server, Path(directory), mode)
        bouncer.start()
        try:
            yield bouncer
        finally:
            bouncer.kill()
