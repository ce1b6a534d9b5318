"""Rotating the signing keys during sign-ins makes no application's check fail.

The short form has 300 sign-ins on each store. `--hypothesis-profile=soak` has 10,000.
"""

import asyncio
import heapq
import random
from typing import Any

import httpx
import jwt
import pytest
from starlette.applications import Starlette
from tests.conftest import Figure
from tests.databases import DRIVERS
from tests.slow.faults.openid_sign_ins import ISSUER, OpenidNode, create_client

from taproof.contract.client import MAX_LIFETIME
from taproof.core.accounts import Actor
from taproof.core.address_rules import AddressRules
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.oidc.clients import SignInClient
from taproof.core.projects import ProjectChanges
from taproof.oidc.metadata import MetadataEndpoints
from taproof.service.developers import Developers
from taproof.service.housekeeping import Housekeeping
from taproof.service.projects import Projects
from taproof.storage.protocol import Storage

START = 1_795_214_643_127  # 2026-11-20T22:44:03.127Z
SEED = 20_261_123
TIMES = 10
"""The number of times in a round at which users sign in."""
IN_A_ROUND = 2 * TIMES
AROUND = 90 * MINUTE
"""The time (ms) before and after the switch to another key in which users sign in. It is longer than caches live."""
LONGEST_PAUSE = 40 * DAY
"""The longest time (ms) without sign-ins and without housekeeping between two rounds."""


class MovedClock:
    """A clock that only moves when the test moves it."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now


class Application:
    """Verifies ID tokens. It reads the JWK set again only after an hour, which is longer than Cache-Control allows."""

    def __init__(self, client: SignInClient, nodes: list[OpenidNode], clock: MovedClock, draw: random.Random) -> None:
        self.client = client
        self.kids: set[str] = set()
        self.fetched = 0
        self._clock = clock
        self._draw = draw
        self._keys: dict[str, jwt.PyJWK] = {}
        self._stale_at = 0
        self._services = [
            httpx.AsyncClient(
                transport=httpx.ASGITransport(Starlette(routes=MetadataEndpoints(ISSUER, node.keys).routes())),
                base_url=ISSUER,
            )
            for node in nodes
        ]

    async def verify(self, id_token: str) -> dict[str, Any]:
        """Return the claims of an ID token that is valid now."""
        if self._clock() >= self._stale_at:
            response = await self._draw.choice(self._services).get("/oidc/jwks")
            self._stale_at = self._clock() + HOUR
            self._keys = {each["kid"]: jwt.PyJWK(each) for each in response.json()["keys"]}
            self.fetched += 1
        kid = jwt.get_unverified_header(id_token)["kid"]
        assert kid in self._keys
        self.kids.add(kid)
        alg, client_id = self.client.client.signing_alg, self.client.client.id
        # PyJWT compares the times with the real clock.
        options = {"verify_exp": False, "verify_iat": False}
        claims: dict[str, Any] = jwt.decode(
            id_token,
            self._keys[kid],
            algorithms=[alg],
            audience=client_id,
            issuer=ISSUER,
            options=options,  # type: ignore[arg-type]
        )
        assert claims["iat"] <= self._clock() // SECOND < claims["exp"]
        return claims


class Scenario:
    """Sign-ins on two nodes, whose ID tokens are verified immediately and again just before they expire."""

    def __init__(
        self, nodes: list[OpenidNode], applications: list[Application], clock: MovedClock, draw: random.Random
    ) -> None:
        self.verified = 0
        self._draw = draw
        self._nodes = nodes
        self._applications = applications
        self._clock = clock
        self._issued: list[tuple[int, int, str]] = []
        """The last time at which each ID token is verified, and the number of its application."""

    async def sign_in_on_each(self) -> None:
        """Sign in on both nodes at once, each time to any application."""
        numbers = [self._draw.randrange(len(self._applications)) for _ in self._nodes]
        await asyncio.gather(*map(self._sign_in, self._nodes, numbers))

    async def _sign_in(self, node: OpenidNode, number: int) -> None:
        application = self._applications[number]
        user = f"{self._draw.randrange(10**9)}"
        code = await node.new_code(application.client, user)
        id_token: str = (await node.redeem(application.client, code))["id_token"]
        claims = await application.verify(id_token)
        assert claims["sub"] == user
        self.verified += 1
        heapq.heappush(self._issued, ((claims["exp"] - 1) * SECOND, number, id_token))

    async def move(self, time: int) -> None:
        """Move the clock. On the way, verify each ID token just before it expires."""
        while self._issued and self._issued[0][0] <= time:
            self._clock.now, number, id_token = heapq.heappop(self._issued)
            await self._applications[number].verify(id_token)
            self.verified += 1
        self._clock.now = time


async def two_clients(storage: Storage, master_key: str, clock: MovedClock) -> list[SignInClient]:
    """Create clients with each algorithm, whose ID tokens live as long as possible, and as short."""
    developer = await Developers(storage, clock, system_entropy).create_developer("ada@example.com", "business")
    actor = Actor(developer, "command_line")
    projects = Projects(
        storage,
        Encryptor(master_key),
        clock,
        system_entropy,
        address_rules=AddressRules(),
        webhook_ports=frozenset(),
        allow_loopback_http=False,
    )
    project, _ = await projects.create_project(actor, ProjectChanges(name="Shop"))
    return [
        await create_client(storage, actor, project.id, signing_alg="RS256", id_token_lifetime=MAX_LIFETIME),
        await create_client(storage, actor, project.id, signing_alg="ES256", id_token_lifetime=MAX_LIFETIME),
        await create_client(storage, actor, project.id, signing_alg="RS256"),
    ]


@pytest.mark.parametrize("driver", sorted(DRIVERS))
async def test_no_check_fails_while_keys_are_rotated(driver: str, figure: Figure, *, soak: bool) -> None:
    """Each ID token is verified with a JWK set that is cached for as long as it may be, until the token expires.

    The keys change by `taproof oidc rotate-keys` in every second round, and by their age.
    """
    number = 10_000 if soak else 300
    draw = random.Random(SEED)  # noqa: S311 — the same scenario in every run.
    clock, master_key = MovedClock(), new_master_key(system_entropy)
    with DRIVERS[driver](clock, quick=True) as open_store:
        stores = [await open_store(), await open_store()]
        nodes = [OpenidNode(store, master_key, clock) for store in stores]
        housekeeping = Housekeeping(stores[0], Encryptor(new_master_key(system_entropy)), clock, system_entropy, 90)
        await housekeeping.sweep()
        clients = await two_clients(stores[0], master_key, clock)
        applications = [Application(client, nodes, clock, draw) for client in clients]
        scenario = Scenario(nodes, applications, clock, draw)
        for turn in range(number // IN_A_ROUND):
            if turn % 2:
                rotated, _ = await asyncio.gather(draw.choice(nodes).keys.rotate_keys(), scenario.sign_in_on_each())
                switch = max(clock.now, *(each.signs_from for each in rotated))
            else:
                await scenario.sign_in_on_each()
                switch = clock.now + draw.randrange(LONGEST_PAUSE)
            times = sorted(max(clock.now, switch + draw.randrange(-AROUND, AROUND)) for _ in range(TIMES - 1))
            await scenario.move(times[0])
            await housekeeping.sweep()
            for time in times:
                await scenario.move(time)
                await scenario.sign_in_on_each()
        await scenario.move(clock.now + DAY + HOUR)
        for store in stores:
            await store.close()
    figure("sign-ins", number)
    figure("verified", scenario.verified)
    figure("keys", len(set().union(*(each.kids for each in applications))))
    figure("days", (clock.now - START) // DAY)
    figure("JWK sets read", sum(each.fetched for each in applications))
    assert scenario.verified == 2 * number
    # Every application has seen several changes of its key, and used its cached copy.
    for application in applications:
        assert len(application.kids) > number // IN_A_ROUND // 4
    assert sum(each.fetched for each in applications) < scenario.verified // 2
