"""The start screen, which `taproof serve` prints when it accepts requests.

It begins with the one address to open. Then come the settings for a program, and the other addresses and files.
"""

import shlex
from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import typer

from taproof.config.database_url import is_postgres, master_key_file, shown_database
from taproof.config.settings import Settings

if TYPE_CHECKING:
    from taproof.sandbox.seed import Seed

_VERSION: Final = version("taproof")
"""Read from files here: the screen is printed when the service already answers."""


def print_screen(settings: Settings, seed: "Seed | None", invitation: str | None, *, link_known: bool) -> None:
    """Print the start screen to stdout.

    `seed` is the initial data of the sandbox, and `invitation` the code of an invitation for the first developer or, in
    the sandbox, the existing one. `link_known` is whether sign-ins can already be started.
    """
    base = settings.base_url
    first = [] if invitation is None or not settings.serves_api else _invitation(base, invitation, seed)
    lines = []
    if settings.serves_api:
        lines += [("Console", f"{base}/console"), ("API", f"{base}/api/v1"), ("API reference", f"{base}/docs")]
    if seed is not None:
        lines += [*_sandbox(base, seed), *first]
    if settings.role != "all":
        lines.append(("Role", settings.role))
    if settings.workers > 1:
        lines.append(("Processes", str(settings.workers)))
    lines += [
        ("Listens on", settings.listens_on),
        *_elsewhere(settings),
        ("Health", f"{base}/healthz  {base}/readyz  {base}/metrics"),
        ("Database", shown_database(settings.database_url)),
    ]
    if settings.master_key is None and not is_postgres(settings.database_url):
        lines.append(("Master key", f"{master_key_file(settings.database_url).absolute()}   <- back this up too"))
    kind = "the sandbox: simulated users, for development and CI only" if settings.sandbox else "listening"
    typer.echo(f"\nTaproof {_VERSION} — {kind}\n")
    if seed is not None:
        _print_first_steps(base, seed)
    elif first:
        _print_lines([*first, ("", "")])
    _print_lines(lines)
    if settings.serves_api and not link_known:
        typer.echo("\nSign-ins can start when the bot's name is known. Then the log shows bot_known.")
    typer.echo("\nStop it with Ctrl+C.\n")


def _print_first_steps(base: str, seed: "Seed") -> None:
    """Print the one address to open, and what a program needs to call the sandbox."""
    typer.echo(f"  Open this in a browser:  {base}/demo\n")
    typer.echo("  To call it from a program, paste this into another terminal:\n")
    typer.echo(f"export TAPROOF_BASE_URL={shlex.quote(base)}")
    typer.echo(f"export TAPROOF_PROJECT_ID={seed.project.id}")
    typer.echo(f"export ACCESS_TOKEN={seed.access_token}\n")


def _sandbox(base: str, seed: "Seed") -> list[tuple[str, str]]:
    lines = [("Demo", f"{base}/demo"), ("Phone", f"{base}/sandbox/phone")]
    return lines if seed.client is None else [*lines, ("OpenID issuer", base), ("OpenID client", seed.client.id)]


def _print_lines(lines: Iterable[tuple[str, str]]) -> None:
    for label, value in lines:
        typer.echo(f"  {label:<14}{value}".rstrip())


def _invitation(base: str, invitation: str, seed: "Seed | None") -> list[tuple[str, str]]:
    does = "creates the first developer, and is valid for 24 hours"
    if seed is not None:
        does = f"links a messenger account to {seed.developer.email}"
    # The code is in the fragment, which browsers do not send and no server logs.
    return [("First sign-in", f"{base}/console/invite#{invitation}"), ("", f"^ works once: it {does}")]


def _elsewhere(settings: Settings) -> list[tuple[str, str]]:
    """Return a warning if the links use another port, because TAPROOF_BASE_URL is set for an application."""
    address = urlsplit(settings.base_url)
    if not settings.sandbox or address.scheme != "http" or (address.port or 80) == settings.port:
        return []
    return [("", f"^ the links above use another address: unset TAPROOF_BASE_URL, or end it with :{settings.port}")]
