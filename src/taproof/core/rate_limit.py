"""Rate limits for many callers and for client addresses, using the generic cell rate algorithm (GCRA).

Source: ITU-T Recommendation I.371, the virtual scheduling form of the GCRA. The only state of a caller is one number,
its theoretical arrival time (TAT). At its TAT, a caller has its full allowance again.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final, NamedTuple

from taproof.core.clock import HOUR, MINUTE, SECOND

KEYS: Final = 100_000
"""The maximum number of callers in one generation: see `KeyedGcra`."""
NETWORK_FACTOR: Final = 10
"""The allowance of a /48, as a multiple of a /64's allowance."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LENGTH_48: Final = len("2001:0db8:0001")
_LENGTH_64: Final = len("2001:0db8:0001:0002")


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of calls within a window in ms. All of them may come in one burst. Its text form is `60/minute`."""

    number: int
    window: int

    def __str__(self) -> str:
        """Return the rate in the format of the settings."""
        units = {SECOND: "second", MINUTE: "minute", HOUR: "hour"}
        return f"{self.number}/{units.get(self.window, f'{self.window} ms')}"


class Standing(NamedTuple):
    """The state of a caller's allowance. `remaining` is the number of calls allowed now."""

    remaining: int
    until_next: int
    """ms until one more call is allowed, rounded up. If no call remains, this is the time to wait."""


class Gcra:
    """The rule: on average `number` calls per `window` (ms), and up to `burst` calls in one burst after a pause.

    A TAT is an integer in units of 1/`number` ms. So the emission interval of `window / number` ms is always exact. A
    caller without calls has a TAT of 0.
    """

    __slots__ = ("capacity", "lifetime", "number", "tolerance", "window")

    def __init__(self, number: int, window: int, burst: int) -> None:
        self.number = number
        self.window = window
        self.tolerance = window * (burst - 1)
        self.capacity = window * burst
        self.lifetime = -(-self.capacity // number)
        """ms until any usage has expired, after which the TAT can be dropped."""

    def spend(self, tat: int, now: int) -> int | None:
        """Return the TAT after one more call at `now` (ms), or None if the call is not allowed."""
        arrival = now * self.number
        if tat <= arrival:
            return arrival + self.window
        backlog = tat - arrival
        if backlog <= self.tolerance:
            return tat + self.window
        # No caller can reach such a TAT, so the clock was set back. Calls must not be refused for that long.
        return arrival + self.capacity if backlog > self.capacity else None

    def standing(self, tat: int, now: int) -> Standing:
        """Return the remaining allowance at `now` (ms) of a caller with this TAT."""
        free = self.capacity - min(max(tat - now * self.number, 0), self.capacity)
        remaining = free // self.window
        return Standing(remaining, -(-((remaining + 1) * self.window - free) // self.number))


class KeyedGcra:
    """A rule for many callers, identified by keys, in bounded memory.

    Keys are kept in two generations. When the younger generation reaches the lifetime of a TAT, it replaces the older
    one, which is dropped. Nothing is lost, because the dropped TATs no longer matter. The replacement also happens when
    the younger generation contains `keys` keys. A caller that made no call during two such replacements starts again
    with a full allowance. So resetting one caller takes twice `keys` other callers, each allowed at least once; their
    own bursts exceed what the reset gains. A caller that continues to call, allowed or not, is not forgotten.

    With `keep`, a key is kept for at least this time (ms) after its last call.
    """

    __slots__ = ("_keep", "_keys", "_number", "_old", "_turn_at", "_window", "_young", "rule")

    def __init__(self, rule: Gcra, *, keep: int = 0, keys: int = KEYS) -> None:
        self.rule = rule
        self._number = rule.number
        self._window = rule.window
        self._keep = max(keep, rule.lifetime)
        self._keys = keys
        self._young: dict[Hashable, int] = {}
        self._old: dict[Hashable, int] = {}
        self._turn_at = 0

    def __len__(self) -> int:
        """Return the number of kept keys."""
        return len(self._young) + len(self._old)

    def spend(self, key: Hashable, now: int) -> bool:
        """Count one more call at `now` (ms) if it is allowed; a refused call is not counted."""
        again = self.spend_again(key, now)
        if again is None:
            self._young[key] = now * self.rule.number + self.rule.window
            return True
        return again

    def spend_again(self, key: Hashable, now: int) -> bool | None:
        """Do the same as `spend` for a known key; for an unknown key, count nothing and return None."""
        tat = self._young.get(key)
        if tat is None:
            tat = self._grow_older(key, now)
            if tat is None:
                return None
        arrival = now * self._number
        # Nearly all requests take this branch, which is inlined to avoid a call.
        after = arrival + self._window if tat <= arrival else self.rule.spend(tat, now)
        if after is None:
            return False
        self._young[key] = after
        return True

    def charge(self, key: Hashable, now: int) -> None:
        """Count one more call that has already happened. A caller with no allowance left does not go into debt."""
        if not self.spend(key, now):
            self._young[key] = now * self.rule.number + self.rule.capacity

    def give_back(self, key: Hashable, now: int) -> None:
        """Undo the count of one allowed call."""
        tat = self._tat(key) - self.rule.window
        if tat <= now * self.rule.number:
            self.forget(key)
        else:
            self._young[key] = tat

    def forget(self, key: Hashable) -> None:
        """Forget a key, so that it starts again with a full allowance."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def standing(self, key: Hashable, now: int) -> Standing:
        """Return the remaining allowance of this key at `now` (ms)."""
        return self.rule.standing(self._tat(key), now)

    def _tat(self, key: Hashable) -> int:
        tat = self._young.get(key)
        return self._old.get(key, 0) if tat is None else tat

    def _grow_older(self, key: Hashable, now: int) -> int | None:
        """Return the TAT of a key that is not in the younger generation, and move it there.

        Start a new generation first if it is time.
        """
        tat = self._old.pop(key, None)
        if now >= self._turn_at or len(self._young) >= self._keys:
            self._old = self._young
            self._young = {}
            self._turn_at = now + self._keep
        if tat is not None:
            # Move the key to this generation, so that a caller that is always refused is not forgotten.
            self._young[key] = tat
        return tat


def counted_address(address: IPv4Address | IPv6Address) -> str:
    """Return the key that counts a client address: the IPv4 address, or the /64 as `2001:0db8:0001:0002`.

    An IPv4 address inside IPv6, from a translator (RFC 6052, section 2.1) or 6to4 (RFC 3056), counts as IPv4. Use the
    key only for counting: unlike in a mapped address, the inner address is not verified.
    """
    if isinstance(address, IPv4Address):
        return str(address)
    if address in _NAT64:
        return str(IPv4Address(address.packed[-4:]))
    return address.exploded[:_LENGTH_64] if address.sixtofour is None else str(address.sixtofour)


class AddressLimit:
    """A rule for each client address, and at ten times the rate for each IPv6 /48. Either can refuse a call.

    An IPv6 subscriber has a /64, and often a whole /48, which contains 65,536 of them. So a call counts for both: many
    subscribers may share a /48, but one subscriber must not get the allowance of 65,536. The methods are those of
    `KeyedGcra`. A key without a colon, such as a project's id, is counted once.
    """

    __slots__ = ("_addresses", "_networks", "rule")

    def __init__(self, rule: Gcra) -> None:
        self.rule = rule
        burst = rule.capacity // rule.window
        self._addresses = KeyedGcra(rule)
        self._networks = KeyedGcra(Gcra(rule.number * NETWORK_FACTOR, rule.window, burst * NETWORK_FACTOR))

    def __len__(self) -> int:
        """Return the number of kept keys."""
        return len(self._addresses) + len(self._networks)

    def spend(self, address: str, now: int) -> bool:
        """Count one more call at `now` (ms) if it is allowed; a refusal counts nothing."""
        if not self._addresses.spend(address, now):
            return False
        if ":" not in address or self._networks.spend(address[:_LENGTH_48], now):
            return True
        self._addresses.give_back(address, now)
        return False

    def charge(self, address: str, now: int) -> None:
        """Count one more call that has already happened. An address with no allowance left does not go into debt."""
        self._addresses.charge(address, now)
        if ":" in address:
            self._networks.charge(address[:_LENGTH_48], now)

    def give_back(self, address: str, now: int) -> None:
        """Undo the count of one call."""
        self._addresses.give_back(address, now)
        if ":" in address:
            self._networks.give_back(address[:_LENGTH_48], now)

    def standing(self, address: str, now: int) -> Standing:
        """Return the remaining allowance of this address at `now` (ms): the lower of its own and its network's."""
        own = self._addresses.standing(address, now)
        if ":" not in address:
            return own
        shared = self._networks.standing(address[:_LENGTH_48], now)
        # If neither has any calls left, the longer wait counts: after the shorter one, the other rule still refuses.
        return min(own, shared, key=lambda left: (left.remaining, -left.until_next))
