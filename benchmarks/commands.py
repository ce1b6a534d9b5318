"""Run the real `taproof serve`, as an operator does, on the server's core."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.machine import ROOT, SERVER_CORE, BenchmarkFailed, environment, fail
from benchmarks.server import MASTER_KEY, free_port

_START_SECONDS: Final = 30
_STOP_SECONDS: Final = 40
_TRIED_EVERY: Final = 0.005


@dataclass(frozen=True, slots=True)
class Started:
    """A running `taproof serve`; the seconds from its start to the first answer, and to the first sign-in."""

    port: int
    pid: int
    answered: float
    created: float


@asynccontextmanager
async def taproof_serve(
    database_url: str, bot_api_url: str, bot_token: str, project_id: str, *, updates: str, profile: Path | None = None
) -> AsyncIterator[Started]:
    """Start the service, wait for its first answer, a created sign-in, and finally stop it with SIGTERM.

    With a `profile` it is sampled from SIGUSR1 on, into that file. It gets SIGTERM if this process dies.
    """
    port = free_port()
    command = ["setpriv", "--pdeathsig", "TERM", "taskset", "--cpu-list", str(SERVER_CORE), sys.executable, "-m"]
    command += ["taproof"] if profile is None else ["benchmarks.sampling", str(profile)]
    settings = environment(
        TAPROOF_PORT=str(port),
        TAPROOF_DATABASE_URL=database_url,
        TAPROOF_MASTER_KEY=MASTER_KEY,
        TAPROOF_BOT_TOKEN=bot_token,
        TAPROOF_BOT_API_URL=bot_api_url,
        TAPROOF_BOT_UPDATES=updates,
        TAPROOF_LOG_LEVEL="warning",
        TAPROOF_GENERATE_LIMIT_PROJECT="off",
    )
    with tempfile.TemporaryFile() as log:
        begun = time.perf_counter()
        process = subprocess.Popen(  # noqa: ASYNC220 — its start is what is timed; a millisecond.
            [*command, "serve"],
            cwd=ROOT,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            answered = 0.0
            while not await _creates(port, project_id):
                answered = answered or ((await _reads(port)) and time.perf_counter() - begun) or 0.0
                if process.poll() is not None or time.perf_counter() - begun > _START_SECONDS:
                    log.seek(0)
                    fail(f"taproof serve did not start. It printed:\n{log.read().decode(errors='replace')[-3000:]}")
                await asyncio.sleep(_TRIED_EVERY)
            created = time.perf_counter() - begun
            try:
                yield Started(port, process.pid, answered or created, created)
            except BenchmarkFailed as failure:
                log.seek(0)
                fail(f"{failure}\nIt printed:\n{log.read().decode(errors='replace')[-3000:]}")
        finally:
            process.terminate()
            try:
                await asyncio.to_thread(process.wait, _STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _reads(port: int) -> bool:
    """Return whether the service answers from its store, which has no project of this id."""
    answer = await _post(port, "verify", b'{"project_id": "proj_%s", "session_token": "%s"}' % (b"0" * 22, b"A" * 43))
    return answer.startswith(b"HTTP/1.1 404 ")


async def _creates(port: int, project_id: str) -> bool:
    """Return whether a sign-in can be created."""
    answer = await _post(port, "generate", b'{"project_id": "%s"}' % project_id.encode())
    return answer.startswith(b"HTTP/1.1 200 ") and b'"session_token"' in answer


async def _post(port: int, verb: str, body: bytes) -> bytes:
    """Call a public session endpoint, and return the whole answer."""
    head = b"POST /api/v1/%s/public HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n" % verb.encode()
    return await _ask(port, head + b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def _ask(port: int, request: bytes) -> bytes:
    """Return the whole answer, empty if nothing listens."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return b""
    try:
        writer.write(request)
        return await reader.read()
    except OSError:
        return b""
    finally:
        writer.close()
