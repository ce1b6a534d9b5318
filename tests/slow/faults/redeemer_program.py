"""Redeem authorization codes or refresh tokens as soon as they arrive. Started as a program by test_openid_codes.py.

Each line on stdin is a JSON array of these; each is redeemed by many callers at once. The output on stdout is the
access token and the ID token that each success gave, with the code, and the number of refusals of each kind.
"""

import asyncio
import json
import sys
from collections import Counter

import structlog
from tests.slow.faults.openid_sign_ins import OpenidNode

from taproof.core.errors import StoreUnavailable
from taproof.core.oidc.errors import OAuthError
from taproof.runtime.store import open_storage

AGAIN_AFTER = 0.02


async def main() -> None:
    url, client_id, master_key, redeemers = sys.argv[1:]
    storage = await open_storage(url)
    node = OpenidNode(storage, master_key)
    client = await storage.oidc_clients.read_client(client_id)
    assert client is not None
    given: list[tuple[str, str, str]] = []
    refused: Counter[str] = Counter()

    async def redeem(code: str) -> None:
        while True:
            try:
                tokens = await node.redeem(client, code)
            except StoreUnavailable:
                # On a busy machine, a caller may wait too long for one of PostgreSQL's connections, and tries again.
                await asyncio.sleep(AGAIN_AFTER)
            except OAuthError as error:
                refused[error.error] += 1
                break
            else:
                given.append((code, tokens["access_token"], tokens["id_token"]))
                break

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is how it talks to the test.
    await node.keys.read_jwks()
    print("ready", flush=True)  # noqa: T201 — how it talks to the test.
    while line := await asyncio.to_thread(sys.stdin.readline):
        codes = json.loads(line)
        given.clear()
        refused.clear()
        # The redeemers of one code are spread, so that they also land in different batches.
        await asyncio.gather(*(redeem(code) for _ in range(int(redeemers)) for code in codes))
        print(json.dumps([given, refused]), flush=True)  # noqa: T201 — likewise.
    await storage.close()


asyncio.run(main())
