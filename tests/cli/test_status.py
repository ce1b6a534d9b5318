"""`taproof status`: the running processes as the database shows them, on both stores.

Its JSON has the documented fields.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.output_schema import validate
from tests.faults.conftest import new_database
from tests.faults.place import Place, make_place
from tests.giving_bots import give_bot

from taproof.core.clock import DAY, MINUTE, SECOND, iso8601, system_clock
from taproof.core.project_bots import ProjectBot
from taproof.runtime.store import open_storage
from taproof.service.installation import BACKUP_MARK
from taproof.storage.protocol import Storage

WORK = ("bot 7000000000", "project bots", "housekeeping")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_database(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def place(url: str) -> Place:
    return asyncio.run(make_place(url))


@pytest.fixture
def change(url: str) -> Callable[[Callable[[Storage], Any]], None]:
    """Change the database as a process of the service does."""

    def change(work: Callable[[Storage], Any]) -> None:
        async def open_and_work() -> None:
            storage = await open_storage(url)
            try:
                await work(storage)
            finally:
                await storage.close()

        asyncio.run(open_and_work())

    return change


def look(run: Run, url: str) -> dict[str, Any]:
    """Return the documented fields, and assert that the exit code and the output for people agree with them."""
    result = run("status", "--json", "--database", url)
    found: dict[str, Any] = json.loads(result.stdout)
    validate(found, "status")
    assert result.exit_code == (0 if found["ok"] else 1)
    assert found["ok"] == (found["attention"] == [])
    told = run("status", "--database", url)
    assert told.exit_code == result.exit_code
    assert all(sentence in told.stdout for sentence in found["attention"] or ["Nothing needs attention."])
    return found


async def hold(storage: Storage, *names: str, seconds: int = 600) -> None:
    now = system_clock()
    for name in names:
        assert await storage.leases.hold_lease(name, f"node-1 4711 {'0' * 16}", now, now + seconds * SECOND)


def test_status_of_a_service(run: Run, url: str, place: Place, change: Callable[..., None]) -> None:
    """The status is checked with nothing, a part and all of the service running.

    A broken bot and unsent webhooks are named.
    """
    (sentence,) = look(run, url)["attention"]
    assert "taproof serve" in sentence
    change(lambda storage: hold(storage, "housekeeping"))
    stopped = look(run, url)["attention"]
    assert [sentence.split(".")[0] for sentence in stopped] == [
        "No process receives the updates of the bot, so users cannot sign in",
        "No process serves the bots of projects",
    ]
    change(lambda storage: hold(storage, *WORK))
    found = look(run, url)
    assert found["ok"]
    assert found["processes"] == [{"host": "node-1", "pid": 4711, "leases": sorted(WORK)}]
    assert found["bots"] == {"service": ["7000000000"], "projects": 0, "broken": []}
    assert found["versions"]["database"] == ("sqlite" if url.startswith("sqlite") else "postgresql")
    assert found["last_backup"] is None

    async def break_bot(storage: Storage) -> None:
        (developer,) = await storage.developers.list_developers()
        bot = ProjectBot(place.project_id, 7_000_000_001, "Shop_Bot", b"encrypted")
        assert await give_bot(storage, developer.id, place.project_id, bot) == "set"
        assert await storage.bots.mark_bot_broken(place.project_id, b"encrypted", system_clock())

    change(break_bot)
    found = look(run, url)
    assert found["bots"]["broken"][0]["username"] == "Shop_Bot"
    (sentence,) = found["attention"]
    assert f"{place.project_id} (@Shop_Bot)" in sentence
    account = {"id": 1, "username": "Sign_In_Bot", "token_hash": "", "manages_bots": False, "is_refused": True}
    change(lambda storage: storage.metadata.set_mark("service_bot", json.dumps(account).encode()))
    assert "service's bot (@Sign_In_Bot)" in look(run, url)["attention"][0]


def test_expired_leases_are_held_by_nobody(run: Run, url: str, place: Place, change: Callable[..., None]) -> None:
    """A killed process leaves its leases behind, which show what ran last."""
    assert place.url == url
    change(lambda storage: hold(storage, *WORK, seconds=-1))
    found = look(run, url)
    assert [(each["name"], each["is_held"]) for each in found["leases"]] == [(name, False) for name in sorted(WORK)]
    assert found["processes"] == []
    assert "No process of the service is running" in found["attention"][0]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_late_webhooks_and_old_backups(run: Run, url: str, place: Place, change: Callable[..., None]) -> None:
    """Events that have been due for minutes, and a backup older than a week, need attention."""
    change(lambda storage: hold(storage, *WORK))
    assert run("backup", "copy.db", "--database", url).exit_code == 0
    recorded = look(run, url)["last_backup"]
    assert recorded[:4] == iso8601(system_clock())[:4]
    late = system_clock() - 6 * MINUTE
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        for name, due, state in ("late", late, "due"), ("later", late + DAY, "due"), ("dead", late, "failed"):
            connection.execute(
                "INSERT INTO webhook_events (id, project_id, type, encrypted_body, created_at, state, due_at, "
                "leased_until, attempts) VALUES (?, ?, 'auth.confirmed', x'01', ?, ?, ?, 0, 0)",
                (name, place.project_id, late, state, due),
            )
        old = iso8601(system_clock() - 8 * DAY).encode()
        connection.execute("UPDATE metadata SET value = ? WHERE name = ?", (old, BACKUP_MARK))
    found = look(run, url)
    assert found["webhooks"] == {"waiting": 2, "due": 1, "dead_letters": 1, "oldest_due_at": iso8601(late)}
    assert [sentence.split()[0] for sentence in found["attention"]] == ["Webhooks", "The"]


def test_unusable_databases_are_named(run: Run) -> None:
    """Nothing is created or migrated, and no other database is taken for one of Taproof."""
    with closing(sqlite3.connect("foreign.db")) as connection, connection:
        connection.execute("CREATE TABLE things (name)")
    with closing(sqlite3.connect("older.db")) as connection, connection:
        connection.execute("CREATE TABLE schema_migrations (version INTEGER)")
    Path("text.db").write_text("not a database\n" * 1_000, encoding="ascii")
    cases = {
        "missing.db": "There is no Taproof database",
        "foreign.db": "is no database of Taproof",
        "older.db": "is no database of Taproof",
        "text.db": "cannot be read",
    }
    for file, sentence in cases.items():
        result = run("status", "--database", f"sqlite:///{file}")
        assert (result.exit_code, sentence in result.stderr) == (1, True), result.stderr
    assert not Path("missing.db").exists()
