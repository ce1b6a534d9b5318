"""The spans of the bot: updates received by long polling, and calls of the Bot API.

An update that arrives by webhook is part of the span of its HTTP request. No span contains a bot's token, which is in
the URL of every call, or anything of an update but its kind.
"""

from collections.abc import Awaitable
from typing import Any

from opentelemetry.trace import SpanKind, Tracer

from taproof.messengers.telegram.bot_api import BotApiClient
from taproof.messengers.telegram.updates import ALLOWED_UPDATES, Handling, UpdateIntake
from taproof.tracing.spans import NO_PARENT, begin_span, fail_span, is_traced


class TracedIntake:
    """Begins a trace for each update, as `UpdateIntake` handles it."""

    def __init__(self, intake: UpdateIntake, tracer: Tracer) -> None:
        self._intake = intake
        self.forget = intake.forget
        self._tracer = tracer

    async def handle(self, update: dict[str, Any], **more: Any) -> Handling:
        """Handle an update."""
        kind = next((each for each in ALLOWED_UPDATES if each in update), "update")
        attributes = {
            "messaging.system": "telegram",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
        }
        with begin_span(self._tracer, f"process {kind}", SpanKind.CONSUMER, attributes, NO_PARENT) as span:
            handling = await self._intake.handle(update, **more)
            if handling != "done":
                fail_span(span, handling)
            return handling


class TracedBotApi:
    """Calls the Bot API as `BotApiClient` does. Calls outside a trace, such as the polling itself, have no span."""

    def __init__(self, api: BotApiClient, tracer: Tracer) -> None:
        self._api = api
        self._tracer = tracer
        self.close = api.close

    def call(self, token: str, method: str, *values: Any, **more: Any) -> Awaitable[Any]:
        """Call a method; the span includes waits for the flood limit."""
        calling = self._call_traced if is_traced() else self._api.call
        return calling(token, method, *values, **more)

    async def _call_traced(self, token: str, method: str, *values: Any, **more: Any) -> Any:
        attributes = {"rpc.system.name": "telegram_bot_api", "rpc.method": method}
        with begin_span(self._tracer, method, SpanKind.CLIENT, attributes):
            return await self._api.call(token, method, *values, **more)
