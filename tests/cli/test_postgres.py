"""The command line and the doctor on a PostgreSQL database, whose password is never shown."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cli.conftest import BOT_TOKEN, Run
from tests.ports import free_port
from tests.postgres_server import execute, fresh_database
from typer.testing import Result

from taproof.cli.doctor.examine import examine
from taproof.cli.doctor.finding import Finding
from taproof.cli.doctor.postgres import judge_server
from taproof.config.settings import load_settings
from taproof.core.clock import system_clock
from taproof.core.errors import StoreUnavailable
from taproof.runtime.database_probe import DatabaseServer, ask_server
from taproof.runtime.store import open_encryptor, open_storage

KEY = base64.b64encode(bytes(range(32))).decode()
OTHER_KEY = base64.b64encode(bytes(32)).decode()
PASSWORD = "a-password-5c1b"
NOBODY = f"postgresql://taproof:{PASSWORD}@127.0.0.1:1/taproof"


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of an empty database; its server lets everybody in, so the password is only there to be looked for."""
    with fresh_database() as dsn:
        yield dsn.replace("postgres@", f"postgres:{PASSWORD}@")


@pytest.fixture
def run_here(run: Run, database: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command on that database, and assert that its output does not contain the password."""
    monkeypatch.setenv("TAPROOF_DATABASE_URL", database)
    monkeypatch.setenv("TAPROOF_MASTER_KEY", KEY)

    def run_here(*arguments: str, **environment: str) -> Result:
        result = run(*arguments, **environment)
        assert PASSWORD not in result.output
        return result

    return run_here


async def look(name: str, **given: Any) -> Finding:
    """Return the doctor's result of one check."""
    settings = load_settings({"sandbox": True, "port": 1, "master_key": KEY, **given})
    findings = [found for found in await examine(settings, {}, system_clock) if found.name == name]
    assert len(findings) == 1
    assert PASSWORD not in findings[0].detail + findings[0].advice
    return findings[0]


# ---- commands


def test_a_database_is_made_by_migrate_only(run_here: Run, database: str) -> None:
    """On the wrong server, a command reports the missing tables.

    Only `migrate` creates them, once, and names the place.
    """
    refused = run_here("developers", "list")
    assert refused.exit_code == 1
    assert "taproof migrate" in refused.stderr
    assert urlsplit(database).path in refused.stderr
    assert execute(database, "SELECT count(*) FROM pg_class WHERE relname = 'schema_migrations'").strip() == "0"
    first = json.loads(run_here("migrate", "--json").stdout)
    assert (first["from_version"], first["to_version"] > 0) == (0, True)
    assert first["database"].startswith("postgresql://postgres@")
    assert "up to date" in run_here("migrate").stdout
    assert run_here("developers", "list", "--json").stdout == '{\n  "developers": []\n}\n'


def test_secrets_need_the_key_that_all_nodes_share(run_here: Run) -> None:
    """No key file is created for PostgreSQL: without a key, a command says how to create one.

    Another key is refused.
    """
    assert run_here("developers", "add", "ada@example.com").exit_code == 0
    missing = run_here("projects", "create", "Shop", TAPROOF_MASTER_KEY="")
    assert missing.exit_code == 1
    assert "openssl rand -base64 32" in missing.stderr
    assert run_here("projects", "create", "Shop").exit_code == 0
    wrong = run_here("projects", "list", TAPROOF_MASTER_KEY=OTHER_KEY)
    assert "does not belong to this database" in wrong.stderr


def test_serve_asks_for_the_key_before_anything_else(run: Run) -> None:
    """Without a master key, `serve` on PostgreSQL fails before it connects to the database."""
    result = run("serve", TAPROOF_DATABASE_URL=NOBODY, TAPROOF_BOT_TOKEN=BOT_TOKEN)
    assert result.exit_code == 2
    assert result.stderr.startswith("TAPROOF_MASTER_KEY is not set")
    assert "openssl rand -base64 32" in result.stderr
    assert PASSWORD not in result.output


def test_a_node_that_answers_http_only_needs_no_bot(run: Run) -> None:
    """An `api` node without a token is told about the link base, which is enough for it."""
    result = run("serve", "--role", "api", TAPROOF_DATABASE_URL=NOBODY, TAPROOF_MASTER_KEY=KEY)
    assert result.exit_code == 2
    assert "--messenger-link-base (TAPROOF_MESSENGER_LINK_BASE)" in result.stderr


@pytest.mark.parametrize(
    "arguments", [["migrate"], ["developers", "list"], ["developers", "add", "ada@example.com"], ["serve"]]
)
@pytest.mark.parametrize("level", ["info", "debug"])
def test_a_server_that_is_away_gets_one_sentence(run: Run, arguments: list[str], level: str) -> None:
    """An unreachable database is named without its password, even if everything is logged."""
    settings = {"TAPROOF_MASTER_KEY": KEY, "TAPROOF_BOT_TOKEN": BOT_TOKEN, "TAPROOF_LOG_LEVEL": level}
    settings["TAPROOF_PORT"] = str(free_port())
    result = run(*arguments, TAPROOF_DATABASE_URL=NOBODY, **settings)
    assert result.exit_code == 1
    assert "TAPROOF_DATABASE_URL" in result.stderr
    assert "Traceback" not in result.stderr
    assert PASSWORD not in result.output


def test_help_does_not_show_what_is_set(run: Run) -> None:
    """--help shows the names of variables, not their values."""
    for command in ("serve", "doctor", "migrate"):
        assert PASSWORD not in run(command, "--help", TAPROOF_DATABASE_URL=NOBODY).output


def test_administration_of_one_store_does_not_load_the_other(database: str) -> None:
    """A command on PostgreSQL does not import SQLite, and the reverse."""
    for url, other in ((database, "apsw"), ("sqlite:///taproof.db", "asyncpg")):
        program = (
            "import sys; from taproof.cli.main import commands\n"
            "try: commands(['developers', 'add', 'ada@example.com'])\n"
            f"finally: assert {other!r} not in sys.modules"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TAPROOF_DATABASE_URL": url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr


# ---- the doctor


async def test_the_doctor_looks_at_the_server(database: str) -> None:
    """Server, tables, pooler, clock and key are checked; an empty database stays empty."""
    empty = await look("store", database_url=database)
    assert (empty.status, "is empty" in empty.detail) == ("ok", True)
    assert (await look("postgresql", database_url=database)).status == "ok"
    assert (await look("pooler", database_url=database)).detail == "none"
    assert (await look("pooler", database_url=database, pgbouncer=True)).status == "warning"
    assert (await look("database clock", database_url=database)).status == "ok"
    assert execute(database, "SELECT count(*) FROM pg_class WHERE relname = 'schema_migrations'").strip() == "0"


async def test_the_key_is_held_to_the_database(database: str) -> None:
    """A missing key and a key that does not decrypt the stored secrets are problems."""
    settings = load_settings({"database_url": database, "master_key": KEY})
    storage = await open_storage(database)
    await open_encryptor(settings, storage)
    await storage.close()
    assert (await look("store", database_url=database)).status == "ok"
    assert "matches" in (await look("master key", database_url=database)).detail
    wrong = await look("master key", database_url=database, master_key=OTHER_KEY)
    assert wrong.status == "problem"
    missing = await look("master key", database_url=database, master_key=None)
    assert missing.status == "problem"
    assert "openssl" in missing.advice


async def test_databases_that_cannot_be_used(database: str) -> None:
    """No server, no such database, and another program's tables are problems, each with what to check."""
    away = await look("store", database_url=NOBODY)
    assert (away.status, "TAPROOF_DATABASE_URL" in away.advice) == ("problem", True)
    missing = await look("store", database_url=f"{database}_nope")
    assert (missing.status, "does not exist" in missing.detail) == ("problem", True)
    execute(database, "CREATE TABLE theirs (x INTEGER)")
    found = await look("store", database_url=database)
    assert (found.status, "another program" in found.detail) == ("problem", True)


async def test_a_user_who_may_not_make_tables_is_a_problem(database: str) -> None:
    """A role without the right to create tables is reported before the first start, with the SQL that grants it.

    So is a missing schema.
    """
    name = urlsplit(database).path[1:]
    execute(database, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    execute(database, f'CREATE ROLE "{name}" LOGIN')
    try:
        found = await look("store", database_url=database.replace("//postgres:", f"//{name}:"))
    finally:
        execute(database, f'DROP ROLE "{name}"')
    assert (found.status, "ALTER DATABASE" in found.advice) == ("problem", True)
    execute(database, "DROP SCHEMA public CASCADE")
    assert "may not create tables" in (await look("store", database_url=database)).detail


async def test_a_read_only_database_is_a_problem(database: str) -> None:
    """A standby answers reads, so it is reported before the first write fails."""
    name = urlsplit(database).path[1:]
    execute(database, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    found = await look("store", database_url=database)
    assert (found.status, "read-only" in found.detail) == ("problem", True)


@pytest.mark.parametrize(
    ("changed", "name", "status"),
    [
        ({"version_number": 130_022, "version": "13.22"}, "postgresql", "problem"),
        ({"version_number": 140_000, "version": "14.0"}, "postgresql", "ok"),
        ({"encoding": "SQL_ASCII"}, "store", "problem"),
        ({"skew": 900}, "database clock", "ok"),
        ({"skew": -1_500}, "database clock", "warning"),
        ({"skew": 2_500}, "database clock", "problem"),
        ({"standbys": 1, "waits_for_standbys": True}, "durability", "ok"),
        ({"standbys": 1, "waits_for_standbys": True, "synchronous_commit": "local"}, "durability", "warning"),
        ({"standbys": 0, "waits_for_standbys": True}, "durability", "problem"),
        ({"standbys": 2}, "durability", "warning"),
        ({"synchronous_commit": "off"}, "durability", "warning"),
        ({"synchronous_commit": "local"}, "durability", "ok"),
    ],
)
def test_what_is_found_is_judged(changed: dict[str, Any], name: str, status: str) -> None:
    """An old server, another encoding and clock differences are reported, each with what to do."""
    sound: dict[str, Any] = {
        "version_number": 180_004,
        "version": "18.4",
        "encoding": "UTF8",
        "is_read_only": False,
        "skew": 0,
        "schema_version": 0,
        "synchronous_commit": "on",
        "waits_for_standbys": False,
        "standbys": 0,
    }
    findings = judge_server(load_settings({"database_url": NOBODY}), DatabaseServer(**sound | changed))
    (found,) = [each for each in findings if each.name == name]
    assert found.status == status
    assert bool(found.advice) is (status != "ok")


async def test_a_silent_server_does_not_hang_the_doctor() -> None:
    """A port that accepts the connection and sends nothing is given up after a time limit."""
    connections: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: connections.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(StoreUnavailable, match="no response"):
        await ask_server(f"postgresql://taproof:{PASSWORD}@127.0.0.1:{port}/taproof", system_clock, patience=0.2)
    server.close()
    for connection in connections:
        connection.close()
        await connection.wait_closed()
