"""Redeem authorization codes or refresh tokens as soon as they arrive. Started as a program by redeemers.py.

Each line on stdin is a JSON array of pairs: one of these, and the number of callers that redeem it at once. With the
argument "follow", each caller also redeems the refresh token that it got, and the next one, until it is refused. The
output on stdout is what each success gave, with the code or token, and the number of refusals of each kind.
"""

import asyncio
import json
import sys
from collections import Counter

import structlog
from tests.slow.faults.openid_sign_ins import OpenidNode
from tests.slow.faults.redeemers import open_place

from taproof.core.errors import StoreUnavailable
from taproof.core.oidc.errors import OAuthError

AGAIN_AFTER = 0.02
LONGEST = 3_000
"""The number of refreshes after which a caller gives up, so that a sign-in that never ends fails the test."""


async def main() -> None:
    url, client_id, master_key, what, *quick = sys.argv[1:]
    storage = await open_place(url, is_quick=bool(quick))
    node = OpenidNode(storage, master_key)
    client = await storage.oidc_clients.read_client(client_id)
    assert client is not None
    given: list[tuple[str, str, str, str | None]] = []
    refused: Counter[str] = Counter()

    async def redeem(code: str) -> str | None:
        """Redeem until the store answers; return the refresh token, if there is one."""
        while True:
            try:
                tokens = await node.redeem(client, code)
            except StoreUnavailable:
                # On a busy machine, a caller may wait too long for one of PostgreSQL's connections, and tries again.
                await asyncio.sleep(AGAIN_AFTER)
            except OAuthError as error:
                refused[error.error] += 1
                return None
            else:
                refresh_token = tokens.get("refresh_token")
                given.append((code, tokens["access_token"], tokens["id_token"], refresh_token))
                return refresh_token

    async def call(code: str) -> None:
        for _ in range(LONGEST if what == "follow" else 1):
            following = await redeem(code)
            if following is None:
                break
            code = following

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is how it talks to the test.
    await node.keys.read_jwks()
    print("ready", flush=True)  # noqa: T201 — how it talks to the test.
    while line := await asyncio.to_thread(sys.stdin.readline):
        wanted = json.loads(line)
        given.clear()
        refused.clear()
        # The redeemers of one code are spread, so that they also land in different batches.
        most = max((callers for _, callers in wanted), default=0)
        await asyncio.gather(*(call(code) for number in range(most) for code, callers in wanted if number < callers))
        print(json.dumps([given, refused]), flush=True)  # noqa: T201 — likewise.
    await storage.close()


asyncio.run(main())
