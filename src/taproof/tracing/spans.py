"""Begin spans, and record errors in them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, get_current_span

from taproof.core.errors import TaproofError

NO_PARENT: Final = Context()
"""The context of a span that begins a trace."""


def is_traced() -> bool:
    """Return whether the current work is part of a trace that is recorded."""
    return get_current_span().is_recording()


@contextmanager
def begin_span(
    tracer: Tracer, name: str, kind: SpanKind, attributes: Mapping[str, str], parent: Context | None = None
) -> Iterator[Span]:
    """Yield a span that is current until the block ends. Without `parent`, it is a child of the current span."""
    with tracer.start_as_current_span(
        name,
        parent,
        kind,
        attributes,
        # Both would export the text of an error, which may contain a secret.
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except Exception as error:
            fail_span(span, error)
            raise


def fail_span(span: Span, reason: Exception | str) -> None:
    """Mark a span as failed, with a code: of an error, its `code` or the name of its class."""
    if isinstance(reason, Exception):
        reason = reason.code if isinstance(reason, TaproofError) else type(reason).__name__
    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)
