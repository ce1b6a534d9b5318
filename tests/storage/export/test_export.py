"""An export and its import, between the two stores and back: nothing is lost, and an import is atomic."""

import asyncio
import io
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import apsw
import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.databases import copied_postgres
from tests.postgres_server import execute
from tests.storage.export.places import (
    WHEN,
    Content,
    Place,
    content,
    export,
    fill,
    import_,
    postgres_place,
    some_rows,
    sqlite_place,
)

from taproof.core.errors import StoreUnavailable
from taproof.storage.export.format import TABLES, Column, ExportReader, NotEmpty, write_export
from taproof.storage.export.postgres import open_postgres_source, open_postgres_target
from taproof.storage.queries.sessions import OF_RETURN
from taproof.storage.sqlite import connection as sqlite_connection
from taproof.storage.sqlite.store import SqliteStorage


@pytest.fixture(params=["postgres", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "sqlite":
        yield sqlite_place(tmp_path / "place.db")
    else:
        async with postgres_place() as (made, _):
            yield made


_SQLITE_COLUMNS: Final = """SELECT name, type, "notnull" = 0 AND pk = 0 FROM pragma_table_info(?)"""


async def test_every_column_of_both_schemas_is_moved(tmp_path: Path) -> None:
    """A column that a migration adds must be added to `TABLES` too, or it would be lost on the way."""
    sqlite_connection.migrate_database(tmp_path / "taproof.db", 0)
    connection = apsw.Connection(str(tmp_path / "taproof.db"))
    sqlite: dict[str, list[tuple[str, str, bool]]] = {}
    tables: list[tuple[Any, ...]] = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (table,) in tables:
        found: list[tuple[Any, ...]] = connection.execute(_SQLITE_COLUMNS, (table,)).fetchall()
        sqlite[table] = [(name, kind, bool(may_be_null)) for name, kind, may_be_null in found]
    connection.close()
    of_one_store = {"leases", "decisions", "console_sessions", "oidc_pushed_requests", "schema_migrations"}
    kinds = {"text": "TEXT", "bytes": "BLOB"}
    expected = {
        table: sorted((column.name, kinds.get(column.kind, "INTEGER"), column.may_be_null) for column in columns)
        for table, columns in TABLES.items()
    }
    assert {table: sorted(columns) for table, columns in sqlite.items() if table not in of_one_store} == expected
    async with postgres_place() as (_, dsn):
        postgres = await asyncpg.connect(dsn)
        described = await postgres.fetch(
            "SELECT c.relname, a.attname, format_type(a.atttypid, NULL), NOT a.attnotnull, a.atthasdef "
            "FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
            "WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::REGNAMESPACE"
        )
        await postgres.close()
    kinds = {"text": "text", "bytes": "bytea", "int": "bigint"}
    for table, columns in TABLES.items():
        wanted = {(column.name, kinds.get(column.kind, "integer"), column.may_be_null) for column in columns}
        own = {tuple(row[1:4]) for row in described if row[0] == table}
        assert wanted <= own
        # What PostgreSQL has beside it fills itself.
        assert all(row[4] for row in described if row[0] == table and tuple(row[1:4]) not in wanted)
    assert {row[0] for row in described} - of_one_store == set(TABLES)


async def test_the_user_of_a_sign_in_that_awaits_its_return_is_not_moved(place: Place) -> None:
    """Nobody has signed in yet. The session is moved as if its user had not confirmed; others keep their user."""
    names = [column.name for column in TABLES["sessions"]]
    pending, used = (list(row) for row in some_rows(2)["sessions"])
    pending[names.index("status")], used[names.index("status")] = "pending", "used"
    choosing = [*pending[:1], b"c" * 32, "sess_choosing", *pending[3:]]
    for row, hint, match_code in ((pending, "return", None), (choosing, "return", "42"), (used, "return", None)):
        row[names.index("hint")], row[names.index("match_code")] = hint, match_code
    await fill(place, {"sessions": [tuple(pending), tuple(choosing), tuple(used)]})
    rows = [dict(zip(names, row, strict=True)) for row in (await content(place))["sessions"]]
    hidden = {row["status"]: {name for name in OF_RETURN if row[name] is None} for row in rows}
    assert hidden == {"pending": set(OF_RETURN), "used": set()}
    hints = {(row["status"], row["match_code"]): row["hint"] for row in rows}
    assert hints == {("pending", None): "opened", ("pending", "42"): "choosing", ("used", None): "return"}


_TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_UNIQUE: Final = {
    "developers": (2, 6),
    "access_tokens": (4,),
    "invitations": (1,),
    "projects": (4,),
    "member_invitations": (2,),
    "oidc_authorizations": (10, 18, 20, 21),
    "oidc_grants": (12, 14),
    "oidc_signing_keys": (2,),
}
_KEYS: Final = {
    "project_members": 2,
    "member_origins": 4,
    "sessions": 2,
    "daily_counts": 2,
    "daily_users": 2,
    "user_days": 4,
    "audit_entries": 3,
    "webhook_attempts": 2,
    "bot_updates": 2,
    "oidc_signing_keys": 2,
}


def _values(column: Column) -> st.SearchStrategy[Any]:
    values: dict[str, st.SearchStrategy[Any]] = {
        "text": _TEXTS,
        "bytes": st.binary(max_size=40),
        "day": st.integers(20_000, 20_005),  # A partition of PostgreSQL is made for each.
        "small": st.integers(-(1 << 31), (1 << 31) - 1),
        "int": st.integers(-(1 << 63), (1 << 63) - 1),
    }
    if column.name == "status" and column.kind == "text":
        # The export of a pending session hides who has yet to return: see above.
        values["text"] = _TEXTS.filter(lambda status: status != "pending")
    return st.none() | values[column.kind] if column.may_be_null else values[column.kind]


def _rows(table: str, columns: Sequence[Column]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    key = _KEYS.get(table, 1)
    places = [range(key), *([place] for place in _UNIQUE.get(table, ()))]
    unique_by = tuple(partial(_picked, each) for each in places)
    return st.lists(st.tuples(*map(_values, columns)), max_size=4, unique_by=unique_by)


def _picked(places: Sequence[int], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a unique key. NULLs are never equal."""
    return tuple(object() if row[place] is None else row[place] for place in places)


CONTENT = st.fixed_dictionaries({table: _rows(table, columns) for table, columns in TABLES.items()})


def test_nothing_is_lost_between_the_stores_and_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    """From SQLite to PostgreSQL and back, all tables stay the same, with any content."""

    async def carry(drawn: Content, middle: Place) -> None:
        directory = tmp_path_factory.mktemp("transfer")
        first, last = sqlite_place(directory / "first.db"), sqlite_place(directory / "last.db")
        await fill(first, drawn)
        before = await content(first)
        assert before == {table: sorted(rows, key=repr) for table, rows in drawn.items()}
        one = await export(first)
        await import_(middle, one)
        assert await content(middle) == before
        await import_(last, await export(middle))
        assert await content(last) == before
        assert await export(last) == one

    with copied_postgres(quick=True) as dsn:
        middle = Place(lambda: open_postgres_source(dsn), lambda: open_postgres_target(dsn), "")

        @settings(max_examples=settings().max_examples // 3)
        @given(CONTENT)
        def check(drawn: Content) -> None:
            trigger = "ALTER TABLE audit_entries {} TRIGGER USER"  # It refuses to be emptied.
            emptied = "; ".join(f"DELETE FROM {table}" for table in TABLES if table != "audit_entries")  # noqa: S608 — our own names.
            execute(dsn, f"{emptied}; {trigger.format('DISABLE')}; TRUNCATE audit_entries; {trigger.format('ENABLE')}")
            asyncio.run(carry(drawn, middle))

        check()


async def test_the_file_is_streamed_in_chunks(tmp_path: Path) -> None:
    """Tables of several chunks arrive complete, also if the number of rows is a multiple of a chunk."""
    rows = some_rows(sessions=20)
    rows["user_days"] = [(f"{number}", "1", 20_000, "p", "Ada", "", 1, 2, 3) for number in range(13)]
    async with postgres_place(chunk=5) as (postgres, _):
        for number, place in enumerate((postgres, sqlite_place(tmp_path / "place.db", chunk=5))):
            await fill(place, rows)
            chunks: list[int] = []
            file = io.BytesIO()
            async with place.source() as source:
                assert await write_export(source, file.write, WHEN, chunks.append) == sum(map(len, rows.values()))
            assert max(chunks) == 5
            copy = sqlite_place(tmp_path / f"copy {number}.db")
            async with copy.target() as target:
                await ExportReader(io.BytesIO(file.getvalue()), chunk=5).copy_to(target, ignore, lambda: None)
            assert await content(copy) == {table: sorted(each, key=repr) for table, each in rows.items()}


def ignore(_name: str, _value: bytes) -> None:
    """Accept every entry of the metadata."""


async def test_an_export_shows_one_moment(tmp_path: Path) -> None:
    """Rows written after the beginning of an export are not in it."""
    path = tmp_path / "place.db"
    async with postgres_place() as (other, dsn):
        for place in (sqlite_place(path), other):
            await fill(place, some_rows())
            before = await content(place)
            async with place.source() as source:
                await source.count("metadata")
                if place is other:
                    connection = await asyncpg.connect(dsn)
                    await connection.execute("DELETE FROM sessions; DELETE FROM projects")
                    await connection.close()
                else:
                    writer = apsw.Connection(str(path))
                    writer.execute("DELETE FROM sessions; DELETE FROM projects").fetchall()
                    writer.close()
                during = {
                    table: sorted([tuple(row) async for rows in source.read(table) for row in rows], key=repr)
                    for table in TABLES
                }
            assert during == before
            assert (await content(place))["sessions"] == []


async def test_only_an_empty_store_is_filled(place: Place) -> None:
    """A second import, or one into a store in use, changes nothing."""
    file = await export(place)
    await fill(place, some_rows())
    before = await content(place)
    with pytest.raises(NotEmpty):
        await import_(place, file)
    assert await content(place) == before


PROGRAM = """
import asyncio, os, signal, sys
from pathlib import Path
from taproof.storage.export import postgres, sqlite
from taproof.storage.export.format import ExportReader

async def main():
    reader = ExportReader(open(sys.argv[1], "rb"))
    async with {target} as target:
        insert, commit = target.insert, target.commit
        async def insert_or_die(table, rows, lines):
            if table == sys.argv[2]:
                os.kill(os.getpid(), signal.SIGKILL)
            await insert(table, rows, lines)
        target.insert = insert_or_die
        await reader.copy_to(target, lambda name, value: None, lambda: None)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_killed_import_leaves_an_empty_store(place: Place, tmp_path: Path) -> None:
    """`kill -9` at any point before the commit: the store is empty, and the next import fills it."""
    source = sqlite_place(tmp_path / "source.db")
    await fill(source, some_rows(sessions=3_000))
    file = tmp_path / "export.jsonl"
    file.write_bytes(await export(source))
    for table in ("metadata", "sessions", "bot_updates", "none, but after the commit"):
        command = [sys.executable, "-c", PROGRAM.format(target=place.program), str(file), table]
        died = await asyncio.to_thread(subprocess.run, command, check=False, capture_output=True)
        assert died.returncode == -9, died.stderr
        if table.startswith("none"):
            assert await content(place) == await content(source)
        else:
            assert not any((await content(place)).values())


async def test_nobody_gets_in_while_a_sqlite_file_is_filled(tmp_path: Path) -> None:
    """An import refuses a file that another process has open, and locks out readers until it ends."""
    path = tmp_path / "place.db"
    place = sqlite_place(path)
    store = SqliteStorage.open(path, 0)
    with pytest.raises(StoreUnavailable, match="Another process has the database"):
        await fill(place, some_rows())
    await store.close()
    other = apsw.Connection(str(path))
    async with place.target() as target:
        await target.insert("metadata", [("mode", b"real")], [2])
        with pytest.raises(apsw.BusyError):
            other.execute("SELECT COUNT(*) FROM metadata").fetchall()
    other.close()
    assert not any((await content(place)).values())
    store = SqliteStorage.open(path, 0)
    assert store.database.rows("PRAGMA journal_mode", ()) == [("wal",)]
    await store.close()


async def test_who_writes_while_postgresql_is_filled_waits(tmp_path: Path) -> None:
    """A node that starts during the import waits for its end, and then finds the marks of mode and key."""
    async with postgres_place() as (place, dsn):
        other, prober = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
        claim = "INSERT INTO metadata (name, value) VALUES ('mode', 'sandbox') ON CONFLICT (name) DO NOTHING"
        async with place.target() as target:
            await target.insert("metadata", [("mode", b"real")], [2])
            claiming = asyncio.create_task(other.execute(claim))
            async with asyncio.timeout(60):
                while not await prober.fetchval("SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'relation'"):
                    assert not claiming.done()
                    await asyncio.sleep(0.01)
            await target.commit({table: int(table == "metadata") for table in TABLES})
        assert await claiming == "INSERT 0 0"
        await other.close()
        await prober.close()
        assert (await content(place))["metadata"] == [("mode", b"real")]
