"""`taproof backup` and `taproof restore`: copy a SQLite database to a file while the service runs, and back."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from taproof.cli.command import STORE, AsJson, Given, command, load, require_database
from taproof.cli.export_import import (
    FileInTheWay,
    FileUnwritable,
    MasterKeyNeeded,
    given_encryptor,
    publish,
    show_progress,
    where_the_key_is,
)
from taproof.cli.output import print_json
from taproof.config.database_url import database_file, is_postgres, master_key_file, shown_database
from taproof.config.options import variable
from taproof.config.settings import Settings
from taproof.core.clock import iso8601, system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed, MasterKeyWrong, TaproofError
from taproof.service.installation import BACKUP_MARK, KEY_MARK, MODE_MARK, WrongMode

if TYPE_CHECKING:
    import apsw

    from taproof.storage.sqlite.backup import Content

commands: Final = typer.Typer()

_SANDBOX: Final = b"sandbox"


class OnlySqlite(TaproofError, code="only_sqlite"):
    """The database is PostgreSQL, which has tools of its own for this."""

    sentence = (
        "This command is for SQLite. Back up and restore PostgreSQL with pg_dump and pg_restore, or with pg_basebackup "
        "and WAL archiving; see docs/how-to/backup.md."
    )


@command(commands, "backup", *STORE)
async def back_up(
    given: Given,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to create.")],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Copy a SQLite database to a file while the service runs.

    The copy is verified. The file appears under its name only when it is complete. It lacks the master key: back
    that up separately.
    """
    settings = load(given)
    path = _sqlite_file(settings)
    await require_database(settings)
    now = system_clock()
    content = _back_up(path, file, replace=force)

    from taproof.storage.sqlite.backup import write_mark

    with _sentences(path, "The backup is complete, but its time was not recorded"):
        write_mark(path, BACKUP_MARK, iso8601(now).encode())
    if as_json:
        key_file = master_key_file(settings.database_url).absolute()
        shown_key_file = str(key_file) if settings.master_key is None and key_file.exists() else None
        more = {"size": file.stat().st_size, "master_key_file": shown_key_file}
        print_json({**_shown(settings, file, content), **more})
    else:
        typer.echo(
            f"Backed up {sum(content.rows.values()):,} rows of {shown_database(settings.database_url)} to {file}."
        )
        typer.echo(f"The master key is not in it. {where_the_key_is(settings, 'A restore')}")


@command(commands, "restore", *STORE, "master_key")
async def restore(
    given: Given,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file that taproof backup wrote.")],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the content of an existing database.")] = False,
    as_json: AsJson = False,
) -> None:
    """Replace a SQLite database with a backup. Stop the service first.

    The backup is verified. It needs the master key of the database that was backed up. If anything fails, nothing
    is changed.
    """
    settings = load(given)
    path = _sqlite_file(settings)
    content, undecryptable = _restore(settings, file, path, replace=force)
    if as_json:
        print_json({**_shown(settings, file, content), "under_other_keys": undecryptable})
        return
    typer.echo(f"Restored {sum(content.rows.values()):,} rows to {shown_database(settings.database_url)}.")
    if undecryptable:
        typer.echo(
            f"{undecryptable:,} values are encrypted under another key. If the backup was made during a rotation of "
            "the master key, put back the key file from that time."
        )
    typer.echo("Rights that were revoked since the backup exist again. Check the database with: taproof doctor")


def _sqlite_file(settings: Settings) -> Path:
    if is_postgres(settings.database_url):
        raise OnlySqlite
    return database_file(settings.database_url).absolute()


def _shown(settings: Settings, file: Path, content: "Content") -> dict[str, Any]:
    return {
        "database": shown_database(settings.database_url),
        "file": str(file),
        "schema_version": content.schema_version,
        "rows": content.rows,
    }


def _back_up(path: Path, file: Path, *, replace: bool) -> "Content":
    """Write a verified copy of the database to `file`."""
    from taproof.runtime.key_file import sync_directory
    from taproof.storage.sqlite.backup import beside, copy_to, discard, open_snapshot

    own = [path, *beside(path), *(path.with_name(f"{path.name}{end}") for end in (".key", ".token"))]
    # Compare names too: a process that does not find its file creates it, or takes the backup for it.
    if any(file.resolve() == each.resolve() or _is_same(file, each) for each in own):
        raise FileUnwritable(f"{file} belongs to the database itself. Choose another name for the backup.")
    if os.path.lexists(file) and not replace:
        raise FileInTheWay(file)
    draft = _draft(file)
    try:
        with (
            show_progress("Backing up") as progress,
            open_snapshot(path, writable=True) as source,
            _sentences(file, "Nothing was backed up"),
        ):
            content = copy_to(source, draft, path, progress)
            if replace:
                draft.replace(file)
                sync_directory(file.parent)
            else:
                publish(draft, file)
        return content
    finally:
        discard(draft)


def _is_same(file: Path, other: Path) -> bool:
    return file.exists() and other.exists() and file.samefile(other)


def _restore(settings: Settings, file: Path, path: Path, *, replace: bool) -> "tuple[Content, int]":
    """Make the backup the database. Return its content, and the number of values under other keys."""
    from taproof.storage.sqlite.backup import (
        beside,
        copy_to,
        count_undecryptable,
        discard,
        open_snapshot,
        restore_into,
        verify,
    )

    exists = os.path.lexists(path)
    if exists and not replace:
        raise FileUnwritable(
            f"The database {path} already exists. Stop the service, and add --force to replace its content."
        )
    if not file.is_file():
        raise FileUnwritable(f"There is no file {file}. Name a file that taproof backup wrote.")
    if exists and file.samefile(path):
        raise FileUnwritable(f"{file} is the database itself. Name a file that taproof backup wrote.")
    with show_progress("Restoring") as progress, open_snapshot(file) as source:
        content = verify(source, file)
        encryptor = given_encryptor(settings)
        _check_marks(settings, source, encryptor)
        undecryptable = 0 if encryptor is None else count_undecryptable(source, encryptor.knows)
        with _sentences(path, "Nothing was restored"):
            if exists:
                restore_into(source, path, progress)
                return content, undecryptable
            # SQLite would apply the log of another database to the restored one.
            if left := [str(each) for each in beside(path) if each.exists()]:
                raise FileUnwritable(f"Move these files of an earlier database first: {', '.join(left)}.")
            draft = _draft(path)
            try:
                copy_to(source, draft, file, progress)
                publish(draft, path)
            finally:
                discard(draft)
    return content, undecryptable


def _check_marks(settings: Settings, source: "apsw.Connection", encryptor: Encryptor | None) -> None:
    """Check that the backup has this mode, sandbox or real, and this master key."""
    from taproof.storage.sqlite.backup import read_mark

    mode = read_mark(source, MODE_MARK)
    if mode is not None and (mode == _SANDBOX) != settings.sandbox:
        made, advice = ("a sandbox", "add --sandbox") if mode == _SANDBOX else ("a real service", "omit --sandbox")
        raise WrongMode(f"This is a backup of {made}. To restore it, {advice}. Nothing was restored.")
    check = read_mark(source, KEY_MARK)
    if check is None:
        return
    key_file = master_key_file(settings.database_url).absolute()
    ways = f"copy its key file to {key_file}, or set {variable('master_key')}"
    if encryptor is None:
        raise MasterKeyNeeded(
            f"The secrets in this backup are encrypted. Provide the master key of its database: {ways}. Nothing was "
            "restored."
        )
    try:
        encryptor.decrypt(check, KEY_MARK)
    except DecryptionFailed:
        raise MasterKeyWrong(
            f"This is not the master key of the backup. Provide the right one: {ways}. Nothing was restored."
        ) from None


def _draft(file: Path) -> Path:
    return file.with_name(f".{file.name}.{system_entropy(8).hex()}")


@contextlib.contextmanager
def _sentences(path: Path, outcome: str) -> Iterator[None]:
    import apsw

    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError):
        raise  # The source is damaged.
    except (OSError, apsw.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise FileUnwritable(f"{path} cannot be written: {reason}. {outcome}.") from error
