"""Starts and stops the export of spans, with OTLP over HTTP. The OTEL_ variables of the environment configure it."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

FLUSH_SECONDS: Final = 2.0
"""The time for the last spans when the process stops. A receiver that does not answer must not delay the stop."""


@asynccontextmanager
async def open_tracer() -> AsyncIterator[Tracer]:
    """Yield a tracer whose spans are exported. Raise ValueError if an OTEL_ variable is invalid.

    A thread exports them in batches, from a queue of limited length (OTEL_BSP_MAX_QUEUE_SIZE). If the receiver is slow
    or away, spans are dropped, and nothing waits. No provider is installed globally, so libraries record no spans of
    their own, with URLs and texts of errors.
    """
    logging.getLogger("opentelemetry.util.re").addFilter(_hide_header)
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").addFilter(_name_errors)
    logging.getLogger("opentelemetry.sdk._shared_internal").addFilter(_name_errors)
    defaults = {"service.name": "taproof", "service.version": version("taproof")}
    resource = Resource.create({**defaults, **OTELResourceDetector().detect().attributes})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield provider.get_tracer("taproof", version("taproof"))
    finally:
        await _stop(provider)


async def _stop(provider: TracerProvider) -> None:
    """Export the last spans, in a thread that the process does not wait for at its end."""
    clock = asyncio.get_running_loop().time
    stopping = threading.Thread(target=provider.shutdown, daemon=True)
    stopping.start()
    deadline = clock() + FLUSH_SECONDS
    while stopping.is_alive() and clock() < deadline:  # noqa: ASYNC110 — the thread may outlive the event loop.
        await asyncio.sleep(0.01)


def _hide_header(record: logging.LogRecord) -> bool:
    """Remove the value from a warning about a malformed OTEL_EXPORTER_OTLP_HEADERS: it may be a secret."""
    record.args = ("[not shown]",)
    return True


def _name_errors(record: logging.LogRecord) -> bool:
    """Replace an error by the name of its class: its text contains the receiver's URL, which may contain a key."""
    if isinstance(record.args, tuple):
        record.args = tuple(type(each).__name__ if isinstance(each, Exception) else each for each in record.args)
    if isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
        record.msg, record.exc_info = f"{record.msg} ({record.exc_info[0].__name__})", None
    return True
