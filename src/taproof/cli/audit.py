"""`taproof audit`: the audit log of a developer or of a project."""

import json
from typing import Annotated, Any, Final

import typer

from taproof.cli.developer_api import CallRunner, Cursor, Limit, Output, api_command, list_output
from taproof.cli.output import Column, Item
from taproof.sdk import developer_calls

commands: Final = typer.Typer()


def _on_one_line(entry: Item) -> str:
    details: dict[str, Any] = entry["details"]
    return ", ".join(f"{field}={json.dumps(value, ensure_ascii=False)}" for field, value in details.items())


_COLUMNS: Final[dict[str, Column]] = {
    "time": "created_at",
    "who": "actor",
    "via": "via",
    "address": "address",
    "what": "action",
    "subject": "subject",
    "details": _on_one_line,
}


@api_command(commands, "audit")
async def list_audit_entries(
    api: CallRunner,
    *,
    project_id: Annotated[
        str | None,
        typer.Option(
            "--project",
            metavar="PROJECT_ID",
            show_default=False,
            help="What all members did in this project. Default: what the developer did.",
        ),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Output:
    """Show the audit log of a developer or a project: who changed what, and when.

    The newest entry comes first. Each has the address of the caller. In a project, only owners see the addresses of
    other members.
    """
    answer = await api.run(
        lambda service: developer_calls.list_audit_entries(service, project_id, page_size=limit).page(cursor)
    )
    return list_output(answer, "entries", _COLUMNS, empty="There are no entries.")
