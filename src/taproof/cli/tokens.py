"""`taproof tokens`: the access tokens of developers."""

import shlex
from typing import Annotated, Final

import typer

from taproof.cli.command import STORE, AsJson, Email, Given, command, group, open_developers
from taproof.cli.output import print_json, print_secrets, print_table, to_the_minute
from taproof.core.accounts import Actor
from taproof.core.clock import DAY, iso8601, system_clock
from taproof.core.errors import AccessTokenNotFound
from taproof.core.names import visible_name
from taproof.core.rights import SCOPES
from taproof.service import json_fields

commands: Final = group("tokens", "Manage the access tokens of developers.")


def _check_scopes(given: list[str] | None) -> list[str]:
    """Return the scopes from a repeated or comma-separated option."""
    named = [name for each in given or [] for name in each.split(",")]
    if unknown := [name for name in named if name not in SCOPES]:
        raise typer.BadParameter(f"{unknown[0]!r} is not a scope. Choose from {', '.join(SCOPES)}.")
    return named


@command(commands, "create", *STORE)
async def create_token(
    given: Given,
    email: Email,
    *,
    name: Annotated[str, typer.Option(help="A name that says what the token is for.")] = "command line",
    expires_days: Annotated[
        int | None,
        typer.Option(min=1, max=3650, metavar="DAYS", show_default="never", help="Days until the token expires."),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            callback=_check_scopes,
            metavar="SCOPE",
            show_default="all",
            help="What the token may do: read, write, tokens. Repeat the option, or separate values with commas.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create an access token for a developer and print it. It is shown only once."""
    scopes = None if not scope else [known for known in SCOPES if known in scope]
    expires_at = None if expires_days is None else system_clock() + expires_days * DAY
    async with open_developers(given) as developers:
        actor = Actor(await developers.read_developer(email), "command_line")
        created = await developers.create_access_token(actor, name, expires_at=expires_at, scopes=scopes)
    if as_json:
        print_json(json_fields.created_access_token(created))
    else:
        until = "until it is revoked" if expires_at is None else f"until {iso8601(expires_at)}"
        typer.echo(f"Created {created.token.id} for {email}, valid {until}.")
        print_secrets([("Access token", created.plaintext)])


@command(commands, "list", *STORE)
async def list_tokens(given: Given, email: Email, *, as_json: AsJson = False) -> None:
    """List a developer's access tokens, newest first. The tokens themselves are not shown."""
    async with open_developers(given) as developers:
        found = await developers.list_access_tokens((await developers.read_developer(email)).id)
    shown = [json_fields.access_token(token) for token in found]
    if as_json:
        print_json({"tokens": shown})
        return
    rows = [
        (
            token["id"],
            visible_name(token["name"]),
            token["preview"],
            " ".join(token["scopes"]),
            *(to_the_minute(token[time]) if token[time] else "never" for time in ("last_used_at", "expires_at")),
        )
        for token in shown
    ]
    columns = ("id", "name", "preview", "scopes", "last used", "expires")
    empty = f"There are no access tokens. Create one with: taproof tokens create {shlex.quote(email)}"
    print_table(columns, rows, empty=empty)


@command(commands, "revoke", *STORE)
async def revoke_token(
    given: Given,
    email: Email,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="The id that `tokens list` shows: tok_…")],
    *,
    keep_created: Annotated[
        bool, typer.Option("--keep-created", help="Keep the tokens that were created with this token.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Permanently revoke an access token and all tokens created with it."""
    async with open_developers(given) as developers:
        developer = await developers.read_developer(email)
        actor = Actor(developer, "command_line")
        try:
            count = await developers.delete_access_token(actor, token_id, keep_created=keep_created)
        except AccessTokenNotFound:
            raise AccessTokenNotFound(
                f"{developer.email} has no such access token. List them with: taproof tokens list "
                f"{shlex.quote(developer.email)}"
            ) from None
    if as_json:
        print_json({"deleted": True})
    else:
        typer.echo(f"Revoked {token_id}{'' if count == 1 else f' and {count - 1} created with it'}.")
