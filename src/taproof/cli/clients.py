"""`taproof clients`: the OpenID Connect clients of projects."""

import contextlib
import shlex
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import typer

from taproof.cli.command import STORE, AsJson, Email, Given, command, group, load, open_store
from taproof.cli.output import print_json, print_secrets, print_table
from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.names import visible_name
from taproof.core.oidc.clients import CLIENT_DEFAULTS, MAX_LIFETIME, MIN_LIFETIME, ClientChanges, OidcClient
from taproof.service import json_fields
from taproof.service.developers import Developers
from taproof.service.oidc.clients import OidcClients

commands: Final = group("clients", "Manage the OpenID Connect clients of projects.")

ProjectId = Annotated[str, typer.Argument(metavar="PROJECT_ID", help="The id that `projects list` shows: proj_…")]
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
        help=f"How ID tokens are signed: RS256 or ES256. A new client: {CLIENT_DEFAULTS.signing_alg}.",
    ),
]
EmailClaim = Annotated[
    str | None,
    typer.Option(
        "--email",
        metavar="EMAIL",
        show_default=False,
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
        help=f"The lifetime of ID tokens. A new client: {CLIENT_DEFAULTS.id_token_lifetime}.",
    ),
]


@contextlib.asynccontextmanager
async def _open_clients(given: Given, email: str) -> AsyncIterator[tuple[OidcClients, Actor]]:
    async with open_store(load(given)) as storage:
        developer = await Developers(storage, system_clock, system_entropy).read_developer(email)
        yield OidcClients(storage, system_clock, system_entropy), Actor(developer, "command_line")


def _changes(redirect_uris: list[str] | None, **fields: Any) -> ClientChanges:
    return ClientChanges(redirect_uris=tuple(redirect_uris) if redirect_uris else None, **fields)


def _print_client(client: OidcClient, secret: str | None, done: str, *, as_json: bool) -> None:
    """Print what was done to a client, and its secret if it has a new one."""
    if as_json:
        print_json(json_fields.client_with_secret(client, secret))
        return
    typer.echo(f"{done} {client.id} ({visible_name(client.name)}).")
    if secret is not None:
        print_secrets([("Client secret", secret)])


@command(commands, "create", *STORE)
async def create_client(
    given: Given,
    email: Email,
    project_id: ProjectId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the application.")],
    *,
    redirect_uri: RedirectUris = None,
    auth_method: Method = None,
    signing_alg: Algorithm = None,
    email_claim: EmailClaim = None,
    id_token_lifetime: Lifetime = None,
    as_json: AsJson = False,
) -> None:
    """Create a client and print its secret. It is shown only once."""
    fields = {"auth_method": auth_method, "signing_alg": signing_alg, "email": email_claim}
    wanted = _changes(redirect_uri, name=name, id_token_lifetime=id_token_lifetime, **fields)
    async with _open_clients(given, email) as (clients, actor):
        client, secret = await clients.create_client(actor, project_id, wanted)
    _print_client(client, secret, "Created", as_json=as_json)


@command(commands, "list", *STORE)
async def list_clients(given: Given, email: Email, project_id: ProjectId, *, as_json: AsJson = False) -> None:
    """List the clients of a project, oldest first. Their secrets are not shown."""
    async with _open_clients(given, email) as (clients, actor):
        found = await clients.list_clients(actor.developer, project_id)
    if as_json:
        print_json({"clients": [json_fields.client(client) for client in found]})
        return
    rows = [
        (client.id, visible_name(client.name), client.auth_method, client.secret_preview or "none", _uris(client))
        for client in found
    ]
    empty = f"There are no clients. Create one with: taproof clients create {shlex.quote(email)} {project_id} NAME"
    print_table(("id", "name", "method", "secret", "redirect URIs"), rows, empty=empty)


@command(commands, "show", *STORE)
async def read_client(
    given: Given, email: Email, project_id: ProjectId, client_id: ClientId, *, as_json: AsJson = False
) -> None:
    """Show the settings of a client. Its secret is not shown."""
    async with _open_clients(given, email) as (clients, actor):
        client = await clients.read_client(actor.developer, project_id, client_id)
    fields = json_fields.client(client)
    if as_json:
        print_json(fields)
        return
    shown = {**fields, "name": visible_name(client.name), "redirect_uris": _uris(client)}
    shown["client_secret_preview"] = client.secret_preview or "none"
    print_table(("field", "value"), [(field, str(value)) for field, value in shown.items()], empty="")


@command(commands, "update", *STORE)
async def update_client(
    given: Given,
    email: Email,
    project_id: ProjectId,
    client_id: ClientId,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help="The new name.")] = None,
    redirect_uri: RedirectUris = None,
    auth_method: Method = None,
    signing_alg: Algorithm = None,
    email_claim: EmailClaim = None,
    id_token_lifetime: Lifetime = None,
    as_json: AsJson = False,
) -> None:
    """Change the given settings of a client. The given redirect URIs replace all earlier ones.

    With the method none, its secret is erased. A client without a secret gets one with basic or post.
    """
    fields = {"auth_method": auth_method, "signing_alg": signing_alg, "email": email_claim}
    changes = _changes(redirect_uri, name=name, id_token_lifetime=id_token_lifetime, **fields)
    async with _open_clients(given, email) as (clients, actor):
        client, secret = await clients.update_client(actor, project_id, client_id, changes)
    _print_client(client, secret, "Changed", as_json=as_json)


@command(commands, "regenerate", *STORE)
async def regenerate_client_secret(
    given: Given, email: Email, project_id: ProjectId, client_id: ClientId, *, as_json: AsJson = False
) -> None:
    """Replace the secret of a client and print it. The old one stops working immediately."""
    async with _open_clients(given, email) as (clients, actor):
        secret = await clients.regenerate_client_secret(actor, project_id, client_id)
    if as_json:
        print_json({"client_secret": secret})
    else:
        typer.echo(f"Replaced the secret of {client_id}.")
        print_secrets([("Client secret", secret)])


@command(commands, "delete", *STORE)
async def delete_client(
    given: Given, email: Email, project_id: ProjectId, client_id: ClientId, *, as_json: AsJson = False
) -> None:
    """Delete a client. Applications that use it can no longer sign users in."""
    async with _open_clients(given, email) as (clients, actor):
        await clients.delete_client(actor, project_id, client_id)
    if as_json:
        print_json({"deleted": True})
    else:
        typer.echo(f"Deleted {client_id}.")


def _uris(client: OidcClient) -> str:
    return " ".join(client.redirect_uris)
