"""The times at which a webhook event that was not accepted is sent again (contract.md, Webhooks)."""

from hypothesis import given
from hypothesis import strategies as st

from taproof.core.clock import HOUR, MINUTE, SECOND
from taproof.core.retry_schedule import RETRY_DELAYS, next_attempt_at

NOW = 1_763_700_000_000


def test_the_schedule_is_that_of_the_contract() -> None:
    """5 s, 1 min, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h: nine attempts in all."""
    minutes = (MINUTE, 5 * MINUTE, 30 * MINUTE)
    assert (5 * SECOND, *minutes, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR) == RETRY_DELAYS
    assert next_attempt_at(7, NOW, bytes) == NOW + 10 * HOUR
    for asked in (0, HOUR):
        assert next_attempt_at(8, NOW, bytes, asked=asked) is None


def test_jitter_spreads_events_that_failed_together() -> None:
    """Two random values give two times; the smallest value gives the plain delay."""
    first = next_attempt_at(1, NOW, lambda _: b"\0\0")
    second = next_attempt_at(1, NOW, lambda _: b"\xff\xff")
    assert first == NOW + MINUTE
    assert second is not None
    assert second - NOW > MINUTE + 11 * SECOND


@given(st.integers(0, len(RETRY_DELAYS) - 1), st.just(0) | st.integers(0, 1 << 80), st.binary(min_size=2, max_size=2))
def test_the_later_of_schedule_and_retry_after_counts(stage: int, asked: int, drawn: bytes) -> None:
    """A receiver can lengthen a delay up to the schedule's longest one. Jitter adds at most a fifth."""
    due_at = next_attempt_at(stage, NOW, lambda _: drawn, asked=asked)
    assert due_at is not None
    least = max(RETRY_DELAYS[stage], min(asked, 10 * HOUR))
    assert least <= due_at - NOW < least * 6 // 5 + 1
