"""`taproof tokens`: the access tokens of developers."""

from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import CallRunner, Output, Yes, api_command, confirm, list_output
from taproof.cli.output import Column, print_fields, print_secrets
from taproof.core.clock import DAY, SECOND, system_clock
from taproof.core.errors import AccessTokenNotFound
from taproof.core.names import visible_name
from taproof.core.rights import SCOPES
from taproof.sdk import developer_calls

commands: Final = group("tokens", "Manage the access tokens of developers.")

TokenId = Annotated[str, typer.Argument(metavar="TOKEN_ID", help="The id that `tokens list` shows: tok_…")]


def _check_scopes(given: list[str] | None) -> list[str]:
    """Return the scopes from a repeated or comma-separated option."""
    named = [name for each in given or [] for name in each.split(",")]
    if unknown := [name for name in named if name not in SCOPES]:
        raise typer.BadParameter(f"{unknown[0]!r} is not a scope. Choose from {', '.join(SCOPES)}.")
    return named


@api_command(commands, "list")
async def list_tokens(api: CallRunner) -> Output:
    """List a developer's access tokens, newest first. The tokens themselves are not shown."""
    answer = await api.call(developer_calls.list_access_tokens)
    columns: dict[str, Column] = {
        "id": "id",
        "name": "name",
        "preview": "preview",
        "scopes": "scopes",
        "last used": lambda token: token.get("last_used_at") or "never",
        "expires": lambda token: token.get("expires_at") or "never",
    }
    empty = "There are no access tokens. Create one with: taproof tokens create"
    return list_output(answer, "tokens", columns, empty=empty)


@api_command(commands, "show")
async def read_token(api: CallRunner, token_id: TokenId) -> Output:
    """Show what is known about an access token. The token itself is not shown."""
    answer = await api.call(developer_calls.list_access_tokens)
    found = next((each for each in answer["tokens"] if each["id"] == token_id), None)
    if found is None:
        raise AccessTokenNotFound
    return Output(found, lambda: print_fields(found))


@api_command(commands, "create")
async def create_token(
    api: CallRunner,
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
) -> Output:
    """Create an access token and print it. It is shown only once.

    On a service, it expires with the token of `taproof login` at the latest.
    """
    until = None if expires_days is None else system_clock() + expires_days * DAY
    answer = await api.call(
        developer_calls.create_access_token,
        name,
        expires_at=None if until is None else datetime.fromtimestamp(until / SECOND, UTC),
        scopes=[known for known in SCOPES if known in scope] if scope else None,
    )

    def show() -> None:
        until = f"until {answer['expires_at']}" if answer.get("expires_at") else "until it is revoked"
        typer.echo(visible_name(f"Created {answer['id']}, valid {until}."))
        print_secrets([("Access token", visible_name(answer["access_token"]))])

    return Output(answer, show)


@api_command(commands, "revoke")
async def revoke_token(
    api: CallRunner,
    token_id: TokenId,
    *,
    keep_created: Annotated[
        bool, typer.Option("--keep-created", help="Keep the tokens that were created with this token.")
    ] = False,
    yes: Yes = False,
) -> Output:
    """Permanently revoke an access token and all tokens created with it."""
    more = "" if keep_created else " and all tokens created with it"
    confirm(f"Permanently revoke {token_id}{more}?", yes=yes)
    answer = await api.call(developer_calls.delete_access_token, token_id, keep_created=keep_created)
    return Output(answer, lambda: typer.echo(f"Revoked {token_id}{more}."))
