"""oidc-provider, whose sign-in page approves at once: in memory, and on SQLite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import ClientSession
from benchmarks.machine import fail
from benchmarks.openid_provider.flow import REDIRECT_URI, Provider, Start, published_by, redirect_of
from benchmarks.peers.catalog import Dialect, Peer
from benchmarks.peers.running import running

_MOST_REDIRECTS: Final = 5
_SECRET: Final = "a secret for made-up sign-ins only"  # noqa: S105 — see code_flow.mjs.
_NO_DIALECT: Final = Dialect("form", "", "", "")
MEMORY: Final = Peer("oidc-provider, in memory", "node", "code_flow.mjs", "memory", _NO_DIALECT, ("oidc-provider",))
DURABLE: Final = Peer(
    "oidc-provider on SQLite", "node", "code_flow.mjs", "sqlite", _NO_DIALECT, ("oidc-provider", "better-sqlite3")
)


async def follow_redirects(session: ClientSession, address: str) -> str:
    """Follow the redirects through the sign-in page to the application's address."""
    for _ in range(_MOST_REDIRECTS):
        if address.startswith(REDIRECT_URI):
            return address
        async with session.get(address, allow_redirects=False) as answer:
            address = await redirect_of(answer)
    return fail(f"The redirects did not lead back, but to {address}")


def oidc_provider(peer: Peer) -> Start:
    """Return how oidc-provider is started in one of its two forms."""

    @asynccontextmanager
    async def start(directory: Path) -> AsyncIterator[Provider]:
        with running(peer, directory) as server:
            published, keys = await published_by(f"http://127.0.0.1:{server.port}")
            pid = server.pids[0]
            yield Provider(peer.name, peer.storage, pid, "bench", _SECRET, published, keys, follow_redirects)

    return start
