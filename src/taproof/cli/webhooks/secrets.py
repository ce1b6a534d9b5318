"""Read webhook secrets from a service, the local database, or a file."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from taproof.cli.credentials import open_credentials
from taproof.cli.remote import signed_in_service
from taproof.config.settings import InvalidSettings
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.errors import ProjectNotFound, TaproofError
from taproof.core.identifiers import PROJECT_ID_RULE, is_project_id
from taproof.core.proof import signing_secrets
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from taproof import Client

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
_NO_PROJECT: Final = "There is no such project in this database. List the projects with: taproof projects list"


class SecretsUnusable(TaproofError, code="secrets_unusable"):
    """The webhook secrets cannot be read."""


class ServiceRefused(TaproofError, code="service_refused"):
    """The service did not answer the call, or refused it."""


def require_project_id(project: str) -> None:
    """Refuse a value of --project that is not a project's id."""
    if not is_project_id(project):
        raise InvalidSettings([f"--project must be {PROJECT_ID_RULE}. To list yours: taproof projects list"])


@contextlib.contextmanager
def open_client(url: str) -> Iterator["Client"]:
    """Open the client of a service that the user is signed in to. Its errors become a TaproofError."""
    from taproof.sdk.api_errors import TaproofApiError
    from taproof.sdk.client import Client

    address, credential = signed_in_service(open_credentials(), url)
    with Client(address, access_token=credential.access_token) as client:
        try:
            yield client
        except TaproofApiError as error:
            raise ServiceRefused(f"{address}: {error.sentence}") from None


def service_secrets(url: str, project_id: str) -> ReadSecrets:
    """Return a function that asks a service for the current secret and, during a rotation, the next one."""

    def ask() -> list[str]:
        with open_client(url) as client:
            found = client.read_webhook_secret(project_id)
        return [each for each in (found.webhook_secret, found.next_webhook_secret) if each is not None]

    async def read() -> list[str]:
        return await asyncio.to_thread(ask)

    return read


def stored_secrets(storage: Storage, encryptor: Encryptor, project_id: str) -> ReadSecrets:
    """Return a function that reads the current secret and, during a rotation, the next one from the database."""

    async def read() -> list[str]:
        encrypted = await storage.projects.read_webhook_secrets(project_id)
        if encrypted is None:
            raise ProjectNotFound(_NO_PROJECT)
        associated_data = associated_data_of("webhook_secret", project_id)
        return [
            encryptor.decrypt(each, associated_data)
            for each in signing_secrets(encrypted, system_clock())
            if each is not None
        ]

    return read


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
