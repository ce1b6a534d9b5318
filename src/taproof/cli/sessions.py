"""`taproof sessions`: the sign-in sessions of projects."""

from typing import Annotated, Any, Final

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import Cursor, DeveloperCalls, Limit, Output, api_command, items_of
from taproof.cli.output import Column, print_fields, print_items, print_next_page

commands: Final = group("sessions", "Look up sign-in sessions.")


def _option(metavar: str, meaning: str, *flag: str) -> Any:
    return typer.Option(*flag, metavar=metavar, show_default=False, help=meaning)


@api_command(commands, "list")
async def list_sessions(
    api: DeveloperCalls,
    *,
    project_id: Annotated[
        str | None, _option("PROJECT_ID", "Only this project. Default: all of the developer's projects.", "--project")
    ] = None,
    status: Annotated[
        str | None, _option("STATUS", "Only this status: pending, confirmed, cancelled, expired or used.")
    ] = None,
    user: Annotated[str | None, _option("MESSENGER_ID", "Only sessions that this messenger account confirmed.")] = None,
    since: Annotated[
        str | None, _option("TIME", "Only sessions started at this time or later, such as 2026-11-20T08:00:00Z.")
    ] = None,
    until: Annotated[str | None, _option("TIME", "Only sessions started before this time.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Output:
    """List sessions, newest first."""
    query: dict[str, Any] = {"status": status, "messenger_id": user, "since": since, "until": until}
    answer = await api.call("GET", ["sessions"], project_id=project_id, limit=limit, cursor=cursor, **query)
    columns: dict[str, Column] = {
        "id": "id",
        "project": "project_name",
        "status": "status",
        "user": "messenger_id",
        "name": "messenger_name",
        "created": "created_at",
        "confirmed": "confirmed_at",
    }

    def show() -> None:
        print_items(columns, items_of(answer, "sessions"), empty="There are no such sessions.")
        print_next_page(answer)

    return Output(answer, show)


@api_command(commands, "show")
async def read_session(
    api: DeveloperCalls,
    session_id: Annotated[str, typer.Argument(metavar="SESSION_ID", help="The id that `sessions list` shows: sess_…")],
) -> Output:
    """Show one session. Its token is not shown."""
    answer = await api.call("GET", ["sessions", session_id])
    return Output(answer, lambda: print_fields(answer))
