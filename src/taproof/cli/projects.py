"""`taproof projects`: the projects that users sign in to."""

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import DeveloperCalls, Output, ProjectId, Yes, api_command, confirm, items_of
from taproof.cli.help import SELDOM
from taproof.cli.output import Column, print_fields, print_items, print_secrets
from taproof.core.errors import InvalidRequest
from taproof.core.names import visible_name

commands: Final = group("projects", "Manage projects, which users sign in to.")

_STANDARD: Final = "-"
_ON_DATABASE: Final = ("webhook_allow", "webhook_ports")
"""The settings of the service that decide which webhook URLs are accepted."""


def _option(
    kind: Any, meaning: str, flag: str | None = None, *, metavar: str | None = None, panel: str | None = SELDOM
) -> Any:
    flags = [flag] if flag else []
    option = typer.Option(*flags, metavar=metavar, show_default=False, help=meaning, rich_help_panel=panel)
    return Annotated[kind | None, option]


def _switch(name: str, meaning: str, *, panel: str | None = SELDOM) -> Any:
    return _option(bool, meaning, f"--{name}/--no-{name}", panel=panel)


_SETTINGS: Final[dict[str, Any]] = {
    "webhook_url": _option(
        str, 'The https:// address that webhooks are sent to; "" for none.', metavar="URL", panel=None
    ),
    "webhook_events": _option(
        list[str],
        "An event to send there; repeat it for several. A new project: auth.confirmed and auth.cancelled.",
        "--webhook-event",
        metavar="EVENT",
        panel=None,
    ),
    "public_access": _switch(
        "public-access",
        "Whether browsers and apps can start sign-ins; with --no-public-access, only servers can.",
        panel=None,
    ),
    "collect_phone": _switch(
        "collect-phone", "Whether users are asked for their phone number. Plans pro and business."
    ),
    "phone_required": _switch("phone-required", "Whether users who are asked must share their phone number."),
    "show_context": _switch("show-context", "Whether the messenger shows where a sign-in was started."),
    "match_code": _option(str, "Whether users choose a number that your page shows.", metavar="on|off"),
    "allowed_origins": _option(
        list[str],
        'The origin of a page that can start sign-ins; repeat it for several. "": any page.',
        "--allowed-origin",
        metavar="ORIGIN",
    ),
    "same_device": _option(str, "Whether users return to the page from the messenger.", metavar="off|offer|require"),
    "return_urls": _option(
        list[str],
        'A URL to which users can return, exactly; repeat it for several. "": any page of the allowed origins.',
        "--return-url",
        metavar="URL",
    ),
    "logo_url": _option(str, 'The https:// address of the image that hosted pages show; "" for none.', metavar="URL"),
    "texts_file": _option(
        str,
        "A file with the project's own texts, as JSON; - is standard input. They replace all earlier texts.",
        metavar="FILE",
    ),
    "bot_token_file": _option(
        str,
        "A file with the token of the project's own bot; - is standard input. An empty file: the service's bot.",
        metavar="FILE",
    ),
}
"""The options of create and update, by parameter: the fields of the API, or files with their values."""


def _with_settings(work: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function the options of `_SETTINGS` in place of its parameter `**settings`."""
    *own, _ = inspect.signature(work).parameters.values()
    only = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(name, only, default=None, annotation=each) for name, each in _SETTINGS.items()]
    work.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]  # `api_command` reads it.
    return work


def _given(*, bot_token_file: str | None, texts_file: str | None, **fields: Any) -> dict[str, Any]:
    """Return the fields of the body: those that were given. A list of empty strings empties the setting."""
    body = {
        name: [each for each in value if each] if isinstance(value, list) else value
        for name, value in fields.items()
        if value is not None
    }
    if bot_token_file is not None:
        body["bot_token"] = _read_text(bot_token_file).strip()
    if texts_file is not None:
        try:
            body["texts"] = json.loads(_read_text(texts_file))
        except ValueError as error:
            raise InvalidRequest(f"{texts_file} is not JSON: {error}.") from None
    return body


def _read_text(file: str) -> str:
    try:
        return sys.stdin.read() if file == _STANDARD else Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror or error}.") from None


@api_command(commands, "list")
async def list_projects(api: DeveloperCalls) -> Output:
    """List a developer's projects, oldest first."""
    answer = await api.call("GET", ["projects"])
    columns: dict[str, Column] = {
        "id": "id",
        "name": "name",
        "state": lambda project: "active" if project.get("is_active") else "paused",
        "public": "public_access",
        "sessions": "sessions_count",
        "confirmed": "confirmed_count",
    }
    empty = "There are no projects. Create one with: taproof projects create NAME"
    return Output(answer, lambda: print_items(columns, items_of(answer, "projects"), empty=empty))


@api_command(commands, "show")
async def read_project(api: DeveloperCalls, project_id: ProjectId) -> Output:
    """Show the settings and counts of a project. Its secrets are not shown."""
    answer = await api.call("GET", ["projects", project_id])
    return Output(answer, lambda: print_fields(answer))


@api_command(commands, "create", *_ON_DATABASE, "plan_projects")
@_with_settings
async def create_project(
    api: DeveloperCalls,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that users see in the confirmation prompt.")],
    **settings: Any,
) -> Output:
    """Create a project and print its secrets."""
    body = _given(name=name, **settings)
    answer = await api.call("POST", ["projects"], body)
    return Output(answer, lambda: _show_secrets(f"Created {_called(answer)}.", answer, _id(answer)))


@api_command(commands, "update", *_ON_DATABASE)
@_with_settings
async def update_project(
    api: DeveloperCalls,
    project_id: ProjectId,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help="The new name.")] = None,
    **settings: Any,
) -> Output:
    """Change the given settings of a project. A given list replaces the whole earlier one."""
    body = _given(name=name, **settings)
    return await _change(api, project_id, body, "Changed")


@api_command(commands, "pause")
async def pause_project(api: DeveloperCalls, project_id: ProjectId) -> Output:
    """Pause a project: no new sign-ins can start. Sign-ins that have started can be finished."""
    return await _change(api, project_id, {"is_active": False}, "Paused")


@api_command(commands, "resume")
async def resume_project(api: DeveloperCalls, project_id: ProjectId) -> Output:
    """Let a paused project start sign-ins again."""
    return await _change(api, project_id, {"is_active": True}, "Resumed")


@api_command(commands, "regenerate")
async def regenerate_secrets(api: DeveloperCalls, project_id: ProjectId, *, yes: Yes = False) -> Output:
    """Replace the secret key and the webhook secret, and print them.

    The old ones stop working immediately. To replace the webhook secret without interruption, use: taproof projects
    rotate-webhook-secret
    """
    confirm(f"Replace both secrets of {project_id}? The current ones stop working immediately.", yes=yes)
    answer = await api.call("POST", ["projects", project_id, "regenerate"])
    return Output(answer, lambda: _show_secrets(f"Replaced the secrets of {project_id}.", answer, project_id))


@api_command(commands, "webhook-secret")
async def read_webhook_secret(api: DeveloperCalls, project_id: ProjectId) -> Output:
    """Print the webhook secret, which verifies proofs and webhooks.

    During a rotation, the next one is printed too.
    """
    answer = await api.call("GET", ["projects", project_id, "webhook-secret"])
    return Output(answer, lambda: _show_secrets("", answer, project_id))


@api_command(commands, "rotate-webhook-secret")
async def rotate_webhook_secret(
    api: DeveloperCalls,
    project_id: ProjectId,
    *,
    overlap_hours: Annotated[
        int | None,
        typer.Option(metavar="HOURS", show_default="24", help="Hours until the new secret replaces the current one."),
    ] = None,
) -> Output:
    """Create the next webhook secret and print it.

    It replaces the current one after an overlap. Until then, webhooks are signed with both. The secret key does not
    change.
    """
    body = {} if overlap_hours is None else {"overlap_hours": overlap_hours}
    answer = await api.call("POST", ["projects", project_id, "webhook-secret", "rotate"], body)
    return Output(answer, lambda: _show_secrets("Created the next webhook secret.", answer, project_id))


@api_command(commands, "promote-webhook-secret")
async def promote_webhook_secret(api: DeveloperCalls, project_id: ProjectId) -> Output:
    """End a rotation now: the next webhook secret replaces the current one."""
    answer = await api.call("POST", ["projects", project_id, "webhook-secret", "promote"])
    return Output(answer, lambda: _show_secrets("The next webhook secret is now the current one.", answer, project_id))


@api_command(commands, "delete")
async def delete_project(api: DeveloperCalls, project_id: ProjectId, *, yes: Yes = False) -> Output:
    """Delete a project with its sessions and analytics. This cannot be undone."""
    project = await api.call("GET", ["projects", project_id])
    confirm(f"Delete {_called(project)} with its sessions and analytics? This cannot be undone.", yes=yes)
    answer = await api.call("DELETE", ["projects", project_id])
    return Output(answer, lambda: typer.echo(f"Deleted {_called(project)}."))


async def _change(api: DeveloperCalls, project_id: str, body: dict[str, Any], done: str) -> Output:
    answer = await api.call("PATCH", ["projects", project_id], body)
    return Output(answer, lambda: typer.echo(f"{done} {_called(answer)}."))


def _id(project: Mapping[str, Any]) -> str:
    return visible_name(str(project.get("id", "")))


def _called(project: Mapping[str, Any]) -> str:
    return f"{_id(project)} ({visible_name(str(project.get('name', '')))})"


def _show_secrets(done: str, answer: Mapping[str, Any], project_id: str) -> None:
    """Print what was done, then the secrets of the answer, and when the next webhook secret replaces the current."""
    if done:
        typer.echo(done)
    labels = {
        "secret_key": "Secret key",
        "webhook_secret": "Webhook secret",
        "next_webhook_secret": "Next webhook secret",
    }
    found = [(label, visible_name(str(answer[name]))) for name, label in labels.items() if answer.get(name)]
    once = "The secret key is not shown again. " if answer.get("secret_key") else ""
    advice = (
        f"Keep these secret, like passwords. {once}To read the webhook secret again: taproof projects webhook-secret "
        f"{project_id}"
    )
    print_secrets(found, advice)
    if answer.get("promoted_at"):
        typer.echo(f"The next webhook secret replaces the current one at {visible_name(str(answer['promoted_at']))}.")
