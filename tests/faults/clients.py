"""HTTP clients in separate processes: healthy ones that poll and others that flood a service."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.conftest import Service
from tests.faults.place import Place

PROGRAM = Path(__file__).with_name("clients_program.py")
BY_PROXY = {"X-Forwarded-Proto": "https"}


@dataclass(frozen=True)
class Seen:
    """The answers that clients got: the count of each, the sorted durations in seconds, and the total."""

    answers: dict[str, int]
    took: list[float]
    seconds: float

    @property
    def p99(self) -> float:
        return self.took[len(self.took) * 99 // 100]

    def share(self, name: str, status: int) -> float:
        """Return the share of answers to a kind of call that had this status."""
        of_kind = {answer: count for answer, count in self.answers.items() if answer.startswith(f"{name} ")}
        return of_kind.get(f"{name} {status}", 0) / sum(of_kind.values())


@dataclass(frozen=True)
class Clients:
    """A process with running clients."""

    process: asyncio.subprocess.Process

    async def seen(self) -> Seen:
        """Wait for the clients to finish, and return their answers."""
        assert self.process.stdout is not None
        told = json.loads(await self.process.stdout.readline())
        return Seen(**told)


async def new_sessions(place: Place, number: int) -> list[str]:
    async with place.sign_in() as signin:
        made = await asyncio.gather(*(signin.create_session(place.project_id, public=True) for _ in range(number)))
    return [session.session_token for session in made]


@contextlib.asynccontextmanager
async def clients(
    service: Service, place: Place, tokens: list[str], seconds: float, *, flood: bool = False, address: str = ""
) -> AsyncIterator[Clients]:
    """Yield clients that poll these sessions or flood. `address` is the client address that a trusted proxy reports."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**24
    )
    assert process.stdin is not None
    told = {
        "port": service.port,
        "project_id": place.project_id,
        "tokens": tokens,
        "seconds": seconds,
        "flood": flood,
        "headers": BY_PROXY | {"X-Forwarded-For": address} if address else {},
    }
    process.stdin.write(json.dumps(told).encode() + b"\n")
    try:
        yield Clients(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
