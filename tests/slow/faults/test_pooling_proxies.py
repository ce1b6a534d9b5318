"""Proxies that keep connections to the service open lose no request, however long their clients pause."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from tests.conftest import Figure
from tests.e2e.conftest import StartService
from tests.faults.place import make_place, rows
from tests.slow.docs.proxies import HOST, Proxy, run_proxy

POSTS = 10_000
AT_ONCE = 50
BURSTS = 5
"""The number of bursts between two pauses. The first one uses connections that were idle during the pause."""
SCALE = 50
"""All idle times are those of the page and of the service divided by this, so that they end often."""
KEEP_ALIVE = 150 // SCALE
SHORTER = {
    "haproxy": ("127.0.0.1:{port}", f"127.0.0.1:{{port}} pool-purge-delay {5_000 // SCALE}ms"),
    "nginx": ("keepalive_timeout 60s", f"keepalive_timeout {60_000 // SCALE}ms"),
}


async def post_in_bursts(proxy: Proxy, project_id: str) -> Counter[int | str]:
    """Send all POSTs with pauses that end when the proxy or the service closes connections; count the answers."""
    chance = random.Random(7)  # noqa: S311 — the same for every run.
    connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=proxy.trust)
    async with aiohttp.ClientSession(proxy.base_url, connector=connector, headers={"Host": HOST}) as session:

        async def post() -> int | str:
            try:
                async with session.post("/api/v1/generate/public", json={"project_id": project_id}) as answer:
                    return answer.status
            except aiohttp.ClientError as error:
                return type(error).__name__

        seen: Counter[int | str] = Counter()
        while seen.total() < POSTS:
            for _ in range(BURSTS):
                seen.update(await asyncio.gather(*(post() for _ in range(AT_ONCE))))
            # The pause itself is what is tested.
            await asyncio.sleep(chance.choice((60 / SCALE, KEEP_ALIVE)) + chance.uniform(-0.02, 0.02))
    return seen


@pytest.mark.parametrize("name", SHORTER)
async def test_no_request_is_lost(name: str, start_service: StartService, tmp_path: Path, figure: Figure) -> None:
    """Each of 10,000 POSTs through a pooling proxy is answered once, and carried out once."""
    place = await make_place(f"sqlite:///{tmp_path / 'taproof.db'}")
    service = await asyncio.to_thread(
        start_service,
        place,
        *("--trusted-proxy", "127.0.0.1/32", "--keep-alive", str(KEEP_ALIVE), "--workers", "2"),
        *("--generate-limit-address", "off"),
    )
    changes = dict([[text.format(port=service.port) for text in SHORTER[name]]])
    with run_proxy(name, tmp_path, service.port, changes) as proxy:
        seen = await post_in_bursts(proxy, place.project_id)
    figure("answers", dict(seen))
    assert seen == {200: POSTS}
    assert await rows(place.url, "SELECT COUNT(*) FROM sessions") == [(POSTS,)]
