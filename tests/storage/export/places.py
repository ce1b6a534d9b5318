"""Both kinds of store, which the tests of export and import fill, move and compare."""

import contextlib
import io
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.databases import copied_postgres, migrated_sqlite

from taproof.storage.export.format import TABLES, Column, ExportReader, Row, Source, Target, write_export
from taproof.storage.export.postgres import open_postgres_source, open_postgres_target
from taproof.storage.export.sqlite import open_sqlite_source, open_sqlite_target

WHEN: Final = "2026-11-20T22:44:03.127Z"
Content = dict[str, list[Row]]


class Place(NamedTuple):
    """A store of either kind, as the source and the target of a move."""

    source: Callable[[], AbstractAsyncContextManager[Source]]
    target: Callable[[], AbstractAsyncContextManager[Target]]
    program: str
    """An expression of `target()` for another process."""


def sqlite_place(path: Path, **chunk: int) -> Place:
    migrated_sqlite(path)
    program = f"sqlite.open_sqlite_target(Path({str(path)!r}))"
    return Place(lambda: open_sqlite_source(path, **chunk), lambda: open_sqlite_target(path), program)


@contextlib.asynccontextmanager
async def postgres_place(**chunk: int) -> AsyncIterator[tuple[Place, str]]:
    with copied_postgres() as dsn:
        program = f"postgres.open_postgres_target({dsn!r})"
        yield Place(lambda: open_postgres_source(dsn, **chunk), lambda: open_postgres_target(dsn), program), dsn


async def export(place: Place) -> bytes:
    file = io.BytesIO()
    async with place.source() as source:
        await write_export(source, file.write, WHEN, lambda _: None)
    return file.getvalue()


async def import_(place: Place, file: bytes) -> None:
    reader = ExportReader(io.BytesIO(file))
    async with place.target() as target:
        await reader.copy_to(target, lambda _name, _value: None, lambda: None)


async def content(place: Place) -> Content:
    async with place.source() as source:
        return {
            table: sorted([tuple(row) async for rows in source.read(table) for row in rows], key=repr)
            for table in TABLES
        }


async def fill(place: Place, rows: Content) -> None:
    async with place.target() as target:
        for table, each in rows.items():
            if each:
                await target.insert(table, each, range(len(each)))
        await target.commit({table: len(rows.get(table, [])) for table in TABLES})


def some_rows(sessions: int = 3) -> Content:
    """Return rows for every table."""
    rows: Content = {table: [tuple(a_value(column, 1) for column in columns)] for table, columns in TABLES.items()}
    rows["sessions"] = [
        tuple(a_value(column, number) for column in TABLES["sessions"]) for number in range(1, sessions + 1)
    ]
    return rows


def a_value(column: Column, number: int) -> Any:
    if column.name == "day":
        return 20_000 + number % 3
    return {"text": f"{column.name} {number}", "bytes": b"\0\xff%d" % number}.get(column.kind, number)
