"""Read confirmed sessions as soon as their tokens arrive. Started as a program by test_one_proof.py.

Each line on stdin is a JSON array of session tokens; each is read by many callers at once. The output on stdout is
the proofs, and the number of answers of each status.
"""

import asyncio
import json
import sys
from collections import Counter

from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.runtime.store import open_storage


async def main() -> None:
    url, project_id, master_key, readers = sys.argv[1:]
    storage = await open_storage(url)
    sessions = WholeSignIn(storage, Encryptor(master_key), lambda: "https://t.me/b", system_clock, system_entropy)
    await storage.ping()
    print("ready", flush=True)  # noqa: T201 — how it talks to the test.
    while line := await asyncio.to_thread(sys.stdin.readline):
        tokens = json.loads(line)
        answers = await asyncio.gather(
            *(
                sessions.verify_session(project_id, token, public=True)
                # The readers of one session are spread, so that they also land in different batches.
                for _ in range(int(readers))
                for token in tokens
            )
        )
        proofs = [answer.proof for answer in answers if answer.proof is not None]
        print(json.dumps([proofs, Counter(answer.status for answer in answers)]), flush=True)  # noqa: T201 — likewise.
    await storage.close()


asyncio.run(main())
