"""Search dumps, files and answers for secrets, in plain form and in every encoding that may occur."""

import base64
import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import apsw
from tests.postgres_server import execute

_BETWEEN_DIGITS: Final = rb"(?:%20|&nbsp;|[ ()./\-]){0,3}"


@dataclass(frozen=True)
class Canary:
    """A value that must not appear. `literals` is keyed by encoding; `pattern` finds the value with gaps in it."""

    name: str
    literals: dict[str, bytes]
    pattern: re.Pattern[bytes] | None = None

    def found_in(self, content: bytes) -> str | None:
        """Return the encoding in which the text contains the value, or None."""
        for writing, literal in self.literals.items():
            if literal in content:
                return writing
        return "grouped" if self.pattern is not None and self.pattern.search(content) else None


def secret_canary(name: str, secret: str) -> Canary:
    """A key or token. The search uses twenty characters from its middle, so that a preview is not a hit."""
    core = secret.rpartition(":")[2].removeprefix("whsec_")
    start = max(0, (len(core) - 20) // 2)
    literals = _writings(core[start : start + 20])
    if len(core) >= 43:  # 32 bytes in base64 may be stored as bytes.
        with contextlib.suppress(ValueError):
            raw = base64.b64decode(core.translate(str.maketrans("-_", "+/")).rstrip("=")[: len(core) // 4 * 4])
            literals |= {"bytes": raw[4:20], "hex of the bytes": raw[4:20].hex().encode()}
    return Canary(name, literals)


def phone_canary(name: str, number: str) -> Canary:
    """A phone number in E.164 form. The search also finds it without the plus sign and the two-digit country code."""
    digits = number.lstrip("+")
    national = digits[2:]
    literals = _writings(national)
    literals["integer"] = int(digits).to_bytes(6)  # The form in which SQLite stores a number of that size.
    literals["integer, little-endian"] = int(digits).to_bytes(8, "little")
    return Canary(name, literals, re.compile(_BETWEEN_DIGITS.join(re.escape(each).encode() for each in national)))


def text_canary(name: str, text: str) -> Canary:
    """A name or an id, searched for as a whole."""
    return Canary(name, _writings(text))


def _writings(text: str) -> dict[str, bytes]:
    plain = text.encode()
    found = {
        "plain": plain,
        "url-encoded": quote(text, safe="").encode(),
        "url-encoded, lower case": re.sub("%..", lambda escape: escape[0].lower(), quote(text, safe="")).encode(),
        "JSON": text.replace("/", "\\/").encode(),
        "hex": plain.hex().encode(),
        "HEX": plain.hex().upper().encode(),
        "UTF-16": text.encode("utf-16-le"),
        "reversed": plain[::-1],
    }
    for shift in range(3):
        # The characters that also hold bits of the neighbouring bytes are left out.
        first = (shift * 8 + 5) // 6
        length = (shift + len(plain)) * 8 // 6
        encoded = base64.b64encode(b"\0" * shift + plain)[first:length]
        found[f"base64 {shift}"] = encoded
        found[f"base64url {shift}"] = encoded.translate(bytes.maketrans(b"+/", b"-_"))
    return found


@contextlib.contextmanager
def copied_sqlite(database: Path) -> Iterator[Path]:
    """Yield a copy of a database and its journal as they are on the disk now."""
    with tempfile.TemporaryDirectory() as directory:
        for path in database.parent.glob(f"{database.name}*"):
            if path.name.removeprefix(database.name) in {"", "-wal"}:
                shutil.copy(path, directory)
        yield Path(directory) / database.name


def sqlite_cells(database: Path) -> dict[str, bytes]:
    """Return the contents of each column of each table, read from a copy so that no lock is taken."""
    cells: dict[str, bytes] = {}
    with copied_sqlite(database) as copy, contextlib.closing(apsw.Connection(str(copy))) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in [*tables, "sqlite_schema"]:
            rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 — the schema's own names.
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            for index, column in enumerate(columns):
                cells[f"{table}.{column}"] = b"\n".join(_as_bytes(row[index]) for row in rows)
    return cells


def sqlite_bytes(database: Path) -> dict[str, bytes]:
    """Return the bytes of the database files, which may still contain deleted rows."""
    return {
        path.name: path.read_bytes()
        for path in database.parent.glob(f"{database.name}*")
        if path.name.removeprefix(database.name) in {"", "-wal"}
    }


def postgres_cells(dsn: str) -> dict[str, bytes]:
    """Return the contents of each table of a PostgreSQL database. BYTEA arrives in hex and is decoded here."""
    listed = execute(dsn, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
    return {table: _decoded(execute(dsn, f'TABLE "{table}"').encode()) for table in listed.split()}


def _decoded(rows: bytes) -> bytes:
    return re.sub(rb"\\x((?:[0-9a-f]{2})+)", lambda cell: cell[0] + b" " + bytes.fromhex(cell[1].decode()), rows)


def _as_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def hits(canaries: Iterable[Canary], places: dict[str, bytes]) -> list[str]:
    """Return the name, place and encoding of each hit, never the value itself."""
    return [
        f"{canary.name} in {place} ({writing})"
        for place, content in places.items()
        for canary in canaries
        if (writing := canary.found_in(content)) is not None
    ]
