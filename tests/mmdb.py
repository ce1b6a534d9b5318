"""Write small .mmdb files: https://maxmind.github.io/MaxMind-DB/ (format 2.0, records of 24 bits)."""

import ipaddress
from pathlib import Path
from typing import Any

_STRING, _UINT16, _UINT32, _MAP, _UINT64, _ARRAY = 2, 5, 6, 7, 9, 11


class Sized:
    """An unsigned integer of one of the format's types."""

    def __init__(self, kind: int, value: int) -> None:
        self.kind = kind
        self.value = value


def write_mmdb(
    path: Path, places: dict[str, Any], *, kind: str = "GeoLite2-City", built: int = 1_795_000_000, version: int = 6
) -> Path:
    """Write a database with these records by network, such as `{"1.2.3.0/24": {"country": …}}`."""
    tree: list[list[Any]] = [[None, None]]
    for network, record in places.items():
        _insert(tree, network, record, version)
    data = bytearray()
    nodes = bytearray()
    for node in tree:
        for child in node:
            if child is None:
                value = len(tree)
            elif isinstance(child, int):
                value = child
            else:
                value = len(tree) + 16 + len(data)
                data += _encode(child[0])
            nodes += value.to_bytes(3)
    metadata = {
        "node_count": Sized(_UINT32, len(tree)),
        "record_size": Sized(_UINT16, 24),
        "ip_version": Sized(_UINT16, version),
        "database_type": kind,
        "languages": ["en"],
        "binary_format_major_version": Sized(_UINT16, 2),
        "binary_format_minor_version": Sized(_UINT16, 0),
        "build_epoch": Sized(_UINT64, built),
        "description": {"en": "made by a test"},
    }
    path.write_bytes(bytes(nodes) + bytes(16) + bytes(data) + b"\xab\xcd\xefMaxMind.com" + _encode(metadata))
    return path


def place(country: str = "", city: str = "") -> dict[str, Any]:
    """Return a record in the form of such databases."""
    record: dict[str, Any] = {}
    if country:
        record["country"] = {"iso_code": country[:2].upper(), "names": {"de": f"{country} auf Deutsch", "en": country}}
    if city:
        record["city"] = {"names": {"en": city}}
    return record


def _insert(tree: list[list[Any]], written: str, record: Any, version: int) -> None:
    network = ipaddress.ip_network(written)
    bits = f"{int(network.network_address):0{network.max_prefixlen}b}"[: network.prefixlen]
    if version == 6 and network.version == 4:
        bits = "0" * 96 + bits
    at = 0
    for bit in map(int, bits[:-1]):
        if tree[at][bit] is None:
            tree.append([None, None])
            tree[at][bit] = len(tree) - 1
        at = tree[at][bit]
    tree[at][int(bits[-1])] = (record,)


def _encode(value: Any) -> bytes:
    if isinstance(value, str):
        content = value.encode()
        return _head(_STRING, len(content)) + content
    if isinstance(value, dict):
        return _head(_MAP, len(value)) + b"".join(_encode(key) + _encode(each) for key, each in value.items())
    if isinstance(value, list):
        return _head(_ARRAY, len(value)) + b"".join(map(_encode, value))
    assert isinstance(value, Sized)
    content = value.value.to_bytes((value.value.bit_length() + 7) // 8)
    return _head(value.kind, len(content)) + content


def _head(kind: int, size: int) -> bytes:
    short, more = (
        (size, b"") if size < 29 else (29, bytes([size - 29])) if size < 285 else (30, (size - 285).to_bytes(2))
    )
    return (bytes([kind << 5 | short]) if kind < 8 else bytes([short, kind - 7])) + more
