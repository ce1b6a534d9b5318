"""The cluster of docs/how-to/high-availability.md on this machine: real etcd, Patroni, PostgreSQL and HAProxy.

The files come from the page. Only addresses, paths, passwords and Patroni's four times are replaced. Each machine of
the page is a set of processes with ports of its own. What reaches a machine, and what its Patroni asks etcd, passes
through relays, which are HAProxy too: one for the other machines and one for the clients. A relay that is stopped
(SIGSTOP) is a cut cable: connections stay open, and nothing arrives. Network namespaces would need root.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx
from tests.docs.blocks import block_of
from tests.ports import free_port
from tests.server_logs import server_logs

from taproof.storage.postgres.connection import connect
from taproof.storage.postgres.connection_errors import AWAY

PAGE: Final = "how-to/high-availability.md"
HOST: Final = "127.0.0.1"
PATIENCE: Final = 300.0
# Patroni and PostgreSQL refuse to run as root, or should not. Debian's PostgreSQL creates this account.
USER: Final = "postgres" if os.geteuid() == 0 else None
TIMES: Final = {
    "ttl: 20": "ttl: 5",
    "loop_wait: 5": "loop_wait: 1",
    "retry_timeout: 5": "retry_timeout: 2",
    "primary_stop_timeout: 3": "primary_stop_timeout: 1",
}
"""Shorter than on the page, so that 100 fail-overs take half an hour. Debian's Patroni accepts them."""
_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
_PASSWORD: Final = "a-password-of-the-test"
_NAMES: Final = ("ADMIN-PASSWORD", "REPLICATION-PASSWORD", "REWIND-PASSWORD", "REST-PASSWORD", "TAPROOF-PASSWORD")
_RELAY: Final = """
global
    maxconn 500
    nbthread 1
defaults
    mode tcp
    retries 0
    timeout connect 5s
    timeout client 1h
    timeout server 1h
"""


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """Return `text` with each key, which must occur, replaced by its value, and with the passwords set."""
    for old, new in changes.items():
        assert old in text, f"{PAGE} does not contain {old!r}"
        text = text.replace(old, new)
    for name in _NAMES:
        text = text.replace(name, _PASSWORD)
    return text


class Machine:
    """One of the page's machines: its ports, its files, and its processes."""

    def __init__(self, number: int, directory: Path, new_port: Callable[[], int]) -> None:
        self.name = f"db{number}"
        self.address = f"10.0.0.1{number}"
        self.directory = directory / self.name
        self.postgres, self.rest, self.etcd, self.peer = (new_port() for _ in range(4))
        self.cluster_postgres, self.cluster_rest, self.client_postgres, self.client_rest = (
            new_port() for _ in range(4)
        )
        self.etcd_from_here = {f"10.0.0.1{other}": new_port() for other in (1, 2, 3)}
        self.patroni: subprocess.Popen[bytes] | None = None
        self.cluster_relay: subprocess.Popen[bytes] | None = None
        self.client_relay: subprocess.Popen[bytes] | None = None

    @property
    def configuration(self) -> Path:
        return self.directory / "patroni.yml"

    def dsn(self, database: str = "taproof") -> str:
        """Return the administrator's DSN, which does not pass through a relay."""
        return f"postgresql://postgres:{_PASSWORD}@{HOST}:{self.postgres}/{database}"

    def server_processes(self) -> list[int]:
        """Return the ids of PostgreSQL's processes, the first one first."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            first = int((self.directory / "data/postmaster.pid").read_text().split("\n", 1)[0])
            return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text("ascii").split())]
        return []

    def send(self, number: signal.Signals) -> None:
        """Send a signal to Patroni and to every process of PostgreSQL."""
        assert self.patroni is not None
        for process in (self.patroni.pid, *self.server_processes()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)


class PatroniCluster:
    """Three machines. `close` ends all processes, and so does the end of this process."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="taproof-ha-"))
        taken: set[int] = set()

        def new_port() -> int:
            while (port := free_port()) in taken:
                pass
            taken.add(port)
            return port

        self.machines = [Machine(number, self.directory, new_port) for number in (1, 2, 3)]
        self.haproxy_port = new_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        for machine in self.machines:
            machine.directory.mkdir()
        if USER is not None:
            for path in (self.directory, *(machine.directory for machine in self.machines)):
                shutil.chown(path, USER)
        self._watcher = self._watch()

    async def start(self) -> None:
        """Start everything, and create Taproof's database with the page's commands."""
        for machine in self.machines:
            self._start_etcd(machine)
            machine.cluster_relay = self._start_haproxy(f"{machine.name}-cluster", self._cluster_relay(machine))
            targets = {machine.client_postgres: machine.postgres, machine.client_rest: machine.rest}
            machine.client_relay = self._start_haproxy(f"{machine.name}-clients", _relay(targets))
        for machine in self.machines:
            machine.configuration.write_text(self._patroni_yml(machine), encoding="utf-8")
            self.start_patroni(machine)
        self._start_haproxy("haproxy", self._haproxy_cfg())
        await self.settled()
        hosts = {
            "host=10.0.0.11,10.0.0.12,10.0.0.13": f"host={','.join([HOST] * 3)} "
            f"port={','.join(str(machine.client_postgres) for machine in self.machines)}"
        }
        await self.run(replaced(block_of(PAGE, "sh", "CREATE DATABASE").text, hosts))
        primary = await self.settled()
        await self.ask(primary, "CREATE TABLE probes (written_by TEXT)")

    def dsn(self) -> str:
        """Return the page's database URL with all hosts."""
        hosts = {f"{each.address}:5432": f"{HOST}:{each.client_postgres}" for each in self.machines}
        return self._database_url("10.0.0.11:5432", hosts)

    def haproxy_dsn(self) -> str:
        """Return the page's database URL for HAProxy."""
        return self._database_url("127.0.0.1:5000", {"127.0.0.1:5000": f"{HOST}:{self.haproxy_port}"})

    async def members(self) -> dict[str, dict[str, Any]]:
        """Return the members by role, as the first Patroni that responds lists them; standbys in a list."""
        async with httpx.AsyncClient(timeout=2) as client:
            for machine in self.machines:
                with contextlib.suppress(httpx.HTTPError):
                    answer = await client.get(f"http://{HOST}:{machine.rest}/cluster")
                    return {each["name"]: each for each in answer.json()["members"]}
        return {}

    async def settled(self) -> Machine:
        """Wait until there are a primary, a synchronous and an asynchronous standby; return the primary."""
        found: dict[str, dict[str, Any]] = {}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = await self.members()
            roles = sorted(each["role"] for each in found.values())
            states = {each["state"] for each in found.values()}
            same = len({each.get("timeline") for each in found.values()}) == 1
            if roles == ["leader", "replica", "sync_standby"] and states <= {"running", "streaming"} and same:
                (leader,) = (name for name, each in found.items() if each["role"] == "leader")
                primary = next(machine for machine in self.machines if machine.name == leader)
                # Patroni 3.0.2 also lists a standby as running that cannot stream.
                with contextlib.suppress(*AWAY):
                    statement = block_of(PAGE, "sql", "pg_stat_replication").text
                    streaming = {
                        name
                        for name, state, _ in await self.ask(primary, statement, database="postgres")
                        if state == "streaming"
                    }
                    if streaming == found.keys() - {leader}:
                        return primary
            await asyncio.sleep(0.2)
        raise AssertionError(f"The cluster does not settle: {found}")

    async def first_write(self, former: Machine) -> tuple[float, Machine]:
        """Wait until another machine than `former` has acknowledged a write; return when, and which one.

        Only a write on a standby counts. In strict mode, a new primary also waits for `pg_basebackup`, which comes and
        goes.
        """
        standby = "SELECT FROM pg_stat_replication WHERE sync_state <> 'async' AND application_name LIKE 'db_'"

        async def write(machine: Machine) -> tuple[float, Machine]:
            while True:
                with contextlib.suppress(*AWAY):
                    await self.ask(machine, "INSERT INTO probes VALUES ('probe')")
                    if await self.ask(machine, standby):
                        return time.monotonic(), machine
                await asyncio.sleep(0.05)

        attempts = [asyncio.create_task(write(machine)) for machine in self.machines if machine is not former]
        try:
            async with asyncio.timeout(PATIENCE):
                done, _ = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
                return done.pop().result()
        finally:
            for attempt in attempts:
                attempt.cancel()
            await asyncio.gather(*attempts, return_exceptions=True)

    async def demoted(self, former: Machine) -> None:
        """Write on a former primary until it is a standby; it must not acknowledge any of these writes."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(*AWAY):
                    await self.ask(former, "INSERT INTO probes VALUES ('former')", unless_standby=True)
                    return
                await asyncio.sleep(0.05)

    async def ask(
        self, machine: Machine, statement: str, *, unless_standby: bool = False, database: str = "taproof"
    ) -> list[asyncpg.Record]:
        """Run a statement on one machine. With `unless_standby`, do nothing on a standby, and fail on a primary."""
        connection = await connect(machine.dsn(database), timeout=2)
        try:
            if unless_standby and await connection.fetchval("SELECT pg_is_in_recovery()", timeout=2):
                return []
            found: list[asyncpg.Record] = await connection.fetch(statement, timeout=PATIENCE)
            assert not unless_standby, f"{machine.name}, a former primary, has acknowledged a write."
            return found
        finally:
            connection.terminate()

    def start_patroni(self, machine: Machine) -> None:
        machine.patroni = self._start(f"{machine.name}-patroni", "/usr/bin/patroni", str(machine.configuration))
        server_logs[self.directory / f"{machine.name}-patroni.log"] = machine.patroni

    async def run(self, script: str) -> None:
        """Run a script of the page as an administrator."""
        environment = {**_ENVIRONMENT, "PGPASSWORD": _PASSWORD, "HOME": str(self.directory)}
        process = await asyncio.create_subprocess_exec(
            *("bash", "-e", "-c", script), env=environment, cwd="/", stdout=-1, stderr=subprocess.STDOUT, user=USER
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, said.decode()

    async def patronictl(self, part: str) -> None:
        """Run the page's `patronictl` command that contains `part`."""
        path = {"/etc/patroni/15-taproof.yml": str(self.machines[0].configuration)}
        await self.run(replaced(block_of(PAGE, "sh", f"taproof.yml {part}").text, path))

    def close(self) -> None:
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher.wait(PATIENCE)
        for process in self._processes:
            process.wait(PATIENCE)

    def _database_url(self, part: str, hosts: Mapping[str, str]) -> str:
        return replaced(block_of(PAGE, "env", part).text, hosts).strip().partition("=")[2]

    def _start_etcd(self, machine: Machine) -> None:
        settings = dict(line.split("=", 1) for line in block_of(PAGE, "sh", "ETCD_NAME").text.split())
        for name, value in settings.items():
            if name.endswith("_URLS"):
                value = replaced(value, {"10.0.0.11": machine.address})  # noqa: PLW2901 — as the page says.
            for each in self.machines:
                value = value.replace(f"{each.address}:2380", f"{HOST}:{each.peer}")  # noqa: PLW2901
                value = value.replace(f"{each.address}:2379", f"{HOST}:{each.etcd}")  # noqa: PLW2901
            settings[name] = value
        settings |= {"ETCD_NAME": machine.name, "ETCD_DATA_DIR": str(machine.directory / "etcd")}
        self._start(f"{machine.name}-etcd", "/usr/bin/etcd", **settings)

    def _cluster_relay(self, machine: Machine) -> str:
        asks = {machine.etcd_from_here[other.address]: other.etcd for other in self.machines}
        return _relay({machine.cluster_postgres: machine.postgres, machine.cluster_rest: machine.rest, **asks})

    def _patroni_yml(self, machine: Machine) -> str:
        (programs,) = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))[-1:]
        etcd = ",".join(f"{HOST}:{port}" for port in machine.etcd_from_here.values())
        changes = {
            "name: db1": f"name: {machine.name}",
            "listen: 10.0.0.11:8008": f"listen: {HOST}:{machine.rest}",
            "connect_address: 10.0.0.11:8008": f"connect_address: {HOST}:{machine.cluster_rest}",
            # Without use_proxies, Patroni asks etcd for the addresses of its members, and passes by the relay.
            "hosts: 10.0.0.11:2379,10.0.0.12:2379,10.0.0.13:2379": f"hosts: {etcd}\n  use_proxies: true",
            "listen: 10.0.0.11:5432": f"listen: {HOST}:{machine.postgres}",
            "connect_address: 10.0.0.11:5432": f"connect_address: {HOST}:{machine.cluster_postgres}",
            "/usr/lib/postgresql/15/bin": str(programs.parent),
            "/var/lib/postgresql/15/taproof": str(machine.directory / "data"),
            "/var/lib/postgresql/15-taproof.pgpass": str(machine.directory / "pgpass"),
            "/var/run/postgresql": str(machine.directory),
            "10.0.0.0/24": "127.0.0.0/8",
            **TIMES,
        }
        return replaced(block_of(PAGE, "yaml").text, changes)

    def _haproxy_cfg(self) -> str:
        changes = {"bind 127.0.0.1:5000": f"bind {HOST}:{self.haproxy_port}"}
        for each in self.machines:
            changes[f"{each.address}:5432 check port 8008"] = (
                f"{HOST}:{each.client_postgres} check port {each.client_rest}"
            )
        return replaced(block_of(PAGE, "haproxy").text, changes)

    def _start_haproxy(self, name: str, configuration: str) -> "subprocess.Popen[bytes]":
        file = self.directory / f"{name}.cfg"
        file.write_text(configuration, encoding="utf-8")
        return self._start(name, "/usr/sbin/haproxy", "-db", "-f", str(file))

    def _start(self, name: str, *command: str, **environment: str) -> "subprocess.Popen[bytes]":
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env={**_ENVIRONMENT, "HOME": str(self.directory), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                user=USER,
                start_new_session=True,
            )
        self._processes.append(process)
        with (self.directory / "processes").open("a", encoding="ascii") as file:
            file.write(f"{process.pid}\n")
        return process

    def _watch(self) -> "subprocess.Popen[bytes]":
        """Start the cleanup process: it reads a pipe that ends when this process does, however it ends.

        Patroni ends first, so that it does not start PostgreSQL again.
        """
        script = (
            "cat; kill -KILL $(cat processes); "
            'for each in */data/postmaster.pid; do kill -KILL "$(head -1 "$each")"; done; '
            f'cd /; rm -rf "{self.directory}"'
        )
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            ["/bin/sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=quiet,
            stderr=quiet,
            cwd=self.directory,
            start_new_session=True,
        )


def _relay(targets: Mapping[int, int]) -> str:
    """Return the configuration of a relay from each port to another one."""
    return _RELAY + "".join(
        f"listen from{port}\n    bind {HOST}:{port}\n    server target {HOST}:{target}\n"
        for port, target in targets.items()
    )


@contextlib.asynccontextmanager
async def running_cluster() -> AsyncIterator[PatroniCluster]:
    cluster = PatroniCluster()
    try:
        await cluster.start()
        yield cluster
    finally:
        await asyncio.to_thread(cluster.close)
