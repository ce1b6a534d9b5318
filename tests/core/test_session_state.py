"""The life of a session as a table (service-spec.md, States and transitions)."""

import itertools
from typing import get_args

import pytest

from taproof.core.session_state import (
    SESSION_LIFETIME,
    TRANSITIONS,
    IllegalTransition,
    SessionEvent,
    State,
    next_expiry,
    next_status,
    visible_status,
)

DECIDED: list[State] = ["confirmed", "cancelled", "expired", "used"]
STATES: list[State] = ["pending", "returning", *DECIDED]
EVENTS: list[SessionEvent] = [
    *("open", "confirm", "cancel", "expire", "consume", "report", "withdraw", "await_return", "renew_return", "return"),
]
EDGE = 1_795_214_643_127
"""The instant at which the sessions of these tests expire."""

IN_TIME: dict[tuple[State, SessionEvent], State | None] = {
    **dict.fromkeys(itertools.product(STATES, EVENTS)),
    ("pending", "open"): "pending",
    ("pending", "confirm"): "confirmed",
    ("pending", "cancel"): "cancelled",
    ("pending", "report"): "cancelled",
    ("pending", "withdraw"): "cancelled",
    ("pending", "await_return"): "returning",
    ("returning", "renew_return"): "returning",
    ("returning", "return"): "confirmed",
    ("returning", "cancel"): "cancelled",
    ("returning", "report"): "cancelled",
    ("returning", "withdraw"): "cancelled",
    ("confirmed", "consume"): "used",
    ("confirmed", "report"): "used",
    ("used", "report"): "used",
}
"""Every state and every event before the edge; the transitions are written out by hand, and None is a refusal."""

TOO_LATE: dict[tuple[State, SessionEvent], State | None] = {
    (state, event): after if state in DECIDED else "expired" if event == "expire" else None
    for (state, event), after in IN_TIME.items()
}
"""From the instant of expiry on, a pending session can only expire."""

CASES = [
    (stored, event, EDGE + offset, table[stored, event])
    for table, offsets in ((IN_TIME, (-SESSION_LIFETIME, -1)), (TOO_LATE, (0, 1, SESSION_LIFETIME)))
    for (stored, event) in table
    for offset in offsets
]


def test_the_tables_have_every_state_and_every_event() -> None:
    """A new state or event must be added to this test, with each of its transitions."""
    assert set(EVENTS) == set(get_args(SessionEvent))
    assert set(TRANSITIONS) <= set(IN_TIME) == set(TOO_LATE)


def test_each_event_in_each_state(subtests: pytest.Subtests) -> None:
    """Each row of the spec's table is a transition, and everything else is refused."""
    for stored, event, now, after in CASES:
        with subtests.test(stored=stored, event=event, now=now, after=after):
            if after is None:
                with pytest.raises(IllegalTransition):
                    next_status(stored, event, EDGE, now)
            else:
                assert next_status(stored, event, EDGE, now) == after


def test_only_a_pending_session_is_seen_to_expire(subtests: pytest.Subtests) -> None:
    """A pending session is seen as expired from the instant of its expiry. Other states do not change with time."""
    for offset in [-SESSION_LIFETIME, -1, 0, 1, SESSION_LIFETIME]:
        for stored in STATES:
            with subtests.test(stored=stored, offset=offset):
                seen = visible_status(stored, EDGE, EDGE + offset)
                assert seen == (stored if stored in DECIDED else "expired" if offset >= 0 else "pending")


def test_a_session_is_pending_for_ten_minutes_and_five_more_to_return() -> None:
    """A session is pending for ten minutes (service-spec.md, Limits), and may return for five minutes from Confirm.

    Another code does not extend this (contract.md, Policy).
    """
    assert SESSION_LIFETIME == 600_000
    assert next_expiry("await_return", EDGE, EDGE - 1) == EDGE - 1 + 300_000
    assert {next_expiry(event, EDGE, EDGE - 1) for event in get_args(SessionEvent) if event != "await_return"} == {EDGE}
