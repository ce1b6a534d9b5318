"""A session's life cycle, as one table. An event that is not in the table raises and changes nothing.

Source: service-spec.md, States and transitions; contract.md, Session endpoints. A stateful property test checks the
guarded statements of both drivers against this table (`tests/storage/test_session_life.py`).
"""

from typing import Final, Literal

from taproof.core.clock import MINUTE
from taproof.core.model import Status

SessionEvent = Literal["open", "confirm", "cancel", "withdraw", "expire", "consume", "report"]

SESSION_LIFETIME: Final = 10 * MINUTE
"""The time that a session may stay pending, in milliseconds (service-spec.md, Limits)."""

TRANSITIONS: Final[dict[tuple[Status, SessionEvent], Status]] = {
    ("pending", "open"): "pending",
    ("pending", "confirm"): "confirmed",
    ("pending", "cancel"): "cancelled",
    # The application has given up.
    ("pending", "withdraw"): "cancelled",
    ("pending", "expire"): "expired",
    ("confirmed", "consume"): "used",
    # "This wasn't me": after a report, an unused session's proof is never issued.
    ("pending", "report"): "cancelled",
    ("confirmed", "report"): "used",
    ("used", "report"): "used",
}


class IllegalTransition(Exception):
    """The event is not allowed in that state."""


def visible_status(stored: Status, expires_at: int, now: int) -> Status:
    """Return the status that a reader sees at `now`: a pending session is expired from `expires_at` on."""
    return "expired" if stored == "pending" and now >= expires_at else stored


def next_status(stored: Status, event: SessionEvent, expires_at: int, now: int) -> Status:
    """Return the state after `event` at `now`.

    Raises:
        IllegalTransition: the table has no such row; the session does not change.
    """
    seen = "pending" if event == "expire" and stored == "pending" else visible_status(stored, expires_at, now)
    if event == "expire" and now < expires_at:
        raise IllegalTransition(f"{event} before its time")
    try:
        return TRANSITIONS[seen, event]
    except KeyError:
        raise IllegalTransition(f"{event} when {seen}") from None
