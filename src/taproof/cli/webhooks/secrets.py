"""Read webhook secrets from the developer API or a file."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from taproof.cli.developer_api import CallRunner
from taproof.config.settings import InvalidSettings
from taproof.core.errors import TaproofError
from taproof.core.identifiers import PROJECT_ID_RULE, is_project_id
from taproof.sdk.developer_calls import read_webhook_secret

ReadSecrets = Callable[[], Awaitable[list[str]]]
ServiceUrl = Annotated[
    str | None,
    typer.Option(
        "--service",
        metavar="URL",
        help="A service that you are signed in to with `taproof login`. Default: the local database.",
    ),
]
_STANDARD: Final = "-"


class SecretsUnusable(TaproofError, code="secrets_unusable"):
    """The webhook secrets cannot be read."""


def require_project_id(project: str) -> None:
    """Refuse a value of --project that is not a project's id."""
    if not is_project_id(project):
        raise InvalidSettings([f"--project must be {PROJECT_ID_RULE}. To list yours: taproof projects list"])


async def project_secrets(api: CallRunner, project_id: str) -> list[str]:
    """Return the current secret of a project and, during a rotation, the next one."""
    found = await api.call(read_webhook_secret, project_id)
    return [found[name] for name in ("webhook_secret", "next_webhook_secret") if found.get(name) is not None]


def given_secrets(file: str) -> ReadSecrets:
    """Return a function that reads the secrets in a file. Standard input is read only once."""
    text = sys.stdin.read() if file == _STANDARD else None

    async def read() -> list[str]:
        if text is not None:
            return _parsed_secrets(text, "Standard input")
        return _parsed_secrets(_read_file(file), file)

    return read


def _read_file(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SecretsUnusable(f"{file} cannot be read: {error.strerror or error}.") from error


def _parsed_secrets(text: str, name: str) -> list[str]:
    from taproof.sdk.webhook import WebhookError, verify_webhook

    secrets = text.split()
    try:
        with contextlib.suppress(WebhookError):
            verify_webhook(b"", {}, secrets)
    except ValueError as error:
        raise SecretsUnusable(f"{name} must contain only webhook secrets, one per line. {error}") from None
    return secrets
