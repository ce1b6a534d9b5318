"""The times of leases: on the work of a leader, and on the updates of a bot.

A holder renews its lease every `RENEW_SECONDS`. Without a renewal, it stops its work after `LOSE_SECONDS`, and another
process can take the lease after `LEASE_SECONDS`. In between are three seconds, for the work to end and for the
difference between two nodes' clocks. Another process that asks every second takes over within ten seconds.
"""

from typing import Final, NamedTuple

LEASE_SECONDS: Final = 8.0
RENEW_SECONDS: Final = 2.0
LOSE_SECONDS: Final = 5.0


class Lease(NamedTuple):
    """A lease; from `held_until` (ms) on, another process can take it."""

    name: str
    holder: str
    held_until: int
