"""The HTTP server of `taproof webhooks listen`: receive webhooks, and check them as an application would."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from taproof.core.clock import SECOND, Clock
from taproof.core.errors import TaproofError
from taproof.sdk.reading import json_object
from taproof.sdk.webhook import (
    WebhookError,
    WebhookEvent,
    WebhookFromFuture,
    WebhookSignatureInvalid,
    WebhookTooOld,
    verify_webhook,
)
from taproof.service.webhooks import WebhookResponse

BODY_LIMIT: Final = 65_536
"""Maximum size of a request body, in bytes."""
_SERVICE: Final = frozenset({"x-service-signature"})
_STANDARD: Final = frozenset({"webhook-id", "webhook-timestamp", "webhook-signature"})
_REMEMBERED: Final = 10_000
"""Maximum number of event ids stored to recognise repeated events; the oldest are dropped first."""
_LONGEST_NAME: Final = 100
"""Maximum length of a stored id or type, which an unknown sender may have chosen."""
_NO_RESPONSE: Final = 502
_CLOSING: Final = 0.5
"""Time limit for open requests when the receiver stops, in seconds."""

Check = Literal["valid", "missing", "invalid", "too_old", "from_future", "malformed"]
"""The result of checking one kind of signature."""
_FAILED_CHECKS: Final[dict[type[WebhookError], Check]] = {
    WebhookSignatureInvalid: "invalid",
    WebhookTooOld: "too_old",
    WebhookFromFuture: "from_future",
}


class AddressUnusable(TaproofError, code="address_unusable"):
    """The address to listen on is in use, or does not belong to this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request and its response. If `event` is None, anyone may have sent the request."""

    time: int
    """In ms."""
    type: str
    id: str
    """Like `type`, "" if the body has none."""
    again: bool
    """True if a verified event with this id was received before."""
    service_signature: Check
    standard_webhooks: Check
    age: int | None
    """Seconds since the time at which the request claims to be signed."""
    answered: int
    error: str | None
    event: WebhookEvent | None
    body: bytes
    forwarded: WebhookResponse | None = None
    """The application's answer, if the event was forwarded."""


class Receiver:
    """Checks each request and answers it: with `status` if it is valid, with 401 and the reason if not.

    Args:
        read_secrets: called for each request, because the secrets may rotate. If it raises a TaproofError, the response
            is 503, so that the service sends the event again.
        status: the HTTP status for valid requests.
        show: called with each request.
        complain: called with a sentence about each request that is refused without a check.
        clock: returns the time in ms.
        forward: posts the headers and the body of a valid request to the application, whose status becomes the answer.
    """

    def __init__(
        self,
        read_secrets: Callable[[], Awaitable[list[str]]],
        status: int,
        show: Callable[[Received], None],
        complain: Callable[[str], None],
        clock: Clock,
        *,
        forward: Callable[[Mapping[str, str], bytes], Awaitable[WebhookResponse]] | None = None,
    ) -> None:
        self._forward = forward
        self._read_secrets = read_secrets
        self._status = status
        self._show = show
        self._complain = complain
        self._clock = clock
        self._ids: dict[str, None] = {}
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Listen until Ctrl+C or SIGTERM. `ready` is called with the port when the server accepts requests."""
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self._end, None)
        application = web.Application(client_max_size=BODY_LIMIT)
        application.router.add_route("*", "/{path:.*}", self._answer)
        # The logger would print the content of hostile requests. Errors of this program end the command anyway.
        silent = logging.getLogger(f"{__name__}.http")
        silent.disabled = True
        # The signatures cover the bytes as sent, so the body is not decompressed.
        runner = web.AppRunner(
            application, access_log=None, logger=silent, auto_decompress=False, shutdown_timeout=_CLOSING
        )
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, host, port).start()
            except OSError as error:
                # The message of the event loop repeats the address.
                reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
                raise AddressUnusable(
                    f"Cannot listen on port {port} of {host} ({reason}). Stop the program that uses this port, or "
                    "choose another port with --port. --host must be an address of this machine."
                ) from error
            ready(runner.addresses[0][1])
            await self._ended
        finally:
            await runner.cleanup()

    def _end(self, error: Exception | None) -> None:
        if not self._ended.done():
            if error is None:
                self._ended.set_result(None)
            else:
                self._ended.set_exception(error)

    async def _answer(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return self._refuse(405, "Webhooks are sent with POST.", {"Allow": "POST"})
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(413, "The body is longer than 64 KiB.")
        try:
            received = self._check(body, request.headers, await self._read_secrets())
            if self._forward is not None and received.error is None:
                posted = await self._forward(request.headers, body)
                received = replace(received, forwarded=posted, answered=_relayed(posted.status))
            self._show(received)
        except TaproofError as error:
            return self._refuse(503, error.sentence)
        except Exception as error:  # noqa: BLE001 — every error ends the command, such as a closed standard output.
            self._end(error)
            return web.json_response({"error": "The receiver is stopping."}, status=503)
        if received.error is not None:
            return web.json_response({"error": received.error}, status=401)
        retry_after = () if received.forwarded is None else received.forwarded.retry_after
        return web.Response(status=received.answered, headers=[("Retry-After", each) for each in retry_after])

    def _refuse(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
        with contextlib.suppress(OSError):
            self._complain(f"A request was answered {status}: {sentence}")
        return web.json_response({"error": sentence}, status=status, headers=headers)

    def _check(self, body: bytes, headers: CIMultiDictProxy[str], secrets: list[str]) -> Received:
        now = self._clock()
        event, error = None, None
        try:
            event = verify_webhook(body, headers, secrets, now=now / SECOND)
        except WebhookError as refusal:
            error = str(refusal)
        event_type, event_id = _claimed(body)
        return Received(
            time=now,
            type=event_type,
            id=event_id,
            again=self._came_before(event_id, verified=event is not None),
            service_signature=_checked(body, headers, _SERVICE, secrets, now),
            standard_webhooks=_checked(body, headers, _STANDARD, secrets, now),
            age=_age(headers, now),
            answered=self._status if error is None else 401,
            error=error,
            event=event,
            body=body,
        )

    def _came_before(self, event_id: str, *, verified: bool) -> bool:
        """Return whether a verified event with this id was received before. Store the id if this event is verified."""
        if event_id in self._ids:
            return True
        if not event_id or not verified:
            return False
        if len(self._ids) == _REMEMBERED:
            del self._ids[next(iter(self._ids))]
        self._ids[event_id] = None
        return False


def _relayed(status: int | None) -> int:
    """Return the status to answer: the application's, or a substitute if it is missing or not final (RFC 9110, 15)."""
    return status if status is not None and 200 <= status < 600 else _NO_RESPONSE


def _checked(body: bytes, headers: CIMultiDictProxy[str], names: frozenset[str], secrets: list[str], now: int) -> Check:
    """Check only the signature in these headers."""
    given = CIMultiDict((name, value) for name, value in headers.items() if name.lower() in names)
    if not given:
        return "missing"
    try:
        verify_webhook(body, given, secrets, now=now / SECOND)
    except WebhookError as error:
        return _FAILED_CHECKS.get(type(error), "malformed")
    return "valid"


def _claimed(body: bytes) -> tuple[str, str]:
    """Return the type and id in an unverified body, "" for each missing one."""
    fields = json_object(body)
    event_type, event_id = (
        value[:_LONGEST_NAME] if isinstance(value := fields.get(name), str) else "" for name in ("event", "id")
    )
    return event_type, event_id


def _age(headers: CIMultiDictProxy[str], now: int) -> int | None:
    timestamp = headers.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return None
    return now // SECOND - int(timestamp)
