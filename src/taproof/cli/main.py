"""The command line: what an operator can do, each command a few lines over the same use cases as the HTTP API.

The heavy parts are imported by the command that needs them, so that `--help` and `version` are quick.
"""
# ruff: noqa: PLC0415 — see above.

import asyncio
import os
import platform
import shlex
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from taproof.cli import audit, export_import, login
from taproof.cli import developers as developer_commands
from taproof.cli import master_key as master_key_commands
from taproof.cli import tokens as token_commands
from taproof.cli import users as user_commands
from taproof.cli import webhooks as webhook_commands
from taproof.cli.command import Given, command, load, with_projects
from taproof.cli.output import print_finding, print_json, print_secrets, print_table
from taproof.config.database_url import is_postgres, shown_database
from taproof.config.options import NO_MASTER_KEY, called, no_messenger
from taproof.config.settings import OPTIONS, InvalidSettings, unknown_variables
from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.model import ProjectChanges
from taproof.core.names import visible_name

if TYPE_CHECKING:
    from taproof.service.developers import Developers
    from taproof.service.projects import Projects

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The developer's e-mail address.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_EVERY: Final = tuple(OPTIONS)
_STORE: Final = ("database_url", "pgbouncer", "sandbox")
"""What a command needs to find the database: the sandbox has another default."""


def _group(name: str, text: str) -> typer.Typer:
    # Rich's tracebacks show local variables, and so secrets.
    return typer.Typer(
        name=name,
        help=text,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


commands = _group("taproof", "Sign users in with their messenger account. To try it out: taproof serve --sandbox")
developers = _group("developers", "Developers: who may use the API.")
tokens = _group("tokens", "The access tokens of developers.")
projects = _group("projects", "Projects: what users sign in to.")
webhooks = _group("webhooks", "Webhooks: what an application is told.")
users = _group("users", "The people who sign in with the messenger.")
master_key = _group("master-key", "The master key, which stored secrets are encrypted under.")


# ---- the service


@command(commands, "serve", *_EVERY)
def serve(given: Given) -> None:
    """Run the service until Ctrl+C or SIGTERM.

    To try it out: taproof serve --sandbox

    With a real bot: TAPROOF_BOT_TOKEN=… taproof serve

    In many processes and on many nodes: see docs/how-to/processes-and-nodes.md.

    Every option can be given as the environment variable beside it; the option wins.
    """
    settings = load(given)
    missing = []
    if settings.needs_bot and settings.bot_token is None and not settings.sandbox:
        missing.append(no_messenger(settings.role, settings.bot_updates))
    if is_postgres(settings.database_url) and settings.master_key is None:
        missing.append(NO_MASTER_KEY)
    if missing:
        raise InvalidSettings(missing)

    import structlog

    from taproof.cli.doctor.address import check_address
    from taproof.runtime import app, listener, supervisor

    log = structlog.get_logger(__name__)
    for sentence in unknown_variables(os.environ):
        log.warning("unknown_setting", advice=sentence)
    if settings.bot_token is not None and settings.sandbox:
        log.warning("bot_token_unused", advice=f"{called('sandbox')} has a messenger of its own.")
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
    """Check everything that sign-in depends on, and say what to do.

    Takes what serve takes and changes nothing. The exit code is 1 when there is a problem.
    """
    from taproof.cli.doctor.examine import examine
    from taproof.cli.doctor.finding import Finding

    try:
        findings = asyncio.run(examine(load(given), os.environ, system_clock))
    except InvalidSettings as error:
        # Nothing else can be looked at without them.
        findings = [Finding("settings", "problem", sentence) for sentence in error.sentences]
    problems = sum(finding.status == "problem" for finding in findings)
    if as_json:
        checks = [
            {"name": found.name, "status": found.status, "detail": found.detail, "advice": found.advice}
            for found in findings
        ]
        print_json({"ok": problems == 0, "checks": checks})
    else:
        for finding in findings:
            print_finding(finding.status, finding.name, finding.detail, finding.advice)
        typer.echo("\nNothing stands in the way." if problems == 0 else f"\n{problems} to mend.")
    if problems:
        raise typer.Exit(1)


@command(commands, "migrate", *_STORE)
def migrate(given: Given, *, as_json: AsJson = False) -> None:
    """Make the database or bring it up to date, as serve does by itself."""
    settings = load(given)

    from taproof.runtime import store

    before, after = asyncio.run(store.migrate(settings.database_url))
    database = shown_database(settings.database_url)
    if as_json:
        print_json({"database": database, "from_version": before, "to_version": after})
    elif before == after:
        typer.echo(f"{database} is up to date: schema version {after}.")
    else:
        typer.echo(f"{database} went from schema version {before} to {after}.")


@commands.command("version")
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


def _print_version(asked: bool) -> None:  # noqa: FBT001 — typer calls it so.
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


# ---- projects


@command(projects, "create", *_STORE, "webhook_allow", "webhook_ports", "plan_projects")
def create_project(
    given: Given,
    email: Email,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What users see when they are asked to confirm.")],
    *,
    webhook_url: Annotated[str, typer.Option(metavar="URL", show_default=False, help="Gets the decisions.")] = "",
    public_access: Annotated[
        bool,
        typer.Option(
            " /--no-public-access",
            show_default=False,
            help="Only server-side calls with the secret key may start sign-ins.",
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Create a project and print its secrets."""

    async def work(developers: "Developers", projects: "Projects") -> tuple[Any, Any]:
        actor = Actor(await developers.read_developer(email), "command_line")
        wanted = ProjectChanges(name=name, webhook_url=webhook_url, public_access=public_access)
        return await projects.create_project(actor, wanted)

    project, secrets = with_projects(given, work)

    from taproof.service import serializers

    if as_json:
        print_json(serializers.created_project(project, secrets))
    else:
        typer.echo(f"Created {project.id} ({visible_name(project.name)}) for {email}.")
        print_secrets(
            "Keep what follows like passwords. The secret key is shown this once and never again; the webhook secret "
            f"can be read again: GET /api/v1/dev/projects/{project.id}/webhook-secret",
            [("Secret key", secrets.secret_key), ("Webhook secret", secrets.webhook_secret)],
        )


@command(projects, "list", *_STORE)
def list_projects(given: Given, email: Email, *, as_json: AsJson = False) -> None:
    """List a developer's projects, oldest first."""

    async def work(developers: "Developers", projects: "Projects") -> list[Any]:
        return await projects.list_projects(await developers.read_developer(email))

    found = with_projects(given, work)

    from taproof.service import serializers

    if as_json:
        print_json({"projects": [serializers.project(project) for project in found]})
    else:
        columns = ("id", "name", "state", "public", "sessions", "confirmed")
        rows = [
            (
                project.id,
                visible_name(project.name),
                "active" if project.is_active else "paused",
                "yes" if project.public_access else "no",
                str(project.sessions_count),
                str(project.confirmed_count),
            )
            for project in found
        ]
        print_table(
            columns, rows, empty=f"There are none. Create one with: taproof projects create {shlex.quote(email)} NAME"
        )


developer_commands.add_to(developers)
token_commands.add_to(tokens)
webhook_commands.add_to(webhooks)
user_commands.add_to(users)
master_key_commands.add_to(master_key)
for _each in (developers, tokens, projects, webhooks, users, master_key):
    commands.add_typer(_each)
login.add_to(commands)
audit.add_to(commands)
export_import.add_to(commands)
