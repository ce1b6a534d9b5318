"""A database with one project that several processes work on, and a check that its counters match its sessions."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import asyncpg
from tests.whole_sign_in import WholeSignIn

from taproof.core.accounts import Actor
from taproof.core.address_rules import AddressRules
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.projects import ProjectChanges
from taproof.runtime.store import open_storage
from taproof.service.developers import Developers
from taproof.service.projects import Projects
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage

ANY_PORT = frozenset(range(1, 65_536))

_SETTLED_WITHIN = 60.0
_DEVELOPER = "ada@example.com"


@dataclass(frozen=True)
class Place:
    """Everything that a process needs to work on the project; `url` may be changed to another path to the database."""

    url: str
    master_key: str
    project_id: str
    webhook_secret: str
    is_quick: bool = False
    """Whether commits skip waiting for the disk. They survive the death of any process, but not a power cut. The time
    of thousands of writes then does not depend on the disk and its other users.
    """

    def quick(self) -> "Place":
        """Return the same place with `is_quick`. On SQLite each process that opens it must apply that itself."""
        url = self.url if self.url.startswith("sqlite:///") else f"{self.url}?options=-c%20synchronous_commit%3Doff"
        return dataclasses.replace(self, url=url, is_quick=True)

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of the programs in this folder."""
        return [self.url, self.project_id, self.master_key]

    @asynccontextmanager
    async def sign_in(self) -> AsyncIterator[WholeSignIn]:
        """Yield the sign-in of one more node, which is this process."""
        storage = await open_storage(self.url)
        if self.is_quick and isinstance(storage, SqliteStorage):
            storage.database.writer.connection.pragma("synchronous", 0)
        try:
            yield WholeSignIn(
                storage, Encryptor(self.master_key), lambda: "https://t.me/b", system_clock, system_entropy
            )
        finally:
            await storage.close()


async def make_place(url: str) -> Place:
    """Migrate a database and create a project with a webhook in it, so that each decision causes an event."""
    master_key = new_master_key(system_entropy)
    storage = await open_storage(url)
    developer = await Developers(storage, system_clock, system_entropy).create_developer(_DEVELOPER, "free")
    project, secrets = await _projects(storage, master_key).create_project(
        Actor(developer, "command_line"), ProjectChanges(name="Shop", webhook_url="https://example.com/")
    )
    await storage.close()
    return Place(url, master_key, project.id, secrets.webhook_secret)


async def add_project(place: Place, name: str, webhook_url: str) -> tuple[str, str]:
    """Create one more project, whose webhook may lead to this machine; return its id and webhook secret."""
    storage = await open_storage(place.url)
    developer = await storage.developers.read_developer(_DEVELOPER)
    assert developer is not None
    project, secrets = await _projects(storage, place.master_key).create_project(
        Actor(developer, "command_line"), ProjectChanges(name=name, webhook_url=webhook_url)
    )
    await storage.close()
    return project.id, secrets.webhook_secret


def _projects(storage: Storage, master_key: str) -> Projects:
    return Projects(
        storage,
        Encryptor(master_key),
        system_clock,
        system_entropy,
        address_rules=AddressRules(["loopback"]),
        webhook_ports=ANY_PORT,
        allow_loopback_http=True,
    )


async def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement that both kinds of database understand."""
    if url.startswith("sqlite:///"):
        return await asyncio.to_thread(_sqlite_rows, Path(url.removeprefix("sqlite:///")), statement)
    connection = await asyncpg.connect(url, server_settings={"application_name": "test"})
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


def _sqlite_rows(path: Path, statement: str) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


async def assert_sound(url: str) -> None:
    """Run SQLite's own integrity check; on PostgreSQL wait until the statements of dead processes have ended."""
    if url.startswith("sqlite:///"):
        assert await rows(url, "PRAGMA integrity_check") == [("ok",)]
        return
    busy = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'taproof'"
    async with asyncio.timeout(_SETTLED_WITHIN):
        while await rows(url, busy):  # noqa: ASYNC110 — the server tells only those who ask.
            await asyncio.sleep(0.05)


async def assert_counters_fit(url: str) -> None:
    """Compare every counter, the users and the events with a recount of the sessions, once nobody writes."""
    per_day = "COUNT(*), COUNT(opened_at), COUNT(confirmed_at), COUNT(used_at), COUNT(cancelled_at)"
    recounted = f"SELECT day, {per_day}, COUNT(DISTINCT messenger_id) FROM sessions GROUP BY day ORDER BY day"  # noqa: S608
    counted = "SELECT day, requested, opened, confirmed, used, cancelled, unique_users FROM daily_counts ORDER BY day"
    assert await rows(url, counted) == await rows(url, recounted)
    ((confirmed, cancelled, people),) = await rows(
        url, "SELECT COUNT(confirmed_at), COUNT(cancelled_at), COUNT(DISTINCT messenger_id) FROM sessions"
    )
    assert await rows(url, "SELECT COUNT(*) FROM webhook_events") == [(confirmed + cancelled,)]
    for table in ("daily_counts", "daily_users"):
        assert await rows(url, f"SELECT COALESCE(SUM(latest_users), 0) FROM {table}") == [(people,)]  # noqa: S608
