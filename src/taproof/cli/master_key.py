"""`taproof master-key`: replace the master key, which encrypts stored secrets."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

import typer

from taproof.cli.command import STORE, AsJson, Given, command, group, load, open_encrypted_store
from taproof.cli.output import print_json, show_status
from taproof.config.database_url import is_postgres, master_key_file
from taproof.config.options import variable
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError
from taproof.service.reencryption import Reencrypted, Reencryptor

commands: Final = group("master-key", "Replace the master key, which encrypts stored secrets.")

_NAME: Final = variable("master_key")
_UNREADABLE_SHOWN: Final = 10
_STEPS: Final = {
    "made": "Created a new key. It is now the first in the key file, before the old one.",
    "taken_up": "The key file has several keys. Continuing the interrupted rotation.",
    "removed": "Removed the old key from the key file.",
}


class KeyNotInFile(TaproofError, code="key_not_in_file"):
    """The master key is in TAPROOF_MASTER_KEY, which this command cannot change."""


class KeyInFile(TaproofError, code="key_in_file"):
    """The master key is in a file."""

    sentence = "The master key is in a file next to the database. To replace it, run: taproof master-key rotate"


class OlderKeyInUse(TaproofError, code="older_key_in_use"):
    """A process still encrypts under an older master key."""


@command(commands, "rotate", *STORE)
async def rotate(given: Given, *, as_json: AsJson = False) -> None:
    """Replace the master key with a new one while the service runs.

    This works for SQLite with a key file. It takes two minutes, or longer with millions of secrets. If the command is
    interrupted, run it again to continue.

    If the key is in TAPROOF_MASTER_KEY, the command prints the steps instead.
    """
    from taproof.runtime.key_rotation import SETTLE_SECONDS, rotate_key_file

    settings = load(given)
    if settings.master_key is not None or is_postgres(settings.database_url):
        raise KeyNotInFile(
            f"The master key is in {_NAME}, which this command cannot change. Follow these steps:\n"
            "1. Create a key: openssl rand -base64 32\n"
            f"2. Restart every node, one after the other, with {_NAME}=OLD,NEW\n"
            f"3. Restart every node with {_NAME}=NEW,OLD\n"
            "4. With the same value, run: taproof master-key reseal\n"
            f"5. When that command tells you to, restart every node with {_NAME}=NEW"
        )
    path = master_key_file(settings.database_url).absolute()
    async with open_encrypted_store(settings) as (storage, encryptor):
        with show_status("Reading…") as show:
            report = partial(_report, show)
            rotated = await rotate_key_file(
                path, storage, encryptor, system_entropy, settle_seconds=SETTLE_SECONDS, on_progress=report
            )
    reencrypted = rotated.reencrypted
    if as_json:
        counts = {"resealed": reencrypted.reencrypted, "left": 0, "unreadable": len(reencrypted.unreadable)}
        print_json({"key_file": str(path), "taken_up": rotated.taken_up, **counts})
        return
    typer.echo(f"All secrets are encrypted under the new master key, which is now the only key in {path}.")
    _print_unreadable(reencrypted)
    typer.echo("Back up the database and this file now. Keep the previous file with earlier backups, which need it.")


@command(commands, "reseal", *STORE, "master_key")
async def reencrypt(given: Given, *, as_json: AsJson = False) -> None:
    """Encrypt everything under the first master key, so that you can remove the others.

    Run it after every node has been restarted with the new key first and the old one second.
    """
    from taproof.runtime.key_rotation import SETTLE_SECONDS

    settings = load(given)
    if settings.master_key is None and not is_postgres(settings.database_url):
        raise KeyInFile
    async with open_encrypted_store(settings) as (storage, encryptor):
        count = encryptor.key_count
        with show_status("Reading…") as show:

            async def settle() -> None:
                if count > 1:
                    _report(show, "waiting", round(SETTLE_SECONDS))
                    await asyncio.sleep(SETTLE_SECONDS)

            on_progress = partial(_report, show, "resealed")
            reencryptor = Reencryptor(storage, encryptor, system_entropy, on_progress=on_progress)
            reencrypted = await reencryptor.reencrypt(settle)
    if as_json:
        counts = {"resealed": reencrypted.reencrypted, "left": reencrypted.left}
        print_json({"keys": count, **counts, "unreadable": len(reencrypted.unreadable)})
    if reencrypted.left:
        raise OlderKeyInUse(
            "Some values are still encrypted under an older key. Keep that key. Make sure that every node has "
            f"been restarted with this {_NAME}, the new key first. Then run this command again."
        )
    if as_json:
        return
    typer.echo(f"Encrypted {reencrypted.reencrypted:,} values again. All values are now encrypted under the first key.")
    _print_unreadable(reencrypted)
    if count > 1:
        typer.echo(
            f"If every node has been restarted with this {_NAME}, the new key first, restart each node with the new "
            "key only. Keep the older key with earlier backups, which need it."
        )


def _print_unreadable(reencrypted: Reencrypted) -> None:
    """Print the places of the values that could not be decrypted."""
    if reencrypted.unreadable:
        typer.echo(
            f"{len(reencrypted.unreadable):,} values cannot be decrypted with any known key and were not "
            "changed. They were damaged or moved, or their key is missing."
        )
        for kind, name in reencrypted.unreadable[:_UNREADABLE_SHOWN]:
            typer.echo(f"  {kind} of {name}")


def _report(show: Callable[[str], None], step: str, number: int) -> None:
    """Report a step on stderr; on a terminal, also show the number of values."""
    if step in _STEPS:
        typer.echo(_STEPS[step], err=True)
    elif step == "waiting":
        typer.echo(f"Waiting {number} seconds for work in progress, then checking all values again.", err=True)
    else:
        show(f"Encrypted {number:,} values again…")
