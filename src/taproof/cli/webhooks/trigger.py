"""`taproof webhooks trigger`: send a realistic test event to the project's webhook URL, or to any other URL."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

from collections.abc import Mapping
from importlib.metadata import version
from typing import Annotated, Any, Final, cast, get_args

import typer

from taproof.cli.command import AsJson, Given, command
from taproof.cli.developer_api import API_SETTINGS, CallRunner, open_developer_api
from taproof.cli.output import print_json
from taproof.cli.webhooks.secrets import ServiceUrl, project_secrets, require_project_id
from taproof.config.settings import InvalidSettings
from taproof.contract.delivery import EventType
from taproof.core.attempt_errors import attempt_sentence
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.names import visible_name
from taproof.sdk.developer_calls import send_webhook_test

commands: Final = typer.Typer()
"""Part of the group of `listen.py`."""

EVENTS: Final = get_args(EventType)


@command(commands, "trigger", *API_SETTINGS, "webhook_allow", "webhook_ports")
async def trigger(
    given: Given,
    event: Annotated[str, typer.Argument(metavar="EVENT", help=f"The type of the event: {', '.join(EVENTS)}.")],
    *,
    project: Annotated[str, typer.Option(metavar="PROJECT_ID", help="The project whose secret signs the event.")],
    service: ServiceUrl = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Send the event from this machine to this URL, for example of an application in development. Default: "
            "it goes to the project's webhook URL; with --service, the service sends it.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send a signed test event, whether or not the project has chosen its type.

    The event has the fields of a real one and made-up values. A handler must ignore events whose field `test` is true;
    one that does not will sign in a made-up user. It is sent once, without retries.
    """
    if event not in EVENTS:
        raise InvalidSettings([f"EVENT must be one of {', '.join(EVENTS)}."])
    require_project_id(project)
    if to is not None:
        from taproof.cli.webhooks.posting import require_url

        require_url("--to", to, loopback=False)
    async with open_developer_api(given, service, None, project) as api:
        if to is not None:
            sent = await _send_here(api, cast("EventType", event), project, to)
        else:
            delivery = await api.call(send_webhook_test, project, event=event)
            attempt: Mapping[str, Any] = next(reversed(delivery["attempts"]), {})
            answer = {name: attempt.get(name) for name in ("status", "duration_ms", "error")}
            is_delivered = delivery["status"] == "delivered"
            sent = {"id": delivery["id"], "event": event, "delivered": is_delivered, **answer}
    if as_json:
        print_json(sent)
    else:
        outcome = "delivered" if sent["delivered"] else "not delivered"
        shown = "no response" if sent["status"] is None else f"HTTP {sent['status']}"
        typer.echo(visible_name(f"{event} {sent['id']}: {outcome}, {shown} in {sent['duration_ms']} ms."))
        if sent["error"] is not None:
            typer.echo(visible_name(sent["error"]), err=True)
    if not sent["delivered"]:
        raise typer.Exit(1)


async def _send_here(api: CallRunner, event: EventType, project: str, url: str) -> dict[str, Any]:
    from taproof.cli.webhooks.posting import open_poster
    from taproof.core.example_events import example_fields
    from taproof.core.identifiers import new_event_id
    from taproof.core.signature import signature_headers
    from taproof.service.sessions.events import event_body
    from taproof.service.webhooks import request_headers

    secrets = await project_secrets(api, project)
    now = system_clock()
    event_id = new_event_id(now, system_entropy)
    body = event_body(event_id, event, project, **example_fields(event, now, system_entropy)).encode()
    headers = request_headers(f"Taproof/{version('taproof')}") | signature_headers(event_id, body, secrets, now)
    async with open_poster() as post:
        answer = await post(url, headers, body)
    return {
        "id": event_id,
        "event": event,
        "delivered": answer.delivered,
        "status": answer.status,
        "duration_ms": answer.duration,
        "error": attempt_sentence(answer.status, answer.error),
    }
