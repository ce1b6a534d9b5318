"""Decides whether this process records traces.

Only a process that records some imports `taproof.tracing` and OpenTelemetry's SDK.
"""
# ruff: noqa: PLC0415 — see above.

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from starlette.types import ASGIApp

from taproof.api.router import Router
from taproof.config.database_url import is_postgres
from taproof.config.options import called
from taproof.config.settings import Settings
from taproof.core.errors import TaproofError
from taproof.messengers.telegram.bot_api import BotApiClient
from taproof.messengers.telegram.updates import UpdateIntake
from taproof.storage.protocol import Storage
from taproof.webhooks.http_client import WebhookClient

if TYPE_CHECKING:
    from taproof.tracing.traced import Traced

Tracing: TypeAlias = "NoTraces | Traced"
"""Wraps the parts at the edges of a process. Each method returns an object with the methods of its argument."""


class TracesUnavailable(TaproofError, code="traces_unavailable"):
    """Traces cannot be recorded."""


class NoTraces:
    """Leaves every part unchanged. Its methods are those of `Traced`."""

    def requests(self, router: Router) -> ASGIApp:
        return router

    def storage(self, storage: Storage) -> Storage:
        return storage

    def bot_api(self, api: BotApiClient) -> BotApiClient:
        return api

    def updates(self, intake: UpdateIntake) -> UpdateIntake:
        return intake

    def webhooks(self, client: WebhookClient) -> WebhookClient:
        return client


@asynccontextmanager
async def open_traces(settings: Settings) -> AsyncIterator[Tracing]:
    """Yield the object that wraps the parts of this process; at the end, export the last spans.

    Raises:
        TracesUnavailable: the OpenTelemetry SDK is not installed, or an OTEL_ variable is invalid.
    """
    if settings.traces == "off":
        yield NoTraces()
        return
    try:
        from taproof.tracing.provider import open_tracer
        from taproof.tracing.traced import Traced
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise TracesUnavailable(
            f"{called('traces')} needs the OpenTelemetry SDK, which is not installed. Install it with: "
            "pip install 'taproof[server,otel]'"
        ) from None
    async with AsyncExitStack() as stack:
        try:
            tracer = await stack.enter_async_context(open_tracer())
        except ValueError as error:
            raise TracesUnavailable(f"An OTEL_ variable is invalid. OpenTelemetry says: {error}") from None
        database = "postgresql" if is_postgres(settings.database_url) else "sqlite"
        yield Traced(tracer, database, continues=settings.traces == "continue")
