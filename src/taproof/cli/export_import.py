"""`taproof export` and `taproof import`: everything that one store keeps, carried over to another."""
# ruff: noqa: PLC0415 — the heavy parts are imported by the command that needs them, so that `--help` is quick.

import asyncio
import contextlib
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, cast

import typer

from taproof.cli.command import Given, command, load, require_database
from taproof.cli.output import print_json, print_table
from taproof.config.database_url import database_file, is_postgres, shown_database
from taproof.config.options import variable
from taproof.config.settings import Settings
from taproof.core.clock import iso8601, system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed, MasterKeyWrong, TaproofError

if TYPE_CHECKING:
    from taproof.core.encryption import Encryptor
    from taproof.storage.export.format import Row, Source, Target

_STORE: Final = ("database_url", "pgbouncer", "sandbox")
_STANDARD: Final = "-"
_EXPORT_FILE: Final = "File to write; must not exist. Compressed if it ends in .gz; - is standard output."

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


class FileInTheWay(TaproofError, code="file_in_the_way"):
    """There is a file of this name already."""


class FileUnwritable(TaproofError, code="file_unwritable"):
    """The export cannot be written."""


class MasterKeyNeeded(TaproofError, code="master_key_needed"):
    """The secrets in this export are encrypted, and their master key was not given."""


def add_to(commands: typer.Typer) -> None:
    """Add both commands."""
    command(commands, "export", *_STORE)(export_to)
    command(commands, "import", *_STORE, "master_key")(import_from)


def export_to(
    given: Given,
    file: Annotated[str, typer.Argument(metavar="FILE", help=_EXPORT_FILE)],
    *,
    as_json: AsJson = False,
) -> None:
    """Write everything that the database holds to one file, as it is at this moment.

    What follows after that moment is not in it: to move, stop the service first.

    Stored secrets stay encrypted: keep the master key too. The file holds personal data, as the database does.
    """
    settings = load(given)
    rows = asyncio.run(_export(settings, file))

    database = shown_database(settings.database_url)
    if as_json:
        print_json({"database": database, "file": file, "rows": rows})
    elif file != _STANDARD:
        typer.echo(f"Exported {rows:,} rows of {database} to {file}.")
        typer.echo(f"Its secrets are encrypted. {_where_the_key_is(settings)}")


def import_from(
    given: Given,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File that taproof export made; - is standard input.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Fill an empty database with an export: with all of it, or with nothing.

    The database is made or brought up to date first. It needs the master key that the exported one was used with.
    """
    settings = load(given)
    rows, is_sandbox, unknown = asyncio.run(_import(settings, file))

    database = shown_database(settings.database_url)
    if as_json:
        print_json({"database": database, "file": file, "rows": rows, "under_other_keys": unknown})
    else:
        print_table(("table", "rows"), [(table, f"{count:,}") for table, count in rows.items()], empty="")
        typer.echo(f"\nImported {sum(rows.values()):,} rows into {database}; every table was counted and is complete.")
        if unknown:
            typer.echo(
                f"{unknown:,} values in it are encrypted under a key that was not given. If it was exported while the "
                "master key was rotated, bring along both keys, which may stand in the key file of that time."
            )
        serve = "taproof serve --sandbox" if is_sandbox else "taproof serve"
        typer.echo(f"Check it with: taproof doctor. Then start it, with the same master key: {serve}")
        if settings.master_key is not None:
            name = variable("master_key")
            typer.echo(f"The key is in no file: keep {name} safe, and give it to the service and to every command.")


# ---- the work


async def _export(settings: Settings, file: str) -> int:
    from taproof.storage.export.format import TABLES, write_export

    await require_database(settings)
    with _created(file) as write, _progress("Exporting") as progress:
        async with _open_source(settings) as source:
            total = sum([await source.count(table) for table in TABLES])
            done = 0

            def on_rows(count: int) -> None:
                nonlocal done
                done += count
                progress(done, total)

            return await write_export(source, write, iso8601(system_clock()), on_rows)


async def _import(settings: Settings, file: str) -> tuple[dict[str, int], bool, int]:
    from taproof.runtime import store
    from taproof.service.installation import KEY_MARK, MODE_MARK
    from taproof.storage.export.format import ExportReader

    encryptor = _given_encryptor(settings)
    is_sandbox = False

    def check_metadata(name: str, value: bytes) -> None:
        nonlocal is_sandbox
        is_sandbox = is_sandbox or (name, value) == (MODE_MARK, b"sandbox")
        if name == KEY_MARK:
            _check_key(settings, encryptor, value)

    with _opened(file) as (lines, position, size), _progress("Importing") as progress:
        reader = ExportReader(lines)
        await store.migrate(settings.database_url)
        async with _open_target(settings) as target:
            counting = _CountingUnknown(target, encryptor)
            rows = await reader.copy_to(counting, check_metadata, lambda: progress(position(), size))
    return rows, is_sandbox, counting.count


def _open_source(settings: Settings) -> "AbstractAsyncContextManager[Source]":

    if is_postgres(settings.database_url):
        from taproof.storage.export.postgres import open_postgres_source

        return open_postgres_source(settings.database_url)
    from taproof.storage.export.sqlite import open_sqlite_source

    return open_sqlite_source(database_file(settings.database_url))


def _open_target(settings: Settings) -> "AbstractAsyncContextManager[Target]":

    if is_postgres(settings.database_url):
        from taproof.storage.export.postgres import open_postgres_target

        return open_postgres_target(settings.database_url)
    from taproof.storage.export.sqlite import open_sqlite_target

    return open_sqlite_target(database_file(settings.database_url))


# ---- the master key, which is never in the file


def _given_encryptor(settings: Settings) -> "Encryptor | None":
    """Return the encryptor of the key that the new database will be used with; none is made here."""
    from taproof.core.encryption import Encryptor
    from taproof.runtime.store import master_key_file

    if settings.master_key is not None:
        return Encryptor(settings.master_key.get_secret_value())
    if is_postgres(settings.database_url) or not (path := master_key_file(settings.database_url)).exists():
        return None
    try:
        return Encryptor(path.read_text(encoding="ascii"))
    except ValueError:
        raise MasterKeyWrong(f"The file {path} does not hold a master key. Put back the right one.") from None


def _check_key(settings: Settings, encryptor: "Encryptor | None", check: bytes) -> None:
    from taproof.service.installation import KEY_MARK

    if encryptor is None:
        raise MasterKeyNeeded(
            f"The secrets in this export are encrypted under the master key of the old installation. Bring it along: "
            f"{_ways(settings)}. Nothing was imported."
        )
    try:
        encryptor.decrypt(check, KEY_MARK)
    except DecryptionFailed:
        raise MasterKeyWrong(
            f"The master key given here is not that of the exported database. Bring along the right one: "
            f"{_ways(settings)}. Nothing was imported."
        ) from None


def _ways(settings: Settings) -> str:
    from taproof.runtime.store import master_key_file

    ways = f"set {variable('master_key')} to it: with SQLite it is in the file <database>.key beside the old database"
    if is_postgres(settings.database_url):
        return ways
    return f"copy the old database's key file to {master_key_file(settings.database_url).absolute()}, or {ways}"


class _CountingUnknown:
    """The target of an import, which counts what is encrypted under none of the keys.

    An export that was made while the master key was rotated needs both of its keys, and the check tells of one alone.
    """

    def __init__(self, target: "Target", encryptor: "Encryptor | None") -> None:
        self.commit = target.commit
        self.count = 0
        self._insert = target.insert
        self._encryptor = encryptor

    async def insert(self, table: str, rows: "Sequence[Row]", lines: Sequence[int]) -> None:
        from taproof.storage.export.format import TABLES

        for place, column in enumerate(TABLES[table]):
            if column.name.startswith("encrypted_") and self._encryptor is not None:
                self.count += sum(row[place] is not None and not self._encryptor.knows(row[place]) for row in rows)
        await self._insert(table, rows, lines)


def _where_the_key_is(settings: Settings) -> str:
    from taproof.runtime.store import master_key_file

    if settings.master_key is None and not is_postgres(settings.database_url):
        path = master_key_file(settings.database_url).absolute()
        if path.exists():
            return f"An import needs the key in {path}, as a key file or as {variable('master_key')}."
    return f"An import needs the {variable('master_key')} that the service is run with."


# ---- the file


@contextlib.contextmanager
def _opened(file: str) -> Iterator[tuple[BinaryIO, Callable[[], int], int]]:
    """Yield the lines of an export, what tells how far they were read, and the size of the file (0: not known)."""
    with contextlib.ExitStack() as stack:
        if file == _STANDARD:
            raw, size = cast("io.BufferedReader", sys.stdin.buffer), 0
        else:
            raw = stack.enter_context(Path(file).open("rb"))
            size = os.fstat(raw.fileno()).st_size
        # Told by its first bytes and not by its name, which standard input has not.
        is_packed = raw.peek(2)[:2] == b"\x1f\x8b"
        lines = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_packed else raw
        yield cast("BinaryIO", lines), raw.tell if size else lambda: 0, size


@contextlib.contextmanager
def _created(file: str) -> Iterator[Callable[[bytes], object]]:
    """Yield what writes to a new file (mode 0600), which gets its name when it is whole; or to standard output."""
    if file == _STANDARD:
        try:
            with _sentences("Standard output"):
                yield lambda data: _write(sys.stdout.buffer, data, "Standard output")
                sys.stdout.buffer.flush()
        except FileUnwritable:
            # What the buffer still holds is written at the end of the program, where it must not fail once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise
        return
    path = Path(file)
    in_the_way = FileInTheWay(f"There is already a file {path}. Choose another name, or move it away first.")
    if os.path.lexists(path):
        raise in_the_way
    draft = path.with_name(f".{path.name}.{system_entropy(8).hex()}")
    try:
        with _sentences(file):
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb", 1 << 20) as raw:
                if path.suffix == ".gz":
                    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=1) as packed:
                        yield lambda data: _write(packed, data, file)
                else:
                    yield lambda data: _write(raw, data, file)
                raw.flush()
                os.fsync(raw.fileno())
            try:
                path.hardlink_to(draft)  # Unlike a renaming, it never replaces what was put there meanwhile.
            except FileExistsError:
                raise in_the_way from None
            except OSError:  # Not every file system has hard links.
                draft.rename(path)
            directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
    finally:
        draft.unlink(missing_ok=True)


def _write(output: "BinaryIO | gzip.GzipFile", data: bytes, name: str) -> None:
    # Here and not further out, where a full disk would be taken for a trouble of the database.
    with _sentences(name):
        output.write(data)


@contextlib.contextmanager
def _sentences(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileUnwritable(f"{name} cannot be written: {error.strerror or error}. Nothing was exported.") from error


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how far it is; yield what is told the part done and the whole (0: not known)."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
