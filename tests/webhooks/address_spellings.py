"""Internal addresses, in every spelling that some program may take for one, and tricks that hide them in a URL."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

INTERNAL_V4 = [
    "127.0.0.1",
    "127.1.2.3",
    "10.0.0.1",
    "172.16.5.4",
    "192.168.1.1",
    "169.254.169.254",
    "168.63.129.16",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104 — nothing listens on it here.
    "192.0.0.8",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
]
# fmt: off
INTERNAL_V6 = [
    "::1", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "::0001", "0::1", "0::0:1",
    "::0:0:1", "::", "0:0:0:0:0:0:0:0", "::0", "fc00::1", "fd00::1", "fdff:ffff:ffff::1",
    "FD12:3456:789A:1::1", "fd00:0ec2:0:0:0:0:0:254", "fd00:ec2::254", "fe80::1", "FE80::1",
    "fe80:0:0:0:0:0:0:1", "febf::1", "fe80::1%25eth0", "fe80::1%eth0", "fe80::1%1", "fe80::1%25lo", "::1%lo",
    "::1%25lo", "::1%251", "2600::1%lo", "fec0::1", "feff::1", "ff02::1", "ff01::1", "ff05::1:3", "ff0e::1",
    "2001:db8::1", "2001:0db8:0:0:0:0:0:1", "3fff::1", "3fff:fff::1", "2001:2::1", "2001:2:0::1",
    "2001:10::1", "2001:20::1", "2001:30::1", "2001:1::1", "2001:1ff::1", "100::1", "100:0:0:1::1", "5f00::1",
    "::ffff:0:0", "64:ff9b::1", "64:ff9b:1:a00:1::", "2002::", "2002:7f00:1::1", "2001::", "1::1", "4000::1",
    "8000::1", "e000::1", "ffff::ffff",
]
# fmt: on
# Each with {} where the port goes, and a host that is, or may be taken for, this machine.
TRICKS = [
    "https://example.com@127.0.0.1:{}/",
    "https://example.com:443@127.0.0.1:{}/",
    "https://example.com%40127.0.0.1:{}/",
    "https://127.0.0.1:{}@127.0.0.1:{}/",
    "https://@127.0.0.1:{}/",
    "https://:@[::1]:{}/",
    "https://127.0.0.1:{}#@example.com/",
    "https://127.0.0.1:{}?@example.com/",
    "https://127.0.0.1:{}\\@example.com/",
    "https://example.com\\@127.0.0.1:{}/",
    "https://127.0.0.1%00.example.com:{}/",
    "https://127.0.0.1%2f.example.com:{}/",
    "https://127.0.0.1%09:{}/",
    "https://127.0.0.1%20:{}/",
    "https://127%2e0%2e0%2e1:{}/",
    "https://%31%32%37.0.0.1:{}/",
    "https://%5b::1%5d:{}/",
    "https://127.0.0.1\t:{}/",
    "https://127.0\n.0.1:{}/",
    " https://127.0.0.1:{}/",
    "https:///127.0.0.1:{}/",
    "https:127.0.0.1:{}/",
    "//127.0.0.1:{}/",
    "https://[127.0.0.1]:{}/",
    "https://[::1]]:{}/",
    "https://[[::1]]:{}/",
    "https://[::1].example.com:{}/",
    "https://::1:{}/",
    "https://0:{}/",
    "https://00:{}/",
    "https://0x:{}/",
    "https://0.0:{}/",
    "https://127.0.0.1..:{}/",
    "https://.127.0.0.1:{}/",
    "https://127..0.0.1:{}/",
    "https://127.0.0.1,example.com:{}/",
    "https://127.0.0.1;:{}/",
    "https://localhost:{}/",
    "https://LOCALHOST:{}/",
    "https://localhost.:{}/",
    "https://a.localhost:{}/",
    "https://a.b.localhost.:{}/",
    "https://\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54:{}/",
    "http://127.0.0.1:{}/",
    "http://[::1]:{}/",
    "ws://127.0.0.1:{}/",
    "ftp://127.0.0.1:{}/",
    "file://127.0.0.1:{}/etc/passwd",
    "gopher://127.0.0.1:{}/_x",
]


def v4_spellings(address: str) -> Iterator[str]:
    """Yield the spellings of an IPv4 address that `inet_aton`, browsers or careless parsers accept."""
    a, b, c, d = (int(part) for part in address.split("."))
    number = int(IPv4Address(address))
    yield address
    yield f"{address}."
    yield f"{a:03}.{b:03}.{c:03}.{d:03}"
    yield f"{a}.{b}.{c * 256 + d}"
    yield f"{a}.{number & 0xFF_FFFF}"
    yield f"{a}.{number & 0xFF_FFFF:#x}"
    yield f"{a:#x}.{b:#x}.{c:#x}.{d:#x}"
    yield f"0X{a:X}.{b}.{c}.{d}"
    yield f"0{a:o}.0{b:o}.0{c:o}.0{d:o}"
    yield f"0000{a:o}.{b}.{c}.{d}"
    yield f"0{a:o}.{b:#x}.{c}.{d}"
    yield f"0{a:o}.{b:#x}.{c * 256 + d}"
    yield str(number)
    yield f"{number:#x}"
    yield f"0x0000{number:08x}"
    yield f"0{number:o}"
    yield str(number + 2**32)
    yield f"{a + 256}.{b}.{c}.{d}"
    yield address.translate({ord(digit): 0xFF10 + int(digit) for digit in "0123456789"})  # Full-width digits.
    yield address.replace(".", "\u3002")  # The ideographic full stop.
    yield "".join(chr(0x245F + int(mark)) if mark in "123456789" else mark for mark in address)  # Circled digits.
    yield address.translate({ord(digit): 0x0660 + int(digit) for digit in "0123456789"})  # Arabic-Indic digits.


def v6_wrappings(address: str) -> Iterator[str]:
    """Yield the IPv6 addresses that contain an IPv4 address, as they are written in a URL."""
    inner = IPv4Address(address)
    high, low = int(inner) >> 16, int(inner) & 0xFFFF
    yield f"[::ffff:{address}]"
    yield f"[::FFFF:{high:x}:{low:x}]"
    yield f"[0:0:0:0:0:ffff:{address}]"
    yield f"[{IPv6Address(f'::ffff:{address}').exploded}]"
    yield f"[::ffff:{address}%25lo]"
    yield f"[::{address}]"
    yield f"[0:0:0:0:0:0:{high:x}:{low:x}]"
    yield f"[::ffff:0:{address}]"
    yield f"[64:ff9b::{address}]"
    yield f"[64:ff9b:1::{address}]"
    yield f"[2002:{high:x}:{low:x}::1]"
    yield f"[2001:0:{high:x}:{low:x}::f5ff:fffe]"
    yield f"[2001:0:808:808::{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}]"


SPELLINGS = {
    **{f"{address} as IPv4": list(v4_spellings(address)) for address in INTERNAL_V4},
    **{f"{address} in IPv6": list(v6_wrappings(address)) for address in INTERNAL_V4},
    "IPv6": [f"[{address}]" for address in INTERNAL_V6],
}
RESOLVED = [*INTERNAL_V4, *(str(each) for each in INTERNAL_V6 if "%" not in each)]
