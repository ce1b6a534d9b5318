"""How often something may be done: the generic cell rate algorithm, for many callers and for client addresses.

Source: ITU-T Recommendation I.371, the virtual scheduling form of the GCRA. All that is kept of a caller is one number,
its theoretical arrival time (TAT): until then what it has done so far is paid for.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final, NamedTuple

from taproof.core.clock import HOUR, MINUTE, SECOND

KEYS: Final = 100_000
"""Callers of one generation at most: see `KeyedGcra`."""
NETWORK_FACTOR: Final = 10
"""A /48 has this many times the allowance of a /64."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LENGTH_48: Final = len("2001:0db8:0001")
_LENGTH_64: Final = len("2001:0db8:0001:0002")


@dataclass(frozen=True, slots=True)
class Rate:
    """So many within so many ms, all of which may come at once; as a text `60/minute`."""

    number: int
    window: int

    def __str__(self) -> str:
        """Return how it is written in the settings."""
        units = {SECOND: "second", MINUTE: "minute", HOUR: "hour"}
        return f"{self.number}/{units.get(self.window, f'{self.window} ms')}"


class Standing(NamedTuple):
    """What is left to a caller.

    Attributes:
        remaining: how many are allowed at this instant.
        until_next: ms until it is one more, rounded up; when nothing remains, how long to wait before the next try.
    """

    remaining: int
    until_next: int


class Gcra:
    """The rule: one for each emission interval on average, and up to `burst` at once after a pause.

    A TAT is an integer in units of 1/`number` ms, so that the emission interval, which is `window / number` ms, is
    exact whatever the two are; 0 is that of a caller who has done nothing yet.

    Args:
        number: how many within `window`.
        window: in ms.
        burst: how many at once.
    """

    __slots__ = ("capacity", "lifetime", "number", "tolerance", "window")

    def __init__(self, number: int, window: int, burst: int) -> None:
        self.number = number
        self.window = window
        self.tolerance = window * (burst - 1)
        self.capacity = window * burst
        self.lifetime = -(-self.capacity // number)
        """ms after which whatever was done is paid for, and its TAT may be forgotten."""

    def spend(self, tat: int, now: int) -> int | None:
        """Return the TAT after doing it once more at `now` (ms), or None when that is not allowed."""
        arrival = now * self.number
        if tat <= arrival:
            return arrival + self.window
        backlog = tat - arrival
        if backlog <= self.tolerance:
            return tat + self.window
        # A TAT that no caller can reach: the clock was set back. It must not refuse for as long as that.
        return arrival + self.capacity if backlog > self.capacity else None

    def standing(self, tat: int, now: int) -> Standing:
        """Return what is left at `now` (ms) to who has this TAT."""
        free = self.capacity - min(max(tat - now * self.number, 0), self.capacity)
        remaining = free // self.window
        return Standing(remaining, -(-((remaining + 1) * self.window - free) // self.number))


class KeyedGcra:
    """A rule for many callers by their keys, in bounded memory.

    Keys are kept in two generations. Once the younger one is as old as a TAT can matter, the older one is dropped, by
    which nothing is lost, and the younger one takes its place. The same happens when the younger one holds `keys` of
    them. Then something is: who was not seen for two such turns begins anew. So it takes twice `keys` callers that are
    each let in once to give one of them its burst back, which they have had many times over by then; and whoever goes
    on calling, let in or not, is in the younger one and is not forgotten.

    Args:
        rule: holds for each key.
        keep: ms that a key is kept at least after it was last seen, if that is longer than its TAT can matter.
        keys: of one generation at most.
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
        """Return how many keys are kept."""
        return len(self._young) + len(self._old)

    def spend(self, key: Hashable, now: int) -> bool:
        """Note one more at `now` (ms) if it is allowed; a refusal takes nothing."""
        again = self.spend_again(key, now)
        if again is None:
            self._young[key] = now * self.rule.number + self.rule.window
            return True
        return again

    def spend_again(self, key: Hashable, now: int) -> bool | None:
        """Do as `spend` for a key that is kept; return None for another one, and note nothing."""
        tat = self._young.get(key)
        if tat is None:
            tat = self._grow_older(key, now)
            if tat is None:
                return None
        arrival = now * self._number
        # What nearly all ask, on the path of nearly all requests: without a call.
        after = arrival + self._window if tat <= arrival else self.rule.spend(tat, now)
        if after is None:
            return False
        self._young[key] = after
        return True

    def charge(self, key: Hashable, now: int) -> None:
        """Note one more that has happened already; who has nothing left stays so, and owes no more than that."""
        if not self.spend(key, now):
            self._young[key] = now * self.rule.number + self.rule.capacity

    def give_back(self, key: Hashable, now: int) -> None:
        """Take back one that was noted, as if it had not been asked for."""
        tat = self._tat(key) - self.rule.window
        if tat <= now * self.rule.number:
            self.forget(key)
        else:
            self._young[key] = tat

    def forget(self, key: Hashable) -> None:
        """Let this key begin anew."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def standing(self, key: Hashable, now: int) -> Standing:
        """Return what is left to this key at `now` (ms)."""
        return self.rule.standing(self._tat(key), now)

    def _tat(self, key: Hashable) -> int:
        tat = self._young.get(key)
        return self._old.get(key, 0) if tat is None else tat

    def _grow_older(self, key: Hashable, now: int) -> int | None:
        """Return the TAT of a key that is not in the younger generation, and bring it there; turn when it is time."""
        tat = self._old.pop(key, None)
        if now >= self._turn_at or len(self._young) >= self._keys:
            self._old = self._young
            self._young = {}
            self._turn_at = now + self._keep
        if tat is not None:
            # Here, so that who is refused all the time is not forgotten for that.
            self._young[key] = tat
        return tat


def counted_address(address: IPv4Address | IPv6Address) -> str:
    """Return the key that a client address is counted by: the IPv4 address, or the /64 as `2001:0db8:0001:0002`.

    An IPv4 address inside IPv6, from a translator (RFC 6052, section 2.1) or 6to4 (RFC 3056), counts as IPv4. Use this
    for counting only: unlike a mapped address, nothing vouches for the address inside.
    """
    if isinstance(address, IPv4Address):
        return str(address)
    if address in _NAT64:
        return str(IPv4Address(address.packed[-4:]))
    return address.exploded[:_LENGTH_64] if address.sixtofour is None else str(address.sixtofour)


class AddressLimit:
    """A rule for each client address, and for each /48 of IPv6 at ten times its rate. Either can refuse.

    A subscriber of IPv6 has a /64, and often a whole /48, which is 65,536 of them. So an address is counted by both:
    many subscribers may share a /48, and no subscriber may use the allowance of all of them.

    The methods are those of `KeyedGcra`. A key without a colon, such as a project's id, is counted once.

    Args:
        rule: holds for each address.
    """

    __slots__ = ("_addresses", "_networks", "rule")

    def __init__(self, rule: Gcra) -> None:
        self.rule = rule
        burst = rule.capacity // rule.window
        self._addresses = KeyedGcra(rule)
        self._networks = KeyedGcra(Gcra(rule.number * NETWORK_FACTOR, rule.window, burst * NETWORK_FACTOR))

    def __len__(self) -> int:
        """Return how many keys are kept."""
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
        """Count one more call that has happened already. An address that has nothing left stays at nothing."""
        self._addresses.charge(address, now)
        if ":" in address:
            self._networks.charge(address[:_LENGTH_48], now)

    def give_back(self, address: str, now: int) -> None:
        """Undo the count of one call."""
        self._addresses.give_back(address, now)
        if ":" in address:
            self._networks.give_back(address[:_LENGTH_48], now)

    def standing(self, address: str, now: int) -> Standing:
        """Return what is left to this address at `now` (ms): the lesser of its own and its network's."""
        own = self._addresses.standing(address, now)
        if ":" not in address:
            return own
        shared = self._networks.standing(address[:_LENGTH_48], now)
        # When neither has anything left, the longer wait counts: after the shorter one, the other still refuses.
        return min(own, shared, key=lambda left: (left.remaining, -left.until_next))
