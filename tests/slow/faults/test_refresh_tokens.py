"""Refresh tokens under concurrency: each gives one successor, its reuse ends the family, and whatever ends it wins.

Three processes redeem 10,000 refresh tokens, each by 16 callers at once. The other races have a few hundred sign-ins.
`--hypothesis-profile=soak` runs ten times as many.
"""

import asyncio
import random
import time
from collections import Counter
from itertools import cycle

import pytest
from tests.conftest import Figure
from tests.faults.place import Place, assert_sound, rows
from tests.slow.faults.openid_sign_ins import OpenidNode, create_client
from tests.slow.faults.redeemers import PROCESSES, Wanted, open_place, redeemers

from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_id
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.errors import OAuthError
from taproof.core.oidc.grants import NewGrant, RefreshToken, new_refresh_token
from taproof.core.sessions import SessionKey
from taproof.runtime.store import open_storage
from taproof.service.erasure import Erasure
from taproof.storage.protocol import Storage
from taproof.storage.queries.oidc.grants import create_grant
from taproof.storage.queries.transaction import Transaction

CALLERS = (6, 5, 5)
"""The callers of each process that redeem a refresh token: 16 in all."""
AT_ONCE = 250
"""The number of refresh tokens in a race."""
SIGN_INS = 24
"""The number of sign-ins that are ended beside their redeemers, at the same time."""
ALONE = 600
"""The number of refresh tokens that a process redeems when it is killed: more than one commit of SQLite has."""
FIRST_USER = 1_000_000
"""The user of the first stored grant, which no sign-in has."""
SEED = 20_261_128
LONGEST_DELAY = 0.2
"""Seconds between the start of the redeemers and what ends the sign-in."""


async def make_client(storage: Storage, place: Place) -> tuple[Actor, SignInClient]:
    (developer,) = await storage.developers.list_developers()
    actor = Actor(developer, "command_line")
    grant_types = ("authorization_code", "refresh_token")
    return actor, await create_client(storage, actor, place.project_id, grant_types=grant_types)


async def make_tokens(storage: Storage, client: SignInClient, number: int) -> list[str]:
    """Store grants of as many users, as a redeemed code does, and return their refresh tokens."""
    now = system_clock()
    new: list[tuple[NewGrant, RefreshToken]] = []
    for user in range(number):
        refresh = new_refresh_token(system_entropy)
        grant = NewGrant(
            id=new_id("oidc", system_entropy),
            client_id=client.client.id,
            client_version=client.version,
            project_id=client.client.project_id,
            session=SessionKey(1, b"no session"),
            identity=MessengerIdentity(f"{FIRST_USER + user}", f"User {user}", ""),
            scopes="openid profile offline_access",
            auth_time=now,
            created_at=now,
            refresh=refresh.hashes,
        )
        new.append((grant, refresh))

    async def store(transaction: Transaction) -> None:
        for grant, _ in new:
            await create_grant(transaction, grant)

    await storage.grants._database.in_transaction(store)
    return [refresh.text for _, refresh in new]


async def assert_dead(node: OpenidNode, client: SignInClient, access_token: str, refresh_token: str | None) -> None:
    """Check that userinfo, introspection and refresh refuse these tokens."""
    with pytest.raises(OAuthError) as refused:
        await node.access_tokens.read_user(access_token)
    assert refused.value.error == "invalid_token"
    assert refresh_token is not None
    for token in (access_token, refresh_token):
        assert await node.access_tokens.introspect_token(client, {"token": token}) == {"active": False}
    with pytest.raises(OAuthError) as refused:
        await node.redeem(client, refresh_token)
    assert refused.value.error == "invalid_grant"


async def assert_lives(node: OpenidNode, client: SignInClient, refresh_token: str) -> None:
    """Check that what nothing has ended still works: without this, no test here could fail."""
    tokens = await node.redeem(client, refresh_token)
    assert (await node.access_tokens.read_user(tokens["access_token"]))["sub"]
    assert (await node.access_tokens.introspect_token(client, {"token": tokens["refresh_token"]}))["active"]


async def wait_for_the_dead(url: str) -> None:
    """Wait until PostgreSQL has ended what a killed process had sent. On SQLite, that ends with the process."""
    busy = "SELECT pid FROM pg_stat_activity WHERE application_name = 'taproof' AND state <> 'idle'"
    while not url.startswith("sqlite:///") and await rows(url, busy):  # noqa: ASYNC110 — as below.
        await asyncio.sleep(0.05)


async def test_one_of_sixteen_redeemers_gets_the_successor(place: Place, figure: Figure, *, soak: bool) -> None:
    """One redeemer of each token gets tokens, and the reuse by the others ends them (RFC 9700, section 4.14.2)."""
    number = 100_000 if soak else 10_000
    place = place.quick()
    storage = await open_place(place.url, is_quick=place.is_quick)
    node = OpenidNode(storage, place.master_key)
    _, client = await make_client(storage, place)
    (untouched,) = await make_tokens(storage, client, 1)
    refused: Counter[str] = Counter()
    begun, racing = time.monotonic(), 0.0
    async with redeemers(place, client.client.id, "once") as race:
        for _ in range(0, number, AT_ONCE):
            tokens = await make_tokens(storage, client, AT_ONCE)
            started = time.monotonic()
            given, refused_now = await race.run([[(token, callers) for token in tokens] for callers in CALLERS])
            racing += time.monotonic() - started
            assert Counter(each.code for each in given) == dict.fromkeys(tokens, 1)
            refused += refused_now
            await asyncio.gather(*(assert_dead(node, client, each.access_token, each.refresh_token) for each in given))
    figure("refresh tokens", number)
    figure("seconds", f"{time.monotonic() - begun:.1f}, of which {racing:.1f} of races")
    assert refused == {"invalid_grant": number * (sum(CALLERS) - 1)}
    await assert_lives(node, client, untouched)
    await storage.close()
    ended = "SELECT ended_reason, COUNT(*) FROM oidc_grants GROUP BY ended_reason ORDER BY 2"
    assert await rows(place.url, ended) == [(None, 1), ("reused", number)]


async def test_nothing_lives_after_a_report_a_block_or_an_erasure(place: Place, figure: Figure, *, soak: bool) -> None:
    """Redeemers of a code or a refresh token, and of its successors, get nothing that works after the answer.

    One third of the sign-ins has a caller that redeems the code and then refreshes without an end; another one begins
    with the refresh token. For the last third, 16 callers in three processes redeem the same refresh token.
    """
    rounds = 100 if soak else 10
    drawn = random.Random(SEED)  # noqa: S311 — no secret.
    storage = await open_storage(place.url)
    node = OpenidNode(storage, place.master_key)
    actor, client = await make_client(storage, place)
    erasure = Erasure(storage, system_clock, system_entropy)
    (untouched,) = await make_tokens(storage, client, 1)
    refreshes: Counter[str] = Counter()

    async def end(user: str, cause: str) -> None:
        await asyncio.sleep(drawn.random() * LONGEST_DELAY)
        if cause == "report":
            (sign_in,) = await storage.sessions.list_sign_ins(user, 0, 1, system_clock())
            assert (await node.signin.report_sign_in(sign_in.key, user)).changed
        elif cause == "block":
            assert await storage.users.block_project(user, place.project_id, system_clock())
        else:
            assert await erasure.erase_user(actor, user)

    async def end_and_check(user: str, cause: str, first: tuple[str, str] | None) -> None:
        await end(user, cause)
        listed = await storage.grants.list_grants(place.project_id, client.client.id, None, system_clock(), 999)
        assert user not in {each.messenger_id for each in listed}
        if first is not None:
            await assert_dead(node, client, *first)

    async with redeemers(place, client.client.id, "follow") as race:
        for number in range(rounds):
            users = [f"{number * SIGN_INS + each + 1}" for each in range(SIGN_INS)]
            begun: dict[str, str] = {}
            first: dict[str, tuple[str, str]] = {}
            wanted: list[Wanted] = [[] for _ in range(PROCESSES)]
            causes = dict(zip(users, cycle(["report", "block", "erasure"]), strict=False))
            for index, user in enumerate(users):
                kind = index // 3 % 3
                begun[user] = await node.new_code(client, user, "offline_access")
                if kind:
                    tokens = await node.redeem(client, begun[user])
                    begun[user] = tokens["refresh_token"]
                    first[user] = (tokens["access_token"], tokens["refresh_token"])
                if kind < 2:
                    wanted[index % PROCESSES].append((begun[user], 1))
                    continue
                for of_process, callers in zip(wanted, CALLERS, strict=True):
                    of_process.append((begun[user], callers))

            racing = asyncio.create_task(race.run(wanted))
            await asyncio.gather(*(end_and_check(user, causes[user], first.get(user)) for user in users))
            redeemed = await racing
            # Each caller went on until it was refused.
            assert redeemed.refused == {"invalid_grant": sum(callers for each in wanted for _, callers in each)}
            for each in redeemed.given:
                await assert_dead(node, client, each.access_token, each.refresh_token)
            # Follow each success back to the code or token that its caller was given.
            origin = {code: user for user, code in begun.items()}
            for each in redeemed.given:
                assert each.refresh_token is not None
                user = origin[each.refresh_token] = origin[each.code]
                refreshes[causes[user]] += 1
    for cause, count in refreshes.items():
        figure(f"refreshes beside {cause}", count)
    assert len(refreshes) == 3
    await assert_lives(node, client, untouched)
    await storage.close()


async def test_a_killed_process_leaves_no_second_token(place: Place, figure: Figure, *, soak: bool) -> None:
    """If a process is killed between commit and answer, the application's second attempt counts as a reuse.

    Every token gives one successor in all, and no sign-in lives on whose tokens nobody got.
    """
    drawn = random.Random(SEED)  # noqa: S311 — no secret.
    storage = await open_storage(place.url)
    node = OpenidNode(storage, place.master_key)
    _, client = await make_client(storage, place)
    refreshed = "SELECT COUNT(*) FROM oidc_grants WHERE refreshed_at IS NOT NULL AND ended_at IS NULL"
    seen: Counter[str] = Counter()
    async with redeemers(place, client.client.id, "once") as race:
        for _ in range(30 if soak else 3):
            tokens = await make_tokens(storage, client, ALONE)
            ((before,),) = await rows(place.url, refreshed)
            race.send([[(token, 1) for token in tokens], [], []])
            least = before + drawn.randint(1, ALONE // 3)
            while (await rows(place.url, refreshed))[0][0] < least:  # noqa: ASYNC110 — the store tells only who asks.
                await asyncio.sleep(0.001)
            await asyncio.to_thread(race.replace, 0)
            await wait_for_the_dead(place.url)
            for token in tokens:
                try:
                    again = await node.redeem(client, token)
                except OAuthError:
                    seen["killed after the commit"] += 1
                else:
                    seen["killed before the commit"] += 1
                    await assert_lives(node, client, again["refresh_token"])
    for what, count in seen.items():
        figure(what, count)
    assert len(seen) == 2
    await storage.close()
    await assert_sound(place.url)
    ended = "SELECT ended_reason, COUNT(*) FROM oidc_grants GROUP BY ended_reason ORDER BY 1"
    assert dict(await rows(place.url, ended)) == {
        None: seen["killed before the commit"],
        "reused": seen["killed after the commit"],
    }
