"""Cancel, confirm and expire sessions that other processes decide too. Started as a program by test_cancel_races.py.

Each line on stdin is a JSON array of sessions, each with its token, verifier, user and the time (ms) at which all
processes act on it. The output on stdout is what each call was told, and whether it has decided the session.
"""

import asyncio
import contextlib
import json
import sys

from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import SECOND, system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.runtime.store import open_storage
from taproof.service.sessions.events import SessionEvents
from taproof.storage.sqlite.store import SqliteStorage


async def main() -> None:
    url, project_id, master_key = sys.argv[1:]
    storage = await open_storage(url)
    if isinstance(storage, SqliteStorage):
        storage.database.writer.connection.pragma("synchronous", 0)
    encryptor = Encryptor(master_key)
    signin = WholeSignIn(storage, encryptor, lambda: "https://t.me/b", system_clock, system_entropy)
    events = SessionEvents(encryptor, system_entropy)
    told: list[tuple[str, str, bool]] = []

    async def withdraw(token: str, verifier: str) -> None:
        status, has_changed = await signin.withdraw_session(project_id, token, public=True, code_verifier=verifier)
        told.append((token, status, has_changed))

    async def confirm(token: str, user: str) -> None:
        seen = await signin.confirm_session(token, MessengerIdentity(user, "Ada", ""))
        told.append((token, {"withdrawn": "cancelled"}.get(seen.outcome, seen.outcome), seen.changed))

    async def act(token: str, verifier: str, user: str, at: int) -> None:
        await asyncio.sleep(max(0, at - system_clock()) / SECOND)
        calls = [withdraw(token, verifier), confirm(token, user)]
        if hash((token, user)) % 2:  # Each process has its own order.
            calls.reverse()
        await asyncio.gather(*calls)

    async def sweep(until: asyncio.Event) -> None:
        while not until.is_set():
            with contextlib.suppress(StoreUnavailable):  # On a busy machine, a call may not get a connection in time.
                await storage.sessions.expire_sessions(system_clock(), 100, events.expired)
            await asyncio.sleep(0.01)

    await storage.ping()
    print("ready", flush=True)  # noqa: T201 — how it talks to the test.
    while line := await asyncio.to_thread(sys.stdin.readline):
        told.clear()
        is_over = asyncio.Event()
        sweeping = asyncio.create_task(sweep(is_over))
        await asyncio.gather(*(act(*each) for each in json.loads(line)))
        is_over.set()
        await sweeping
        print(json.dumps(told), flush=True)  # noqa: T201 — likewise.
    await storage.close()


asyncio.run(main())
