"""`taproof webhooks listen`: shows a developer the events that a handler will get, and whether they check."""
# ruff: noqa: PLC0415 — the heavy parts are imported by the command that needs them, so that `--help` is quick.

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from taproof.cli.command import Given, command, load, open_encrypted_store
from taproof.config.settings import InvalidSettings
from taproof.core.clock import iso8601, system_clock
from taproof.core.errors import ProjectNotFound, TaproofError
from taproof.core.proof import signing_secrets

if TYPE_CHECKING:
    from taproof.cli.webhook_receiver import Received
    from taproof.core.encryption import Encryptor
    from taproof.storage.protocol import Storage

ReadSecrets = Callable[[], Awaitable[list[str]]]

_STORE: Final = ("database_url", "pgbouncer", "sandbox", "master_key")
_STANDARD: Final = "-"
_SHOWN: Final = 2_000
"""Characters that are shown of a body that nothing vouches for."""
_SHORTENED: Final = 6
"""Characters that are shown of a session token: enough to tell one from another."""
_HTTPS_ONLY: Final = (
    "The sandbox sends to http:// on this machine. A real service sends to public https:// addresses only: put a "
    "tunnel, or a proxy with a certificate, in front of this port and set its https:// address."
)


class SecretsUnusable(TaproofError, code="secrets_unusable"):
    """There is no webhook secret to check with."""


def add_to(webhooks: typer.Typer) -> None:
    """Add the command."""
    command(webhooks, "listen", *_STORE)(listen)


def listen(
    given: Given,
    *,
    project: Annotated[
        str | None,
        typer.Option(metavar="PROJECT_ID", help="Check with this project's secrets, as the database has them."),
    ] = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Check with the secrets in this file, one whsec_… a line; - is standard input."
        ),
    ] = None,
    listen_port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="NUMBER", help="Port to listen on; 0 takes a free one.")
    ] = 9000,
    listen_host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    answer_status: Annotated[
        int,
        typer.Option(
            "--status",
            min=200,
            max=599,
            metavar="CODE",
            help="What to answer with. With the events of real sign-ins, 500 shows the retries, and 410 turns the "
            "webhook off; a webhook-test has neither effect.",
        ),
    ] = 204,
    show_tokens: Annotated[
        bool,
        typer.Option("--show-tokens", help="Print whole session tokens, with which a sign-in could be taken over."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each event, for programs.")
    ] = False,
) -> None:
    """Receive webhooks on this machine, check and print them: for developing a handler.

    Runs until Ctrl+C. Give either --project or --secret-file. What does not check is answered 401, with the reason.
    """
    from taproof.core.identifiers import is_project_id

    if (project is None) == (secret_file is None):
        raise InvalidSettings(["Give either --project, to check with its secrets, or --secret-file."])
    if project is not None and not is_project_id(project):
        raise InvalidSettings(["--project must be proj_ followed by letters and digits: taproof projects list EMAIL"])
    settings = load(given)

    def show(received: "Received") -> None:
        write = _json_line if as_json else _lines
        typer.echo(write(received, show_tokens=show_tokens))

    async def run(read_secrets: ReadSecrets) -> None:
        from taproof.cli.webhook_receiver import Receiver

        await read_secrets()  # What is wrong with them is better said now than at the first event.
        receiver = Receiver(read_secrets, answer_status, show, _complain, system_clock)
        sandbox = settings.sandbox
        await receiver.run(listen_host, listen_port, lambda port: _say_how(listen_host, port, project, sandbox=sandbox))

    async def run_with_store(project_id: str) -> None:
        async with open_encrypted_store(settings) as (storage, encryptor):
            await run(lambda: _stored_secrets(storage, encryptor, project_id))

    asyncio.run(run(_given_secrets(secret_file)) if secret_file is not None else run_with_store(project or ""))


# ---- the secrets


async def _stored_secrets(storage: "Storage", encryptor: "Encryptor", project_id: str) -> list[str]:
    """Return the current secret and, during a rotation, the one that will follow it."""
    from taproof.core.encryption import associated_data_of

    encrypted = await storage.projects.read_webhook_secrets(project_id)
    if encrypted is None:
        raise ProjectNotFound("There is no such project in this database. List yours with: taproof projects list EMAIL")
    associated_data = associated_data_of("webhook_secret", project_id)
    return [
        encryptor.decrypt(each, associated_data)
        for each in signing_secrets(encrypted, system_clock())
        if each is not None
    ]


def _given_secrets(file: str) -> ReadSecrets:
    """Return what reads the secrets in a file: anew each time, since they may rotate, but standard input once."""
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
        raise SecretsUnusable(f"{name} must hold one webhook secret a line, and nothing else. {error}") from None
    return secrets


# ---- what is printed: events on stdout, everything else on stderr


def _say_how(host: str, port: int, project: str | None, *, sandbox: bool) -> None:
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 — compared only.
    url = f"http://{f'[{reached}]' if ':' in reached else reached}:{port}/"
    # Without a project the service may be a sandbox or not.
    webhook_url = url if sandbox or not project else "https://YOUR-TUNNEL/"
    # Where the service listens is not known here: it may have been started on another port or behind a proxy.
    call = f"$TAPROOF_BASE_URL/api/v1/dev/projects/{project or '$TAPROOF_PROJECT_ID'}"
    bearer = '-H "Authorization: Bearer $ACCESS_TOKEN"'
    typer.echo(
        f"Listening on {url} for webhooks{f' of {project}' if project else ''}. Stop it with Ctrl+C.\n\n"
        "Tell the service to send them here, then let it send a test. $TAPROOF_BASE_URL is the service's address, "
        "$ACCESS_TOKEN your access token:\n\n"
        f'  curl -X PATCH "{call}" {bearer} \\\n'
        f'    -H "Content-Type: application/json" -d \'{{"webhook_url": "{webhook_url}"}}\'\n'
        f'  curl -X POST "{call}/webhook-test" {bearer}\n\n'
        f"{_HTTPS_ONLY}\n",
        err=True,
    )


def _complain(sentence: str) -> None:
    typer.echo(f"{iso8601(system_clock())}  {_printable(sentence)}", err=True)


def _lines(received: "Received", *, show_tokens: bool) -> str:
    """Return what a person reads about a request."""
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
    # Only of what checked every line is shown as one: others could pose as lines of this program.
    shown = [body] if isinstance(body, str) else json.dumps(body, indent=2, ensure_ascii=False).split("\n")
    lines += (f"  {line}" for line in shown)
    return "\n".join(map(_printable, lines)) + "\n"


def _json_line(received: "Received", *, show_tokens: bool) -> str:
    """Return the same for a program. Its fields are kept from release to release, and new ones may come."""
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
    """Return the event as an object; of what did not check the beginning as text, since it may be anything."""
    if received.event is None:
        from taproof.config.logging import redact_text

        text = received.body[:_SHOWN].decode(errors="backslashreplace")
        return text if show_tokens else redact_text(text)
    data = received.event.data
    # From the data, since the event has it only of the types that this release knows.
    token = data.get("session_token")
    if not isinstance(token, str) or show_tokens:
        return data
    return data | {"session_token": f"{token[:_SHORTENED]}…"}


def _printable(line: str) -> str:
    """Return `line` with everything escaped, as JSON does it, that could move the cursor or turn the text around."""
    if line.isprintable():
        return line
    return "".join(mark if mark.isprintable() else json.dumps(mark)[1:-1] for mark in line)
