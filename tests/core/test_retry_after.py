"""The header Retry-After of a receiver, which may be hostile (RFC 9110, 10.2.3 and 5.6.7)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.retry_after import retry_after_delay

NOW = int(datetime(2026, 11, 24, 10, 0, tzinfo=UTC).timestamp()) * SECOND
CENTURY = 36_525 * DAY

ASKED = {
    "0": 0,
    "120": 2 * MINUTE,
    " 120\t": 2 * MINUTE,
    "0000000000000000120": 2 * MINUTE,
    "Tue, 24 Nov 2026 11:00:00 GMT": HOUR,
    "Tuesday, 24-Nov-26 11:00:00 GMT": HOUR,
    "Tue Nov 24 11:00:00 2026": HOUR,
    "Tue Dec  1 10:00:00 2026": 7 * DAY,
    "Mon, 31 Dec 2026 23:59:60 GMT": 37 * DAY + 14 * HOUR - SECOND,
    "Sun, 06 Nov 1994 08:49:37 GMT": 0,
    "Sunday, 06-Nov-94 08:49:37 GMT": 0,
    "Sun Nov  6 08:49:37 1994": 0,
    "": 0,
    "-1": 0,
    "+5": 0,
    "1.5": 0,
    "1e9": 0,
    "0x10": 0,
    "5, 10": 0,
    "five": 0,
    "\u0665": 0,
    "\u00b2": 0,
    "inf": 0,
    "NaN": 0,
    "5 seconds": 0,
    "2026-11-24T11:00:00Z": 0,
    "Tue, 24 Nov 2026 11:00:00": 0,
    "Tue, 24 Nov 2026 11:00:00 +0100": 0,
    "tue, 24 nov 2026 11:00:00 gmt": 0,
    "Mon, 31 Feb 2026 11:00:00 GMT": 0,
    "Tue, 24 Nov 0000 11:00:00 GMT": 0,
    "Tue, 24 Nov 2026 24:00:00 GMT": 0,
    "Tue Nov  0 11:00:00 2026": 0,
}


def test_each_form_is_read_and_nothing_else(subtests: pytest.Subtests) -> None:
    """Seconds and the three date formats are read.

    The longest of several values counts, and invalid ones are ignored.
    """
    for value, delay in ASKED.items():
        with subtests.test(value=value):
            assert retry_after_delay([value], NOW) == delay
    assert retry_after_delay(["5", "garbage", "Tue, 24 Nov 2026 11:00:00 GMT", "-9"], NOW) == HOUR
    assert retry_after_delay([], NOW) == 0


@pytest.mark.parametrize("value", ["9" * 13, "9" * 8_000, "1" + "0" * 5_000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_huge_value_is_a_long_delay(value: str) -> None:
    """It is neither an error nor a short delay; the schedule's longest delay limits it."""
    assert retry_after_delay([value], NOW) > CENTURY


def test_a_year_of_two_digits_is_at_most_50_years_away() -> None:
    """A date that would be more than 50 years ahead is in the past (RFC 9110, 5.6.7)."""
    assert retry_after_delay(["Tuesday, 24-Nov-76 10:00:00 GMT"], NOW) > 49 * 365 * DAY
    assert retry_after_delay(["Wednesday, 24-Nov-77 10:00:00 GMT"], NOW) == 0


@given(st.lists(st.text(st.characters(max_codepoint=0x2FF))))
def test_no_text_raises_an_error_or_shortens_a_delay(values: list[str]) -> None:
    """A hostile value delays only its own event."""
    assert retry_after_delay(values, NOW) >= 0
