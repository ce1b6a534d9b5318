"""However many processes redeem an authorization code or a refresh token at once, exactly one of them gets tokens.

The short form has 160 of each, and 32 redeemers in each of three processes. `--hypothesis-profile=soak` runs 10,000.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest
from tests.conftest import Figure
from tests.faults.place import Place, assert_counters_fit, rows
from tests.slow.faults.openid_sign_ins import ISSUER, OpenidNode, create_client

from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.errors import OAuthError
from taproof.runtime.store import open_storage
from taproof.storage.protocol import Storage

ROOT = Path(__file__).parents[3]
PROCESSES = 3
REDEEMERS = 32
AT_ONCE = 20
"""The number of codes in a race. It starts within the lifetime of its codes."""


class Given(NamedTuple):
    """The tokens that one code gave."""

    code: str
    access_token: str
    id_token: str


class Race:
    """Processes that redeem the same codes."""

    def __init__(self, place: Place, client_id: str, stack: ExitStack) -> None:
        module = "tests.slow.faults.redeemer_program"
        command = [sys.executable, "-m", module, place.url, client_id, place.master_key, f"{REDEEMERS}"]
        self._processes = [
            stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(PROCESSES)
        ]
        assert [_line(process) for process in self._processes] == ["ready\n"] * PROCESSES

    def run(self, codes: list[str]) -> tuple[list[Given], Counter[str]]:
        """Let all redeemers of all processes redeem each code at once; return the tokens and the refusals."""
        # All processes wait for their line, which starts them together.
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(codes) + "\n")
            process.stdin.flush()
        given: list[Given] = []
        refused: Counter[str] = Counter()
        for process in self._processes:
            told, counted = json.loads(_line(process))
            given += [Given(*each) for each in told]
            refused.update(counted)
        return given, refused


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


async def check_tokens(node: OpenidNode, client: SignInClient, given: list[Given], users: dict[str, str]) -> None:
    """Check that the ID token of each code names its user, and that its access token is revoked."""
    keys = jwt.PyJWKSet.from_dict(await node.keys.read_jwks())
    for code, access_token, id_token in given:
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
    with ExitStack() as stack:
        race = await asyncio.to_thread(Race, place, client.client.id, stack)
        for start in range(0, number, AT_ONCE):
            names = [f"{user}" for user in range(start, start + AT_ONCE)]
            codes = await asyncio.gather(*(node.new_code(client, name) for name in names))
            users.update(zip(codes, names, strict=True))
            given_now, refused_now = await asyncio.to_thread(race.run, codes)
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


async def test_the_redeemers_of_a_refresh_token_get_one_successor(place: Place, figure: Figure, *, soak: bool) -> None:
    """One redeemer of each token gets tokens, and the reuse by the others ends the family (RFC 9700, section 4.14.2).

    Every fourth user reports the sign-in meanwhile. After the answer to the report, nothing lives.
    """
    number = 10_000 if soak else 160
    storage = await open_storage(place.url)
    node = OpenidNode(storage, place.master_key)
    (developer,) = await storage.developers.list_developers()
    grants: dict[str, Any] = {"grant_types": ("authorization_code", "refresh_token")}
    client = await create_client(storage, Actor(developer, "command_line"), place.project_id, **grants)
    once = await node.redeem(client, await node.new_code(client, "once", "offline_access"))
    given: list[Given] = []
    refused: Counter[str] = Counter()
    with ExitStack() as stack:
        race = await asyncio.to_thread(Race, place, client.client.id, stack)
        for start in range(0, number, AT_ONCE):
            names = [f"{user}" for user in range(start, start + AT_ONCE)]
            codes = await asyncio.gather(*(node.new_code(client, name, "offline_access") for name in names))
            tokens = [(await node.redeem(client, code))["refresh_token"] for code in codes]
            reported = names[::4]
            racing = asyncio.create_task(asyncio.to_thread(race.run, tokens))
            for name in reported:
                await report(node, name)
                assert await live(node, client, name) == []
            given_now, refused_now = await racing
            counts = Counter(each.code for each in given_now)
            for name, token in zip(names, tokens, strict=True):
                assert counts[token] <= 1 if name in reported else counts[token] == 1
            for each in given_now:
                with pytest.raises(OAuthError):
                    await node.access_tokens.read_user(each.access_token)
            given += given_now
            refused += refused_now
    figure("refresh tokens", number)
    figure("successes", len(given))
    figure("refusals", refused.total())
    assert refused == {"invalid_grant": number * PROCESSES * REDEEMERS - len(given)}
    assert len(given) >= number - number // 4
    # One that nobody redeems twice lives: without this, the test could not fail.
    assert (await node.redeem(client, once["refresh_token"]))["refresh_token"]
    await storage.close()
    assert await rows(place.url, "SELECT COUNT(*), COUNT(ended_at) FROM oidc_grants") == [(number + 1, number)]


async def report(node: OpenidNode, user: str) -> None:
    """Report the only sign-in of a user."""
    (sign_in,) = await node.storage.sessions.list_sign_ins(user, 0, 1, system_clock())
    assert (await node.signin.report_sign_in(sign_in.key, user)).changed


async def live(node: OpenidNode, client: SignInClient, user: str) -> list[str]:
    """Return the grants of a user that are live."""
    found = await node.storage.grants.list_grants(client.client.project_id, client.client.id, None, system_clock(), 999)
    return [each.id for each in found if each.messenger_id == user]
