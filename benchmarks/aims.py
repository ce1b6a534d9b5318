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


def fastest(values: Values, figure: str, *kinds: str) -> float:
    """Return the highest value of any peer of these kinds. Raises ValueError if none was measured."""
    return max(
        value for name, value in values.items() if any(name.startswith(f"peers.{figure}.{kind}.") for kind in kinds)
    )


def _value(name: str) -> Callable[[Values], float]:
    return lambda values: values[name]


def _against_peers(name: str, figure: str, *kinds: str) -> Callable[[Values], float]:
    return lambda values: values[name] / fastest(values, figure, *kinds)


def _least(figure: str, text: str, measure: Callable[[Values], float], bound: float, form: str = "{:.2f}") -> Aim:
    return Aim(figure, text, measure, bound, is_least=True, form=form)


def _most(figure: str, text: str, measure: Callable[[Values], float], bound: float, form: str = "{:.2f}") -> Aim:
    return Aim(figure, text, measure, bound, is_least=False, form=form)


_STORES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}

AIMS: Final = (
    _least("poll pending, SQLite", "≥ 0.75 of the bare ASGI app", _value("sqlite.poll_ratio"), 0.75),
    _least("", "≥ 4 × the fastest peer", _against_peers("sqlite.poll", "poll", "durable", "memory"), 4, "{:.2f} ×"),
    _least("poll pending, PostgreSQL", "≥ 0.5 of the bare ASGI app", _value("postgres.poll_ratio"), 0.5),
    _least("", "≥ 3 × the fastest peer", _against_peers("postgres.poll", "poll", "durable", "memory"), 3, "{:.2f} ×"),
    _most("", "≤ 0.1 statements per poll at 64 connections", _value("postgres.statements"), 0.1, "{:.3f}"),
    _least(
        "create, durable, SQLite",
        "≥ 4 × the fastest durable peer",
        _against_peers("sqlite.create", "create", "durable"),
        4,
        "{:.2f} ×",
    ),
    _least(
        "", "≥ 2 × the fastest that keeps nothing", _against_peers("sqlite.create", "create", "memory"), 2, "{:.2f} ×"
    ),
    _least(
        "full cycle, SQLite",
        "≥ 2 × the fastest peer",
        _against_peers("sqlite.cycle", "cycle", "durable", "memory"),
        2,
        "{:.2f} ×",
    ),
    _least(
        "OpenID Connect sign-in, SQLite",
        "≥ 2 × oidc-provider on SQLite, per CPU second",
        lambda values: values["openid.taproof"] / values["openid.durable"],
        2,
        "{:.2f} ×",
    ),
    _least(
        "full cycle over the Bot API",
        "≥ 300 sign-ins/s",
        lambda values: max(values["bot.webhook"], values["bot.polling"]),
        300,
        "{:,.0f}",
    ),
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
        for share, bound in (("p50", 20), ("p99", 100))
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
    _most("10,000 clients waiting, SQLite", "≤ 400 MB resident", _value("crowd.sqlite.memory"), 400, "{:.0f} MB"),
    _most("", "tap → answer p99 ≤ 500 ms", _value("crowd.sqlite.p99"), 500, "{:.0f} ms"),
    _most(
        "10,000 clients waiting, PostgreSQL", "≤ 400 MB resident", _value("crowd.postgresql.memory"), 400, "{:.0f} MB"
    ),
    _most("", "tap → answer p99 ≤ 500 ms", _value("crowd.postgresql.p99"), 500, "{:.0f} ms"),
    *(
        _most(
            f"{figure}, many stored sessions against 10,000, {title}",
            "≤ 1.2 × the time",
            _value(f"scale.{store}.{figure}"),
            1.2,
            "{:.2f} ×",
        )
        for store, title in _STORES.items()
        for figure in ("poll", "create")
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
    _most("start to first answer", "≤ 1.5 s", _value("start.seconds"), 1.5, "{:.2f} s"),
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
