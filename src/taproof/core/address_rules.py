"""The addresses to which webhooks may be sent: public addresses, and those that the operator allows.

The table follows IANA's registries of special-purpose addresses (RFC 6890 and its updates) and of IPv6 address space.
`ipaddress.is_global` is not used: its result for an address depends on the Python version.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

RANGES: Final[dict[str, tuple[str, ...]]] = {
    "loopback": ("127.0.0.0/8", "::1/128"),
    "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
    # Metadata services of AWS, Azure, GCP, Alibaba and Oracle, which also return secrets, and IBM's service networks.
    # IANA's registries list some of these as public, and some are in "private".
    "cloud-internal": (
        *("169.254.169.254/32", "169.254.170.2/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
        *("161.26.0.0/16", "166.8.0.0/14", "fd00:ec2::/32", "fd20:ce::254/128"),
    ),
    "link-local": ("169.254.0.0/16", "fe80::/10"),
    "site-local": ("fec0::/10",),
    "cgnat": ("100.64.0.0/10",),
    "unspecified": ("0.0.0.0/8", "::/128"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
    "documentation": ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    "benchmark": ("198.18.0.0/15", "2001:2::/48"),
    "protocol": ("192.0.0.0/24", "2001::/23"),
    "discard": ("100::/64", "100:0:0:1::/64"),
    "segment-routing": ("5f00::/16",),
    "ipv4-mapped": ("::ffff:0:0/96",),
    "ipv4-compatible": ("::/96",),
    "ipv4-translated": ("::ffff:0:0:0/96",),
    "nat64": ("64:ff9b::/96", "64:ff9b:1::/48"),
    "6to4": ("192.88.99.0/24", "2002::/16"),
    "teredo": ("2001::/32",),
    # Only 2000::/3 contains public IPv6 addresses. "reserved" covers all others that no other name covers.
    "reserved": ("240.0.0.0/4", "::/3", "4000::/2", "8000::/1"),
}
"""All non-public ranges, by the name that allows them. Where ranges overlap, the smallest one applies."""

_BY_NAME_ONLY: Final = "cloud-internal"
"""Allowing a wider network, such as fd00::/8, does not allow these ranges. Only their name, or a network inside one of
them, does."""

_LAST_32_BITS: Final = frozenset({"ipv4-mapped", "ipv4-compatible", "ipv4-translated", "nat64"})
_SMALLEST_FIRST: Final[list[tuple[IPv4Network | IPv6Network, str]]] = sorted(
    ((ip_network(network), name) for name, networks in RANGES.items() for network in networks),
    key=lambda entry: -entry[0].prefixlen,
)


class AddressRules:
    """Decides to which addresses webhooks may be sent: public ones, and those that are `allowed` in addition.

    Args:
        allowed: names from `RANGES`, and networks such as `10.0.0.0/8`. Any other item raises ValueError.
    """

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        names = [each.lower() for each in allowed]
        self._names = frozenset(names) & RANGES.keys()
        self._networks = [ip_network(name) for name in names if name not in RANGES]

    def problem(self, address: str) -> str | None:
        """Return why `address` is refused: the name of its range, "unreadable" or "scoped"; None if it is allowed.

        Only the usual notation is accepted. Other notations that `inet_aton` reads (`127.1`, `0x7f.0.0.1`,
        `2130706433`) are "unreadable", and an address with a zone (`fe80::1%eth0`) is "scoped".
        """
        try:
            parsed = ip_address(address)
        except ValueError:
            return "unreadable"
        return "scoped" if "%" in address else self._problem(parsed)

    def _problem(self, address: IPv4Address | IPv6Address) -> str | None:
        smallest, name = next((entry for entry in _SMALLEST_FIRST if address in entry[0]), (None, ""))
        if smallest is None:
            return None
        # Some ranges are allowed only by their name or by a network inside them, not by a wider network.
        least = smallest.prefixlen if name == _BY_NAME_ONLY else 0
        if name not in self._names and not any(
            address in network and network.prefixlen >= least for network in self._networks
        ):
            return name
        # A gateway or tunnel forwards to the IPv4 address inside, so that address is checked too. A network without
        # IPv4 has to allow "nat64", and even then 64:ff9b::10.0.0.1 is private.
        problems = (self._problem(inner) for inner in _carried(name, address))
        return next((problem for problem in problems if problem is not None), None)


def _carried(name: str, address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address in this range contains."""
    if isinstance(address, IPv4Address):
        return []
    if name in _LAST_32_BITS:
        return [IPv4Address(int(address) & 0xFFFF_FFFF)]
    if name == "6to4" and address.sixtofour is not None:
        return [address.sixtofour]
    return list(address.teredo or ())
