"""The only module that reads the clock. Everywhere else, `now` is a parameter, read once per operation."""

import functools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

Clock = Callable[[], int]
"""Returns the current time: integer milliseconds since the Unix epoch."""

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR


def system_clock() -> int:
    """Return the machine's wall-clock time in milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def day_number(instant: int) -> int:
    """Return the UTC day of `instant` (ms), as a number of days since 1970-01-01."""
    return instant // DAY


def iso8601(instant: int) -> str:
    """Return `instant` (ms) in ISO 8601: UTC, milliseconds, `Z` (contract.md, Everywhere)."""
    return f"{_to_the_second(instant // SECOND)}.{instant % SECOND:03d}Z"


@functools.lru_cache(256)
def _to_the_second(seconds: int) -> str:
    """Return the part of the text that is the same for all instants within one second."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]


def iso_date(day: int) -> str:
    """Return a day number as `2026-11-20`."""
    return f"{datetime.fromtimestamp(day * DAY // SECOND, UTC):%Y-%m-%d}"


def month_of(instant: int) -> range:
    """Return the days of the UTC calendar month of `instant` (ms), as `day_number` counts them."""
    first = datetime.fromtimestamp(instant // SECOND, UTC).replace(day=1, hour=0, minute=0, second=0)
    following = (first + timedelta(days=31)).replace(day=1)
    return range(*(day_number(int(each.timestamp()) * SECOND) for each in (first, following)))
