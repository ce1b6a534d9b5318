"""`taproof export` and `taproof import`: copy all data from one database to another."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import gzip
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, BinaryIO, Final, cast

import typer

from taproof.cli.command import STORE, AsJson, Given, command, load, require_database
from taproof.cli.output import print_json, print_table
from taproof.config.database_url import database_file, is_postgres, master_key_file, shown_database
from taproof.config.options import variable
from taproof.config.settings import Settings
from taproof.core.clock import iso8601, system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed, MasterKeyWrong, TaproofError
from taproof.service.installation import KEY_MARK, MODE_MARK
from taproof.storage.export.format import TABLES, ExportReader, Row, Source, Target, write_export

commands: Final = typer.Typer()

_STANDARD: Final = "-"
_EXPORT_FILE: Final = "File to create. Compressed if its name ends in .gz; - is standard output."


class FileInTheWay(TaproofError, code="file_in_the_way"):
    """A file with this name already exists."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"The file {path} already exists. Choose another name, or move the file first.")


class FileUnwritable(TaproofError, code="file_unwritable"):
    """The export cannot be written."""


class MasterKeyNeeded(TaproofError, code="master_key_needed"):
    """The secrets in this export are encrypted, and their master key was not given."""


@command(commands, "export", *STORE)
async def export_to(
    given: Given,
    file: Annotated[str, typer.Argument(metavar="FILE", help=_EXPORT_FILE)],
    *,
    as_json: AsJson = False,
) -> None:
    """Write a snapshot of the database to one file.

    Changes made after the command starts are not included. To move to another database, stop the service first.

    Stored secrets stay encrypted, so keep the master key too. The file contains personal data, as the database does.
    """
    settings = load(given)
    rows = await _export(settings, file)

    database = shown_database(settings.database_url)
    if as_json:
        print_json({"database": database, "file": file, "rows": rows})
    elif file != _STANDARD:
        typer.echo(f"Exported {sum(rows.values()):,} rows of {database} to {file}.")
        typer.echo(f"The secrets in it are encrypted. {where_the_key_is(settings, 'An import')}")


@command(commands, "import", *STORE, "master_key")
async def import_from(
    given: Given,
    file: Annotated[str, typer.Argument(metavar="FILE", help="File that taproof export wrote; - is standard input.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Copy an export into an empty database.

    If anything fails, nothing is imported. The database is created or migrated first. The import needs the master
    key of the exported database.
    """
    settings = load(given)
    rows, is_sandbox, unknown = await _import(settings, file)

    database = shown_database(settings.database_url)
    if as_json:
        print_json({"database": database, "file": file, "rows": rows, "under_other_keys": unknown})
    else:
        print_table(("table", "rows"), [(table, f"{count:,}") for table, count in rows.items()], empty="")
        typer.echo(f"\nImported {sum(rows.values()):,} rows into {database}. All tables are complete.")
        if unknown:
            typer.echo(
                f"{unknown:,} imported values are encrypted under another key. If the export was made during a "
                "rotation of the master key, set both keys. The key file from that time may contain both."
            )
        serve = "taproof serve --sandbox" if is_sandbox else "taproof serve"
        typer.echo(f"Check the database with: taproof doctor. Then start the service with the same master key: {serve}")
        if settings.master_key is not None:
            name = variable("master_key")
            typer.echo(f"The key is not stored in a file. Keep {name} safe. The service and every command need it.")


async def _export(settings: Settings, file: str) -> dict[str, int]:
    """Write the export, and return the number of rows by table."""
    await require_database(settings)
    opened: AbstractAsyncContextManager[Source]
    if is_postgres(settings.database_url):
        from taproof.storage.export.postgres import open_postgres_source

        opened = open_postgres_source(settings.database_url)
    else:
        from taproof.storage.export.sqlite import open_sqlite_source

        opened = open_sqlite_source(database_file(settings.database_url))
    with _created(file) as write, show_progress("Exporting") as progress:
        async with opened as source:
            counts = {table: await source.count(table) for table in TABLES}
            total = sum(counts.values())
            done = 0

            def on_rows(count: int) -> None:
                nonlocal done
                done += count
                progress(done, total)

            await write_export(source, write, iso8601(system_clock()), on_rows)
            return counts


async def _import(settings: Settings, file: str) -> tuple[dict[str, int], bool, int]:
    """Import the file. Return the rows by table, whether it is a sandbox, and the number of undecryptable values."""
    from taproof.runtime import store

    encryptor = given_encryptor(settings)
    is_sandbox = False

    def check_metadata(name: str, value: bytes) -> None:
        nonlocal is_sandbox
        is_sandbox = is_sandbox or (name, value) == (MODE_MARK, b"sandbox")
        if name == KEY_MARK:
            _check_key(settings, encryptor, value)

    opened: AbstractAsyncContextManager[Target]
    if is_postgres(settings.database_url):
        from taproof.storage.export.postgres import open_postgres_target

        opened = open_postgres_target(settings.database_url)
    else:
        from taproof.storage.export.sqlite import open_sqlite_target

        opened = open_sqlite_target(database_file(settings.database_url))
    with _opened(file) as (lines, position, size), show_progress("Importing") as progress:
        reader = ExportReader(lines)
        await store.migrate(settings.database_url)
        async with opened as target:
            counting = _CountingUnknown(target, encryptor)
            rows = await reader.copy_to(counting, check_metadata, lambda: progress(position(), size))
    return rows, is_sandbox, counting.count


# ---- the master key, which is never in the export


def given_encryptor(settings: Settings) -> Encryptor | None:
    """Return the encryptor for the master key of the new database, or None if there is no key yet."""
    if settings.master_key is not None:
        return Encryptor(settings.master_key.get_secret_value())
    if is_postgres(settings.database_url) or not (path := master_key_file(settings.database_url)).exists():
        return None
    try:
        return Encryptor(path.read_text(encoding="ascii"))
    except ValueError:
        raise MasterKeyWrong(f"The file {path} does not contain a master key. Put back the right file.") from None


def _check_key(settings: Settings, encryptor: Encryptor | None, check: bytes) -> None:
    if encryptor is None:
        raise MasterKeyNeeded(
            "The secrets in this export are encrypted under the master key of the exported database. Provide that key: "
            f"{_ways(settings)}. Nothing was imported."
        )
    try:
        encryptor.decrypt(check, KEY_MARK)
    except DecryptionFailed:
        raise MasterKeyWrong(
            "This is not the master key of the exported database. Provide the right one: "
            f"{_ways(settings)}. Nothing was imported."
        ) from None


def _ways(settings: Settings) -> str:
    ways = (
        f"set {variable('master_key')} to it (with SQLite, it is in the file <database>.key next to the old database)"
    )
    if is_postgres(settings.database_url):
        return ways
    return f"copy the old database's key file to {master_key_file(settings.database_url).absolute()}, or {ways}"


class _CountingUnknown:
    """The target of an import. It counts the values that no known key can decrypt.

    An export that was made during a rotation of the master key needs both keys, and the key check covers only one.
    """

    def __init__(self, target: Target, encryptor: Encryptor | None) -> None:
        self.commit = target.commit
        self.count = 0
        self._insert = target.insert
        self._encryptor = encryptor

    async def insert(self, table: str, rows: Sequence[Row], lines: Sequence[int]) -> None:
        for index, column in enumerate(TABLES[table]):
            if column.name.startswith("encrypted_") and self._encryptor is not None:
                self.count += sum(row[index] is not None and not self._encryptor.knows(row[index]) for row in rows)
        await self._insert(table, rows, lines)


def where_the_key_is(settings: Settings, needed_by: str) -> str:
    """Return a sentence about the master key that `needed_by`, such as "An import", needs."""
    if settings.master_key is None and not is_postgres(settings.database_url):
        path = master_key_file(settings.database_url).absolute()
        if path.exists():
            return f"{needed_by} needs the key in {path}, as a key file or as {variable('master_key')}."
    return f"{needed_by} needs the {variable('master_key')} of the service."


# ---- the file


@contextlib.contextmanager
def _opened(file: str) -> Iterator[tuple[BinaryIO, Callable[[], int], int]]:
    """Yield the lines of an export, a function that returns the position in the file, and its size (0 if unknown)."""
    with contextlib.ExitStack() as stack:
        if file == _STANDARD:
            raw, size = cast("io.BufferedReader", sys.stdin.buffer), 0
        else:
            raw = stack.enter_context(Path(file).open("rb"))
            size = os.fstat(raw.fileno()).st_size
        # Detect the format by the first bytes, because standard input has no name.
        is_packed = raw.peek(2)[:2] == b"\x1f\x8b"
        lines = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_packed else raw
        yield cast("BinaryIO", lines), raw.tell if size else lambda: 0, size


@contextlib.contextmanager
def _created(file: str) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes to standard output, or to a file (mode 0600) that appears once it is complete."""
    if file == _STANDARD:
        try:
            with _sentences("Standard output"):
                yield lambda data: _write(sys.stdout.buffer, data, "Standard output")
                sys.stdout.buffer.flush()
        except FileUnwritable:
            # The rest of the buffer is written when the program exits, and must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise
        return
    path = Path(file)
    if os.path.lexists(path):
        raise FileInTheWay(path)
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
            publish(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def publish(draft: Path, path: Path) -> None:
    """Give a synced file its final name, which no other file may have. A crash leaves the whole file or none."""
    from taproof.runtime.key_file import sync_directory

    try:
        path.hardlink_to(draft)  # Unlike rename, it never replaces a file that was created meanwhile.
    except FileExistsError:
        raise FileInTheWay(path) from None
    except OSError:  # Not every file system has hard links.
        draft.rename(path)
    sync_directory(path.parent)


def _write(output: "BinaryIO | gzip.GzipFile", data: bytes, name: str) -> None:
    # Caught here, because further out a full disk would look like a database error.
    with _sentences(name):
        output.write(data)


@contextlib.contextmanager
def _sentences(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FileUnwritable(f"{name} cannot be written: {error.strerror or error}. Nothing was exported.") from error


@contextlib.contextmanager
def show_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress on a terminal; yield a function that takes the amount done and the total (0 if unknown)."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
