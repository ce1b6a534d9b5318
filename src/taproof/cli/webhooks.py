"""`taproof webhooks listen`: show the events that a handler will receive, and check their signatures."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import functools
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from taproof.cli.command import STORE, Given, command, group, load, open_encrypted_store
from taproof.config.settings import InvalidSettings, local_address
from taproof.core.clock import iso8601, system_clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.errors import ProjectNotFound, TaproofError
from taproof.core.identifiers import is_project_id
from taproof.core.proof import signing_secrets
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from taproof.cli.webhook_receiver import Received

ReadSecrets = Callable[[], Awaitable[list[str]]]

commands: Final = group("webhooks", "Develop and test webhook handlers.")

_STANDARD: Final = "-"
_SHOWN: Final = 2_000
"""Number of characters shown of a body without a valid signature."""
_SHORTENED: Final = 6
"""Number of characters shown of a session token: enough to tell tokens apart."""
_HTTPS_ONLY: Final = (
    "The sandbox sends to http:// on this machine. A real service sends only to public https:// addresses. For those, "
    "put a tunnel or a proxy with a certificate in front of this port, and use its https:// address."
)


class SecretsUnusable(TaproofError, code="secrets_unusable"):
    """The webhook secrets cannot be read."""


@command(commands, "listen", *STORE, "master_key")
async def listen(
    given: Given,
    *,
    project: Annotated[
        str | None,
        typer.Option(metavar="PROJECT_ID", help="Check signatures with this project's secrets from the database."),
    ] = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Check signatures with the secrets in this file, one whsec_… per line; - is standard input.",
        ),
    ] = None,
    listen_port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="NUMBER", help="Port to listen on; 0 chooses a free one.")
    ] = 9000,
    listen_host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    answer_status: Annotated[
        int,
        typer.Option(
            "--status",
            min=200,
            max=599,
            metavar="CODE",
            help="HTTP status of the answers. For events from real sign-ins, 500 causes retries, and 410 turns the "
            "webhook off. A `webhook.test` event causes neither.",
        ),
    ] = 204,
    show_tokens: Annotated[
        bool,
        typer.Option(
            "--show-tokens", help="Print complete session tokens. Anyone who sees one could take over the sign-in."
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each event, for programs.")
    ] = False,
) -> None:
    """Receive, check and print webhooks on this machine, to develop a handler.

    Runs until Ctrl+C. Set either --project or --secret-file. Requests with an invalid signature are answered with
    401 and the reason.
    """
    if (project is None) == (secret_file is None):
        raise InvalidSettings(["Set either --project, to check with the project's secrets, or --secret-file."])
    if project is not None and not is_project_id(project):
        raise InvalidSettings(["--project must be proj_ followed by letters and digits: taproof projects list EMAIL"])
    settings = load(given)

    from taproof.cli.webhook_receiver import Receiver

    def show(received: "Received") -> None:
        write = _json_line if as_json else _lines
        typer.echo(write(received, show_tokens=show_tokens))

    async with contextlib.AsyncExitStack() as stack:
        if project is None:
            read_secrets = _given_secrets(secret_file or "")
        else:
            storage, encryptor = await stack.enter_async_context(open_encrypted_store(settings))
            read_secrets = functools.partial(_stored_secrets, storage, encryptor, project)
        await read_secrets()  # Report an error in the secrets now, not at the first event.
        receiver = Receiver(read_secrets, answer_status, show, _complain, system_clock)
        hint = functools.partial(_print_instructions, listen_host, project, sandbox=settings.sandbox)
        await receiver.run(listen_host, listen_port, hint)


# ---- the secrets


async def _stored_secrets(storage: Storage, encryptor: Encryptor, project_id: str) -> list[str]:
    """Return the current secret and, during a rotation, the next one."""
    encrypted = await storage.projects.read_webhook_secrets(project_id)
    if encrypted is None:
        raise ProjectNotFound(
            "There is no such project in this database. List the projects with: taproof projects list EMAIL"
        )
    associated_data = associated_data_of("webhook_secret", project_id)
    return [
        encryptor.decrypt(each, associated_data)
        for each in signing_secrets(encrypted, system_clock())
        if each is not None
    ]


def _given_secrets(file: str) -> ReadSecrets:
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


# ---- output: events on stdout, everything else on stderr


def _print_instructions(host: str, project: str | None, port: int, *, sandbox: bool) -> None:
    url = f"{local_address('http', host, port)}/"
    # Without a project, the service may or may not be a sandbox.
    webhook_url = url if sandbox or not project else "https://YOUR-TUNNEL/"
    # This command does not know the service's address: it may use another port, or be behind a proxy.
    call = f"$TAPROOF_BASE_URL/api/v1/dev/projects/{project or '$TAPROOF_PROJECT_ID'}"
    bearer = '-H "Authorization: Bearer $ACCESS_TOKEN"'
    typer.echo(
        f"Listening on {url} for webhooks{f' of {project}' if project else ''}. Stop it with Ctrl+C.\n\n"
        "Set this address as the project's webhook URL, then send a test. $TAPROOF_BASE_URL is the service's "
        "address, $ACCESS_TOKEN your access token:\n\n"
        f'  curl -X PATCH "{call}" {bearer} \\\n'
        f'    -H "Content-Type: application/json" -d \'{{"webhook_url": "{webhook_url}"}}\'\n'
        f'  curl -X POST "{call}/webhook-test" {bearer}\n\n'
        f"{_HTTPS_ONLY}\n",
        err=True,
    )


def _complain(sentence: str) -> None:
    typer.echo(f"{iso8601(system_clock())}  {_printable(sentence)}", err=True)


def _lines(received: "Received", *, show_tokens: bool) -> str:
    """Return a request as text, for people."""
    title = [iso8601(received.time), received.type or "no event", received.id, "again" if received.again else ""]
    standard = received.standard_webhooks.replace("_", " ")
    if received.age is not None:
        standard += f", signed {received.age} s ago" if received.age >= 0 else f", signed {-received.age} s ahead"
    lines = [
        "  ".join(part for part in title if part),
        f"  X-Service-Signature: {received.service_signature.replace('_', ' ')}",
        f"  Standard Webhooks: {standard}",
    ]
    if received.error is None:
        lines.append(f"  Answered {received.answered}.")
    else:
        lines.append(f"  Answered {received.answered}: {received.error}")
    body = _body(received, show_tokens=show_tokens)
    # A body without a valid signature is shown on one line, because its lines could imitate those of this program.
    shown = [body] if isinstance(body, str) else json.dumps(body, indent=2, ensure_ascii=False).split("\n")
    lines += (f"  {line}" for line in shown)
    return "\n".join(map(_printable, lines)) + "\n"


def _json_line(received: "Received", *, show_tokens: bool) -> str:
    """Return a request as a line of JSON, for programs. Releases may add fields, but never remove one."""
    return json.dumps({
        "time": iso8601(received.time),
        "event": received.type,
        "id": received.id,
        "again": received.again,
        "verified": received.error is None,
        "x_service_signature": received.service_signature,
        "standard_webhooks": received.standard_webhooks,
        "age_seconds": received.age,
        "answered": received.answered,
        "error": received.error,
        "body": _body(received, show_tokens=show_tokens),
    })  # fmt: skip


def _body(received: "Received", *, show_tokens: bool) -> dict[str, Any] | str:
    """Return a verified event as an object, or the beginning of any other body as text."""
    if received.event is None:
        from taproof.config.logging import redact_text

        text = received.body[:_SHOWN].decode(errors="backslashreplace")
        return text if show_tokens else redact_text(text)
    data = received.event.data
    # Read from the data, because the event has the token only for types that this release knows.
    token = data.get("session_token")
    if not isinstance(token, str) or show_tokens:
        return data
    return data | {"session_token": f"{token[:_SHORTENED]}…"}


def _printable(line: str) -> str:
    """Return `line` with JSON escapes for characters that move the cursor or change the direction of the text."""
    if line.isprintable():
        return line
    return "".join(mark if mark.isprintable() else json.dumps(mark)[1:-1] for mark in line)
