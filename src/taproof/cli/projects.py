"""`taproof projects`: the projects of developers, which users sign in to."""

import shlex
from typing import Annotated, Final

import typer

from taproof.cli.command import STORE, AsJson, Email, Given, command, group, load, open_encrypted_store
from taproof.cli.output import print_json, print_secrets, print_table
from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.deliveries import read_events
from taproof.core.entropy import system_entropy
from taproof.core.model import PROJECT_DEFAULTS, ProjectChanges
from taproof.core.names import visible_name
from taproof.service import json_fields
from taproof.service.developers import Developers

commands: Final = group("projects", "Manage projects, which users sign in to.")


@command(commands, "create", *STORE, "webhook_allow", "webhook_ports", "plan_projects")
async def create_project(
    given: Given,
    email: Email,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that users see in the confirmation prompt.")],
    *,
    webhook_url: Annotated[
        str, typer.Option(metavar="URL", show_default=False, help="The https:// address that webhooks are sent to.")
    ] = "",
    public_access: Annotated[
        bool,
        typer.Option(
            " /--no-public-access",
            show_default=False,
            help="Only server-side calls with the secret key may start sign-ins.",
        ),
    ] = True,
    webhook_event: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EVENT",
            show_default=False,
            help="An event that is sent to the webhook URL; repeat it for several. "
            f"Default: {' and '.join(PROJECT_DEFAULTS.webhook_events or ())}.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a project and print its secrets."""
    from taproof.runtime.store import open_projects  # noqa: PLC0415 — `--help` does not need it, and it is slow.

    settings = load(given)
    async with open_encrypted_store(settings) as (storage, encryptor):
        developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        events = read_events(webhook_event) if webhook_event else None
        wanted = ProjectChanges(name=name, webhook_url=webhook_url, webhook_events=events, public_access=public_access)
        projects = open_projects(settings, storage, encryptor)
        project, secrets = await projects.create_project(Actor(developer, "command_line"), wanted)
    if as_json:
        print_json(json_fields.created_project(project, secrets))
    else:
        typer.echo(f"Created {project.id} ({visible_name(project.name)}) for {email}.")
        advice = (
            "Keep these secret, like passwords. The secret key is not shown again. The webhook secret can be read "
            f"later: GET /api/v1/dev/projects/{project.id}/webhook-secret"
        )
        print_secrets([("Secret key", secrets.secret_key), ("Webhook secret", secrets.webhook_secret)], advice)


@command(commands, "list", *STORE)
async def list_projects(given: Given, email: Email, *, as_json: AsJson = False) -> None:
    """List a developer's projects, oldest first."""
    async with open_encrypted_store(load(given)) as (storage, _encryptor):
        developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        found = await storage.projects.list_projects(developer.id)
    if as_json:
        print_json({"projects": [json_fields.project(project) for project in found]})
        return
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
    columns = ("id", "name", "state", "public", "sessions", "confirmed")
    empty = f"There are no projects. Create one with: taproof projects create {shlex.quote(email)} NAME"
    print_table(columns, rows, empty=empty)
