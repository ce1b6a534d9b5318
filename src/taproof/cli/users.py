"""`taproof users`: the people who sign in with the messenger."""

import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from taproof.cli.command import STORE, AsJson, Given, command, group, load, open_encrypted_store, open_store
from taproof.cli.output import print_json, print_table, to_the_minute
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import ProjectNotFound, TaproofError
from taproof.core.identifiers import is_project_id
from taproof.core.names import visible_name
from taproof.service import json_fields
from taproof.service.erasure import Erasure, checked_messenger_id
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from taproof.service.users import Users

commands: Final = group("users", "Manage the people who sign in with the messenger.")


class NotConfirmed(TaproofError, code="not_confirmed"):
    """The operator did not confirm the erasure."""

    sentence = "Nothing was erased. To skip the question, add --yes."


MessengerId = Annotated[str, typer.Argument(metavar="MESSENGER_ID", help="The user's numeric messenger id.")]


@contextlib.asynccontextmanager
async def _open_users(given: Given) -> AsyncIterator[tuple["Users", Storage]]:
    from taproof.service.users import Users  # noqa: PLC0415 — `--help` must not load the log's packages.

    async with open_encrypted_store(load(given)) as (storage, encryptor):
        erasure = Erasure(storage, system_clock, system_entropy)
        yield Users(storage, encryptor, system_clock, erasure), storage


@command(commands, "list", *STORE, "master_key")
async def list_users(
    given: Given,
    project_id: Annotated[str, typer.Argument(metavar="PROJECT_ID", help="The id that `projects list` shows: proj_…")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=200, metavar="N", help="The maximum number of users.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", show_default=False, help="Continue where the list before ended.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the users who signed in to a project, the latest sign-in first."""
    async with _open_users(given) as (users, storage):
        if not is_project_id(project_id) or await storage.projects.read_project(project_id) is None:
            raise ProjectNotFound
        page = await users.list_users_of(project_id, limit=limit, cursor=cursor)
    found = [json_fields.user(each) for each in page.users]
    if as_json:
        print_json({"users": found, "next_cursor": page.next_cursor})
        return
    columns = ("id", "name", "username", "first sign-in", "last sign-in", "sign-ins", "reports")
    rows = [
        (
            each["messenger_id"],
            visible_name(each["messenger_name"]),
            each["messenger_username"] or "",
            to_the_minute(each["first_sign_in_at"]),
            to_the_minute(each["last_sign_in_at"]),
            str(each["sign_ins"]),
            str(each["reports"]),
        )
        for each in found
    ]
    print_table(columns, rows, empty="Nobody has signed in to this project yet.")
    if page.next_cursor is not None:
        typer.echo(f"For more users, add: --cursor {page.next_cursor}", err=True)


@command(commands, "export", *STORE, "master_key")
async def export_user(given: Given, messenger_id: MessengerId) -> None:
    """Print a user's data in all projects as JSON: everything that `users erase` removes."""
    async with _open_users(given) as (users, _):
        print_json(await users.export_everywhere(messenger_id))


@command(commands, "erase", *STORE)
async def erase_user(
    given: Given,
    messenger_id: MessengerId,
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
    """Ask the operator on stderr, because stdout is for the result. Without a response, return False."""
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
