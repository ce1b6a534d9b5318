"""The retry schedule for webhook events that were not accepted (contract.md, Webhooks)."""

from collections.abc import Sequence
from typing import Final

from taproof.core.clock import HOUR, MINUTE, SECOND
from taproof.core.entropy import Entropy

RETRY_DELAYS: Final = (
    5 * SECOND,
    1 * MINUTE,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    10 * HOUR,
)
"""Milliseconds from the end of a failed attempt to the next one. After the last attempt, the event is a dead letter."""
_JITTER: Final = 5
"""The maximum random increase of a delay, a fifth, so that events that failed together are not retried together."""


def next_attempt_at(
    stage: int, now: int, entropy: Entropy, delays: Sequence[int] = RETRY_DELAYS, *, asked: int = 0
) -> int | None:
    """Return the time (ms) of the next attempt after a failure at `now` (ms); None after the last attempt.

    `stage` is the number of attempts before the one that failed. The receiver `asked` for a delay (ms): the longer of
    the two counts, but none is longer than the schedule's longest one.
    """
    if stage >= len(delays):
        return None
    delay = max(delays[stage], min(asked, max(delays)))
    return now + delay + delay * int.from_bytes(entropy(2)) // (_JITTER << 16)
