"""Clients learn that their users are signed out (OpenID Connect Back-Channel Logout 1.0)."""

import asyncio
from collections import Counter
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest
from structlog.testing import capture_logs
from tests.openid_provider import ADA, ISSUER, Provider, Shop
from tests.service.conftest import acting
from tests.service.oidc.test_grants import Kept, kept, stored
from tests.service.oidc.test_tokens import claims_of
from tests.waiting import until
from tests.webhooks.conftest import post, receiver
from tests.webhooks.shop import Post, Receiver

from taproof.core.address_rules import AddressRules
from taproof.core.clock import DAY, HOUR, SECOND
from taproof.core.entropy import system_entropy
from taproof.core.oidc.grants import LOGOUT_DELAYS, LogoutOutcome
from taproof.service.erasure import Erasure
from taproof.service.oidc.logouts import Logouts
from taproof.service.webhooks import SignedRequest, WebhookResponse
from taproof.webhooks.http_client import open_webhook_client
from taproof.webhooks.logouts import LogoutSender

__all__ = ["post", "receiver"]


class Sending:
    """The sender of logout tokens, which posts with `post`."""

    def __init__(self, provider: Provider, post: Post) -> None:
        node = provider.node
        self.outcomes: list[LogoutOutcome] = []
        self.logouts = Logouts(
            node.storage, provider.keys, node.clock, system_entropy, issuer=ISSUER, user_agent="Taproof/test"
        )
        self.sender = LogoutSender(self.logouts, post, self)

    def count_logout(self, outcome: LogoutOutcome) -> None:
        self.outcomes.append(outcome)

    async def send(self) -> list[LogoutOutcome]:
        """Send all that is due; return the outcomes."""
        self.outcomes.clear()
        while await self.sender.claim_due():
            await self.sender.finish_posts()
        return self.outcomes


@pytest.fixture
def sending(provider: Provider, post: Post) -> Sending:
    return Sending(provider, post)


async def told_shop(provider: Provider, receiver: Receiver, answer: str = "200", **settings: Any) -> Shop:
    """Return a client that is told of logouts at the receiver."""
    return await provider.shop(backchannel_logout_uri=f"{receiver.base}/{answer}", **settings)


async def report(user: Kept) -> None:
    node = user.shop.provider.node
    session = await stored(user)
    (found,) = [
        each
        for each in await node.storage.sessions.list_sign_ins(
            ADA.messenger_id, 0, 9, node.clock.now, project_id=session.project_id
        )
        if each.reported_at is None
    ][:1]
    assert (await node.signin.report_sign_in(found.key, ADA.messenger_id)).changed


async def verified(shop: Shop, body: bytes) -> dict[str, Any]:
    """Return the claims of the logout token in a request, checked as section 2.6 says."""
    form = parse_qs(body.decode(), strict_parsing=True)
    assert list(form) == ["logout_token"]
    (token,) = form["logout_token"]
    header = jwt.get_unverified_header(token)
    assert (header["typ"], header["alg"]) == ("logout+jwt", shop.client.signing_alg)
    keys = jwt.PyJWKSet.from_dict(await shop.provider.keys.read_jwks())
    options: Any = {"verify_exp": False, "verify_iat": False, "require": ["iss", "aud", "iat", "exp", "jti", "events"]}
    claims: dict[str, Any] = jwt.decode(
        token, keys[header["kid"]], algorithms=[header["alg"]], audience=shop.id, issuer=ISSUER, options=options
    )
    assert claims["events"] == {"http://schemas.openid.net/event/backchannel-logout": {}}
    assert "nonce" not in claims
    assert claims["exp"] - claims["iat"] == 120
    return claims


@pytest.mark.parametrize("alg", ["RS256", "ES256"])
async def test_a_report_signs_the_user_out(provider: Provider, receiver: Receiver, sending: Sending, alg: str) -> None:
    """The client gets one request with a logout token for the sign-in and the user; then the logout is done."""
    shop = await told_shop(provider, receiver, signing_alg=alg)
    user = await kept(shop)
    assert await sending.send() == []
    await report(user)
    assert await sending.send() == ["delivered"]
    ((path, headers, body),) = receiver.arrived
    assert path == "/200"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert headers["User-Agent"] == "Taproof/test"
    assert not {"Cookie", "Authorization"} & set(headers)
    claims, id_token = await verified(shop, body), await claims_of(shop, user.tokens["id_token"])
    assert (claims["sub"], claims["sid"]) == (id_token["sub"], id_token["sid"])
    assert claims["iat"] == provider.node.clock.now // SECOND
    provider.later(DAY)
    assert await sending.send() == []


async def test_who_is_told_of_what(provider: Provider, receiver: Receiver, sending: Sending) -> None:
    """The client is not notified of what it did itself. Of an erased user, only the sign-in is named (section 2.4).

    Whoever has the ID token can ask for end_session, and keep their session at the application. A report ends it then.
    """
    node = provider.node
    for cause, told in (
        ("block", True),
        ("erasure", True),
        ("developer", True),
        ("reuse, then report", True),
        ("end_session, then report", True),
        ("revocation", False),
        ("end_session", False),
        ("secret", False),
        ("reuse", False),
    ):
        shop = await told_shop(provider, receiver)
        user = await kept(shop)
        grant = await stored(user)
        if cause == "block":
            await node.storage.users.block_project(ADA.messenger_id, shop.project.id, node.clock.now)
        elif cause == "erasure":
            erasure = Erasure(node.storage, node.clock, system_entropy)
            assert await erasure.erase_user(acting(shop.developer), ADA.messenger_id)
        elif cause == "developer":
            await node.storage.grants.end_grant(grant.id, node.clock.now, "ended")
        elif cause == "revocation":
            client = await shop.authenticated()
            await provider.access_tokens.revoke_token(client, {"token": user.refresh_token})
        elif cause.startswith("end_session"):
            await provider.sign_outs.sign_out({"id_token_hint": user.tokens["id_token"]})
            if cause == "end_session, then report":
                await report(user)
        elif cause == "secret":
            await provider.clients.regenerate_client_secret(acting(shop.developer), shop.project.id, shop.id)
        else:
            used = user.refresh_token
            await user.refresh()
            assert await user.refused(used) == "invalid_grant"
            if cause == "reuse, then report":
                await report(user)
        receiver.arrived.clear()
        assert await sending.send() == ["delivered"] * told, cause
        for _, _, body in receiver.arrived:
            claims = await verified(shop, body)
            assert claims["sid"] == grant.id
            assert claims.get("sub") == (None if cause == "erasure" else ADA.messenger_id)


async def test_a_client_without_refresh_tokens_is_told_too(
    provider: Provider, receiver: Receiver, sending: Sending
) -> None:
    """Such a client leaves a grant only because of its logout URI."""
    shop = await told_shop(provider, receiver, grant_types=("authorization_code",))
    await shop.redeem(await shop.sign_in())
    node = provider.node
    await node.storage.users.block_project(ADA.messenger_id, shop.project.id, node.clock.now)
    assert await sending.send() == ["delivered"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        *(("200", "delivered"), ("204", "delivered")),
        *((each, "retried") for each in ("201", "redirect", "400", "404", "410", "500", "503", "cut")),
    ],
)
async def test_what_counts_as_success(
    provider: Provider, receiver: Receiver, sending: Sending, answer: str, outcome: str
) -> None:
    """200 and 204 are successes (section 2.8). A redirect is never followed."""
    shop = await told_shop(provider, receiver, answer)
    await report(await kept(shop))
    assert await sending.send() == [outcome]
    assert [path for path, _, _ in receiver.arrived] == [f"/{answer}"]


async def test_failures_are_retried_for_a_day(provider: Provider, receiver: Receiver, sending: Sending) -> None:
    """Each retry has a fresh token, because one is valid for two minutes; then the console shows the failure."""
    shop = await told_shop(provider, receiver, "500")
    user = await kept(shop)
    begun = provider.node.clock.now
    await report(user)
    failure = provider.node.storage.logouts.read_logout_failure
    for number, delay in enumerate(LOGOUT_DELAYS, 1):
        assert await sending.send() == ["retried"]
        assert len(receiver.arrived) == number
        last = await failure(shop.project.id, shop.id)
        assert last is not None
        assert (last.failed_at, last.failure, last.is_retried) == (provider.node.clock.now, "500", True)
        provider.later(delay - 1)
        assert await sending.send() == []
        provider.later(delay // 5 + 2)  # The longest random delay.
    assert await sending.send() == ["dead"]
    assert 23 * HOUR < provider.node.clock.now - begun < 30 * HOUR
    last = await failure(shop.project.id, shop.id)
    assert last is not None
    assert not last.is_retried
    claims = [await verified(shop, body) for _, _, body in receiver.arrived]
    assert len({each["jti"] for each in claims}) == len({each["iat"] for each in claims}) == len(claims)
    assert len({each["sid"] for each in claims}) == 1
    provider.later(7 * DAY)
    assert await sending.send() == []


async def test_an_internal_address_gets_nothing(provider: Provider, receiver: Receiver) -> None:
    """The address and port rules of webhooks apply at each connection."""
    shop = await told_shop(provider, receiver)
    await report(await kept(shop))
    async with open_webhook_client(AddressRules(), frozenset({443}), allow_http=True) as client:
        assert await Sending(provider, client.post).send() == ["retried"]
    assert receiver.arrived == []
    last = await provider.node.storage.logouts.read_logout_failure(shop.project.id, shop.id)
    assert last is not None
    assert last.failure == "address_not_allowed"


async def test_a_client_that_is_gone_is_not_told(provider: Provider, receiver: Receiver, sending: Sending) -> None:
    """A deleted client is not called, nor one whose developer has removed the address."""
    gone, silent = [await told_shop(provider, receiver) for _ in range(2)]
    for shop in (gone, silent):
        await report(await kept(shop))
    await provider.clients.delete_client(acting(gone.developer), gone.project.id, gone.id)
    await silent.change_client(backchannel_logout_uri="")
    assert await sending.send() == []
    provider.later(HOUR)
    assert await sending.send() == []
    assert receiver.arrived == []


async def test_the_log_has_no_token(provider: Provider, receiver: Receiver, sending: Sending) -> None:
    """A failed attempt is logged with the client, and without the content of the request or the response."""
    shop = await told_shop(provider, receiver, "500")
    await report(await kept(shop))
    with capture_logs() as logs:
        await sending.send()
    (line,) = [each for each in logs if each["event"] == "logouts.attempt"]
    assert (line["log_level"], line["client_id"], line["reason"]) == ("warning", shop.id, "500")
    assert set(line) == {
        *("event", "log_level", "client_id", "project_id", "attempt", "outcome", "reason", "duration"),
    }


class Hanging:
    """Answers posts to quick.example with 200, and others only when they are released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.open: Counter[str] = Counter()

    async def post(self, request: SignedRequest) -> WebhookResponse:
        if request.url != "https://quick.example/":
            self.open[request.url] += 1
            await self.released.wait()
        return WebhookResponse(1, 200)


async def ended_sign_ins(shop: Shop, number: int) -> None:
    """Sign users in whose sign-ins a developer ends."""
    for _ in range(number):
        user, node = await kept(shop), shop.provider.node
        assert await node.storage.grants.end_grant((await stored(user)).id, node.clock.now, "ended")


async def test_a_hanging_client_delays_only_itself(provider: Provider) -> None:
    """At most ten requests to one client are open; the others wait, or are claimed again when their leases lapse."""
    hanging, quick = [await provider.shop(backchannel_logout_uri=f"https://{each}.example/") for each in ("a", "quick")]
    peer = Hanging()
    sending = Sending(provider, peer.post)
    await ended_sign_ins(hanging, 32)
    assert await sending.sender.claim_due() == 20
    await ended_sign_ins(quick, 1)
    assert [await sending.sender.claim_due() for _ in range(2)] == [1, 0]
    await until(lambda: sending.outcomes == ["delivered"])
    assert peer.open.total() == 10
    provider.later(30 * SECOND)
    assert await sending.sender.claim_due() == 0
    peer.released.set()
    await sending.sender.finish_posts()
    assert sending.outcomes == ["delivered"] * 11
    assert await sending.send() == ["delivered"] * 22


async def test_a_developers_hanging_clients_leave_room(provider: Provider) -> None:
    """However many clients they have, half of the places are left for other developers."""
    first = await provider.shop(backchannel_logout_uri="https://0.example/")
    clients = [await provider.shop(first, backchannel_logout_uri=f"https://{each}.example/") for each in range(1, 6)]
    quick = await provider.shop(backchannel_logout_uri="https://quick.example/")
    peer = Hanging()
    sending = Sending(provider, peer.post)
    for shop in (first, *clients):
        await ended_sign_ins(shop, 10)
    while await sending.sender.claim_due():
        pass
    await ended_sign_ins(quick, 3)
    assert await sending.sender.claim_due() == 3
    await until(lambda: sending.outcomes == ["delivered"] * 3)
    assert peer.open.total() == 25
    peer.released.set()
    await sending.sender.finish_posts()
    assert sending.outcomes == ["delivered"] * 63


async def test_the_loop_sends_and_stops(provider: Provider, receiver: Receiver, sending: Sending) -> None:
    """The loop finds due logouts by itself, and finishes its posts when it is stopped."""
    stopping = asyncio.Event()
    running = asyncio.create_task(sending.sender.run_until(stopping))
    await report(await kept(await told_shop(provider, receiver)))
    await until(lambda: sending.outcomes == ["delivered"])
    stopping.set()
    await running
