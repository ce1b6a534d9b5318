"""However many processes redeem an authorization code at once, exactly one of them gets tokens.

The short form has 160 codes, and 32 redeemers in each of three processes. `--hypothesis-profile=soak` runs 10,000.
"""

import asyncio
import time
from collections import Counter

import jwt
import pytest
from tests.conftest import Figure
from tests.faults.place import Place, assert_counters_fit, rows
from tests.slow.faults.openid_sign_ins import ISSUER, OpenidNode, create_client
from tests.slow.faults.redeemers import PROCESSES, Given, redeemers

from taproof.core.accounts import Actor
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.errors import OAuthError
from taproof.runtime.store import open_storage
from taproof.storage.protocol import Storage

REDEEMERS = 32
AT_ONCE = 20
"""The number of codes in a race. It starts within the lifetime of its codes."""


async def check_tokens(node: OpenidNode, client: SignInClient, given: list[Given], users: dict[str, str]) -> None:
    """Check that the ID token of each code names its user, and that its access token is revoked."""
    keys = jwt.PyJWKSet.from_dict(await node.keys.read_jwks())
    for code, access_token, id_token, _ in given:
        key = keys[jwt.get_unverified_header(id_token)["kid"]]
        claims = jwt.decode(id_token, key, algorithms=["RS256"], audience=client.client.id, issuer=ISSUER)
        assert claims["sub"] == users[code]
        with pytest.raises(OAuthError) as refused:
            await node.access_tokens.read_user(access_token)
        assert refused.value.error == "invalid_token"


async def make_client(storage: Storage, place: Place) -> SignInClient:
    (developer,) = await storage.developers.list_developers()
    return await create_client(storage, Actor(developer, "command_line"), place.project_id)


async def test_the_redeemers_of_three_processes_get_one_set_of_tokens(
    place: Place, figure: Figure, *, soak: bool
) -> None:
    """One redeemer of each code gets tokens, all others get `invalid_grant`, and the reuse revokes the access token."""
    number = 10_000 if soak else 160
    given: list[Given] = []
    refused: Counter[str] = Counter()
    users: dict[str, str] = {}
    storage = await open_storage(place.url)
    node = OpenidNode(storage, place.master_key)
    client = await make_client(storage, place)
    # A code that nobody redeems twice keeps its tokens: without this, the test could not fail.
    tokens = await node.redeem(client, await node.new_code(client, "once"))
    begun = time.monotonic()
    async with redeemers(place, client.client.id, "once") as race:
        for start in range(0, number, AT_ONCE):
            names = [f"{user}" for user in range(start, start + AT_ONCE)]
            codes = await asyncio.gather(*(node.new_code(client, name) for name in names))
            users.update(zip(codes, names, strict=True))
            given_now, refused_now = await race.run([[(code, REDEEMERS) for code in codes]] * PROCESSES)
            assert Counter(each.code for each in given_now) == dict.fromkeys(codes, 1)
            await check_tokens(node, client, given_now, users)
            given += given_now
            refused += refused_now
    figure("seconds", f"{time.monotonic() - begun:.1f}")
    figure("codes", len(users))
    figure("successes", len(given))
    figure("refusals", refused.total())
    assert len(given) == number
    assert refused == {"invalid_grant": number * (PROCESSES * REDEEMERS - 1)}
    assert len({each.access_token for each in given}) == number
    assert (await node.access_tokens.read_user(tokens["access_token"]))["sub"] == "once"
    await storage.close()
    redeemed = "SELECT COUNT(*), COUNT(redeemed_at), COUNT(revoked_at) FROM oidc_authorizations"
    assert await rows(place.url, redeemed) == [(number + 1, number + 1, number)]
    await assert_counters_fit(place.url)
