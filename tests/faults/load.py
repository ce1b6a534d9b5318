"""Processes that work on the same sessions of one database, and a check that the store kept what it acknowledged."""

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from tests.faults.place import Place, assert_counters_fit, assert_sound, rows
from tests.whole_sign_in import WholeSignIn

from taproof.core.identifiers import session_key

PATIENCE = 60.0
_AT_ONCE = 500
_POSSIBLE = {
    "created": {"pending", "confirmed", "cancelled", "used"},
    "confirmed": {"confirmed", "used"},
    "cancelled": {"cancelled"},
    "proof": {"used"},
}


@dataclass
class Ledger:
    """The acknowledged steps of each session."""

    steps: dict[str, Counter[str]] = field(default_factory=dict)
    unavailable: list[tuple[str, float]] = field(default_factory=list)
    """Steps that were answered with StoreUnavailable, and after how many seconds."""
    bugs: list[str] = field(default_factory=list)

    def note(self, step: str, token: str) -> None:
        self.steps.setdefault(token, Counter())[step] += 1

    def count(self, step: str) -> int:
        return sum(step in steps for steps in self.steps.values())

    async def check(self, place: Place) -> None:
        """Compare the store with the acknowledgements and with the invariants, once nobody writes."""
        assert not self.bugs
        await assert_sound(place.url)
        stored = {
            (row[0], bytes(row[1])): row[2]
            for row in await rows(place.url, "SELECT day, token_hash, status FROM sessions")
        }
        for token, steps in self.steps.items():
            key = session_key(token)
            assert key is not None
            for step in steps:
                assert stored.get((key.day, key.token_hash)) in _POSSIBLE[step], (step, stored.get(key))
        async with place.sign_in() as signin:
            tokens = list(self.steps)
            for start in range(0, len(tokens), _AT_ONCE):
                await asyncio.gather(*(self._read(signin, place, token) for token in tokens[start : start + _AT_ONCE]))
        for steps in self.steps.values():
            assert steps["proof"] <= 1
            assert steps["confirmed"] + steps["cancelled"] <= 1
        await assert_counters_fit(place.url)

    async def _read(self, signin: WholeSignIn, place: Place, token: str) -> None:
        if (await signin.verify_session(place.project_id, token, public=True)).proof:
            self.note("proof", token)


@dataclass
class Worker:
    """One process."""

    name: str
    process: asyncio.subprocess.Process
    reading: "asyncio.Task[None]"
    acknowledged: int = 0
    last_created: float = 0.0

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, what
            assert not self.reading.done(), f"{self.name} ended by itself"
            await asyncio.sleep(0.002)

    async def until_acknowledged(self, steps: int) -> None:
        """Wait until it has acknowledged this many more steps."""
        aim = self.acknowledged + steps
        await self.until(lambda: self.acknowledged >= aim, f"{steps} more steps of {self.name}")


class Load:
    """Worker processes on one database; each is told of every session that another one creates."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.ledger = Ledger()
        self.workers: list[Worker] = []

    async def start(self, name: str) -> Worker:
        """Start one; of two with different names, one `cancels` some of the sessions that the other confirms."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.faults.load_program", *self.place.arguments, name),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        # It is told of sessions only once it is ready: unread lines would fill its pipe.
        first = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        assert first == b"ready\n", first
        worker = Worker(name, process, asyncio.create_task(asyncio.sleep(0)))
        worker.reading = asyncio.create_task(self._read(worker))
        self.workers.append(worker)
        return worker

    async def kill(self, worker: Worker) -> None:
        """Kill one (SIGKILL) and read its output."""
        worker.process.kill()
        self.workers.remove(worker)
        await worker.reading
        await worker.process.wait()

    async def until_all_work(self, since: float) -> float:
        """Wait until each has created a session; return how many seconds the last one took."""
        for worker in self.workers:
            await worker.until(lambda worker=worker: worker.last_created > since, f"{worker.name} works again")  # type: ignore[misc]
        return max(worker.last_created for worker in self.workers) - since

    async def stop(self) -> None:
        """Let all of them finish the steps that they have begun."""
        for worker in self.workers:
            assert worker.process.stdin is not None
            worker.process.stdin.close()
        for worker in self.workers:
            await asyncio.wait_for(worker.reading, PATIENCE)
            assert await worker.process.wait() == 0
        self.workers.clear()

    async def _read(self, worker: Worker) -> None:
        assert worker.process.stdout is not None
        async for line in worker.process.stdout:
            # A killed process may leave half a line, which does not count as an acknowledgement.
            if not line.endswith(b"\n"):
                break
            step, *words = line.decode().split()
            if step == "bug":
                self.ledger.bugs.append(" ".join(words))
            elif step == "unavailable":
                self.ledger.unavailable.append((words[0], float(words[1]) / 1_000))
            else:
                self._note(worker, step, words[0])

    def _note(self, worker: Worker, step: str, token: str) -> None:
        self.ledger.note(step, token)
        worker.acknowledged += 1
        if step == "created":
            worker.last_created = time.monotonic()
            for each in self.workers:
                assert each.process.stdin is not None
                if not each.process.stdin.is_closing():
                    each.process.stdin.write(f"{token}\n".encode())


@contextlib.asynccontextmanager
async def loaded(place: Place) -> AsyncIterator[Load]:
    """Yield two running processes; then let them finish, and compare the store with their acknowledgements."""
    load = Load(place)
    try:
        await asyncio.gather(load.start("confirms"), load.start("cancels"))
        yield load
        await load.stop()
    except BaseException:
        for worker in load.workers[:]:
            await load.kill(worker)
        raise
    await load.ledger.check(place)
