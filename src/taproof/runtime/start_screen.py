"""The start screen, which `taproof serve` prints when it accepts requests: the addresses and files of the service."""

from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

from taproof.config.database_url import is_postgres, master_key_file, shown_database
from taproof.config.settings import Settings

if TYPE_CHECKING:
    from taproof.sandbox.seed import Seed


def print_screen(settings: Settings, seed: "Seed | None", invitation: str | None, *, link_known: bool) -> None:
    """Print the start screen to stdout.

    Args:
        settings: the settings of the service.
        seed: the initial data of the sandbox.
        invitation: the code of an invitation, for the first developer or, in the sandbox, the existing one.
        link_known: whether sign-ins can already be started.
    """
    base = settings.base_url
    lines = []
    if settings.serves_api:
        lines += [("API", f"{base}/api/v1"), ("API reference", f"{base}/docs"), ("Console", f"{base}/console")]
        if invitation is not None:
            # The code is in the fragment, which browsers do not send and no server logs.
            lines += [("First sign-in", f"{base}/console/invite#{invitation}"), ("", f"^ works once: {_purpose(seed)}")]
    if seed is not None:
        lines += [
            ("Demo", f"{base}/demo   <- open this in a browser"),
            ("Phone", f"{base}/sandbox/phone"),
            ("Project id", seed.project.id),
            ("Access token", seed.access_token),
        ]
        if seed.client is not None:
            lines += [("OpenID issuer", base), ("OpenID client", seed.client.id)]
    if settings.role != "all":
        lines.append(("Role", settings.role))
    if settings.workers > 1:
        lines.append(("Processes", str(settings.workers)))
    lines += [
        ("Listens on", f"{settings.host}:{settings.port}"),
        *_elsewhere(settings),
        ("Health", f"{base}/healthz  {base}/readyz  {base}/metrics"),
        ("Database", shown_database(settings.database_url)),
    ]
    if settings.master_key is None and not is_postgres(settings.database_url):
        lines.append(("Master key", f"{master_key_file(settings.database_url).absolute()}   <- back this up too"))
    kind = "the sandbox: simulated users, for development and CI only" if settings.sandbox else "listening"
    typer.echo(f"\nTaproof {version('taproof')} — {kind}\n")
    for label, value in lines:
        typer.echo(f"  {label:<14}{value}")
    if settings.serves_api and not link_known:
        typer.echo("\nSign-ins can start when the bot's name is known. Then the log shows bot_known.")
    typer.echo("\nStop it with Ctrl+C.\n")


def _elsewhere(settings: Settings) -> list[tuple[str, str]]:
    """Return a warning if the links use another port, because TAPROOF_BASE_URL is set for an application."""
    address = urlsplit(settings.base_url)
    if not settings.sandbox or address.scheme != "http" or (address.port or 80) == settings.port:
        return []
    return [("", f"^ the links above use another address: unset TAPROOF_BASE_URL, or end it with :{settings.port}")]


def _purpose(seed: "Seed | None") -> str:
    if seed is None:
        return "it creates the first developer, and is valid for 24 hours"
    return f"it links a messenger account to {seed.developer.email}"
