"""The receiver behind `taproof webhooks listen`: takes what is posted to it, and checks it as an application would."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from taproof.core.clock import SECOND, Clock
from taproof.core.errors import TaproofError
from taproof.sdk.webhook import (
    WebhookError,
    WebhookEvent,
    WebhookFromFuture,
    WebhookSignatureInvalid,
    WebhookTooOld,
    verify_webhook,
)

BODY_LIMIT: Final = 65_536
"""Bytes of a request's body that are taken."""
_SERVICE: Final = frozenset({"x-service-signature"})
_STANDARD: Final = frozenset({"webhook-id", "webhook-timestamp", "webhook-signature"})
_REMEMBERED: Final = 10_000
"""Ids that are kept to tell which came before; the oldest go first."""
_LONGEST_NAME: Final = 100
"""Characters that are kept of an id or a type, which anybody may have made up."""
_CLOSING: Final = 0.5
"""Seconds that requests under way are given when the receiver is stopped."""

Check = Literal["valid", "missing", "invalid", "too_old", "from_future", "malformed"]
"""What one kind of signature showed: it fits; it did not come; it fits no secret; or what else is wrong."""


class AddressUnusable(TaproofError, code="address_unusable"):
    """The address to listen on is taken, or is not this machine's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request that came, and how it was answered.

    Unless `event` is there nothing shows who sent it, and all of it may be made up. `time` in ms; `age` is how many
    seconds before that the request says to have been signed; `type` and `id` are "" when the body has none. `again`:
    one of this id that checked came before.
    """

    time: int
    type: str
    id: str
    again: bool
    service_signature: Check
    standard_webhooks: Check
    age: int | None
    answered: int
    error: str | None
    event: WebhookEvent | None
    body: bytes


class Receiver:
    """Checks each request and answers it: as asked when it holds, 401 and why when it does not.

    Args:
        read_secrets: returns the webhook secrets to check with; asked at each request, since they may rotate. When
            it raises a TaproofError the request is answered 503, so that the service sends it again.
        status: what a request that holds is answered with.
        show: called with each request.
        complain: called with a sentence about what was refused unseen.
        clock: returns the time in ms.
    """

    def __init__(
        self,
        read_secrets: Callable[[], Awaitable[list[str]]],
        status: int,
        show: Callable[[Received], None],
        complain: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._read_secrets = read_secrets
        self._status = status
        self._show = show
        self._complain = complain
        self._clock = clock
        self._ids: dict[str, None] = {}
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Listen until Ctrl+C or SIGTERM; `ready` is called with the port once requests are taken.

        Raises:
            AddressUnusable: this address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self._end, None)
        application = web.Application(client_max_size=BODY_LIMIT)
        application.router.add_route("*", "/{path:.*}", self._answer)
        # It would log what hostile requests hold; nothing is lost, since what fails here ends the command.
        silent = logging.getLogger(f"{__name__}.http")
        silent.disabled = True
        # The signatures are over the bytes as they came, so an encoding is not undone.
        runner = web.AppRunner(
            application, access_log=None, logger=silent, auto_decompress=False, shutdown_timeout=_CLOSING
        )
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, host, port).start()
            except OSError as error:
                # The loop's own sentence repeats the address.
                reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
                raise AddressUnusable(
                    f"Cannot listen on port {port} of {host} ({reason}). Stop what listens there, or choose another "
                    "with --port; --host must be an address of this machine."
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
            return self._refuse(405, "Only POST is answered here: webhooks are posted.", {"Allow": "POST"})
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(413, "The body is longer than 64 KiB.")
        try:
            try:
                secrets = await self._read_secrets()
            except TaproofError as error:
                return self._refuse(503, error.sentence)
            received = self._check(body, request.headers, secrets)
            self._show(received)
        except Exception as error:  # noqa: BLE001 — the command ends with it, whatever it is.
            # Such as standard output that is gone: whoever waits for events must not wait in vain.
            self._end(error)
            return web.json_response({"error": "The receiver is ending."}, status=503)
        if received.error is not None:
            return web.json_response({"error": received.error}, status=401)
        return web.Response(status=self._status)

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
        """Tell whether an event of this id has come; one that nothing vouches for has not, whoever made it up."""
        if event_id in self._ids:
            return True
        if not event_id or not verified:
            return False
        if len(self._ids) == _REMEMBERED:
            del self._ids[next(iter(self._ids))]
        self._ids[event_id] = None
        return False


def _checked(body: bytes, headers: CIMultiDictProxy[str], names: frozenset[str], secrets: list[str], now: int) -> Check:
    """Return what these headers show when the others are not there."""
    given = CIMultiDict((name, value) for name, value in headers.items() if name.lower() in names)
    if not given:
        return "missing"
    try:
        verify_webhook(body, given, secrets, now=now / SECOND)
    except WebhookSignatureInvalid:
        return "invalid"
    except WebhookTooOld:
        return "too_old"
    except WebhookFromFuture:
        return "from_future"
    except WebhookError:
        return "malformed"
    return "valid"


def _claimed(body: bytes) -> tuple[str, str]:
    """Return what the body says to be its type and its id."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(fields, dict):
        return "", ""
    event_type, event_id = (fields.get(name) for name in ("event", "id"))
    return (
        event_type[:_LONGEST_NAME] if isinstance(event_type, str) else "",
        event_id[:_LONGEST_NAME] if isinstance(event_id, str) else "",
    )


def _age(headers: CIMultiDictProxy[str], now: int) -> int | None:
    timestamp = headers.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= 12):
        return None
    return now // SECOND - int(timestamp)
