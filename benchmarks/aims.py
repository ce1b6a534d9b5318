"""The aims and their bounds. A missed aim is shown and is not a failure; a wrong answer is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure with its bound. `measure` raises KeyError or ValueError if a value that it needs was not measured."""

    figure: str
    text: str
    measure: Callable[[Values], float]
    bound: float
    is_least: bool
    form: str = "{:.2f}"

    def judge(self, values: Values) -> tuple[str, str] | None:
        """Return the measured value and whether the aim is met, or None if it was not measured."""
        try:
            measured = self.measure(values)
        except (KeyError, ValueError):
            return None
        is_met = measured >= self.bound if self.is_least else measured <= self.bound
        return self.form.format(measured), "yes" if is_met else "no"


def _value(name: str) -> Callable[[Values], float]:
    return lambda values: values[name]


def _cheaper(figure: str, *kinds: str) -> Callable[[Values], float]:
    """Return how to read the CPU time of the cheapest peer of these kinds, divided by Taproof's in the same rounds."""

    def measure(values: Values) -> float:
        return min(
            value
            for name, value in values.items()
            if name.endswith(".ratio") and any(name.startswith(f"peers.{figure}.{kind}.") for kind in kinds)
        )

    return measure


def _least(figure: str, text: str, measure: Callable[[Values], float], bound: float, form: str = "{:.2f}") -> Aim:
    return Aim(figure, text, measure, bound, is_least=True, form=form)


def _most(figure: str, text: str, measure: Callable[[Values], float], bound: float, form: str = "{:.2f}") -> Aim:
    return Aim(figure, text, measure, bound, is_least=False, form=form)


_STORES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
_X: Final = "{:.2f} ×"
_MANY_BOUNDS: Final = {"poll": 1.2, "create": 1.1}


def _tap_bounds(store: str, processes: int) -> tuple[tuple[str, int], ...]:
    return (("p50", 6), ("p99", 20)) if (store, processes) == ("postgres", 1) else (("p50", 20), ("p99", 100))


AIMS: Final = (
    _most("poll pending, SQLite", "≤ 1.0 × the CPU time of the bare ASGI app", _value("sqlite.poll_cost_ratio"), 1, _X),
    _least("", "≥ 5 × cheaper than oidc-provider in memory", _cheaper("poll", "memory"), 5, _X),
    _most(
        "poll pending, PostgreSQL",
        "≤ 1.1 × the CPU time of the bare ASGI app",
        _value("postgres.poll_cost_ratio"),
        1.1,
        _X,
    ),
    _most("", "≤ 0.1 statements per poll at 64 connections", _value("postgres.statements"), 0.1, "{:.3f}"),
    _least(
        "create, durable, SQLite", "≥ 2.5 × cheaper than oidc-provider in memory", _cheaper("create", "memory"), 2.5, _X
    ),
    _least("", "≥ 4 × cheaper than the cheapest durable peer", _cheaper("create", "durable"), 4, _X),
    _least("full cycle, SQLite", "≥ 2 × cheaper than oidc-provider in memory", _cheaper("cycle", "memory"), 2, _X),
    _most("full cycle, PostgreSQL", "≤ 200 µs of CPU time a request", _value("postgres.cycle_cost"), 200, "{:.0f} µs"),
    _least(
        "OpenID Connect sign-in, SQLite",
        "≥ 2 × cheaper than oidc-provider on SQLite",
        _value("openid.durable.ratio"),
        2,
        _X,
    ),
    _least("full cycle over the Bot API, by webhook", "≥ 400 sign-ins/s", _value("bot.webhook"), 400, "{:,.0f}"),
    *(
        _most(
            f"tap → waiting client, {title}, {processes} process{'es' if processes > 1 else ''}",
            f"{share} ≤ {bound} ms",
            _value(f"taps.{store}.{processes}.{share}"),
            bound,
            "{:.1f} ms",
        )
        for store, title in _STORES.items()
        for processes in (1, 2)
        for share, bound in _tap_bounds(store, processes)
    ),
    *(
        _most(
            f"opened link → hint at a waiting client, {title}",
            "p50 ≤ 20 ms",
            _value(f"hints.{store}.1.p50"),
            20,
            "{:.1f} ms",
        )
        for store, title in _STORES.items()
    ),
    _most("requests per sign-in with `wait`", "≤ 3", _value("taps.requests"), 3),
    _most("10,000 clients waiting, SQLite", "≤ 250 MB resident", _value("crowd.sqlite.memory"), 250, "{:.0f} MB"),
    _most("", "tap → answer p99 ≤ 500 ms", _value("crowd.sqlite.p99"), 500, "{:.0f} ms"),
    _most(
        "10,000 clients waiting, PostgreSQL", "≤ 250 MB resident", _value("crowd.postgresql.memory"), 250, "{:.0f} MB"
    ),
    _most("", "tap → answer p99 ≤ 500 ms", _value("crowd.postgresql.p99"), 500, "{:.0f} ms"),
    *(
        _most(
            f"{figure}, many stored sessions against 10,000, {title}",
            f"≤ {bound} × the time",
            _value(f"scale.{store}.{figure}"),
            bound,
            _X,
        )
        for store, title in _STORES.items()
        for figure, bound in _MANY_BOUNDS.items()
    ),
    *(
        _most(
            f"pages of 1,000,000 sessions, {title}",
            f"{text} ≤ 100 ms",
            _value(f"console.{store}.{figure}"),
            100,
            "{:.1f} ms",
        )
        for store, title in _STORES.items()
        for figure, text in (("median", "slowest kind of page, median"), ("worst", "slowest of all answers"))
    ),
    _most("start to first answer", "≤ 0.6 s", _value("start.seconds"), 0.6, "{:.2f} s"),
    _most("start to first created sign-in", "≤ 1.0 s", _value("start.created"), 1, "{:.2f} s"),
    _most("memory idle", "≤ 150 MB", _value("start.memory"), 150, "{:.0f} MB"),
)


def aim_rows(values: Values) -> list[list[str]]:
    """Return the table of the measured aims, with its heading."""
    rows, figure = [["figure", "aim", "measured", "met?"]], ""
    for aim in AIMS:
        figure = aim.figure or figure
        judged = aim.judge(values)
        if judged is not None:
            rows.append([figure, aim.text, *judged])
    return rows
