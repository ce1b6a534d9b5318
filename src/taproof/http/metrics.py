"""The service's metrics. No label contains an identifier, token or name.

docs/reference/metrics.md defines what each metric measures, and the values of its labels; docs/reference/limits.md
lists the limits.

Processes that share a port keep their counters in one directory, so that each of them can report for all. `process_*`
then has the label `process`, a number from 1.
"""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final, Literal, get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Info,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    values,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from taproof.contract.session import SignInStatus
from taproof.core.deliveries import AttemptOutcome
from taproof.core.errors import API_ERRORS, InternalError, TaproofError
from taproof.core.oidc.grants import LogoutOutcome
from taproof.core.session_state import CountedDecision
from taproof.http.cells import Cells, CounterForm, HistogramForm, SharedMetrics

LimitName = Literal[
    "generate_address",
    "generate_project",
    "verify_session",
    "verify_unknown",
    "sign_in",
    "credential",
    "developer",
    "developer_write",
    "page",
    "bot_token",
]
"""The limits in `limits/rates.py` and `limits/developers.py`, and the bot token limit (`service/bots.py`)."""
SessionEndpoint = Literal["generate", "verify", "cancel", "mini_app"]
"""A session endpoint, public or server-side."""
TapRefusal = Literal[
    "business_chat",
    "button_gone",
    "changed_look",
    "foreign",
    "inaccessible_message",
    "inline_message",
    "malformed",
    "no_data",
    "no_message",
    "no_text",
    "not_a_person",
    "other_chat",
    "unknown_entity",
    "unknown_session",
    "unreadable_message",
    "wrong_signature",
]
"""The reason why a tap on a button had no effect. docs/reference/metrics.md defines each one."""
ReadyCheck = Literal["store", "bot_name"]
LeaderWork = Literal["bot", "project_bots", "housekeeping"]

_CALLS: Final = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Bounds for generate and verify: from a read of SQLite to the time limit of a PostgreSQL statement."""
_REMOTE: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
"""Bounds for work that includes calls to another service: from one quick call to the time limit of an update."""
_CREATED: Final = CounterForm("taproof_sessions_created_total", "Sign-in sessions that were created.", "", ("",))
_POLLS: Final = CounterForm("taproof_polls_total", "Answered verify calls.", "status", get_args(SignInStatus))
_GENERATE: Final = HistogramForm("taproof_generate_seconds", "Generate calls that created a session.", _CALLS)
_VERIFY: Final = HistogramForm(
    "taproof_verify_seconds", "Answered verify calls, without the time that they waited.", _CALLS
)
_TAP: Final = HistogramForm("taproof_tap_seconds", "From the receipt of a tap to the accepted answer.", _REMOTE)
_DELIVERY: Final = HistogramForm(
    "taproof_webhook_delivery_seconds", "From a decision to its event's delivery at the first attempt.", _REMOTE
)
_CODES: Final = frozenset(error.code for error in API_ERRORS)
_FAULTS: Final = ("internal_error", "store_unavailable", "messenger_unavailable")
"""The errors that are the service's own fault. Alerts need the 0 before the first one."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def share_metrics(directory: Path, process: int) -> SharedMetrics:
    """Keep the counters in files in `directory` from now on.

    `process` is this process's number, unique among running processes. A process that replaces a dead one continues
    its counters.
    """
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)  # The library reads this for each new metric.
    values.ValueClass = values.MultiProcessValue(lambda: process)  # type: ignore[no-untyped-call]
    (directory / f"{process}.pid").write_text(str(os.getpid()), encoding="ascii")
    return SharedMetrics(directory, process)


def forget_process(directory: Path, process: int) -> None:
    """Remove the gauges of a dead process. Its counters are kept."""
    mark_process_dead(process, str(directory))  # type: ignore[no-untyped-call]
    (directory / f"{process}.pid").unlink(missing_ok=True)


class Metrics:
    """The metrics of one process.

    `/metrics` shows the registry `exposed`. `shared` is from `share_metrics`, if several processes share this port.
    `count_created`, `count_poll` (by status), `rate_limited` (by limit) and the functions `observe_…` are created in
    advance, so counting on the polled path is one call.
    """

    def __init__(self, exposed: CollectorRegistry, version: str, shared: SharedMetrics | None = None) -> None:
        self.registry = exposed
        # The times of creation would double the number of counters, and nobody asks for them.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        # Shared counters are read from the files of all processes, so this process's own are not exposed again.
        registry = exposed if shared is None else None
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        decisions = counter("taproof_decisions_total", "Decisions of users and of applications.", ["outcome"])
        self._decisions = {outcome: decisions.labels(outcome) for outcome in get_args(CountedDecision)}
        self._session_errors = counter(
            "taproof_session_errors_total", "Failed calls of the session endpoints.", ["endpoint", "code"]
        )
        for endpoint in get_args(SessionEndpoint):
            for code in _FAULTS:
                self._session_errors.labels(endpoint, code)
        cells = Cells((_CREATED, _POLLS, _GENERATE, _VERIFY, _TAP, _DELIVERY), shared)
        exposed.register(cells)
        self.count_created = _CREATED.open(cells.of(_CREATED))[""]
        self.count_poll = _POLLS.open(cells.of(_POLLS))
        self.observe_generate = _GENERATE.open(cells.of(_GENERATE))
        self.observe_verify = _VERIFY.open(cells.of(_VERIFY))
        self.observe_tap = _TAP.open(cells.of(_TAP))
        self.observe_delivery = _DELIVERY.open(cells.of(_DELIVERY))
        refused_taps = counter("taproof_taps_refused_total", "Taps that were answered but had no effect.", ["reason"])
        self._refused_taps = {reason: refused_taps.labels(reason) for reason in get_args(TapRefusal)}
        self.waiting_calls = gauge(
            "taproof_waiting_calls",
            "Verify calls that are waiting for their session to leave pending.",
            multiprocess_mode="livesum",
        )
        self.waits_without_place = counter(
            "taproof_waits_without_place_total",
            "Verify calls with wait that were answered immediately, because too many were waiting.",
        )
        limited = counter(
            "taproof_rate_limited_total", "Calls that were refused because there were too many.", ["limit"]
        )
        self.rate_limited: dict[str, Counter] = {limit: limited.labels(limit) for limit in get_args(LimitName)}
        self.developer_requests = counter(
            "taproof_developer_requests_total",
            "Answered requests to the developer API.",
            ["method", "route", "status"],
        )
        attempts = counter("taproof_webhook_attempts_total", "Attempts to deliver a webhook event.", ["outcome"])
        self._webhook_attempts = {outcome: attempts.labels(outcome) for outcome in get_args(AttemptOutcome)}
        self._webhook_dead_letters = counter(
            "taproof_webhook_dead_letters_total", "Webhook events that failed after their last attempt."
        )
        logouts = counter("taproof_logouts_total", "Attempts to tell a client that a user is signed out.", ["outcome"])
        self._logouts = {outcome: logouts.labels(outcome) for outcome in get_args(LogoutOutcome)}
        # Every process reads the same store, so the sum would count one event several times.
        self.show_oldest_due: Final = gauge(
            "taproof_webhook_oldest_due_seconds",
            "How long the oldest due webhook event has been waiting.",
            multiprocess_mode="livemax",
        ).set
        # One process runs all project bots; every other process reports 0.
        project_bots = gauge(
            "taproof_project_bots",
            "Project bots that are running, or whose token the messenger refuses.",
            ["state"],
            multiprocess_mode="livesum",
        )
        self._project_bots = {state: project_bots.labels(state) for state in ("running", "broken")}
        # The node is as ready as the process that is least ready.
        ready = gauge("taproof_ready", "Whether sign-ins can work, by check.", ["check"], multiprocess_mode="livemin")
        self._ready = {check: ready.labels(check) for check in get_args(ReadyCheck)}
        leader = gauge("taproof_leader", "Whether this work runs here.", ["work"], multiprocess_mode="livesum")
        self._leader = {work: leader.labels(work) for work in get_args(LeaderWork)}
        self.show_bot_failing: Final = gauge(
            "taproof_bot_failing",
            "Whether the messenger does not accept the call with which the bot receives updates.",
            multiprocess_mode="livemax",
        ).set
        Info("taproof", "The running release.", registry=exposed).info({"version": version})
        if shared is None:
            ProcessCollector(registry=exposed)
        else:
            MultiProcessCollector(exposed, str(shared.directory))  # type: ignore[no-untyped-call]
            exposed.register(_EachProcess(shared.directory))

    def count_decision(self, outcome: CountedDecision) -> None:
        """Count a decision that was just stored."""
        self._decisions[outcome].inc()

    def count_refused_tap(self, reason: TapRefusal) -> None:
        """Count a tap that was answered but had no effect."""
        self._refused_taps[reason].inc()

    def count_session_error(self, endpoint: SessionEndpoint, error: Exception) -> None:
        """Count a failed call, by the code of the response."""
        code = error.code if isinstance(error, TaproofError) and error.code in _CODES else InternalError.code
        self._session_errors.labels(endpoint, code).inc()

    def count_attempt(self, outcome: AttemptOutcome) -> None:
        """Count an attempt to deliver a webhook event."""
        self._webhook_attempts[outcome].inc()
        if outcome in {"dead", "turned_off"}:
            self._webhook_dead_letters.inc()

    def count_logout(self, outcome: LogoutOutcome) -> None:
        """Count an attempt to tell a client that a user is signed out."""
        self._logouts[outcome].inc()

    def show_project_bots(self, running: int, broken: int) -> None:
        """Set the number of project bots that this process runs, and the number of all known broken ones."""
        self._project_bots["running"].set(running)
        self._project_bots["broken"].set(broken)

    def show_ready(self, check: ReadyCheck, passed: int) -> None:
        """Set whether a check of readiness has just passed: 1 or 0."""
        self._ready[check].set(passed)

    def show_leader(self, work: LeaderWork, leads: int) -> None:
        """Set whether this process does this work: 1 or 0."""
        self._leader[work].set(leads)


class _EachProcess(Collector):
    """Collects CPU, memory and file descriptor metrics for every process on this port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of all running processes."""
        found: dict[str, Metric] = {}
        for file in sorted(self._directory.glob("*.pid")):
            try:
                pid = file.read_text(encoding="ascii")
            except OSError:
                continue  # The process has just ended.
            if not pid:
                continue  # The process is just starting.
            for metric in ProcessCollector(pid=partial(str, pid), registry=None).collect():
                all_of_it = found.setdefault(metric.name, Metric(metric.name, metric.documentation, metric.type))
                for sample in metric.samples:
                    all_of_it.add_sample(sample.name, {"process": file.stem}, sample.value)
        return found.values()


class CountRequests:
    """ASGI middleware that counts a FastAPI application's responses by route template."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._requests = metrics.developer_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application and count its response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def counting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                # Clients can send any path and method, so both are reduced to known values.
                method = scope["method"] if scope["method"] in _METHODS else "other"
                route = getattr(scope.get("route"), "path_format", "unmatched")
                self._requests.labels(method, route, str(message["status"])).inc()
            await send(message)

        await self.app(scope, receive, counting_send)
