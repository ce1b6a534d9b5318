"""The charts: every figure is drawn in proportion, and its text is escaped."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.console.charts import daily_chart, scale, short
from taproof.service.analytics import COUNTS, Analytics, Day

TODAY = 20_777  # 2026-11-20
NUMBERS = st.integers(0, 10**9)


def an_analytics(sessions: list[int], confirmed: list[int]) -> Analytics:
    first = TODAY - len(sessions) + 1
    daily = [
        Day(first + place, 0, dict.fromkeys(COUNTS, 0) | {"requested": requested, "confirmed": taken})
        for place, (requested, taken) in enumerate(zip(sessions, confirmed, strict=True))
    ]
    totals = dict.fromkeys(COUNTS, 0) | {"requested": sum(sessions), "confirmed": sum(confirmed)}
    return Analytics(0, totals, daily, [])


def drawn(chart: str) -> ET.Element:
    return ET.fromstring(chart)  # noqa: S314 — what it reads is what this service has just drawn.


def bars(root: ET.Element, kind: str) -> list[float]:
    return [float(bar.get("height", "")) for bar in root.iter("rect") if bar.get("class") == kind]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=7, max_size=90))
def test_bars_are_as_high_as_their_numbers(counts: list[tuple[int, int]]) -> None:
    """Bars are in proportion and inside the drawing; an empty day has none, and any other day a visible one."""
    sessions, confirmed = [sum(pair) for pair in counts], [pair[1] for pair in counts]
    root = drawn(daily_chart(an_analytics(sessions, confirmed)))
    top = max(scale(max(sessions))[0], 1)
    for kind, values in (("bar-sessions", sessions), ("bar-confirmed", confirmed)):
        expected = [value for value in values if value]
        assert len(bars(root, kind)) == len(expected)
        for height, value in zip(bars(root, kind), expected, strict=True):
            assert height == pytest.approx(max(1.0, 180 * value / top), abs=0.06)
    for bar in root.iter("rect"):
        x, width = (float(bar.get(name, "").removesuffix("%")) for name in ("x", "width"))
        assert 0 <= x <= x + width <= 100.01
        assert float(bar.get("y", "")) >= 13.9


@given(NUMBERS)
def test_a_scale_has_room_and_few_lines(highest: int) -> None:
    """The highest bar fits, the scale ends at a line, and there are two to five lines."""
    ceiling, step = scale(highest)
    assert ceiling >= highest
    assert ceiling % step == 0
    assert 2 <= ceiling // step + 1 <= 5
    assert str(step).rstrip("0") in {"1", "2", "5"}


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (950, "950"), (1500, "1.5k"), (20_000, "20k"), (3_000_000, "3M"), (10**9, "1G")]
)
def test_numbers_of_the_scale_are_short(value: int, text: str) -> None:
    """Numbers of the scale fit into the narrow margin on a phone."""
    assert short(value) == text


def test_each_bar_has_a_tooltip_with_its_figures(a_week: Analytics) -> None:
    """Pointing at a bar shows the day and both numbers, so colour is not the only way to tell bars apart."""
    root = drawn(daily_chart(a_week))
    said = [title.text for group in root.iter("g") for title in group.iter("title")]
    assert len(said) == 7
    assert said[-1] == "2026-11-20 (so far): 1,200 sessions, 900 confirmed"
    wide, narrow = (
        next(float(bar.get("width", "").removesuffix("%")) for bar in root.iter("rect") if bar.get("class") == kind)
        for kind in ("bar-sessions", "bar-confirmed")
    )
    assert narrow < wide


def test_the_drawing_has_a_description(a_week: Analytics) -> None:
    """The drawing is an image with a name and a description, and has no inline styles."""
    chart = daily_chart(a_week)
    root = drawn(chart)
    assert root.get("role") == "img"
    title, description = root.find("title"), root.find("desc")
    assert title is not None
    assert description is not None
    assert (root.get("aria-labelledby"), root.get("aria-describedby")) == (title.get("id"), description.get("id"))
    assert description.text == (
        "2026-11-14 to 2026-11-20, by day of creation (UTC): 1,203 sessions, 901 confirmed. "
        "Most on 2026-11-20: 1,200, 900 confirmed."
    )
    assert "style" not in chart
    empty = daily_chart(an_analytics([0] * 30, [0] * 30))
    assert ("<rect" in empty, "no sessions" in empty) == (False, True)


@pytest.mark.parametrize("days", [7, 30, 90])
def test_today_has_its_date_and_dates_do_not_meet(days: int) -> None:
    """There are at most four dates, at least a fifth of the width apart, so that they fit on the narrowest phone."""
    root = drawn(daily_chart(an_analytics([1] * days, [0] * days)))
    dates = [text for text in root.iter("text") if "-" in (text.text or "")]
    assert 3 <= len(dates) <= 4
    assert dates[-1].text == "11-20"
    # Each is centred under its bar, the last like all others.
    centres = {
        round(float(bar.get("x", "").removesuffix("%")) + float(bar.get("width", "").removesuffix("%")) / 2, 2)
        for bar in root.iter("rect")
    }
    for text in dates:
        assert text.get("text-anchor") == "middle"
        assert any(abs(float(text.get("x", "").removesuffix("%")) - centre) < 0.02 for centre in centres)
    places = [float(text.get("x", "").removesuffix("%")) for text in dates]
    assert all(b - a > 20 for a, b in pairwise(places))


@pytest.fixture
def a_week() -> Analytics:
    return an_analytics([1, 0, 0, 2, 0, 0, 1200], [0, 0, 0, 1, 0, 0, 900])
