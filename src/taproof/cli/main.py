"""The command line: each command is a thin layer over the use cases that the HTTP API calls.

Only the command that needs a slow module imports it, so that `--help` and `version` are fast.
"""
# ruff: noqa: PLC0415 — see above.

import asyncio
import gc
import os
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Annotated, Final

import typer

from taproof.cli import (
    audit,
    backup,
    clients,
    completion,
    developers,
    export_import,
    login,
    master_key,
    members,
    oidc,
    projects,
    sessions,
    status,
    tokens,
    users,
)
from taproof.cli.command import STORE, AsJson, Given, command, group, load
from taproof.cli.help import HelpCommand
from taproof.cli.output import print_finding, print_json
from taproof.cli.webhooks import listen, trigger
from taproof.config.database_url import is_postgres, shown_database
from taproof.config.options import NO_MASTER_KEY, called, no_messenger
from taproof.config.settings import OPTIONS, InvalidSettings, unknown_variables
from taproof.core.clock import system_clock

_EVERY: Final = tuple(OPTIONS)

commands = group("taproof", "Sign users in with their messenger account. To try it out: taproof serve --sandbox")


@command(commands, "serve", *_EVERY)
def serve(given: Given) -> None:
    """Run the service until Ctrl+C or SIGTERM.

    To try it out: taproof serve --sandbox

    With a real bot: TAPROOF_BOT_TOKEN=… taproof serve

    For several processes or nodes, see docs/how-to/processes-and-nodes.md.

    Each option can also be set with the environment variable next to it; the option takes precedence.
    """
    settings = load(given)
    missing = []
    if settings.needs_bot and settings.bot_token is None and not settings.sandbox:
        missing.append(no_messenger(settings.role, settings.bot_updates))
    if is_postgres(settings.database_url) and settings.master_key is None:
        missing.append(NO_MASTER_KEY)
    if missing:
        raise InvalidSettings(missing)

    gc.disable()  # As in `__main__.py`. `app.serve` enables it again.
    import structlog

    from taproof.cli.doctor.address import check_address
    from taproof.runtime import app, listener, supervisor

    log = structlog.get_logger(__name__)
    for sentence in unknown_variables(os.environ):
        log.warning("unknown_setting", advice=sentence)
    if settings.bot_token is not None and settings.sandbox:
        log.warning("bot_token_unused", advice=f"{called('sandbox')} has its own messenger.")
    address = check_address(settings)
    if address.status == "problem":
        log.warning("address_unusable", advice=f"{address.detail}. {address.advice}")
    if settings.workers > 1:
        supervisor.run(settings)
    else:
        listener.check_listening(settings)
        app.run(settings)


@command(commands, "doctor", *_EVERY)
def doctor(given: Given, *, as_json: AsJson = False) -> None:
    """Check what sign-in depends on, and say how to fix problems.

    It takes the same options as serve and changes nothing. The exit code is 1 if a problem is found.
    """
    from taproof.cli.doctor.examine import examine
    from taproof.cli.doctor.finding import Finding

    try:
        findings = asyncio.run(examine(load(given), os.environ, system_clock))
    except InvalidSettings as error:
        # No other check can run without valid settings.
        findings = [Finding("settings", "problem", sentence) for sentence in error.sentences]
    checks = [asdict(finding) for finding in findings]
    problems = sum(finding.status == "problem" for finding in findings)
    if as_json:
        print_json({"ok": problems == 0, "checks": checks})
    else:
        for check in checks:
            print_finding(**check)
        warnings = sum(finding.status == "warning" for finding in findings)
        if problems or warnings:
            found = f"{problems or 'No'} problem{'' if problems == 1 else 's'} found"
            warned = f", {warnings} warning{'' if warnings == 1 else 's'}" if warnings else ""
            typer.echo(f"\n{found}{warned}.")
        else:
            typer.echo("\nAll checks passed.")
    if problems:
        raise typer.Exit(1)


@command(commands, "migrate", *STORE)
def migrate(given: Given, *, as_json: AsJson = False) -> None:
    """Create the database, or migrate it to this release.

    The command serve does so at every start.
    """
    settings = load(given)

    from taproof.runtime import store

    before, after = asyncio.run(store.migrate(settings.database_url))
    database = shown_database(settings.database_url)
    if as_json:
        print_json({"database": database, "from_version": before, "to_version": after})
    elif before == after:
        typer.echo(f"{database} is up to date: schema version {after}.")
    else:
        typer.echo(f"Migrated {database} from schema version {before} to {after}.")


@commands.command("version", cls=HelpCommand)
def version(*, as_json: AsJson = False) -> None:
    """Print the version, for a bug report."""
    if as_json:
        import apsw

        print_json({"taproof": _release(), "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version()})
    else:
        typer.echo(f"taproof {_release()}")


def _release() -> str:
    try:
        return installed_version("taproof")
    except PackageNotFoundError:
        return "not installed"


def _print_version(asked: bool) -> None:  # noqa: FBT001 — typer passes it by position.
    if asked:
        typer.echo(f"taproof {_release()}")
        raise typer.Exit


@commands.callback()
def _every_command(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


listen.commands.add_typer(trigger.commands)
for _each in (
    *(login.commands, projects.commands, sessions.commands, users.commands, members.commands, clients.commands),
    *(tokens.commands, developers.commands, audit.commands, listen.commands, status.commands),
    *(backup.commands, export_import.commands, oidc.commands, master_key.commands, completion.commands),
):
    commands.add_typer(_each)
