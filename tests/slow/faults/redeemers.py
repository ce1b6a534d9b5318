"""Several processes that redeem the same authorization codes or refresh tokens at once."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tests.faults.place import Place

from taproof.runtime.store import open_storage
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage

PROCESSES: Final = 3

_ROOT: Final = Path(__file__).parents[3]

Wanted = list[tuple[str, int]]
"""Codes or refresh tokens, each with the number of callers of a process that redeem it at once."""
Process = subprocess.Popen[str]


class Given(NamedTuple):
    """The tokens that one code or refresh token gave."""

    code: str
    access_token: str
    id_token: str
    refresh_token: str | None


class Redeemed(NamedTuple):
    """What processes got: tokens, and refusals by their error."""

    given: list[Given]
    refused: Counter[str]


class Redeemers:
    """The running processes; `redeemers` starts them."""

    def __init__(self, command: list[str], stack: ExitStack) -> None:
        self._command = command
        self._stack = stack
        self.processes = [self._start() for _ in range(PROCESSES)]
        for process in self.processes:
            assert _line(process) == "ready\n"

    def _start(self) -> Process:
        return self._stack.enter_context(
            subprocess.Popen(self._command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )

    def send(self, wanted: list[Wanted]) -> None:
        """Give each process what it redeems. All processes wait for their line, which starts them together."""
        for process, each in zip(self.processes, wanted, strict=True):
            assert process.stdin is not None
            process.stdin.write(json.dumps(each) + "\n")
            process.stdin.flush()

    def _read(self) -> Redeemed:
        redeemed = Redeemed([], Counter())
        for process in self.processes:
            told, counted = json.loads(_line(process))
            redeemed.given.extend(Given(*each) for each in told)
            redeemed.refused.update(counted)
        return redeemed

    async def run(self, wanted: list[Wanted]) -> Redeemed:
        """Let each process redeem what it is given; return what all of them got."""
        self.send(wanted)
        return await asyncio.to_thread(self._read)

    def replace(self, number: int) -> None:
        """Kill a process (SIGKILL) in the middle of what it does, and start another one in its place."""
        self.processes[number].kill()
        self.processes[number].wait()
        self.processes[number] = self._start()
        assert _line(self.processes[number]) == "ready\n"


async def open_place(url: str, *, is_quick: bool) -> Storage:
    """Open the store of a place, as one more node: see `Place`."""
    storage = await open_storage(url)
    if is_quick and isinstance(storage, SqliteStorage):
        storage.database.writer.connection.pragma("synchronous", 0)
    return storage


@asynccontextmanager
async def redeemers(place: Place, client_id: str, what: Literal["once", "follow"]) -> AsyncIterator[Redeemers]:
    """Start the processes, and finally stop them. With "follow", they go on with the refresh tokens that they get."""
    command = [sys.executable, "-m", "tests.slow.faults.redeemer_program"]
    command += [place.url, client_id, place.master_key, what, *(["quick"] if place.is_quick else [])]
    with ExitStack() as stack:
        yield await asyncio.to_thread(Redeemers, command, stack)


def _line(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline()
