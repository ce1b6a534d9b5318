"""`taproof master-key`: another master key in place of the one that stored secrets are encrypted with."""
# ruff: noqa: PLC0415 — the heavy parts are imported by the command that needs them, so that `--help` is quick.

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from taproof.cli.command import Given, command, load, open_encrypted_store
from taproof.cli.output import print_json
from taproof.config.database_url import is_postgres
from taproof.config.options import variable
from taproof.config.settings import Settings
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError

if TYPE_CHECKING:
    from taproof.runtime.key_rotation import Rotated
    from taproof.service.reencryption import Reencrypted

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_STORE: Final = ("database_url", "pgbouncer", "sandbox")
_NAME: Final = variable("master_key")
_UNREADABLE_SHOWN: Final = 10


class KeyNotInFile(TaproofError, code="key_not_in_file"):
    """The master key is in TAPROOF_MASTER_KEY, which this command cannot change."""


class KeyInFile(TaproofError, code="key_in_file"):
    """The master key is in a file."""

    sentence = (
        "The master key is in a file beside the database. There one command does it all: taproof master-key rotate."
    )


class OlderKeyInUse(TaproofError, code="older_key_in_use"):
    """Something is encrypted under an older master key all the time."""


def add_to(master_key: typer.Typer) -> None:
    """Add the commands."""
    command(master_key, "rotate", *_STORE)(rotate)
    command(master_key, "reseal", *_STORE, "master_key")(reencrypt)


def rotate(given: Given, *, as_json: AsJson = False) -> None:
    """Put a new master key in place of the old one, while the service runs.

    For SQLite with its key file. It takes two minutes, and longer with millions of secrets. Interrupted anywhere, it is
    taken up where it was by running it again.

    With the key in TAPROOF_MASTER_KEY it says what to do, step by step.
    """
    settings = load(given)
    rotated = asyncio.run(_rotate(settings))

    from taproof.runtime.store import master_key_file

    path = str(master_key_file(settings.database_url).absolute())
    reencrypted = rotated.reencrypted
    if as_json:
        print_json(
            {
                "key_file": path,
                "taken_up": rotated.taken_up,
                "resealed": reencrypted.reencrypted,
                "left": 0,
                "unreadable": len(reencrypted.unreadable),
            }
        )
        return
    typer.echo(f"Everything is encrypted under the new master key, which alone is in {path} now.")
    _print_unreadable(reencrypted)
    typer.echo(
        "Back up the database and this file now. Backups of before open with the key file of before: keep it with them."
    )


def reencrypt(given: Given, *, as_json: AsJson = False) -> None:
    """Encrypt everything under the first key of TAPROOF_MASTER_KEY, so that the others can go.

    Run it when every node has been restarted with the new key first and the old one behind it.
    """
    settings = load(given)
    reencrypted, count = asyncio.run(_reencrypt(settings))
    if as_json:
        print_json(
            {
                "keys": count,
                "resealed": reencrypted.reencrypted,
                "left": reencrypted.left,
                "unreadable": len(reencrypted.unreadable),
            }
        )
    if reencrypted.left:
        raise OlderKeyInUse(
            "A node still encrypts under an older key, or could not be waited for: keep that key. See that every node "
            f"was restarted with this {_NAME}, the new key first, and run this again."
        )
    if as_json:
        return
    typer.echo(f"Encrypted {reencrypted.reencrypted:,} values anew; nothing is left under another key than the first.")
    _print_unreadable(reencrypted)
    if count > 1:
        typer.echo(
            f"If every node has been restarted with this {_NAME}, the new key first: restart each with that key "
            "alone. Keep the older one with the backups of before, which it opens."
        )


async def _rotate(settings: Settings) -> "Rotated":
    from taproof.runtime.key_rotation import SETTLE_SECONDS, rotate_key_file
    from taproof.runtime.store import master_key_file

    if settings.master_key is not None or is_postgres(settings.database_url):
        raise KeyNotInFile(
            f"The master key is in {_NAME}, which this command cannot change. Do it in these steps:\n"
            "1. Make a key: openssl rand -base64 32\n"
            f"2. Restart every node, one after the other, with {_NAME}=OLD,NEW\n"
            f"3. Restart every node with {_NAME}=NEW,OLD\n"
            "4. With the same run: taproof master-key reseal\n"
            f"5. When that has said so, restart every node with {_NAME}=NEW"
        )
    async with open_encrypted_store(settings) as (storage, encryptor):
        with _progress() as told:
            path = master_key_file(settings.database_url)
            return await rotate_key_file(
                path, storage, encryptor, system_entropy, settle_seconds=SETTLE_SECONDS, told=told
            )


async def _reencrypt(settings: Settings) -> tuple["Reencrypted", int]:
    from taproof.runtime.key_rotation import SETTLE_SECONDS
    from taproof.service.reencryption import Reencryptor

    if settings.master_key is None and not is_postgres(settings.database_url):
        raise KeyInFile
    async with open_encrypted_store(settings) as (storage, encryptor):
        with _progress() as told:

            async def settle() -> None:
                if encryptor.key_count > 1:
                    told("waiting", round(SETTLE_SECONDS))
                    await asyncio.sleep(SETTLE_SECONDS)

            reencryptor = Reencryptor(storage, encryptor, system_entropy, told=lambda so_far: told("resealed", so_far))
            return await reencryptor.reencrypt(settle), encryptor.key_count


def _print_unreadable(reencrypted: "Reencrypted") -> None:
    """Name what could not be opened: its place, which is no secret."""
    if reencrypted.unreadable:
        typer.echo(
            f"{len(reencrypted.unreadable):,} values do not open under any known key and were left unchanged: "
            "they were damaged or moved, or their key is missing."
        )
        for kind, name in reencrypted.unreadable[:_UNREADABLE_SHOWN]:
            typer.echo(f"  {kind} of {name}")


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int], None]]:
    """Say on stderr how far it is; on a terminal also while it goes on."""
    from rich.console import Console

    console = Console(stderr=True)
    lines = {
        "made": "Made a new key; it is the first in the key file, the old one stands behind it.",
        "taken_up": "The key file has several keys: taking up the rotation that was interrupted.",
        "removed": "Removed the old key from the key file.",
    }
    with console.status("Reading…") if sys.stderr.isatty() else contextlib.nullcontext() as status:

        def told(step: str, number: int) -> None:
            if step in lines:
                typer.echo(lines[step], err=True)
            elif step == "waiting":
                typer.echo(f"Waiting {number} seconds for what is under way, then looking once more.", err=True)
            elif status is not None:
                status.update(f"Encrypted {number:,} values anew…")

        yield told
