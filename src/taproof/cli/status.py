"""`taproof status`: what runs on a database, and what needs attention."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

from importlib.metadata import version
from typing import Any, Final

import typer

from taproof.cli.command import STORE, AsJson, Given, command, load, open_store, require_database
from taproof.cli.output import print_json, print_table
from taproof.config.database_url import shown_database
from taproof.core.clock import iso8601, system_clock
from taproof.core.errors import TaproofError
from taproof.core.leases import Lease
from taproof.core.names import visible_name
from taproof.service.status import InstallationStatus, read_status

commands: Final = typer.Typer()

_MEBIBYTE: Final = 1024 * 1024
_PROGRAMS: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


class SchemaNotCurrent(TaproofError, code="schema_not_current"):
    """The schema is older than this release, or the database belongs to another program."""


@command(commands, "status", *STORE)
async def status(given: Given, *, as_json: AsJson = False) -> None:
    """Show what runs on a database, and what needs attention.

    Processes, leases, bots, webhooks, versions and the last backup are shown. It reads the database only, so it
    works on any machine that reaches it, and changes nothing. The exit code is 1 if something needs attention. To
    check the settings, run: taproof doctor
    """
    from taproof.runtime.store import read_schema_versions

    settings = load(given)
    await require_database(settings)
    database = shown_database(settings.database_url)
    found, known = await read_schema_versions(settings.database_url)
    if found < known:
        raise SchemaNotCurrent(
            f"{database} has schema version {found}, and this release needs {known}. Run: taproof migrate"
            if found
            else f"{database} is no database of Taproof. Set another one with --database."
        )
    async with open_store(settings) as storage:
        current = await read_status(storage, system_clock())
    fields = _fields(database, current)
    if as_json:
        print_json(fields)
    else:
        print_table(("what", "state"), _lines(fields), empty="")
        for sentence in fields["attention"]:
            typer.echo(f"\n{typer.style('attention', fg=typer.colors.YELLOW)} {sentence}")
        if fields["ok"]:
            typer.echo("\nNothing needs attention.")
    if not fields["ok"]:
        raise typer.Exit(1)


def _fields(database: str, current: InstallationStatus) -> dict[str, Any]:
    """Return the fields of the JSON output; docs/reference/cli.schema.json describes them."""
    attention = current.attention
    holders: dict[str, list[str]] = {}
    for lease in current.held:
        holders.setdefault(lease.holder, []).append(lease.name)
    oldest = current.oldest_due
    return {
        "ok": not attention,
        "attention": attention,
        "processes": [{**_process(holder), "leases": names} for holder, names in sorted(holders.items())],
        "leases": [_lease(lease, current) for lease in current.leases],
        "bots": {
            "service": sorted({lease.name.removeprefix("bot ") for lease in current.held if lease.name[:4] == "bot "}),
            "projects": len(current.bots),
            "broken": [
                {"project_id": bot.project_id, "username": bot.username, "broken_at": iso8601(bot.broken_at or 0)}
                for bot in current.broken_bots
            ],
        },
        "webhooks": {**current.webhooks._asdict(), "oldest_due_at": None if oldest is None else iso8601(oldest)},
        "versions": {
            "taproof": version("taproof"),
            "database": current.database.program,
            "database_version": current.database.version,
            "schema": current.database.schema_version,
        },
        "database": database,
        "database_size": current.database.size,
        "last_backup": current.last_backup,
    }


def _lease(lease: Lease, current: InstallationStatus) -> dict[str, Any]:
    until = {"held_until": iso8601(lease.held_until), "is_held": lease.held_until > current.now}
    return {"name": lease.name, **_process(lease.holder), **until}


def _process(holder: str) -> dict[str, Any]:
    """Return the host and the process id that a holder's name begins with (see `runtime/app.py`)."""
    host, _, rest = holder.partition(" ")
    pid = rest.partition(" ")[0]
    return {"host": visible_name(host), "pid": int(pid) if pid.isdecimal() else None}


def _lines(fields: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the table for people."""
    bots, webhooks, versions = fields["bots"], fields["webhooks"], fields["versions"]
    processes = [f"{each['host']} {each['pid']}: {', '.join(each['leases'])}" for each in fields["processes"]]
    leases = [
        f"{each['name']}: {each['host']} {each['pid']}, {'' if each['is_held'] else 'expired '}{each['held_until']}"
        for each in fields["leases"]
    ]
    broken = [f"{each['project_id']} (@{each['username']})" for each in bots["broken"]]
    since = f", the oldest since {webhooks['oldest_due_at']}" if webhooks["oldest_due_at"] else ""
    return [
        *[("process", each) for each in processes or ["none holds a lease"]],
        *[("lease", each) for each in leases],
        ("service bot", ", ".join(bots["service"]) or "not served"),
        ("project bots", f"{bots['projects']}, broken: {', '.join(broken) or 'none'}"),
        ("webhooks", f"{webhooks['waiting']:,} waiting, {webhooks['due']:,} due{since}"),
        ("dead letters", f"{webhooks['dead_letters']:,}"),
        ("versions", f"Taproof {versions['taproof']}, schema {versions['schema']}"),
        ("database", f"{_PROGRAMS[versions['database']]} {versions['database_version']}: {fields['database']}"),
        ("size", f"{fields['database_size'] / _MEBIBYTE:,.1f} MiB"),
        ("last backup", fields["last_backup"] or "none recorded by taproof backup"),
    ]
