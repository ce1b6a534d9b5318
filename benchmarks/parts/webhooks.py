"""Deliveries a second on one core, compared with a bare HTTP client, and the cost that a webhook adds to a decision."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.machine import ROOT, environment, fail, say
from benchmarks.measuring import median, median_ratio
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.parts.speed import STORES, Store
from benchmarks.profiles import profile_table, read_shares
from benchmarks.sender import AT_ONCE, PROJECTS
from benchmarks.serving import stop
from benchmarks.stores import Postgres, sqlite_copy

_EVENTS: Final = 5_000
"""Events in a round for each second that a figure should take."""
_SCHEMES: Final = ("http", "https")
_NEW_CERTIFICATE: Final = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=benchmark "
    "-addext subjectAltName=IP:127.0.0.1"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure in one round: cost in microseconds of CPU time for each event, busy as the share of a core."""

    per_second: float
    cost: float
    busy: float
    load_busy: float


Rounds = dict[str, list[Figure]]
"""The rounds of each figure in the output of sender.py."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The store of the events, and the receiver's protocol. The receiver is trusted by its own certificate."""

    store: Store
    scheme: str
    database_url: str
    certificate: Path
    key: Path

    @property
    def title(self) -> str:
        """Return its title in tables."""
        return f"{STORES[self.store]}, {self.scheme.upper()}"


def measure_webhooks(plan: Plan, postgres: Postgres) -> PartOutcome:
    """Measure on both stores, with a receiver over HTTP and with one over HTTPS."""
    certificate, key = plan.directory / "receiver.pem", plan.directory / "receiver.key"
    command = [*_NEW_CERTIFICATE.split(" "), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    found: dict[Setting, Rounds] = {}
    profiles: dict[str, dict[str, float]] = {}
    functions: dict[str, dict[str, float]] = {}
    with sqlite_copy(plan.few, plan.directory, "webhooks") as sqlite:
        urls: dict[Store, str] = {"sqlite": sqlite, "postgres": postgres.database("webhooks", plan.few)}
        for setting in (Setting(store, scheme, urls[store], certificate, key) for store in urls for scheme in _SCHEMES):
            found[setting] = _rounds(plan, setting)
            path = plan.directory / f"webhooks-{setting.store}-{setting.scheme}.profile"
            say(f"webhooks, {setting.title}: profile")
            for _ in _lines(plan, setting, "--profile", str(path)):
                pass
            profiles[setting.title] = read_shares(path)
            functions[setting.title] = read_shares(path, "functions")
    outcome = PartOutcome()
    outcome.tables = [
        _deliveries(plan, outcome, found),
        profile_table("Where the time of deliveries goes", profiles),
        profile_table("The functions that take most of a delivery", functions, "function"),
        _decisions(plan, outcome, found),
    ]
    return outcome


def _deliveries(plan: Plan, outcome: PartOutcome, found: dict[Setting, Rounds]) -> Table:
    head = ["store", "over", "deliveries/s", "sender µs", "sender core", "load core"]
    rows = [[*head, "bare/s", "bare µs", "rate against bare", "µs against bare"]]
    for setting, rounds in found.items():
        ours, bare = rounds["delivered"], rounds["bare"]
        rate, cost = median_ratio(ours, bare, "per_second"), median_ratio(ours, bare, "cost")
        name = f"webhooks.{setting.store}.{setting.scheme}"
        outcome.values |= {name: median(ours, "per_second"), f"{name}.rate": rate, f"{name}.cost": cost}
        row = [STORES[setting.store], setting.scheme.upper(), *_shown(ours), *_shown(bare)[:2]]
        rows.append([*row, f"{rate:.2f} ×", f"{cost:.2f} ×"])
    note = (
        f"The sender has one core, and {plan.seconds * _EVENTS:,} recorded events of {PROJECTS} projects before it. It "
        "claims them, opens and signs each, posts it over a kept connection, reads the answer and writes down the "
        "attempt; the time ends when all of that is on the disk. `bare` is aiohttp alone in the same rounds, posting "
        f"the same bodies, {AT_ONCE} at once. The last two columns are medians of the rounds' ratios."
    )
    return Table("Webhook deliveries", rows, note)


def _decisions(plan: Plan, outcome: PartOutcome, found: dict[Setting, Rounds]) -> Table:
    head = ["store", "webhook", "decisions/s", "server µs", "server core", "load core"]
    rows = [[*head, "rate against none", "µs against none"]]
    for store, title in STORES.items():
        of_store = [rounds for setting, rounds in found.items() if setting.store == store]
        without, with_one = ([each for rounds in of_store for each in rounds[kind]] for kind in ("unhooked", "hooked"))
        rate, cost = median_ratio(with_one, without, "per_second"), median_ratio(with_one, without, "cost")
        outcome.values |= {f"webhooks.{store}.decision_rate": rate, f"webhooks.{store}.decision_cost": cost}
        rows.append([title, "none", *_shown(without), "", ""])
        rows.append([title, "one", *_shown(with_one), f"{rate:.2f} ×", f"{cost:.2f} ×"])
    note = (
        f"Sign-ins are confirmed and cancelled in turn, {AT_ONCE} at once, by the use cases that the bot calls; no "
        f"event is sent meanwhile. Medians of {plan.repeat * len(_SCHEMES)} rounds of {plan.seconds * _EVENTS:,}."
    )
    return Table("What a webhook adds to a decision", rows, note)


def _shown(rounds: list[Figure]) -> list[str]:
    return [
        f"{median(rounds, 'per_second'):,.0f}",
        f"{median(rounds, 'cost'):.0f}",
        f"{median(rounds, 'busy'):.0%}",
        f"{median(rounds, 'load_busy'):.0%}",
    ]


def _rounds(plan: Plan, setting: Setting) -> Rounds:
    rounds: Rounds = {}
    for line in _lines(plan, setting):
        found = json.loads(line)
        figure, count, seconds = found["figure"], found["count"], found["seconds"]
        measured = Figure(count / seconds, found["cpu"] / count * 1e6, found["cpu"] / seconds, found["load"] / seconds)
        rounds.setdefault(figure, []).append(measured)
        progress = f"{figure} {measured.per_second:,.0f}/s"
        say(f"webhooks, {setting.title}, round {len(rounds[figure])} of {plan.repeat}: {progress}")
    return rounds


def _lines(plan: Plan, setting: Setting, *options: str) -> Iterator[str]:
    """Run sender.py with a separate receiver, and yield its output. It gets SIGTERM if this process dies."""
    with _receiver(setting) as port:
        command = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "benchmarks.sender"]
        command += ["--database", setting.database_url, "--receiver", f"{setting.scheme}://127.0.0.1:{port}"]
        command += ["--events", str(plan.seconds * _EVENTS), "--rounds", str(plan.repeat), *options]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(SSL_CERT_FILE=str(setting.certificate)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            yield from process.stdout
            if process.wait():
                fail("The sender failed; what it printed above says why.")
        finally:
            process.terminate()
            stop(process)


@contextmanager
def _receiver(setting: Setting) -> Iterator[int]:
    """Start receiver.py on the core of the load, and yield its port."""
    command = [sys.executable, "-m", "benchmarks.receiver"]
    if setting.scheme == "https":
        command += ["--tls", str(setting.certificate), str(setting.key)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        started = process.stdout.readline()
        if not started:
            fail("The receiver did not start; what it printed above says why.")
        yield json.loads(started)["port"]
    finally:
        process.stdin.close()
        stop(process)
