"""`taproof projects`: the projects that users sign in to."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import CallRunner, Output, ProjectId, Yes, api_command, confirm, list_output
from taproof.cli.output import Column, print_fields, print_secrets
from taproof.cli.setting_options import given_settings, with_settings
from taproof.contract.project import ProjectSettings
from taproof.core.names import visible_name
from taproof.sdk import developer_calls

commands: Final = group("projects", "Manage projects, which users sign in to.")

_ON_DATABASE: Final = ("webhook_allow", "webhook_ports")
"""The settings of the service that decide which webhook URLs are accepted."""


@api_command(commands, "list")
async def list_projects(api: CallRunner) -> Output:
    """List a developer's projects, oldest first."""
    answer = await api.call(developer_calls.list_projects)
    columns: dict[str, Column] = {
        "id": "id",
        "name": "name",
        "state": lambda project: "active" if project.get("is_active") else "paused",
        "public": "public_access",
        "sessions": "sessions_count",
        "confirmed": "confirmed_count",
    }
    empty = "There are no projects. Create one with: taproof projects create NAME"
    return list_output(answer, "projects", columns, empty=empty)


@api_command(commands, "show")
async def read_project(api: CallRunner, project_id: ProjectId) -> Output:
    """Show the settings and counts of a project. Its secrets are not shown."""
    answer = await api.call(developer_calls.read_project, project_id)
    return Output(answer, lambda: print_fields(answer))


@api_command(commands, "create", *_ON_DATABASE, "plan_projects")
@with_settings(ProjectSettings)
async def create_project(
    api: CallRunner,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that users see in the confirmation prompt.")],
    **settings: Any,
) -> Output:
    """Create a project and print its secrets."""
    given = given_settings(ProjectSettings, settings)
    answer = await api.call(developer_calls.create_project, name, **given)
    return Output(answer, lambda: _show_secrets(f"Created {_called(answer)}.", answer, visible_name(answer["id"])))


@api_command(commands, "update", *_ON_DATABASE)
@with_settings(ProjectSettings)
async def update_project(
    api: CallRunner,
    project_id: ProjectId,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help="The new name.")] = None,
    **settings: Any,
) -> Output:
    """Change the given settings of a project. A given list replaces the whole earlier one."""
    return await _change(api, project_id, "Changed", name=name, **given_settings(ProjectSettings, settings))


@api_command(commands, "pause")
async def pause_project(api: CallRunner, project_id: ProjectId) -> Output:
    """Pause a project: no new sign-ins can start. Sign-ins that have started can be finished."""
    return await _change(api, project_id, "Paused", is_active=False)


@api_command(commands, "resume")
async def resume_project(api: CallRunner, project_id: ProjectId) -> Output:
    """Let a paused project start sign-ins again."""
    return await _change(api, project_id, "Resumed", is_active=True)


@api_command(commands, "regenerate")
async def regenerate_secrets(api: CallRunner, project_id: ProjectId, *, yes: Yes = False) -> Output:
    """Replace the secret key and the webhook secret, and print them.

    The old ones stop working immediately. To replace the webhook secret without interruption, use: taproof projects
    rotate-webhook-secret
    """
    confirm(f"Replace both secrets of {project_id}? The current ones stop working immediately.", yes=yes)
    answer = await api.call(developer_calls.regenerate_secrets, project_id)
    return Output(answer, lambda: _show_secrets(f"Replaced the secrets of {project_id}.", answer, project_id))


@api_command(commands, "webhook-secret")
async def read_webhook_secret(api: CallRunner, project_id: ProjectId) -> Output:
    """Print the webhook secret, which verifies proofs and webhooks.

    During a rotation, the next one is printed too.
    """
    answer = await api.call(developer_calls.read_webhook_secret, project_id)
    return Output(answer, lambda: _show_secrets("", answer, project_id))


@api_command(commands, "rotate-webhook-secret")
async def rotate_webhook_secret(
    api: CallRunner,
    project_id: ProjectId,
    *,
    overlap_hours: Annotated[
        int, typer.Option(metavar="HOURS", help="Hours until the new secret replaces the current one.")
    ] = 24,
) -> Output:
    """Create the next webhook secret and print it.

    It replaces the current one after an overlap. Until then, webhooks are signed with both. The secret key does not
    change.
    """
    answer = await api.call(developer_calls.rotate_webhook_secret, project_id, overlap_hours=overlap_hours)
    return Output(answer, lambda: _show_secrets("Created the next webhook secret.", answer, project_id))


@api_command(commands, "promote-webhook-secret")
async def promote_webhook_secret(api: CallRunner, project_id: ProjectId) -> Output:
    """End a rotation now: the next webhook secret replaces the current one."""
    answer = await api.call(developer_calls.promote_webhook_secret, project_id)
    return Output(answer, lambda: _show_secrets("The next webhook secret is now the current one.", answer, project_id))


@api_command(commands, "delete")
async def delete_project(api: CallRunner, project_id: ProjectId, *, yes: Yes = False) -> Output:
    """Delete a project with its sessions and analytics. This cannot be undone."""
    project = await api.call(developer_calls.read_project, project_id)
    confirm(f"Delete {_called(project)} with its sessions and analytics? This cannot be undone.", yes=yes)
    answer = await api.call(developer_calls.delete_project, project_id)
    return Output(answer, lambda: typer.echo(f"Deleted {_called(project)}."))


async def _change(api: CallRunner, project_id: str, done: str, **settings: Any) -> Output:
    answer = await api.call(developer_calls.update_project, project_id, **settings)
    return Output(answer, lambda: typer.echo(f"{done} {_called(answer)}."))


def _called(project: Mapping[str, Any]) -> str:
    return visible_name(f"{project['id']} ({project['name']})")


def _show_secrets(done: str, answer: Mapping[str, Any], project_id: str) -> None:
    """Print what was done, then the secrets of the answer, and when the next webhook secret replaces the current."""
    if done:
        typer.echo(done)
    labels = {
        "secret_key": "Secret key",
        "webhook_secret": "Webhook secret",
        "next_webhook_secret": "Next webhook secret",
    }
    found = [(label, visible_name(answer[name])) for name, label in labels.items() if answer.get(name)]
    once = "The secret key is not shown again. " if answer.get("secret_key") else ""
    advice = (
        f"Keep these secret, like passwords. {once}To read the webhook secret again: taproof projects webhook-secret "
        f"{project_id}"
    )
    print_secrets(found, advice)
    if answer.get("promoted_at"):
        typer.echo(f"The next webhook secret replaces the current one at {visible_name(answer['promoted_at'])}.")
