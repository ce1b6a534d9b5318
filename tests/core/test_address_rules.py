"""The addresses that webhooks may be posted to: the table of ranges, their edges, and those that an operator allows."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.address_rules import RANGES, AddressRules

NOT_PUBLIC = {
    "loopback": ["127.0.0.0", "127.0.0.1", "127.255.255.255", "::1"],
    "private": [
        *("10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"),
        *("fc00::", "fd00:ec1::254", "fd00:ec3::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ],
    "cloud-internal": [
        *("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "161.26.0.0"),
        *("161.26.255.255", "166.8.0.0", "166.11.255.255", "fd00:ec2::", "fd00:ec2::23", "fd00:ec2::254"),
        "fd20:ce::254",
    ],
    "link-local": ["169.254.0.0", "169.254.169.253", "169.254.255.255", "fe80::", "febf:ffff::1"],
    "site-local": ["fec0::", "feff:ffff::1"],
    "cgnat": ["100.64.0.0", "100.100.100.201", "100.127.255.255"],
    "unspecified": ["0.0.0.0", "0.255.255.255", "::"],  # noqa: S104 — nothing listens on it.
    "multicast": ["224.0.0.0", "239.255.255.255", "ff00::", "ff02::1", "ffff:ffff::"],
    "documentation": ["192.0.2.0", "198.51.100.255", "203.0.113.7", "2001:db8::", "3fff::", "3fff:fff:ffff::1"],
    "benchmark": ["198.18.0.0", "198.19.255.255", "2001:2::", "2001:2:0:ffff::"],
    "protocol": ["192.0.0.0", "192.0.0.255", "2001:1::1", "2001:2:1::", "2001:10::1", "2001:20::1", "2001:1ff:ffff::"],
    "discard": ["100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::"],
    "segment-routing": ["5f00::", "5f00:ffff::"],
    "ipv4-mapped": ["::ffff:0.0.0.0", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::ffff:ffff:ffff"],
    "ipv4-compatible": ["::2", "::8.8.8.8", "::127.0.0.1", "::ffff:ffff"],
    "ipv4-translated": ["::ffff:0:8.8.8.8", "::ffff:0:127.0.0.1"],
    "nat64": ["64:ff9b::", "64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1", "64:ff9b:1::", "64:ff9b:1:ffff:ffff::"],
    "6to4": ["192.88.99.0", "192.88.99.255", "2002::", "2002:808:808::1", "2002:ffff::"],
    "teredo": ["2001::", "2001:0:808:808::1", "2001:0:ffff::"],
    "reserved": [
        *("240.0.0.0", "255.255.255.255", "1::", "64:ff9b:2::", "100:0:0:2::", "1fff:ffff::", "4000::", "5f01::"),
        *("8000::", "c000::", "e000::", "f000::", "fbff::", "fe00::", "fe7f::"),
    ],
}
PUBLIC = [
    *("168.63.129.15", "168.63.129.17", "161.25.255.255", "161.27.0.0", "166.7.255.255", "166.12.0.0"),
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0"),
    *("192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
    *("198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "1.0.0.0"),
    *("2000::", "2001:200::", "2001:db7:ffff::", "2001:db9::", "2001:4860:4860::8888", "2003::", "2606:4700::1111"),
    *("2a00::1", "3ffe::", "3fff:1000::", "3fff:ffff:ffff::"),
]
UNREADABLE = [
    *("", " ", "localhost", "example.com", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1"),
    *("017700000001", "127.0.0.01", "8.8.8.08", "8.8.8.8.", "8.8.8", "8.8.8.8.8", "256.1.1.1", " 8.8.8.8", "8.8.8.8 "),
    *("8.8.8.8\n", "8.8.8.8/32", "\uff18.8.8.8", "\u0668.8.8.8", "8\u30028.8.8", "[2a00::1]", "2a00::1::2", "2a00:::1"),
    *("2a00::12345", "2a00::g", "2a00::1/128", "::ffff:127.1", "::ffff:0177.0.0.1", "1:2:3:4:5:6:7", "-1", "+8.8.8.8"),
]


def test_what_is_not_public_is_refused_by_the_name_of_its_range(subtests: pytest.Subtests) -> None:
    """The first and last address of each range is refused with the range's name, in every notation."""
    for name, address in [(name, each) for name, some in NOT_PUBLIC.items() for each in some]:
        with subtests.test(name=name, address=address):
            assert AddressRules().problem(address) == name
            for spelling in (address.upper(), ip_address(address).exploded):
                assert AddressRules().problem(spelling) == name


def test_every_range_is_held_by_examples() -> None:
    """Each line of the table needs an example in this file."""
    assert NOT_PUBLIC.keys() == RANGES.keys()
    for name, networks in RANGES.items():
        for network in networks:
            assert any(ip_address(each) in ip_network(network) for each in NOT_PUBLIC[name]), network


def test_every_range_is_named_in_the_documents() -> None:
    """The documentation lists each name that an operator can allow, and its addresses."""
    operating = (Path(__file__).parents[2] / "docs/how-to/where-webhooks-may-go.md").read_text(encoding="utf-8")
    for name in RANGES:
        assert f"`{name}`" in operating, name
    for line in operating.splitlines():
        name = line.removeprefix("| `").partition("`")[0]
        if name in RANGES:
            assert all(network.removesuffix("/128") in line for network in RANGES[name]), name


def test_public_addresses_are_not_refused(subtests: pytest.Subtests) -> None:
    """The neighbours of each range, and well-known servers, are accepted."""
    for address in PUBLIC:
        with subtests.test(address=address):
            assert AddressRules().problem(address) is None


def test_only_the_usual_notation_is_read(subtests: pytest.Subtests) -> None:
    """A text that programs read differently is refused, even if every address is allowed."""
    for address in UNREADABLE:
        with subtests.test(address=address):
            assert AddressRules().problem(address) == "unreadable"
            assert AddressRules(["0.0.0.0/0", "::/0"]).problem(address) == "unreadable"


@pytest.mark.parametrize("address", ["fe80::1%eth0", "fe80::1%1", "2a00::1%lo", "::1%lo"])
def test_an_address_with_a_zone_is_refused(address: str) -> None:
    """A zone names a network interface of this machine."""
    assert AddressRules().problem(address) == "scoped"
    assert AddressRules(["::/0"]).problem(address) == "scoped"


@given(st.integers(0, 2**128 - 1))
def test_of_ipv6_only_one_eighth_is_public(number: int) -> None:
    """Ranges that the registry may add later outside 2000::/3 are already refused."""
    address = IPv6Address(number)
    if AddressRules().problem(str(address)) is None:
        assert address in IPv6Network("2000::/3")
    elif address in IPv6Network("2000::/3"):
        holes = ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
        assert any(address in IPv6Network(hole) for hole in holes)


@given(st.integers(0, 2**32 - 1))
def test_ipv4_agrees_with_the_standard_library_but_for_four_ranges(number: int) -> None:
    """The standard library's table, an independent one, agrees except for four ranges that it calls public."""
    address = IPv4Address(number)
    if AddressRules().problem(str(address)) is None:
        assert address.is_global
    else:
        assert not address.is_global or AddressRules().problem(str(address)) in {
            "multicast",
            "6to4",
            "protocol",
            "cloud-internal",
        }


def test_ranges_are_allowed_by_name() -> None:
    """Each name allows its own range and no other, not even a range inside it."""
    for allowed in RANGES:
        rules = AddressRules([allowed.upper()])
        for name, addresses in NOT_PUBLIC.items():
            for address in addresses:
                assert name == allowed or rules.problem(address) == name
    assert AddressRules(["private", "loopback"]).problem("10.1.2.3") is None
    assert AddressRules(["private", "loopback"]).problem("::1") is None
    assert AddressRules(["private"]).problem("169.254.0.1") == "link-local"


def test_networks_are_allowed_by_their_address() -> None:
    """An allowed network allows each address inside it, in any range."""
    rules = AddressRules(["10.20.0.0/16", "192.168.7.7", "fd00:1::/32"])
    assert [rules.problem(each) for each in ("10.20.255.1", "192.168.7.7", "fd00:1::9")] == [None] * 3
    assert [rules.problem(each) for each in ("10.21.0.0", "192.168.7.8", "fd00:2::9")] == ["private"] * 3


@pytest.mark.parametrize(
    "allowed",
    [
        ["private", "link-local", "cgnat", "protocol"],
        ["fd00::/8", "100.64.0.0/10", "169.254.0.0/16", "168.63.0.0/16", "160.0.0.0/3"],
        ["0.0.0.0/0", "::/0"],
    ],
)
def test_where_a_cloud_answers_is_opened_by_name_alone(allowed: list[str]) -> None:
    """Metadata services of clouds are allowed only by name, not by a wide network that an operator allows."""
    for address in NOT_PUBLIC["cloud-internal"]:
        assert AddressRules(allowed).problem(address) == "cloud-internal"
        assert AddressRules([*allowed, "cloud-internal"]).problem(address) is None
        assert AddressRules([*allowed, address]).problem(address) is None
    assert AddressRules(["fd00:ec2::/32"]).problem("fd00:ec2::254") is None


@pytest.mark.parametrize(
    ("allowed", "prefix"),
    [
        ("nat64", "64:ff9b::"),
        ("64:ff9b::/96", "64:ff9b::"),
        ("nat64", "64:ff9b:1::"),
        ("ipv4-mapped", "::ffff:"),
        ("ipv4-compatible", "::"),
        ("ipv4-translated", "::ffff:0:"),
        ("::/0", "::ffff:"),
    ],
)
def test_an_address_inside_another_is_checked_too(allowed: str, prefix: str) -> None:
    """Allowing a gateway's range, as a network without IPv4 must, does not allow internal IPv4 addresses."""
    rules = AddressRules([allowed])
    assert rules.problem(f"{prefix}8.8.8.8") is None
    assert rules.problem(f"{prefix}127.0.0.1") == "loopback"
    assert rules.problem(f"{prefix}169.254.0.1") == "link-local"
    for address in ("169.254.169.254", "168.63.129.16", "100.100.100.200"):
        assert rules.problem(f"{prefix}{address}") == "cloud-internal"
    assert AddressRules([allowed, "private"]).problem(f"{prefix}10.0.0.1") is None


def test_tunnels_are_checked_for_what_they_lead_to() -> None:
    """6to4 contains one IPv4 address, Teredo two, the second with inverted bits."""
    rules = AddressRules(["6to4", "teredo"])
    assert rules.problem("2002:808:808::1") is None
    assert rules.problem("2002:7f00:1::1") == "loopback"
    assert rules.problem("2002:a83f:8110::1") == "cloud-internal"
    assert rules.problem("2001:0:a83f:8110::f7f7:f7f7") == "cloud-internal"
    assert rules.problem("2001:0:808:808::57c0:7eef") == "cloud-internal"
    assert rules.problem("192.88.99.1") is None
    assert rules.problem("2001:0:808:808::f7f7:f7f7") is None
    assert rules.problem("2001:0:7f00:1::f7f7:f7f7") == "loopback"
    assert rules.problem("2001:0:808:808::80ff:fffe") == "loopback"


@pytest.mark.parametrize(
    "wrong", ["", "lan", "10.0.0.1/8", "10.0.0.0/33", "example.com", "127.1", "private ", "fd00::/8%1"]
)
def test_what_is_no_range_and_no_network_raises(wrong: str) -> None:
    """A typing error must not allow less, or more, than was meant."""
    with pytest.raises(ValueError, match=r".*"):
        AddressRules(["private", wrong])
