"""Damaged and hostile files: an import refuses them in one sentence and changes nothing."""

import asyncio
import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.export.places import Place, content, export, fill, import_, postgres_place, some_rows, sqlite_place

from taproof.storage.export.format import TABLES, ExportFileWrong


@pytest.fixture
async def lines(tmp_path: Path) -> list[bytes]:
    """Return the lines of an export: the header, one row of each table but three sessions, the footer."""
    source = sqlite_place(tmp_path / "source.db")
    await fill(source, some_rows())
    return (await export(source)).splitlines(keepends=True)


def _of(table: str) -> int:
    """Return the index of the line with the first row of a table."""
    return 1 + sum(3 if each == "sessions" else 1 for each in list(TABLES)[: list(TABLES).index(table)])


def _changed(line: bytes, place: int, value: Any) -> bytes:
    row = json.loads(line)
    row[place] = value
    return json.dumps(row).encode() + b"\n"


def _headed(lines: list[bytes], change: Callable[[dict[str, Any]], object]) -> list[bytes]:
    header = json.loads(lines[0])
    change(header)
    return [json.dumps(header).encode() + b"\n", *lines[1:]]


SESSION: Final = _of("sessions")
WRONG: Final[dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]]] = {
    "empty": (lambda _: [], "Line 1 .*this is not an export of Taproof"),
    "another file": (lambda _: [b"\x89PNG\r\n", b"..."], "Line 1 of the export: it is not JSON"),
    "other JSON": (lambda _: [b'{"format": "other"}\n'], "Line 1 .*not an export of Taproof"),
    "newer": (lambda lines: _headed(lines, lambda h: h.update(version=2)), "format version 2"),
    "no version": (lambda lines: _headed(lines, lambda h: h.pop("version")), "format version None"),
    "no tables": (lambda lines: _headed(lines, lambda h: h.update(tables=None)), "Line 1 .*tables are missing"),
    "a missing table": (
        lambda lines: _headed(lines, lambda h: h["tables"].pop("metadata")),
        "the table metadata is missing",
    ),
    "an unknown table": (lambda lines: _headed(lines, lambda h: h["tables"].update(x=[])), "no table 'x'"),
    "a missing column": (
        lambda lines: _headed(lines, lambda h: h["tables"]["sessions"].remove("day")),
        "the table sessions has different columns",
    ),
    "an unknown column": (
        lambda lines: _headed(lines, lambda h: h["tables"]["sessions"].append("x")),
        "the table sessions has different columns",
    ),
    "a row of nothing": (lambda lines: [*lines[:5], b"[]\n", *lines[5:]], "Line 6 .*no table ''"),
    "a row of an unknown table": (lambda lines: [lines[0], b'["sqlite_schema", 1]\n'], "Line 2 .*no table"),
    "a short row": (lambda lines: [lines[0], b'["metadata", "mode"]\n'], "Line 2 .*has 2 values, not 1"),
    "not JSON": (lambda lines: [*lines[:3], b"[1, \n", *lines[3:]], "Line 4 .*not JSON"),
    "too deep": (lambda lines: [lines[0], b"[" * 100_000 + b"\n"], "Line 2 .*not JSON"),
    "an endless number": (lambda lines: [lines[0], b'["metadata", ' + b"9" * 5_000 + b"]\n"], "Line 2 .*not JSON"),
    "an endless line": (lambda lines: [lines[0], b'["metadata", "' + b"x" * (1 << 20) + b'"]\n'], "Line 2 .*longer"),
    "neither row nor end": (lambda lines: [*lines[:4], b'{"x": 1}\n'], "Line 5 .*neither a row nor the end"),
    "cut off": (lambda lines: lines[:-1], "it was cut off"),
    "cut off in a line": (lambda lines: [*lines[:5], lines[5][:20]], "ends in line 6"),
    "a row less": (lambda lines: [*lines[:SESSION], *lines[SESSION + 1 :]], "the file was changed"),
    "a row changed": (
        lambda lines: [*lines[:SESSION], _changed(lines[SESSION], 3, "x"), *lines[SESSION + 1 :]],
        "the file was changed",
    ),
    "something behind": (lambda lines: [*lines, b"\n"], "there is data after the end"),
    "a row twice": (
        lambda lines: [*lines[: SESSION + 1], lines[SESSION], *lines[SESSION + 1 :]],
        f"(Line {SESSION + 2} .*this row of sessions cannot be added|the file was changed)",
    ),
}


async def _not_refused(place: Place, file: bytes, why: str) -> str:
    """Import a file that must be refused because of `why`; return the error of the refusal, or ""."""
    try:
        await import_(place, file)
    except ExportFileWrong as error:
        said = error.sentence
    else:
        return f"imported; expected: {why}"
    if not re.search(why, said, re.DOTALL):
        return f"expected {why!r}, not {said!r}"
    if "Nothing was imported" not in said or "\n" in said or len(said) >= 500:
        return f"not one short sentence with the outcome: {said!r}"
    return "the store is no longer empty" if any((await content(place)).values()) else ""


async def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, lines: list[bytes]) -> None:
    """One sentence names the problem, the line and the remedy; the store stays empty."""
    failures = []
    for number, (case, (change, why)) in enumerate(WRONG.items()):
        place = sqlite_place(tmp_path / f"{number}.db")
        if problem := await _not_refused(place, b"".join(change(lines)), why):
            failures.append(f"{case}: {problem}")
    assert not failures, "\n".join(failures)


WRONG_VALUES: Final[tuple[tuple[str, str, object], ...]] = (
    ("metadata", "name", None),
    ("metadata", "name", 1),
    ("metadata", "name", "a\0b"),
    ("metadata", "name", "\ud800"),
    ("metadata", "value", "no base64!"),
    ("metadata", "value", "YQ"),
    ("sessions", "day", -1),
    ("sessions", "day", 65_536),
    ("sessions", "day", "20000"),
    ("sessions", "created_at", 1.5),
    ("sessions", "created_at", True),
    ("sessions", "created_at", 1 << 63),
    ("sessions", "messenger_name", ["x"]),
    ("daily_counts", "requested", 1 << 31),
    ("webhook_events", "finished_at", {}),
)


async def test_a_wrong_value_is_refused_with_its_line(tmp_path: Path, lines: list[bytes]) -> None:
    """Neither store accepts a value that the other cannot hold."""
    failures = []
    for number, (table, column, value) in enumerate(WRONG_VALUES):
        store = sqlite_place(tmp_path / f"{number}.db")
        place = [each.name for each in TABLES[table]].index(column) + 1
        line = _of(table)
        file = b"".join([*lines[:line], _changed(lines[line], place, value), *lines[line + 1 :]])
        why = f"Line {line + 1} of the export: {table}.{column} cannot have this value"
        if problem := await _not_refused(store, file, why):
            failures.append(f"{table}.{column} = {value!r}: {problem}")
    assert not failures, "\n".join(failures)


async def test_a_row_that_is_there_twice_is_named(tmp_path: Path) -> None:
    """The line is right even far into a chunk, in both stores."""
    rows = some_rows(sessions=3_000)["sessions"]
    async with postgres_place() as (postgres, _):
        for place in (postgres, sqlite_place(tmp_path / "place.db")):
            for at in (0, 1_234, 2_999):
                with pytest.raises(ExportFileWrong, match=r"Line 13000 .*sessions cannot be added"):
                    async with place.target() as target:
                        await target.insert("sessions", [*rows, rows[at]], range(10_000, 13_001))
                assert not any((await content(place)).values())


@given(st.data())
def test_no_damage_goes_unnoticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A file that is cut off or has one wrong byte is refused, or its content is the same."""
    directory = tmp_path_factory.mktemp("damage")

    async def check() -> None:
        source, place = sqlite_place(directory / "source.db"), sqlite_place(directory / "place.db")
        await fill(source, some_rows())
        file = await export(source)
        at = data.draw(st.integers(0, len(file) - 1))
        byte = bytes([data.draw(st.integers(0, 255))])
        kind = data.draw(st.sampled_from(("cut", "change", "remove", "add")))
        rest = {"cut": b"", "change": byte + file[at + 1 :], "remove": file[at + 1 :], "add": byte + file[at:]}[kind]
        with contextlib.suppress(ExportFileWrong):
            await import_(place, file[:at] + rest)
            assert await content(place) == await content(source)
            return
        assert not any((await content(place)).values())

    asyncio.run(check())
