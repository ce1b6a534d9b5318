"""`taproof users`: the people who sign in with the messenger."""

import codecs
import re
from typing import Annotated, Any, Final

import typer

from taproof.cli.command import AsJson, Given, command, group, load, open_encrypted_store, open_store
from taproof.cli.developer_api import (
    API_SETTINGS,
    CallRunner,
    Cursor,
    DeveloperEmail,
    Limit,
    Output,
    ProjectId,
    ServiceUrl,
    Yes,
    api_command,
    confirm,
    list_output,
    offer_services,
    open_developer_api,
)
from taproof.cli.output import Column, print_items, print_json, show_status
from taproof.cli.remote import CallFailed
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError
from taproof.core.names import visible_name
from taproof.sdk import developer_calls, user_calls
from taproof.service.erasure import Erasure, checked_messenger_id

_NOT_ASCII: Final = re.compile(r"[^\n\x20-\x7e]+")
_BEGIN: Final = '{"messenger_id": '
_NO_EXPORT: Final = "The service does not answer like a Taproof service: this is not an export."


class ExportIncomplete(TaproofError, code="export_incomplete"):
    """The service broke off the export."""

    sentence = (
        "The export is not complete: the user was erased meanwhile, your rights ended, or the connection was lost. Do "
        "not use the output. Run the command again."
    )


commands: Final = group("users", "Manage the people who sign in with the messenger.")

MessengerId = Annotated[str, typer.Argument(metavar="MESSENGER_ID", help="The user's numeric messenger id.")]


@api_command(commands, "list")
async def list_users(api: CallRunner, project_id: ProjectId, *, limit: Limit = 50, cursor: Cursor = None) -> Output:
    """List the users who signed in to a project, the latest sign-in first."""
    answer = await api.run(lambda service: user_calls.list_users(service, project_id, page_size=limit).page(cursor))
    columns: dict[str, Column] = {
        "id": "messenger_id",
        "name": "messenger_name",
        "username": "messenger_username",
        "first sign-in": "first_sign_in_at",
        "last sign-in": "last_sign_in_at",
        "sign-ins": "sign_ins",
        "reports": "reports",
    }
    return list_output(answer, "users", columns, empty="Nobody has signed in to this project yet.")


@api_command(commands, "show")
async def read_user(api: CallRunner, project_id: ProjectId, messenger_id: MessengerId) -> Output:
    """Show the sessions of a user in a project, newest first: the 50 latest."""
    answer = await api.run(
        lambda service: developer_calls.list_sessions(service, project_id=project_id, messenger_id=messenger_id).page(
            None
        )
    )
    columns: dict[str, Column] = {
        "id": "id",
        "status": "status",
        "name": "messenger_name",
        "username": "messenger_username",
        "created": "created_at",
        "confirmed": "confirmed_at",
    }
    empty = f"The user {messenger_id} has not signed in to this project."
    return Output(answer, lambda: print_items(columns, answer["sessions"], empty=empty))


@command(commands, "export", *API_SETTINGS)
async def export_user(
    given: Given,
    messenger_id: MessengerId,
    *,
    as_json: AsJson = False,  # noqa: ARG001 — the output is always JSON.
    service: ServiceUrl = None,
    developer: DeveloperEmail = None,
) -> None:
    """Print a user's data as JSON: everything that `users erase` removes.

    The output is JSON even without --json, with a line for each session. If the export breaks off, the command fails,
    and what it has printed is not complete. On the local database, it covers all projects, or those of --developer.
    On a service, it covers your projects, if you are an owner or a developer of them.
    """
    from taproof.service.user_export import LAST_LINE, UserExports  # noqa: PLC0415 — it loads the log's packages.

    printer = _ExportPrinter()
    if service is not None or developer is not None:
        async with open_developer_api(given, service, developer) as api:
            await api.run(lambda service: user_calls.export_user(service, messenger_id), printer.print)
    else:
        async with offer_services(), open_encrypted_store(load(given)) as (storage, encryptor):
            async for text in UserExports(storage, encryptor, system_clock).export_everywhere(messenger_id):
                printer.print(text.encode(errors="replace"))
    printer.finish(LAST_LINE)


@command(commands, "erase", *API_SETTINGS)
async def erase_user(
    given: Given,
    messenger_id: MessengerId,
    *,
    yes: Yes = False,
    as_json: AsJson = False,
    service: ServiceUrl = None,
    developer: DeveloperEmail = None,
) -> None:
    """Erase a user's data. The service can keep running.

    On the local database, it covers all projects, or those of --developer. On a service, it covers your projects, if
    you are an owner or a developer of them.

    The data are sessions, phone number and webhook events; in all projects, also blocks. Anonymous counts are kept. If
    the command is interrupted, run it again to continue.
    """
    where = "in all projects"
    if service is not None or developer is not None:
        where = "in your projects" if developer is None else f"in the projects of {developer}"
        async with open_developer_api(given, service, developer) as api:
            confirm(_question(messenger_id, where), yes=yes)
            answer = await api.call(user_calls.erase_user, messenger_id)
    else:
        answer = await _erase_everywhere(given, messenger_id, yes=yes)
    if as_json:
        print_json(answer)
        return
    if answer.get("erased"):
        rows = answer.get("erased_rows")
        more = f": {rows:,} rows" if isinstance(rows, int) else ""
        typer.echo(f"Erased all data of the user {messenger_id} {where}{more}. Backups may still contain it.")
    else:
        typer.echo(f"There is no data for the user {messenger_id} {where}.")
    if answer.get("developer"):
        email = visible_name(str(answer["developer"]))
        typer.echo(f"The developer {email} can still sign in to the console with this account.")


class _ExportPrinter:
    """Prints an export that arrives in pieces, as ASCII. It may come from a hostile service.

    In JSON, only texts contain other characters, so they are replaced by their escapes.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._held = ""
        self._begun = False
        self._last_line = ""  # The end of the output, with the line break.

    def print(self, piece: bytes) -> None:
        """Print the next piece. Refuse the first ones, and print nothing, if they do not begin an export."""
        text = self._held + _NOT_ASCII.sub(_escaped, self._decode(piece))
        if not self._begun and len(text) < len(_BEGIN):
            self._held = text
            return
        if not self._begun and not text.startswith(_BEGIN):
            raise CallFailed(_NO_EXPORT)
        self._held, self._begun = "", True
        typer.echo(text, nl=False)
        self._last_line = (self._last_line + text).splitlines(keepends=True)[-1][-len(_BEGIN) :]

    def finish(self, last_line: str) -> None:
        """Check that this was an export, and that it did not break off."""
        if not self._begun:
            raise CallFailed(_NO_EXPORT)
        if self._last_line != last_line:
            raise ExportIncomplete


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _question(messenger_id: str, where: str) -> str:
    return f"Erase all data of the user {messenger_id}, {where}? This cannot be undone."


async def _erase_everywhere(given: Given, messenger_id: str, *, yes: bool) -> dict[str, Any]:
    """Erase a user from all projects of the database, which only the operator can do."""
    async with offer_services(), open_store(load(given)) as storage:
        checked_messenger_id(messenger_id)
        confirm(_question(messenger_id, "in all projects"), yes=yes)
        with show_status("Erasing") as show:
            erasure = Erasure(storage, system_clock, system_entropy)
            rows = await erasure.erase_everywhere(messenger_id, lambda done: show(f"Erasing: {done:,} rows"))
        linked = await storage.developers.read_developer_by_messenger_id(messenger_id)
    return {"erased": rows > 0, "erased_rows": rows, "developer": None if linked is None else linked.email}
