"""A session's life cycle, as one table. An event that is not in the table raises and changes nothing.

Source: service-spec.md, States and transitions; contract.md, Session endpoints. A stateful property test checks the
guarded statements of both drivers against this table (`tests/storage/test_session_life.py`).
"""

from typing import Final, Literal

from taproof.contract.session import SignInStatus
from taproof.core.clock import MINUTE
from taproof.core.return_code import RETURN_LIFETIME

State = SignInStatus | Literal["returning"]
"""A status, or the part of pending between Confirm and the return code: readers see "pending", and no identity."""
SessionEvent = Literal[
    "open", "confirm", "await_return", "renew_return", "return", "cancel", "withdraw", "expire", "consume", "report"
]
""""await_return" is a Confirm that requires a return code, and "return" its use. Without one, "confirm" is Confirm."""

CountedDecision = Literal["confirmed", "cancelled", "mismatched", "reported", "withdrawn"]
"""A decision as it is counted, once. The last three are not counted as "cancelled" too."""

SESSION_LIFETIME: Final = 10 * MINUTE
"""The time that a session may stay pending before Confirm, in milliseconds (service-spec.md, Limits)."""

TRANSITIONS: Final[dict[tuple[State, SessionEvent], State]] = {
    ("pending", "open"): "pending",
    ("pending", "confirm"): "confirmed",
    ("pending", "cancel"): "cancelled",
    # The application has given up.
    ("pending", "withdraw"): "cancelled",
    ("pending", "expire"): "expired",
    ("confirmed", "consume"): "used",
    # With a required return code: Confirm begins `RETURN_LIFETIME`, and another tap only makes another code.
    ("pending", "await_return"): "returning",
    ("returning", "renew_return"): "returning",
    ("returning", "return"): "confirmed",
    ("returning", "cancel"): "cancelled",
    ("returning", "withdraw"): "cancelled",
    ("returning", "expire"): "expired",
    # "This wasn't me": after a report, an unused session's proof is never issued.
    ("pending", "report"): "cancelled",
    ("returning", "report"): "cancelled",
    ("confirmed", "report"): "used",
    ("used", "report"): "used",
}
_PENDING: Final[frozenset[State]] = frozenset({"pending", "returning"})


class IllegalTransition(Exception):
    """The event is not allowed in that state."""


def visible_status(stored: State, expires_at: int, now: int) -> SignInStatus:
    """Return the status that a reader sees at `now`: a pending session is expired from `expires_at` on."""
    if stored == "pending" or stored == "returning":  # noqa: PLR1714 — this is the polled path.
        return "expired" if now >= expires_at else "pending"
    return stored


def status_without_code(stored: SignInStatus, expires_at: int, now: int) -> SignInStatus:
    """Return the status that a reader without the return code sees at `now`, of a session that requires one."""
    return visible_status("pending" if stored == "confirmed" else stored, expires_at, now)


def next_status(stored: State, event: SessionEvent, expires_at: int, now: int) -> State:
    """Return the state after `event` at `now`. Without a row in the table, raise IllegalTransition."""
    is_overdue = stored in _PENDING and now >= expires_at
    if is_overdue is not (event == "expire"):
        raise IllegalTransition(f"{event} when {visible_status(stored, expires_at, now)}")
    try:
        return TRANSITIONS[stored, event]
    except KeyError:
        raise IllegalTransition(f"{event} when {stored}") from None


def next_expiry(event: SessionEvent, expires_at: int, now: int) -> int:
    """Return the expiry of a session after `event` at `now`."""
    return now + RETURN_LIFETIME if event == "await_return" else expires_at
