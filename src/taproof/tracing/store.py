"""The spans of operations of the store (https://opentelemetry.io/docs/specs/semconv/database/database-spans/).

An operation is one statement or one transaction, and the span has the name of its method, such as `poll_session`. On
PostgreSQL, callers share statements. Each caller has a span of its own, which includes the wait for the statement
before.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from inspect import getmembers, iscoroutinefunction
from types import SimpleNamespace
from typing import Any, Final, cast

from opentelemetry.trace import SpanKind, Tracer

from taproof.core.deliveries import Event
from taproof.storage.protocol import Storage
from taproof.tracing.spans import begin_span, is_traced
from taproof.tracing.webhooks import RecordedEvents

Call = Callable[..., Awaitable[Any]]
_ENDLESS: Final = frozenset({"watch_decisions"})


class TracedStore:
    """Wraps the parts of a store.

    An operation outside a trace has no span. So the polling of background tasks begins no traces, and an operation in a
    request that is not sampled costs one comparison.
    """

    def __init__(self, tracer: Tracer, system: str, events: RecordedEvents) -> None:
        self._tracer = tracer
        self._system = system
        self._events = events

    def wrap(self, storage: Storage) -> Storage:
        """Return an object with the same parts, whose operations are traced."""
        own = {name: part for name, part in vars(storage).items() if name != "database" and not name.startswith("_")}
        parts = {name: self._wrap_part(part) for name, part in own.items()}
        own_calls = {"close": storage.close, "ping": storage.ping, "describe": storage.describe}
        return cast("Storage", SimpleNamespace(**parts, **own_calls))

    def _wrap_part(self, part: object) -> SimpleNamespace:
        calls = {name: call for name, call in getmembers(part, iscoroutinefunction) if not name.startswith("_")}
        return SimpleNamespace(
            **{name: call if name in _ENDLESS else self._wrap_call(name, call) for name, call in calls.items()}
        )

    def _wrap_call(self, name: str, call: Call) -> Call:
        attributes = {"db.system.name": self._system, "db.operation.name": name}

        async def run_traced(*values: Any, **more: Any) -> Any:
            with begin_span(self._tracer, name, SpanKind.CLIENT, attributes) as span:
                for event in _events_in((*values, *more.values())):
                    # Before the commit: the sender can claim the event right after it.
                    self._events.remember(event.id, span.get_span_context())
                return await call(*values, **more)

        def run(*values: Any, **more: Any) -> Awaitable[Any]:
            return run_traced(*values, **more) if is_traced() else call(*values, **more)

        return run


def _events_in(values: Iterable[object]) -> Iterator[Event]:
    """Yield the events among the arguments of an operation, which may also be in a list or a mapping."""
    for value in values:
        if isinstance(value, Event):
            yield value
        elif isinstance(value, dict):
            yield from _events_in(value.values())
        elif isinstance(value, list):
            yield from _events_in(value)
