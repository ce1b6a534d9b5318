"""A thousand clients that send or read as slowly as possible do not affect healthy clients."""

import asyncio
import shutil
import socket
import time
from pathlib import Path

import pytest
from tests.conftest import Figure
from tests.e2e.conftest import Service, StartService
from tests.faults.clients import clients, new_sessions
from tests.faults.place import make_place

from taproof.runtime.listener import raise_file_limit

CONNECTIONS = 1_000
HEALTHY = 60
ATTACKS = {
    "headers": ["-H", "-i", "2", "-u", "{url}/api/v1/verify/public"],
    "body": ["-B", "-i", "2", "-s", "8192", "-t", "POST", "-f", "application/json", "-u", "{url}/api/v1/verify/public"],
    "read": ["-X", "-k", "10", "-w", "64", "-y", "128", "-n", "3", "-z", "16", "-u", "{url}/docs"],
}


def unread(service: Service) -> list[int]:
    """Return for each open connection to a service the bytes that its kernel holds for the client."""
    port = f":{service.port:04X}"
    lines = Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]
    fields = [line.split() for line in lines]
    return [
        int(queues.partition(":")[0], 16)
        for _, local, _, state, queues, *_ in fields
        if local.endswith(port) and state == "01"
    ]


def held(service: Service) -> int:
    """Return the number of open connections to a service."""
    return len(unread(service))


async def test_answers_that_nobody_reads_take_little_memory(start_service: StartService, tmp_path: Path) -> None:
    """The kernel holds some 64 KiB for a connection. Without the bound, a thousand slowed down the whole machine."""
    place = await make_place(f"sqlite:///{tmp_path / 'taproof.db'}")
    service = await asyncio.to_thread(start_service, place)
    with socket.socket() as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        greedy.connect(("127.0.0.1", service.port))
        greedy.sendall(b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        seen = [0]
        while seen[-1] == 0 or len(set(seen[-10:])) > 1:
            await asyncio.sleep(0.05)
            seen.append(max(unread(service), default=0))
        assert 10_000 < seen[-1] < 200_000


@pytest.mark.parametrize("attack", ATTACKS)
async def test_slow_clients(
    attack: str, start_service: StartService, tmp_path: Path, figure: Figure, *, soak: bool
) -> None:
    """While Debian's slowhttptest holds 1,000 connections, sixty healthy clients get every answer.

    Idle connections may last as long as behind a proxy, so that the server ends none of the slow ones in the meantime.
    """
    raise_file_limit()
    tool = shutil.which("slowhttptest")
    assert tool is not None, "scripts/setup.sh installs slowhttptest."
    place = await make_place(f"sqlite:///{tmp_path / 'taproof.db'}")
    service = await asyncio.to_thread(start_service, place, "--keep-alive", "150")
    tokens = await new_sessions(place, HEALTHY)
    for _ in range(3 if soak else 1):
        options = [option.format(url=service.base_url) for option in ATTACKS[attack]]
        slow = await asyncio.create_subprocess_exec(
            *(tool, "-c", str(CONNECTIONS), "-r", str(CONNECTIONS), "-l", "12", "-p", "5", *options),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            begun = time.monotonic()
            while held(service) < CONNECTIONS:
                assert slow.returncode is None
                assert time.monotonic() - begun < 60
                await asyncio.sleep(0.05)
            async with clients(service, place, tokens, 6) as healthy:
                seen = await healthy.seen()
            figure("connections held in the end", held(service))
        finally:
            if slow.returncode is None:
                slow.kill()
            await slow.wait()
        figure("healthy calls", sum(seen.answers.values()))
        figure("ms of a healthy call, p99", f"{seen.p99 * 1_000:.0f}")
        assert seen.answers.keys() == {"pending"}
        assert seen.answers["pending"] >= HEALTHY
        if soak:
            assert seen.p99 < 0.5
    assert "internal_error" not in service.log()
