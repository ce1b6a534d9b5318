"""A DNS server on this machine, over UDP, so that tests decide how names resolve and no other server is asked."""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp.resolver import AsyncResolver

A, CNAME, AAAA = 1, 5, 28


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """Answers by name; each query of a type takes the next of a name's answers, and the last one repeats."""

    answers: dict[str, list[list[str]]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    turn: Counter[tuple[str, int]] = field(default_factory=Counter)
    silent: bool = False
    port: int = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode().lower())
            at += 1 + data[at]
        name, kind = ".".join(labels), int.from_bytes(data[at + 1 : at + 3])
        self.asked.append(name)
        if self.silent:
            return
        records = b""
        count = 0
        owner = b"\xc0\x0c"  # A pointer to the name in the question.
        if name in self.aliases:
            target = b"".join(bytes([len(label)]) + label.encode() for label in self.aliases[name].split(".")) + b"\0"
            records += _record(owner, CNAME, target)
            owner, name, count = target, self.aliases[name], 1
        turns = self.answers.get(name, [])
        turn = min(self.turn[name, kind], len(turns) - 1)
        self.turn[name, kind] += 1
        for address in map(ipaddress.ip_address, turns[turn] if turns else []):
            if kind == (A if address.version == 4 else AAAA):
                records += _record(owner, kind, address.packed)
                count += 1
        flags = b"\x81\x80" if turns else b"\x81\x83"  # There is no such name.
        head = data[:2] + flags + b"\0\1" + count.to_bytes(2) + b"\0\0\0\0"
        self.transport.sendto(head + data[12 : at + 5] + records, addr)


def _record(owner: bytes, kind: int, content: bytes) -> bytes:
    # Class IN, kept for no time.
    return owner + kind.to_bytes(2) + b"\0\1" + b"\0\0\0\0" + len(content).to_bytes(2) + content


@asynccontextmanager
async def open_name_server(**answers: list[list[str]]) -> AsyncIterator[tuple[NameServer, AsyncResolver]]:
    """Yield a name server and the service's own kind of resolver, which asks only that."""
    server = NameServer(dict(answers))
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: server, local_addr=("127.0.0.1", 0)
    )
    resolver = AsyncResolver(nameservers=["127.0.0.1"], udp_port=server.port, timeout=0.5, tries=1)
    try:
        yield server, resolver
    finally:
        await resolver.close()
        transport.close()
