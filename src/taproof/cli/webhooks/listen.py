"""`taproof webhooks listen`: check and print events, and forward them to an application on this machine."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import functools
import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from taproof.cli.command import Given, command, group, load
from taproof.cli.developer_api import API_SETTINGS, open_developer_api
from taproof.cli.help import SELDOM
from taproof.cli.webhooks.secrets import ServiceUrl, given_secrets, project_secrets, require_project_id
from taproof.config.settings import InvalidSettings, local_address
from taproof.contract.delivery import SENTENCES
from taproof.core.clock import iso8601, system_clock

if TYPE_CHECKING:
    from taproof.cli.webhooks.receiver import Received
    from taproof.service.webhooks import WebhookResponse

commands: Final = group("webhooks", "Develop and test webhook handlers.")

_SHOWN: Final = 2_000
"""Number of characters shown of a body without a valid signature."""
_SHORTENED: Final = 6
"""Number of characters shown of a session token: enough to tell tokens apart."""
_HTTPS_ONLY: Final = (
    "The sandbox sends to http:// on this machine. A real service sends only to public https:// addresses. For those, "
    "put a tunnel or a proxy with a certificate in front of this port, and use its https:// address."
)


@command(commands, "listen", *API_SETTINGS)
async def listen(
    given: Given,
    *,
    project: Annotated[
        str | None,
        typer.Option(
            metavar="PROJECT_ID", help="Check signatures with this project's secrets, from the database or --service."
        ),
    ] = None,
    service: ServiceUrl = None,
    secret_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Check signatures with the secrets in this file. One whsec_… per line; - is standard input.",
        ),
    ] = None,
    listen_port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="NUMBER", help="Port to listen on; 0 chooses a free one.")
    ] = 9000,
    listen_host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.", rich_help_panel=SELDOM)
    ] = "127.0.0.1",
    forward_to: Annotated[
        str | None,
        typer.Option(
            "--forward-to",
            metavar="URL",
            help="Post each valid event to this URL of this machine. The application gets the original body and "
            "headers, and its status is the answer; 502 without a response.",
        ),
    ] = None,
    answer_status: Annotated[
        int | None,
        typer.Option(
            "--status",
            min=200,
            max=599,
            metavar="CODE",
            rich_help_panel=SELDOM,
            help="HTTP status of the responses; 204 by default. For events from real sign-ins, 500 causes retries, and "
            "410 turns the webhook off. A test event causes neither.",
        ),
    ] = None,
    show_tokens: Annotated[
        bool,
        typer.Option(
            "--show-tokens",
            rich_help_panel=SELDOM,
            help="Print complete session tokens. Anyone who sees one could take over the sign-in.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each event, for programs.")
    ] = False,
) -> None:
    """Receive, check, print and forward webhooks on this machine, to develop a handler.

    Runs until Ctrl+C. Set either --project or --secret-file. Requests with an invalid signature are answered with
    401 and the reason.
    """
    if (project is None) == (secret_file is None):
        raise InvalidSettings(["Set either --project, to check with the project's secrets, or --secret-file."])
    if project is not None:
        require_project_id(project)
    if service is not None and project is None:
        raise InvalidSettings(["--service needs --project, to check with the project's secrets."])
    if forward_to is not None and answer_status is not None:
        raise InvalidSettings(["Set either --forward-to, which answers with the application's status, or --status."])
    settings = load(given)

    from taproof.cli.webhooks.posting import open_poster, require_url
    from taproof.cli.webhooks.receiver import Receiver

    if forward_to is not None:
        require_url("--forward-to", forward_to, loopback=True)

    def show(received: "Received") -> None:
        write = _json_line if as_json else _lines
        typer.echo(write(received, show_tokens=show_tokens))

    async with contextlib.AsyncExitStack() as stack:
        if project is None:
            read_secrets = given_secrets(secret_file or "")
        else:
            api = await stack.enter_async_context(open_developer_api(given, service, None, project))
            read_secrets = functools.partial(project_secrets, api, project)
        await read_secrets()  # Report an error in the secrets now, not at the first event.
        forward = None
        if forward_to is not None:
            forward = functools.partial(await stack.enter_async_context(open_poster()), forward_to)
        receiver = Receiver(read_secrets, answer_status or 204, show, _complain, system_clock, forward=forward)
        hint = functools.partial(_print_instructions, listen_host, project, sandbox=settings.sandbox)
        await receiver.run(listen_host, listen_port, hint)


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
    if received.forwarded is not None:
        answer = _no_response(received.forwarded) or f"HTTP {received.forwarded.status}"
        lines.append(f"  Forwarded: {answer}, in {received.forwarded.duration} ms.")
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
        "forwarded": None if received.forwarded is None else {
            "status": received.forwarded.status,
            "duration_ms": received.forwarded.duration,
            "error": _no_response(received.forwarded),
        },
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


def _no_response(forwarded: "WebhookResponse") -> str | None:
    return None if forwarded.error is None else SENTENCES[forwarded.error]


def _printable(line: str) -> str:
    """Return `line` with JSON escapes for characters that move the cursor or change the direction of the text."""
    if line.isprintable():
        return line
    return "".join(mark if mark.isprintable() else json.dumps(mark)[1:-1] for mark in line)
