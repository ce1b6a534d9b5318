"""Draw analytics as SVG, with pure functions. Style sheet classes (`.chart …`) set the colours.

Horizontal positions are percentages, vertical positions are pixels, and there is no `viewBox`. So a drawing fills any
width, and its text keeps its size on a phone. The scale's numbers are in the left margin, which the style sheet
reserves. The bars differ in width as well as colour: the bar for confirmed sessions is narrower.
"""

from collections.abc import Iterator
from itertools import count
from typing import Final

from markupsafe import Markup

from taproof.core.clock import iso_date
from taproof.service.analytics import Analytics, Day

_TOP: Final = 14
_BARS: Final = 180
"""The height in pixels of the highest possible bar."""
_BELOW: Final = 24
_DATES: Final = 4
"""The maximum number of dates below the bars, so that they fit side by side on a phone."""


def daily_chart(analytics: Analytics) -> Markup:
    """Draw a bar for each day's sessions, with a narrower bar in front for the confirmed sessions."""
    ceiling, step = scale(max(day.counts["requested"] for day in analytics.daily))
    return Markup(
        '<svg class="chart daily" width="100%" height="{}" role="img" aria-labelledby="daily-title" '
        'aria-describedby="daily-desc"><title id="daily-title">Sessions per day</title>'
        '<desc id="daily-desc">{}</desc>{}</svg>'
    ).format(_TOP + _BARS + _BELOW, describe_days(analytics), Markup("").join(_daily(analytics.daily, ceiling, step)))


def describe_days(analytics: Analytics) -> str:
    """Return a description of the daily chart in words."""
    busiest = max(analytics.daily, key=lambda day: day.counts["requested"])
    first, last = analytics.daily[0], analytics.daily[-1]
    of_window = f"{iso_date(first.day)} to {iso_date(last.day)}, by day of creation (UTC)"
    if not busiest.counts["requested"]:
        return f"{of_window}: no sessions."
    return (
        f"{of_window}: {analytics.totals['requested']:,} sessions, {analytics.totals['confirmed']:,} confirmed"
        f"{_reported(analytics.totals['reported'])}. "
        f"Most on {iso_date(busiest.day)}: {busiest.counts['requested']:,}, {busiest.counts['confirmed']:,} confirmed."
    )


def _reported(count: int) -> str:
    """Return the part of a chart's description that is about reports; "" if there are none."""
    return f", {count:,} reported by their users" if count else ""


def scale(highest: int) -> tuple[int, int]:
    """Return the top of a scale from 0 that includes `highest`, and the step between its lines (at most five)."""
    step = next(f * 10**power for power in count() for f in (1, 2, 5) if highest <= 4 * f * 10**power)
    return max(1, -(-highest // step)) * step, step


def short(value: int) -> str:
    """Format a scale number in at most four characters: 950, 1.5k, 20k, 3M."""
    for unit, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= unit:
            return f"{value / unit:.1f}".removesuffix(".0") + letter
    return str(value)


def _daily(daily: list[Day], ceiling: int, step: int) -> Iterator[Markup]:
    for value in range(0, ceiling + 1, step):
        y = _TOP + _BARS - _BARS * value // ceiling
        yield Markup('<line class="{}" x1="0" x2="100%" y1="{y}" y2="{y}"/>').format("grid" if value else "axis", y=y)
        yield Markup('<text class="label" x="-6" y="{}" text-anchor="end">{}</text>').format(y + 4, short(value))
    width = 100 / len(daily)
    apart = -(-len(daily) // _DATES)
    for place, day in enumerate(daily):
        middle = width * (place + 0.5)
        sessions, confirmed = day.counts["requested"], day.counts["confirmed"]
        is_today = place == len(daily) - 1
        yield Markup('<g class="{}"><title>{}{}: {:,} sessions, {:,} confirmed{}</title>{}{}</g>').format(
            "today" if is_today else "day",
            iso_date(day.day),
            " (so far)" if is_today else "",
            sessions,
            confirmed,
            _reported(day.counts["reported"]),
            _bar("bar-sessions", middle, width * 0.8, sessions, ceiling),
            _bar("bar-confirmed", middle, width * 0.4, confirmed, ceiling),
        )
        # Counted from the end, so that today gets a date.
        if (len(daily) - 1 - place) % apart == 0:
            yield _date(day.day, middle)


def _bar(kind: str, middle: float, width: float, value: int, ceiling: int) -> Markup:
    if not value:
        return Markup("")
    height = max(1.0, _BARS * value / ceiling)
    return Markup('<rect class="{}" x="{:.3f}%" width="{:.3f}%" y="{:.1f}" height="{:.1f}"/>').format(
        kind, middle - width / 2, width, _TOP + _BARS - height, height
    )


def _date(day: int, middle: float) -> Markup:
    # The last date can extend past the drawing's right edge, but not past its card's padding.
    return Markup('<text class="label" x="{:.3f}%" y="{}" text-anchor="middle">{}</text>').format(
        middle, _TOP + _BARS + 18, iso_date(day)[5:]
    )


def percent(share: float) -> str:
    """Return a percentage with one decimal, as in the API."""
    return f"{share:.1f}%"
