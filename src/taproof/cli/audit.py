"""`taproof audit`: what a developer's audit log says."""
# ruff: noqa: PLC0415 — the heavy parts are imported by the command that needs them, so that `--help` is quick.

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from taproof.cli.command import Given, command, with_storage
from taproof.cli.output import print_json, print_table, to_the_minute
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.names import visible_name

if TYPE_CHECKING:
    from taproof.service.audit import AuditPage
    from taproof.storage.protocol import Storage

_STORE: Final = ("database_url", "pgbouncer", "sandbox")


def add_to(commands: typer.Typer) -> None:
    """Add the command."""
    command(commands, "audit", *_STORE)(audit)


def audit(
    given: Given,
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="The developer's e-mail address.")],
    *,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="NUMBER", help="So many entries at most.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show a developer's audit log, newest entry first: who changed what, when, and from where."""

    async def work(storage: "Storage") -> "AuditPage":
        from taproof.service.audit import AuditLog
        from taproof.service.developers import Developers

        developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        return await AuditLog(storage).list_entries(developer, limit=limit, cursor=None)

    page = with_storage(given, work)

    from taproof.api.audit import show_entry

    shown = [show_entry(entry).model_dump() for entry in page.entries]
    if as_json:
        print_json({"entries": shown})
    else:
        columns = ("time", "who", "via", "address", "what", "subject", "details")
        rows = [
            (
                to_the_minute(entry["created_at"]),
                *(entry[field] for field in ("actor", "via", "address", "action", "subject")),
                _in_words(entry["details"]),
            )
            for entry in shown
        ]
        print_table(columns, rows, empty="Nothing was changed yet.")


def _in_words(details: dict[str, Any]) -> str:
    """Return details on one line, without what could move the cursor or turn the text around."""
    return visible_name(
        ", ".join(f"{field}={json.dumps(value, ensure_ascii=False)}" for field, value in details.items())
    )
