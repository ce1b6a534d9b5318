"""Draws analytics as SVG: pure functions, whose colours come from classes of the style sheet (`.chart …`).

Positions across are percentages and those down are pixels, without a `viewBox`: so a drawing fills any width, and its
text keeps its size on a phone. The numbers of a scale stand left of the drawing, in the margin that the style sheet
leaves. Colour never stands alone: of two bars the one that is about fewer is the narrower one.
"""

from collections.abc import Iterator
from itertools import count
from typing import Final

from markupsafe import Markup

from taproof.core.clock import iso_date
from taproof.service.analytics import Analytics, Day

_TOP: Final = 14
_BARS: Final = 180
"""Pixels: of the highest bar the scale allows."""
_BELOW: Final = 24
_DATES: Final = 4
"""Dates below the bars at most: so many stand side by side on a phone."""
_STEP: Final = 44
"""Pixels for a step of the funnel: its words and its bar."""
FUNNEL: Final = (("requested", "Requested"), ("opened", "Opened"), ("confirmed", "Confirmed"), ("used", "Used"))
"""The steps of a sign-in that goes well, as the counts name them and as people do."""


def daily_chart(analytics: Analytics) -> Markup:
    """Draw a bar for each day: its sessions, and before it, narrower, those that were confirmed."""
    ceiling, step = scale(max(day.counts["requested"] for day in analytics.daily))
    return _svg(
        "daily",
        _TOP + _BARS + _BELOW,
        "Sessions per day",
        describe_days(analytics),
        _daily(analytics.daily, ceiling, step),
    )


def funnel_chart(analytics: Analytics) -> Markup:
    """Draw how many sessions reached each step, as a bar of its share of those that were requested."""
    described = ", ".join(f"{words.lower()} {analytics.totals[name]:,}" for name, words in FUNNEL)
    return _svg("funnel", _STEP * len(FUNNEL), "How far sessions got", f"Sessions: {described}.", _funnel(analytics))


def describe_days(analytics: Analytics) -> str:
    """Return in a sentence what the daily chart shows."""
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
    """Return what is said of reports: nothing as long as there are none."""
    return f", {count:,} reported by their users" if count else ""


def scale(highest: int) -> tuple[int, int]:
    """Return where a scale from 0 with room for `highest` ends, and the step between its at most five lines."""
    step = next(f * 10**power for power in count() for f in (1, 2, 5) if highest <= 4 * f * 10**power)
    return max(1, -(-highest // step)) * step, step


def short(value: int) -> str:
    """Write a number of a scale in four characters: 950, 1.5k, 20k, 3M."""
    for unit, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= unit:
            return f"{value / unit:.1f}".removesuffix(".0") + letter
    return str(value)


def _svg(name: str, height: int, title: str, description: str, parts: Iterator[Markup]) -> Markup:
    return Markup(
        '<svg class="chart {0}" width="100%" height="{1}" role="img" aria-labelledby="{0}-title" '
        'aria-describedby="{0}-desc">'
        '<title id="{0}-title">{2}</title><desc id="{0}-desc">{3}</desc>{4}</svg>'
    ).format(name, height, title, description, Markup("").join(parts))


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
        yield Markup("<g><title>{}: {:,} sessions, {:,} confirmed{}</title>{}{}</g>").format(
            iso_date(day.day),
            sessions,
            confirmed,
            _reported(day.counts["reported"]),
            _bar("bar-sessions", middle, width * 0.8, sessions, ceiling),
            _bar("bar-confirmed", middle, width * 0.4, confirmed, ceiling),
        )
        # Counted from the end, so that today has its date.
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
    # The last one may reach a little to the right of the drawing: no further than the padding of the card around it.
    return Markup('<text class="label" x="{:.3f}%" y="{}" text-anchor="middle">{}</text>').format(
        middle, _TOP + _BARS + 18, iso_date(day)[5:]
    )


def _funnel(analytics: Analytics) -> Iterator[Markup]:
    requested = analytics.totals["requested"]
    for place, (name, words) in enumerate(FUNNEL):
        top, reached = _STEP * place, analytics.totals[name]
        share = 100 * reached / requested if requested else 0.0
        yield Markup('<text class="label" x="0" y="{}">{}: {:,} ({})</text>').format(
            top + 13, words, reached, percent(share)
        )
        yield Markup('<line class="axis" x1="0" x2="100%" y1="{y}" y2="{y}"/>').format(y=top + 37)
        if reached:
            yield Markup('<rect class="{}" x="0" width="{:.3f}%" y="{}" height="18"/>').format(
                "bar-confirmed" if name in {"confirmed", "used"} else "bar-sessions", max(0.5, share), top + 19
            )


def percent(share: float) -> str:
    """Write a percentage as the API gives it, with one decimal."""
    return f"{share:.1f} %"
