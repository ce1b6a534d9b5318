"""When a webhook event that was not taken is sent again (contract.md, Webhooks)."""

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
"""Milliseconds from the end of a failed attempt to the next one; after the last of them the event is dead-lettered."""
_JITTER: Final = 5
"""A delay is lengthened by up to a fifth, so that events that failed together do not come back together."""


def next_attempt_at(stage: int, now: int, entropy: Entropy, delays: Sequence[int] = RETRY_DELAYS) -> int | None:
    """Return when an event is due again that has just failed, in ms; None when that was its last attempt.

    Args:
        stage: how many attempts were made before the one that failed.
        now: when it failed, in ms.
        entropy: returns random bytes, for the jitter.
        delays: the schedule.
    """
    if stage >= len(delays):
        return None
    delay = delays[stage]
    return now + delay + delay * int.from_bytes(entropy(2)) // (_JITTER << 16)
