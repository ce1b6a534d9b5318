"""Build the rate limit headers (draft-ietf-httpapi-ratelimit-headers-11)."""

from typing import NamedTuple

from taproof.core.clock import SECOND
from taproof.core.rate_limit import Gcra, Standing


class Allowance(NamedTuple):
    """A limit that a call was counted against: its name, its rule, and the caller's remaining allowance."""

    name: str
    rule: Gcra
    left: Standing


Allowances = list[Allowance]


def rate_limit_fields(allowances: Allowances) -> list[tuple[bytes, bytes]]:
    """Return the headers for these limits."""
    policies = ", ".join(f'"{name}";q={rule.number};w={rule.window // SECOND}' for name, rule, _ in allowances)
    standings = ", ".join(f'"{name}";r={left.remaining};t={seconds(left.until_next)}' for name, _, left in allowances)
    return [(b"ratelimit-policy", policies.encode()), (b"ratelimit", standings.encode())]


def seconds(milliseconds: int) -> int:
    """Return whole seconds, rounded up, so that a client that retries after this time is not too early."""
    return max(1, -(-milliseconds // SECOND))
