"""Sign users in continuously. Started as a program; tests/faults/load.py talks to it.

It creates sessions. It also takes every session whose token arrives on stdin through its life, concurrently with the
other processes that were told of it. Each step that it reports on stdout was acknowledged.
"""

import asyncio
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.runtime.store import open_storage
from taproof.service.sessions.results import VerifyResult
from taproof.service.sessions.seen import SeenSession

AT_ONCE = 16
PAUSE = 0.1
AGAIN_AFTER = 0.02
T = TypeVar("T")


def say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


def reports_bugs(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        say("bug", type(error).__name__, *str(error).split())


async def insist(step: str, call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until the store answers; report each failure and its duration in ms."""
    while True:
        began = time.monotonic()
        try:
            return await call()
        except StoreUnavailable:
            say("unavailable", step, f"{(time.monotonic() - began) * 1_000:.0f}")
            await asyncio.sleep(AGAIN_AFTER)


class Program:
    """All sign-ins of this process. `cancels`: it cancels the sessions that another process confirms."""

    def __init__(self, signin: WholeSignIn, project_id: str, *, cancels: bool) -> None:
        self.signin = signin
        self.project_id = project_id
        self.cancels = cancels
        self.ends: dict[str, asyncio.Future[None]] = {}

    async def create_without_end(self) -> None:
        while True:
            created = await insist("create", lambda: self.signin.create_session(self.project_id, public=True))
            token = created.session_token
            end = self.ends[token] = asyncio.get_running_loop().create_future()
            say("created", token)
            # The other steps begin when all processes have the token.
            await end
            await asyncio.sleep(PAUSE)

    async def live(self, token: str) -> None:
        user = f"{sum(token.encode()) % 1_000}"
        await insist("open", lambda: self.signin.open_session(token, user))
        seen = await insist("decide", lambda: self.decide(token, user))
        if seen.changed:
            say("cancelled" if seen.outcome == "cancelled" else "confirmed", token)
        await asyncio.gather(self.verify(token), self.verify(token))
        end = self.ends.pop(token, None)
        # Its creator may have been told to stop meanwhile.
        if end is not None and not end.done():
            end.set_result(None)

    async def decide(self, token: str, user: str) -> SeenSession:
        if self.cancels and token[-1] in "AE":
            return await self.signin.cancel_session(token, user)
        return await self.signin.confirm_session(token, MessengerIdentity(user, "Name", ""))

    async def verify(self, token: str) -> None:
        def read() -> Awaitable[VerifyResult]:
            return self.signin.verify_session(self.project_id, token, public=True)

        if (await insist("verify", read)).proof:
            say("proof", token)


async def main() -> None:
    # asyncpg logs a traceback for each failed connection while the server is down, which this test causes.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)
    url, project_id, master_key, name = sys.argv[1:]
    storage = await open_storage(url)
    encryptor = Encryptor(master_key)
    signin = WholeSignIn(storage, encryptor, lambda: "https://t.me/b", system_clock, system_entropy)
    program = Program(signin, project_id, cancels=name == "cancels")
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    say("ready")
    creators = [asyncio.create_task(program.create_without_end()) for _ in range(AT_ONCE)]
    for creator in creators:
        creator.add_done_callback(reports_bugs)
    lives: set[asyncio.Task[None]] = set()
    while line := await lines.readline():
        life = asyncio.create_task(program.live(line.decode().strip()))
        lives.add(life)
        life.add_done_callback(lives.discard)
        life.add_done_callback(reports_bugs)
    for creator in creators:
        creator.cancel()
    await asyncio.gather(*creators, *lives, return_exceptions=True)
    await storage.close()


asyncio.run(main())
