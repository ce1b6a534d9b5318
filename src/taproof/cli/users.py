"""`taproof users`: the people who sign in with the messenger."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Final

import typer

from taproof.cli.command import STORE, AsJson, Given, command, group, load, open_store
from taproof.cli.output import print_json
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError
from taproof.service.erasure import Erasure, checked_messenger_id

commands: Final = group("users", "Manage the people who sign in with the messenger.")


class NotConfirmed(TaproofError, code="not_confirmed"):
    """The operator did not confirm the erasure."""

    sentence = "Nothing was erased. To skip the question, add --yes."


@command(commands, "erase", *STORE)
async def erase_user(
    given: Given,
    messenger_id: Annotated[str, typer.Argument(metavar="MESSENGER_ID", help="The user's numeric messenger id.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a user's data in all projects. The service can keep running.

    The data are sessions, phone number, webhook events and blocks. Anonymous counts are kept. If the command is
    interrupted, run it again to continue.
    """
    async with open_store(load(given)) as storage:
        checked_messenger_id(messenger_id)
        if not yes and not _confirm(messenger_id):
            raise NotConfirmed
        with _progress() as progress:
            erasure = Erasure(storage, system_clock, system_entropy)
            rows = await erasure.erase_everywhere(messenger_id, progress)
        developer = await storage.developers.read_developer_by_messenger_id(messenger_id)
    if as_json:
        print_json({"erased": rows > 0, "rows": rows, "developer": None if developer is None else developer.email})
        return
    if rows:
        typer.echo(f"Erased all data of the user {messenger_id}: {rows:,} rows. Backups may still contain it.")
    else:
        typer.echo(f"There is no data for the user {messenger_id}.")
    if developer is not None:
        typer.echo(f"The developer {developer.email} can still sign in to the console with this account.")


def _confirm(messenger_id: str) -> bool:
    """Ask the operator on stderr, because stdout is for the result. Without an answer, return False."""
    question = f"Erase all data of the user {messenger_id}, in all projects? This cannot be undone. [y/N] "
    typer.echo(question, nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        typer.echo(err=True)
    return answer.strip().lower() in {"y", "yes"}


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """On a terminal, show how many rows have been erased. The total is unknown until the end."""
    if not sys.stderr.isatty():
        yield lambda _rows: None
        return
    from rich.console import Console  # noqa: PLC0415 — slow, and only a terminal needs it.

    with Console(stderr=True).status("Erasing") as status:
        yield lambda rows: status.update(f"Erasing: {rows:,} rows")
