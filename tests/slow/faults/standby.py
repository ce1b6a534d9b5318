"""A primary with one synchronous standby, which can hang and take over."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.postgres_server import HOST, PostgresServer, _run, execute


class Cluster:
    """Two servers. A commit on the primary waits until the standby has received it."""

    def __init__(self) -> None:
        self.primary = PostgresServer(wal_level="replica", max_wal_senders="5")
        with (self.primary._data / "pg_hba.conf").open("a", encoding="utf-8") as rules:
            rules.write(f"host replication all {HOST}/32 trust\n")
        self.primary._control("reload")
        self._data = self.primary._directory / "standby"
        self.standby_port = free_port()
        backup = ("--pgdata", self._data, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
        source = ("--host", HOST, "--port", str(self.primary.port), "--username=postgres")
        _run(self.primary._bin / "pg_basebackup", *source, *backup, user=self.primary._user)
        with (self._data / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
            settings.write(f"port = {self.standby_port}\n")
        self._control("start", "--log", str(self._data / "log"))
        # Only this server waits for a standby: the copy, once promoted, has none.
        execute(self.primary.dsn(), "ALTER SYSTEM SET synchronous_standby_names = '*'")
        execute(self.primary.dsn(), "SELECT pg_reload_conf()")

    def dsn(self, database: str) -> str:
        """Return a DSN with both hosts."""
        return f"postgresql://postgres@{HOST}:{self.primary.port},{HOST}:{self.standby_port}/{database}"

    def standby_dsn(self, database: str) -> str:
        return f"postgresql://postgres@{HOST}:{self.standby_port}/{database}"

    def hang(self) -> None:
        """Stop the standby's processes without ending them."""
        self._signal(self._data, signal.SIGSTOP)

    def hang_primary(self) -> None:
        self._signal(self.primary._data, signal.SIGSTOP)

    def resume(self) -> None:
        for data in (self._data, self.primary._data):
            self._signal(data, signal.SIGCONT)

    def fail_over(self) -> None:
        """Kill the primary and promote the standby."""
        self.primary.kill()
        self.resume()
        self.promote()

    def promote(self) -> None:
        """Promote the standby. If the primary still runs, it does not learn of it."""
        self._control("promote")

    def close(self) -> None:
        self.resume()
        self._control("stop", "--mode", "immediate")
        self.primary.close()

    def _control(self, *arguments: str) -> None:
        data = ("--pgdata", self._data, "--wait", "--silent")
        _run(self.primary._bin / "pg_ctl", *arguments, *data, user=self.primary._user)

    def _signal(self, data: Path, number: signal.Signals) -> None:
        with contextlib.suppress(FileNotFoundError):
            main = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
            children = subprocess.run(["pgrep", "--parent", str(main)], capture_output=True, text=True, check=False)
            for process in (main, *map(int, children.stdout.split())):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)


@contextmanager
def cluster_with_standby() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.close()
