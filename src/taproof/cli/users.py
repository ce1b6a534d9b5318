"""`taproof users`: the people who sign in with the messenger."""
# ruff: noqa: PLC0415 — the heavy parts are imported by the command that needs them, so that `--help` is quick.

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from taproof.cli.command import Given, command, with_storage
from taproof.cli.output import print_json
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError

if TYPE_CHECKING:
    from taproof.core.accounts import Developer
    from taproof.storage.protocol import Storage

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_STORE: Final = ("database_url", "pgbouncer", "sandbox")


class NotConfirmed(TaproofError, code="not_confirmed"):
    """The operator did not confirm the erasure."""

    sentence = "Nothing was erased. To go ahead without being asked, add --yes."


def add_to(users: typer.Typer) -> None:
    """Add the command."""
    command(users, "erase", *_STORE)(erase_user)


def erase_user(
    given: Given,
    messenger_id: Annotated[str, typer.Argument(metavar="MESSENGER_ID", help="The user's messenger account: digits.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether that is meant.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase what all projects keep of a user, while the service runs.

    That is sessions, phone number, webhook events and blocks. Counts stay, without the user. Interrupted anywhere, it
    goes on when it is run again.
    """

    async def work(storage: "Storage") -> "tuple[int, Developer | None]":
        from taproof.service.erasure import Erasure, checked_messenger_id

        checked_messenger_id(messenger_id)
        if not yes and not _is_meant(messenger_id):
            raise NotConfirmed
        erasure = Erasure(storage, system_clock, system_entropy)
        with _progress() as progress:
            rows = await erasure.erase_everywhere(messenger_id, progress)
        return rows, await storage.developers.read_developer_by_messenger_id(messenger_id)

    rows, developer = with_storage(given, work)
    if as_json:
        print_json({"erased": rows > 0, "rows": rows, "developer": None if developer is None else developer.email})
        return
    if rows:
        typer.echo(f"Erased all that was kept of the user {messenger_id}: {rows:,} rows. Backups may still hold it.")
    else:
        typer.echo(f"Nothing is kept of a user {messenger_id}.")
    if developer is not None:
        typer.echo(f"The account also signs in the developer {developer.email} to the console. That was left.")


def _is_meant(messenger_id: str) -> bool:
    question = f"Erase all that is kept of the user {messenger_id}, in all projects? This cannot be undone. [y/N] "
    typer.echo(question, nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # There is nobody to answer.
        typer.echo(err=True)
    return answer.strip().lower() in {"y", "yes"}


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """Show on a terminal how many rows are gone; how many there are nobody knows before the end."""
    if not sys.stderr.isatty():
        yield lambda _rows: None
        return
    from rich.console import Console

    with Console(stderr=True).status("Erasing") as status:
        yield lambda rows: status.update(f"Erasing: {rows:,} rows")
