"""`taproof clients`: the OpenID Connect clients of projects."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import DeveloperCalls, Output, ProjectId, Yes, api_command, confirm, items_of
from taproof.cli.help import SELDOM
from taproof.cli.output import Column, print_fields, print_items, print_secrets
from taproof.core.names import visible_name
from taproof.core.oidc.clients import CLIENT_DEFAULTS, MAX_LIFETIME, MIN_LIFETIME

commands: Final = group("clients", "Manage the OpenID Connect clients of projects.")

ClientId = Annotated[str, typer.Argument(metavar="CLIENT_ID", help="The id that `clients list` shows: oidc_…")]
RedirectUris = Annotated[
    list[str] | None,
    typer.Option(
        "--redirect-uri",
        metavar="URI",
        show_default=False,
        help="An address to which users can return. Repeat the option for several.",
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        show_default=False,
        help=f"How the client sends its secret: basic, post or none. A new client: {CLIENT_DEFAULTS.auth_method}.",
    ),
]
Algorithm = Annotated[
    str | None,
    typer.Option(
        metavar="ALG",
        show_default=False,
        rich_help_panel=SELDOM,
        help=f"How ID tokens are signed: RS256 or ES256. A new client: {CLIENT_DEFAULTS.signing_alg}.",
    ),
]
EmailClaim = Annotated[
    str | None,
    typer.Option(
        "--email",
        metavar="EMAIL",
        show_default=False,
        rich_help_panel=SELDOM,
        help="The e-mail address in ID tokens: none, or synthetic (made from the user's id). "
        f"A new client: {CLIENT_DEFAULTS.email}.",
    ),
]
Lifetime = Annotated[
    int | None,
    typer.Option(
        min=MIN_LIFETIME,
        max=MAX_LIFETIME,
        metavar="SECONDS",
        show_default=False,
        rich_help_panel=SELDOM,
        help=f"The lifetime of ID tokens. A new client: {CLIENT_DEFAULTS.id_token_lifetime}.",
    ),
]
GrantTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--grant-type",
        metavar="GRANT",
        show_default=False,
        help="How the client signs users in: authorization_code, or device_code for devices that show a code; repeat "
        "it for both. A new client: authorization_code.",
    ),
]


def _fields(redirect_uris: list[str] | None, grant_types: list[str] | None, **fields: Any) -> dict[str, Any]:
    """Return the fields of the body: those that were given."""
    given = {**fields, "redirect_uris": redirect_uris or None, "grant_types": grant_types or None}
    return {name: value for name, value in given.items() if value is not None}


def _show_client(answer: Mapping[str, Any], done: str) -> None:
    """Print what was done to a client, and its secret if it has a new one."""
    client_id, name = (visible_name(str(answer.get(field, ""))) for field in ("client_id", "name"))
    typer.echo(f"{done} {client_id} ({name}).")
    if answer.get("client_secret"):
        _show_secret(answer)


def _show_secret(answer: Mapping[str, Any]) -> None:
    print_secrets([("Client secret", visible_name(str(answer.get("client_secret", ""))))])


@api_command(commands, "list")
async def list_clients(api: DeveloperCalls, project_id: ProjectId) -> Output:
    """List the clients of a project, oldest first. Their secrets are not shown."""
    answer = await api.call("GET", ["projects", project_id, "clients"])
    columns: dict[str, Column] = {
        "id": "client_id",
        "name": "name",
        "method": "auth_method",
        "secret": lambda client: client.get("client_secret_preview") or "none",
        "grants": "grant_types",
        "redirect URIs": "redirect_uris",
    }
    empty = f"There are no clients. Create one with: taproof clients create {project_id} NAME"
    return Output(answer, lambda: print_items(columns, items_of(answer, "clients"), empty=empty))


@api_command(commands, "show")
async def read_client(api: DeveloperCalls, project_id: ProjectId, client_id: ClientId) -> Output:
    """Show the settings of a client. Its secret is not shown."""
    answer = await api.call("GET", ["projects", project_id, "clients", client_id])
    return Output(answer, lambda: print_fields(answer))


@api_command(commands, "create")
async def create_client(
    api: DeveloperCalls,
    project_id: ProjectId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the application.")],
    *,
    redirect_uri: RedirectUris = None,
    grant_type: GrantTypes = None,
    auth_method: Method = None,
    signing_alg: Algorithm = None,
    email_claim: EmailClaim = None,
    id_token_lifetime: Lifetime = None,
) -> Output:
    """Create a client and print its secret. It is shown only once."""
    fields = {"auth_method": auth_method, "signing_alg": signing_alg, "email": email_claim}
    body = _fields(redirect_uri, grant_type, name=name, id_token_lifetime=id_token_lifetime, **fields)
    answer = await api.call("POST", ["projects", project_id, "clients"], body)
    return Output(answer, lambda: _show_client(answer, "Created"))


@api_command(commands, "update")
async def update_client(
    api: DeveloperCalls,
    project_id: ProjectId,
    client_id: ClientId,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help="The new name.")] = None,
    redirect_uri: RedirectUris = None,
    grant_type: GrantTypes = None,
    auth_method: Method = None,
    signing_alg: Algorithm = None,
    email_claim: EmailClaim = None,
    id_token_lifetime: Lifetime = None,
) -> Output:
    """Change a client's settings. Redirect URIs and grants replace the earlier ones.

    With the method none, its secret is erased. A client without a secret gets one with basic or post. Sign-ins that use
    a removed grant end.
    """
    fields = {"auth_method": auth_method, "signing_alg": signing_alg, "email": email_claim}
    body = _fields(redirect_uri, grant_type, name=name, id_token_lifetime=id_token_lifetime, **fields)
    answer = await api.call("PATCH", ["projects", project_id, "clients", client_id], body)
    return Output(answer, lambda: _show_client(answer, "Changed"))


@api_command(commands, "regenerate")
async def regenerate_client_secret(
    api: DeveloperCalls, project_id: ProjectId, client_id: ClientId, *, yes: Yes = False
) -> Output:
    """Replace the secret of a client and print it. The old one stops working immediately."""
    confirm(f"Replace the secret of {client_id}? The current one stops working immediately.", yes=yes)
    answer = await api.call("POST", ["projects", project_id, "clients", client_id, "regenerate"])

    def show() -> None:
        typer.echo(f"Replaced the secret of {client_id}.")
        _show_secret(answer)

    return Output(answer, show)


@api_command(commands, "delete")
async def delete_client(api: DeveloperCalls, project_id: ProjectId, client_id: ClientId, *, yes: Yes = False) -> Output:
    """Delete a client. Applications that use it can no longer sign users in."""
    confirm(f"Delete {client_id}? Applications that use it can no longer sign users in.", yes=yes)
    answer = await api.call("DELETE", ["projects", project_id, "clients", client_id])
    return Output(answer, lambda: typer.echo(f"Deleted {client_id}."))
