"""Parse the times that clients send: RFC 3339, with a UTC offset."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from taproof.core.errors import InvalidRequest

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})", flags=re.ASCII
)


def read_instant(text: str, field: str) -> int:
    """Return a time in ms since the epoch. Raise InvalidRequest, which names the field, if it has no UTC offset."""
    # Check the format first: fromisoformat also accepts bare dates, week dates and times without an offset.
    # With its offset, a time can be after the year 9999, which no response could contain.
    try:
        if _RFC3339.fullmatch(text) is not None:
            moment = datetime.fromisoformat(text.upper()).astimezone(UTC)
            return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest(f"{field} must be a time with a UTC offset, such as 2030-01-01T00:00:00Z.")
