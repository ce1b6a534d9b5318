"""Limit client addresses: the key that an address is counted by, and the limit of each key.

A subscriber of IPv6 has a /64, and often a whole /48, which is 65,536 of them. So an address is counted by both: many
subscribers may share a /48, and none may have the allowance of all of them.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

from taproof.core.rate_limit import Gcra, KeyedGcra, Standing

NETWORK_FACTOR: Final = 10
"""The allowance of a /48, as a multiple of that of one /64."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
_LENGTH_48: Final = len("2001:0db8:0001")
_LENGTH_64: Final = len("2001:0db8:0001:0002")


def counted_address(address: IPv4Address | IPv6Address) -> str:
    """Return what a client of this address is counted by: the IPv4 address, or the /64 as `2001:0db8:0001:0002`.

    An IPv4 address that a translator wrote into IPv6 (RFC 6052, section 2.1), or that a whole network of IPv6 stands
    for (6to4: RFC 3056), is the client's. This is for counting alone: such an address is not to be trusted as the one
    inside would be, since no system vouches for it as for a mapped one.
    """
    if isinstance(address, IPv4Address):
        return str(address)
    if address in _NAT64:
        return str(IPv4Address(address.packed[-4:]))
    return address.exploded[:_LENGTH_64] if address.sixtofour is None else str(address.sixtofour)


class AddressLimit:
    """A limit for each client address, and for each /48 of IPv6 at ten times its rate. A call needs both.

    Its methods are those of `KeyedGcra`. A key without a colon, such as a project's id, is counted once.

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
