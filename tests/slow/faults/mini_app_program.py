"""Sign in with the data of Mini Apps as soon as it arrives. Started as a program by test_mini_apps.py.

Each line on stdin is a JSON array of data, each of which is used by many callers at once. The output on stdout is the
proofs, and the number of answers of each kind.
"""

import asyncio
import json
import sys
from collections import Counter

from tests.mini_apps import PUBLIC_KEY
from tests.signals import signals
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable, TaproofError
from taproof.runtime.store import open_storage
from taproof.service.sessions.mini_apps import MiniAppSignIns


async def main() -> None:
    url, project_id, master_key, callers = sys.argv[1:]
    storage = await open_storage(url)
    encryptor = Encryptor(master_key)
    sessions = WholeSignIn(storage, encryptor, lambda: "https://t.me/b", system_clock, system_entropy)
    made = (storage, encryptor, sessions, system_clock, system_entropy)
    sign_ins = MiniAppSignIns(*made, signals=signals(), public_key=PUBLIC_KEY)
    proofs: list[str] = []

    async def sign_in(data: str) -> str:
        try:
            result = await sign_ins.sign_in(project_id, data, public=True)
        except StoreUnavailable:
            # On a busy machine, a call may not get a connection in time. It has changed nothing, so it is repeated.
            return await sign_in(data)
        except TaproofError as error:
            return error.code
        proofs.append(result.proof or "")
        return result.status

    await storage.ping()
    print("ready", flush=True)  # noqa: T201 — how it talks to the test.
    while line := await asyncio.to_thread(sys.stdin.readline):
        proofs.clear()
        batch = json.loads(line)
        # The callers of one data are spread, so that they also land in different transactions.
        answers = await asyncio.gather(*(sign_in(data) for _ in range(int(callers)) for data in batch))
        print(json.dumps([proofs, Counter(answers)]), flush=True)  # noqa: T201 — likewise.
    await storage.close()


asyncio.run(main())
