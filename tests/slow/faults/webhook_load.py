"""Processes that send webhooks, a process that receives them, and decisions that cause events."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from tests.faults.place import Place
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import SECOND
from taproof.core.identity import MessengerIdentity
from taproof.service.webhooks import LEASE, SEND_TIMEOUT

SENDER = Path(__file__).with_name("sender_program.py")
RECEIVER = Path(__file__).with_name("webhook_receiver.py")
PATIENCE = 150.0


async def open_session(signin: WholeSignIn, project_id: str, user: str) -> str:
    """Start a session that a user has opened; return its token."""
    token = (await signin.create_session(project_id, public=True)).session_token
    await signin.open_session(token, user)
    return token


async def decide(signin: WholeSignIn, token: str, user: str) -> None:
    """Confirm as the user, or cancel in one case of ten."""
    if user.endswith("9"):
        assert (await signin.cancel_session(token, user)).changed
    else:
        assert (await signin.confirm_session(token, MessengerIdentity(user, f"Zoë {user}", ""))).changed


class Pace(NamedTuple):
    """Arguments of a sender: the seconds that an attempt may take and the seconds that an event is leased."""

    timeout: str
    lease: str


PRODUCTION = Pace(f"{SEND_TIMEOUT}", f"{LEASE // SECOND}")
HASTY = Pace("1", "12")
"""For tests that wait for a dead sender's leases and for hanging receivers: they end within a minute."""


@dataclass
class Receiver:
    """The receiver's process and its reports."""

    url: str
    process: asyncio.subprocess.Process
    client: aiohttp.ClientSession

    async def learn(self, secrets: dict[str, str]) -> None:
        """Give the receiver the projects' webhook secrets."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(secrets).encode() + b"\n")
        assert await self.process.stdout.readline() == b"ready\n"

    async def ask(self, path: str) -> dict[str, Any]:
        async with self.client.get(self.url + path) as response:
            answer: dict[str, Any] = await response.json()
            return answer


@contextlib.asynccontextmanager
async def running_receiver(failing: float, seed: int) -> AsyncIterator[Receiver]:
    """Yield a receiver with this failure rate, from 0 to 1."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(RECEIVER), f"{failing}", f"{seed}"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    port = int(await process.stdout.readline())
    async with aiohttp.ClientSession() as client:
        try:
            yield Receiver(f"http://127.0.0.1:{port}", process, client)
        finally:
            process.stdin.close()
            await process.wait()


@dataclass
class Senders:
    """Processes that send the due events of one place."""

    process: asyncio.subprocess.Process
    """The process that starts them."""
    running: list[int] = field(default_factory=list)
    """Their process ids, the oldest first."""

    async def start(self) -> None:
        """Start one more."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"start\n")
        self.running.append(int(await self.process.stdout.readline()))

    def kill_oldest(self) -> int:
        """Kill one process (SIGKILL); return its process id."""
        victim = self.running.pop(0)
        os.kill(victim, signal.SIGKILL)
        return victim


@contextlib.asynccontextmanager
async def running_senders(place: Place, count: int, pace: Pace, log: Path) -> AsyncIterator[Senders]:
    """Yield this many senders; none of them may log an error or exit by itself."""
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(SENDER), place.url, place.master_key, *pace, *(["quick"] if place.is_quick else [])),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=file,
        )
    assert process.stdin is not None
    try:
        senders = Senders(process)
        for _ in range(count):
            await senders.start()
        yield senders
    finally:
        process.stdin.close()
        status = await process.wait()
        logged = await asyncio.to_thread(log.read_text, "utf-8")
    assert (status, logged) == (0, "")
