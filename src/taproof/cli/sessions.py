"""`taproof sessions`: the sign-in sessions of projects."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import CallRunner, Cursor, Limit, Output, api_command, list_output
from taproof.cli.output import Column, print_fields
from taproof.core.clock import SECOND
from taproof.http.instants import read_instant
from taproof.sdk import developer_calls

commands: Final = group("sessions", "Look up sign-in sessions.")


def _option(metavar: str, meaning: str, *flag: str) -> Any:
    return typer.Option(*flag, metavar=metavar, show_default=False, help=meaning)


def _time(given: str | None, field: str) -> datetime | None:
    return None if given is None else datetime.fromtimestamp(read_instant(given, field) / SECOND, UTC)


@api_command(commands, "list")
async def list_sessions(
    api: CallRunner,
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
    period = {"since": _time(since, "since"), "until": _time(until, "until")}
    answer = await api.run(
        lambda service: developer_calls.list_sessions(
            service, project_id=project_id, status=status, messenger_id=user, page_size=limit, **period
        ).page(cursor)
    )
    columns: dict[str, Column] = {
        "id": "id",
        "project": "project_name",
        "status": "status",
        "user": "messenger_id",
        "name": "messenger_name",
        "created": "created_at",
        "confirmed": "confirmed_at",
    }
    return list_output(answer, "sessions", columns, empty="There are no such sessions.")


@api_command(commands, "show")
async def read_session(
    api: CallRunner,
    session_id: Annotated[str, typer.Argument(metavar="SESSION_ID", help="The id that `sessions list` shows: sess_…")],
) -> Output:
    """Show one session. Its token is not shown."""
    answer = await api.call(developer_calls.read_session, session_id)
    return Output(answer, lambda: print_fields(answer))
