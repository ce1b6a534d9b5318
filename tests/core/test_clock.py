"""Instants as integers, and their text form."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.clock import DAY, day_number, iso8601, iso_date, system_clock

YEAR_9999 = 253_402_300_799_999


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (999, "1970-01-01T00:00:00.999Z"),
        (1_000, "1970-01-01T00:00:01.000Z"),
        (1_795_214_643_127, "2026-11-20T22:44:03.127Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (YEAR_9999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_instants_are_written_as_the_contract_has_them(instant: int, text: str) -> None:
    """An instant is written in UTC with milliseconds and Z."""
    assert iso8601(instant) == text


@given(st.integers(0, YEAR_9999 - 1))
def test_no_millisecond_is_lost_and_text_sorts_like_time(instant: int) -> None:
    """Every instant can be read back exactly, because no float is involved, and its text sorts by time."""
    moment = datetime.fromisoformat(iso8601(instant))
    assert moment.tzinfo == UTC
    assert round(moment.timestamp() * 1000) == instant
    assert iso8601(instant) < iso8601(instant + 1)


@given(st.integers(0, 65_535))
def test_days_are_utc_days(day: int) -> None:
    """The first and the last millisecond of a day give its number and its date."""
    first, last = day * DAY, (day + 1) * DAY - 1
    assert day_number(first) == day_number(last) == day
    assert iso_date(day) == iso8601(first)[:10] == iso8601(last)[:10]


def test_the_system_clock_counts_milliseconds() -> None:
    """A clock that ran in seconds or nanoseconds would lie far outside these bounds."""
    before = time.time_ns() // 1_000_000
    now = system_clock()
    assert before <= now <= time.time_ns() // 1_000_000
