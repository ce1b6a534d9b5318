"""The `Retry-After` header of a receiver's response (RFC 9110, 10.2.3). The receiver may be hostile."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from taproof.core.clock import SECOND

RETRY_AFTER_STATUSES: Final = frozenset({429, 503})
"""The statuses with which a receiver can ask for a pause (RFC 6585, 4; RFC 9110, 15.6.4)."""
_DIGITS: Final = 12
"""The number of digits of a delay that are read: 31,000 years in seconds."""
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = f"(?P<month>{'|'.join(_MONTHS)})"
_TIME: Final = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES: Final = (
    re.compile(rf"[A-Z][a-z]{{2}}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{5,8}}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(rf"[A-Z][a-z]{{2}} {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)
"""The three forms of a date that a recipient must accept (RFC 9110, 5.6.7)."""


def retry_after_delay(values: Sequence[str], now: int) -> int:
    """Return the longest delay, in ms from `now` (ms), that the values ask for. Values that are invalid count as 0."""
    return max((_delay(value.strip(" \t"), now) for value in values), default=0)


def _delay(value: str, now: int) -> int:
    if value.isascii() and value.isdigit():
        digits = value.lstrip("0")
        return int("9" * _DIGITS if len(digits) > _DIGITS else digits or "0") * SECOND
    for pattern in _DATES:
        if (found := pattern.fullmatch(value)) is not None:
            return max(0, _instant(found.groupdict(), now) - now)
    return 0


def _instant(parts: dict[str, str], now: int) -> int:
    """Return a date in ms since the epoch; 0 if there is no such date."""
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        # A year that would be more than 50 years away is the latest past year with these digits.
        this_year = datetime.fromtimestamp(now / SECOND, UTC).year
        year += this_year - this_year % 100
        year -= 100 if year > this_year + 50 else 0
    month = _MONTHS.index(parts["month"]) + 1
    day, hour, minute, second = (int(parts[name]) for name in ("day", "hour", "minute", "second"))
    try:
        # A leap second is read as the second before it.
        instant = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return 0
    return int(instant.timestamp()) * SECOND
