"""Wraps every part that is traced. Each method returns an object with the methods of the part that it wraps."""

from typing import cast

from opentelemetry.trace import Tracer
from starlette.types import ASGIApp

from taproof.api.router import Router
from taproof.messengers.telegram.bot_api import BotApiClient
from taproof.messengers.telegram.updates import UpdateIntake
from taproof.storage.protocol import Storage
from taproof.tracing.requests import TraceRequests
from taproof.tracing.store import TracedStore
from taproof.tracing.telegram import TracedBotApi, TracedIntake
from taproof.tracing.webhooks import RecordedEvents, TracedWebhookClient
from taproof.webhooks.http_client import WebhookClient


class Traced:
    """The parts of a process that records traces. `runtime.traces.NoTraces` has the same methods.

    Args:
        tracer: creates the spans.
        database: the value of `db.system.name`.
        continues: see `TraceRequests`.
    """

    def __init__(self, tracer: Tracer, database: str, *, continues: bool) -> None:
        self._tracer = tracer
        self._continues = continues
        self.events = RecordedEvents()
        self._store = TracedStore(tracer, database, self.events)

    def requests(self, router: Router) -> ASGIApp:
        return TraceRequests(router, self._tracer, continues=self._continues)

    def storage(self, storage: Storage) -> Storage:
        return self._store.wrap(storage)

    def bot_api(self, api: BotApiClient) -> BotApiClient:
        return cast("BotApiClient", TracedBotApi(api, self._tracer))

    def updates(self, intake: UpdateIntake) -> UpdateIntake:
        return cast("UpdateIntake", TracedIntake(intake, self._tracer))

    def webhooks(self, client: WebhookClient) -> WebhookClient:
        return cast("WebhookClient", TracedWebhookClient(client, self._tracer, self.events))
