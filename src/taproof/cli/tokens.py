"""`taproof tokens`: the access tokens of developers."""
# ruff: noqa: PLC0415 — the heavy parts are imported by the command that needs them, so that `--help` is quick.

import shlex
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from taproof.cli.command import Given, command, with_developers
from taproof.cli.output import SHOWN_ONCE, print_json, print_secrets, print_table, to_the_minute
from taproof.core.accounts import Actor
from taproof.core.clock import DAY, iso8601, system_clock
from taproof.core.errors import AccessTokenNotFound
from taproof.core.names import visible_name
from taproof.core.rights import SCOPES

if TYPE_CHECKING:
    from taproof.service.developers import Developers

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The developer's e-mail address.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_STORE: Final = ("database_url", "pgbouncer", "sandbox")


def add_to(tokens: typer.Typer) -> None:
    """Add the commands."""
    command(tokens, "create", *_STORE)(create_token)
    command(tokens, "list", *_STORE)(list_tokens)
    command(tokens, "revoke", *_STORE)(revoke_token)


def _check_scopes(given: list[str] | None) -> list[str]:
    """Return the scopes that an option names, also with commas between them."""
    named = [name for each in given or [] for name in each.split(",")]
    if unknown := [name for name in named if name not in SCOPES]:
        raise typer.BadParameter(f"{unknown[0]!r} is no scope. Choose from {', '.join(SCOPES)}.")
    return named


def create_token(
    given: Given,
    email: Email,
    *,
    name: Annotated[str, typer.Option(help="What it is for.")] = "command line",
    expires_days: Annotated[
        int | None, typer.Option(min=1, max=3650, metavar="DAYS", show_default="never", help="Valid for so many days.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            callback=_check_scopes, metavar="SCOPE", show_default="all", help="What it may do: read, write, tokens."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create an access token for a developer and print it, once."""
    scopes = None if not scope else [known for known in SCOPES if known in scope]

    async def work(found: "Developers") -> Any:
        developer = await found.read_developer(email)
        expires_at = None if expires_days is None else system_clock() + expires_days * DAY
        return await found.create_access_token(
            Actor(developer, "command_line"), name, expires_at=expires_at, scopes=scopes
        )

    created = with_developers(given, work)

    from taproof.service import serializers

    if as_json:
        print_json(serializers.created_access_token(created))
    else:
        expires_at = created.token.expires_at
        until = "until it is revoked" if expires_at is None else f"until {iso8601(expires_at)}"
        typer.echo(f"Made {created.token.id} for {email}, valid {until}.")
        print_secrets(SHOWN_ONCE, [("Access token", created.plaintext)])


def list_tokens(given: Given, email: Email, *, as_json: AsJson = False) -> None:
    """List a developer's access tokens, newest first; a token itself cannot be shown again."""

    async def work(found: "Developers") -> list[Any]:
        return await found.list_access_tokens((await found.read_developer(email)).id)

    found = with_developers(given, work)

    from taproof.service import serializers

    shown = [serializers.access_token(token) for token in found]
    if as_json:
        print_json({"tokens": shown})
    else:
        columns = ("id", "name", "preview", "scopes", "last used", "expires")
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
        print_table(columns, rows, empty=f"There are none. Make one with: taproof tokens create {shlex.quote(email)}")


def revoke_token(
    given: Given,
    email: Email,
    token_id: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="As `tokens list` shows it: tok_…")],
    *,
    keep_created: Annotated[
        bool, typer.Option("--keep-created", help="Leave the tokens valid that were created with it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Revoke an access token and all tokens created with it, at once and for good."""

    async def work(found: "Developers") -> int:
        developer = await found.read_developer(email)
        try:
            actor = Actor(developer, "command_line")
            return await found.delete_access_token(actor, token_id, keep_created=keep_created)
        except AccessTokenNotFound:
            raise AccessTokenNotFound(
                f"{developer.email} has no such access token. List them with: taproof tokens list "
                f"{shlex.quote(developer.email)}"
            ) from None

    count = with_developers(given, work)
    if as_json:
        print_json({"deleted": True})
    else:
        typer.echo(f"Revoked {token_id}{'' if count == 1 else f' and {count - 1} created with it'}.")
