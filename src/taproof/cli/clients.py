"""`taproof clients`: the OpenID Connect clients of projects."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import (
    CallRunner,
    Cursor,
    Limit,
    Output,
    ProjectId,
    Yes,
    api_command,
    confirm,
    list_output,
)
from taproof.cli.output import Column, print_fields, print_secrets
from taproof.cli.setting_options import given_settings, with_settings
from taproof.contract.client import ClientUpdate
from taproof.core.names import visible_name
from taproof.sdk import oidc_client_calls

commands: Final = group("clients", "Manage the OpenID Connect clients of projects.")

GrantId = Annotated[str, typer.Argument(metavar="GRANT_ID", help="The id that `clients grants` shows: auth_…")]
ClientId = Annotated[str, typer.Argument(metavar="CLIENT_ID", help="The id that `clients list` shows: oidc_…")]


def _show_client(answer: Mapping[str, Any], done: str) -> None:
    """Print what was done to a client, and its secret if it has a new one."""
    typer.echo(visible_name(f"{done} {answer['client_id']} ({answer['name']})."))
    if answer.get("client_secret"):
        _show_secret(answer)


def _show_secret(answer: Mapping[str, Any]) -> None:
    print_secrets([("Client secret", visible_name(answer["client_secret"]))])


@api_command(commands, "list")
async def list_clients(api: CallRunner, project_id: ProjectId) -> Output:
    """List the clients of a project, oldest first. Their secrets are not shown."""
    answer = await api.call(oidc_client_calls.list_clients, project_id)
    columns: dict[str, Column] = {
        "id": "client_id",
        "name": "name",
        "method": "auth_method",
        "secret": lambda client: client.get("client_secret_preview") or "none",
        "grants": "grant_types",
        "redirect URIs": "redirect_uris",
    }
    empty = f"There are no clients. Create one with: taproof clients create {project_id} NAME"
    return list_output(answer, "clients", columns, empty=empty)


@api_command(commands, "show")
async def read_client(api: CallRunner, project_id: ProjectId, client_id: ClientId) -> Output:
    """Show the settings of a client. Its secret is not shown."""
    answer = await api.call(oidc_client_calls.read_client, project_id, client_id)
    return Output(answer, lambda: print_fields(answer))


@api_command(commands, "create")
@with_settings(ClientUpdate, "name")
async def create_client(
    api: CallRunner,
    project_id: ProjectId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the application.")],
    **settings: Any,
) -> Output:
    """Create a client and print its secret. It is shown only once."""
    given = given_settings(ClientUpdate, {"name": name, **settings})
    answer = await api.call(oidc_client_calls.create_client, project_id, **given)
    return Output(answer, lambda: _show_client(answer, "Created"))


@api_command(commands, "update")
@with_settings(ClientUpdate, "name")
async def update_client(
    api: CallRunner,
    project_id: ProjectId,
    client_id: ClientId,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help="The new name.")] = None,
    **settings: Any,
) -> Output:
    """Change a client's settings. Lists, such as the redirect URIs, replace the earlier ones.

    With the method none, its secret is erased. A client without a secret gets one with any other. Sign-ins that use
    a removed grant end.
    """
    given = given_settings(ClientUpdate, {"name": name, **settings})
    answer = await api.call(oidc_client_calls.update_client, project_id, client_id, **given)
    return Output(answer, lambda: _show_client(answer, "Changed"))


@api_command(commands, "regenerate")
async def regenerate_client_secret(
    api: CallRunner, project_id: ProjectId, client_id: ClientId, *, yes: Yes = False
) -> Output:
    """Replace the secret of a client and print it. The old one stops working immediately."""
    confirm(f"Replace the secret of {client_id}? The current one stops working immediately.", yes=yes)
    answer = await api.call(oidc_client_calls.regenerate_client_secret, project_id, client_id)

    def show() -> None:
        typer.echo(f"Replaced the secret of {client_id}.")
        _show_secret(answer)

    return Output(answer, show)


@api_command(commands, "grants")
async def list_grants(
    api: CallRunner, project_id: ProjectId, client_id: ClientId, *, limit: Limit = 50, cursor: Cursor = None
) -> Output:
    """List the sign-ins at a client that can be ended, the latest first.

    These are the sign-ins with a refresh token, or all if the client has a back-channel logout URI.
    """
    answer = await api.run(
        lambda service: oidc_client_calls.list_grants(service, project_id, client_id, page_size=limit).page(cursor)
    )
    columns: dict[str, Column] = {
        "id": "id",
        "user": "messenger_id",
        "name": "messenger_name",
        "scopes": "scopes",
        "since": "created_at",
        "refreshed": "refreshed_at",
        "expires": "expires_at",
    }
    return list_output(answer, "grants", columns, empty="Nobody is signed in to this client.")


@api_command(commands, "end-grant")
async def end_grant(
    api: CallRunner, project_id: ProjectId, client_id: ClientId, grant_id: GrantId, *, yes: Yes = False
) -> Output:
    """End a user's sign-in at a client.

    Its tokens stop working immediately, and the client's back-channel logout URI is notified.
    """
    confirm(f"End {grant_id}? The application must ask the user to sign in again.", yes=yes)
    answer = await api.call(oidc_client_calls.end_grant, project_id, client_id, grant_id)
    return Output(answer, lambda: typer.echo(f"Ended {grant_id}."))


@api_command(commands, "delete")
async def delete_client(api: CallRunner, project_id: ProjectId, client_id: ClientId, *, yes: Yes = False) -> Output:
    """Delete a client. Applications that use it can no longer sign users in."""
    confirm(f"Delete {client_id}? Applications that use it can no longer sign users in.", yes=yes)
    answer = await api.call(oidc_client_calls.delete_client, project_id, client_id)
    return Output(answer, lambda: typer.echo(f"Deleted {client_id}."))
