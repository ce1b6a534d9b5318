"""`taproof webhooks trigger`: send a realistic test event to the project's webhook URL, or to any other URL."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Final, cast, get_args

import typer

from taproof.cli.command import STORE, AsJson, Given, command, load, open_encrypted_store
from taproof.cli.developer_api import offer_services
from taproof.cli.output import print_json
from taproof.cli.webhooks.secrets import (
    ServiceUrl,
    open_client,
    require_project_id,
    service_secrets,
    stored_secrets,
)
from taproof.config.settings import InvalidSettings, Settings
from taproof.contract.delivery import EventType
from taproof.core.attempt_errors import attempt_sentence
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import ProjectNotFound

commands: Final = typer.Typer()
"""Part of the group of `listen.py`."""

EVENTS: Final = get_args(EventType)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A test event that was sent, and the receiver's answer. `duration` is in ms."""

    id: str
    delivered: bool
    status: int | None
    duration: int
    error: str | None


@command(commands, "trigger", *STORE, "master_key", "webhook_allow", "webhook_ports")
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
    wanted = cast("EventType", event)
    if to is not None:
        sent = await _send_here(given, wanted, project, service, to)
    elif service is not None:
        sent = _ask_service(wanted, project, service)
    else:
        sent = await _send_from_database(load(given), wanted, project)
    if as_json:
        print_json(_as_json(event, sent))
    else:
        outcome = "delivered" if sent.delivered else "not delivered"
        answer = "no response" if sent.status is None else f"HTTP {sent.status}"
        typer.echo(f"{event} {sent.id}: {outcome}, {answer} in {sent.duration} ms.")
        if sent.error is not None:
            typer.echo(sent.error, err=True)
    if not sent.delivered:
        raise typer.Exit(1)


async def _send_here(given: Given, event: EventType, project: str, service: str | None, url: str) -> _Sent:
    from taproof.cli.webhooks.posting import open_poster, require_url
    from taproof.core.example_events import example_fields
    from taproof.core.identifiers import new_event_id
    from taproof.core.signature import signature_headers
    from taproof.service.sessions.events import event_body
    from taproof.service.webhooks import request_headers

    require_url("--to", url, loopback=False)
    if service is not None:
        secrets = await service_secrets(service, project)()
    else:
        async with offer_services(), open_encrypted_store(load(given)) as (storage, encryptor):
            secrets = await stored_secrets(storage, encryptor, project)()
    now = system_clock()
    event_id = new_event_id(now, system_entropy)
    body = event_body(event_id, event, project, **example_fields(event, now, system_entropy)).encode()
    headers = request_headers(f"Taproof/{version('taproof')}") | signature_headers(event_id, body, secrets, now)
    async with open_poster() as post:
        answer = await post(url, headers, body)
    return _Sent(
        id=event_id,
        delivered=answer.delivered,
        status=answer.status,
        duration=answer.duration,
        error=attempt_sentence(answer.status, answer.error),
    )


def _ask_service(event: EventType, project: str, service: str) -> _Sent:
    with open_client(service) as client:
        delivery = client.send_webhook_test(project, event=event)
    attempt = delivery.attempts[-1]
    return _Sent(
        id=delivery.id,
        delivered=delivery.status == "delivered",
        status=attempt.status,
        duration=attempt.duration_ms,
        error=attempt.error,
    )


async def _send_from_database(settings: Settings, event: EventType, project_id: str) -> _Sent:
    from taproof.core.accounts import Actor
    from taproof.service.deliveries import Deliveries
    from taproof.service.webhooks import Webhooks
    from taproof.webhooks.http_client import open_webhook_client

    rules, ports = settings.address_rules, settings.webhook_ports
    async with (
        offer_services(),
        open_encrypted_store(settings) as (storage, encryptor),
        open_webhook_client(rules, ports, allow_http=settings.sandbox) as client,
    ):
        project = await storage.projects.read_project(project_id)
        owners = await storage.developers.list_developers()
        owner = next((each for each in owners if project is not None and each.id == project.developer_id), None)
        if owner is None:
            raise ProjectNotFound
        made = (storage, encryptor, system_clock, system_entropy)
        webhooks = Webhooks(*made, f"Taproof/{version('taproof')}")
        deliveries = Deliveries(*made, webhooks, post=client.post, recorded=lambda: None)
        sent = await deliveries.send_test(Actor(owner, "command_line"), project_id, event)
    attempt = sent.record.attempts[-1]
    return _Sent(
        id=sent.record.event_id,
        delivered=sent.record.state == "delivered",
        status=attempt.status,
        duration=attempt.duration,
        error=attempt_sentence(attempt.status, attempt.error),
    )


def _as_json(event: str, sent: _Sent) -> dict[str, Any]:
    return {
        "id": sent.id,
        "event": event,
        "delivered": sent.delivered,
        "status": sent.status,
        "duration_ms": sent.duration,
        "error": sent.error,
    }
