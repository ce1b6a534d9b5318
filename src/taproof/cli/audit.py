"""`taproof audit`: the audit log of a developer."""

import json
from typing import Annotated, Any, Final

import typer

from taproof.cli.command import STORE, AsJson, Email, Given, command, load, open_store
from taproof.cli.output import print_json, print_table, to_the_minute
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.names import visible_name
from taproof.service.audit import AuditLog
from taproof.service.developers import Developers

commands: Final = typer.Typer()


@command(commands, "audit", *STORE)
async def audit(
    given: Given,
    email: Email,
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="NUMBER", help="Maximum number of entries to show.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Show a developer's audit log: who changed what, and when.

    The newest entry comes first. Each has the address of the caller.
    """
    from taproof.api.audit import show_entry  # noqa: PLC0415 — slow to import, and `--help` does not need it.

    async with open_store(load(given)) as storage:
        developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        page = await AuditLog(storage).list_audit_entries(developer, limit=limit, cursor=None)
    shown = [show_entry(entry).model_dump() for entry in page.entries]
    if as_json:
        print_json({"entries": shown})
        return
    rows = [
        (
            to_the_minute(entry["created_at"]),
            *(entry[field] for field in ("actor", "via", "address", "action", "subject")),
            _on_one_line(entry["details"]),
        )
        for entry in shown
    ]
    print_table(("time", "who", "via", "address", "what", "subject", "details"), rows, empty="There are no entries.")


def _on_one_line(details: dict[str, Any]) -> str:
    """Return details on one line, without characters that move the cursor or change the direction of the text."""
    return visible_name(
        ", ".join(f"{field}={json.dumps(value, ensure_ascii=False)}" for field, value in details.items())
    )
