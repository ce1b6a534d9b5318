"""The token endpoint and userinfo: client authentication, codes, access tokens (RFC 6749; RFC 6750; RFC 9700)."""

import asyncio
import base64
from typing import Any

import jwt
import pytest
from tests.openid_provider import ADA, ISSUER, PKCE, VERIFIER, InBrowser, Parameters, Provider, Shop, basic, error_of
from tests.service.conftest import Node, acting

from taproof.core.clock import HOUR, MINUTE, SECOND
from taproof.core.oidc.clients import ClientChanges
from taproof.core.oidc.errors import OAuthError


async def claims_of(shop: Shop, id_token: str) -> dict[str, Any]:
    """Return the claims of an ID token, verified with the JWK set. The clock is the test's, so times do not count."""
    keys = jwt.PyJWKSet.from_dict(await shop.provider.keys.read_jwks())
    key = keys[jwt.get_unverified_header(id_token)["kid"]]
    options: Any = {"verify_exp": False, "verify_iat": False}
    claims: dict[str, Any] = jwt.decode(
        id_token, key, algorithms=[shop.client.signing_alg], audience=shop.id, issuer=ISSUER, options=options
    )
    return claims


async def userinfo_error(shop: Shop, access_token: str) -> str:
    return await error_of(shop.provider.access_tokens.read_user(access_token))


async def test_client_authentication(provider: Provider, subtests: pytest.Subtests) -> None:
    """A client proves its identity with its own secret and method, in one place (RFC 6749, section 2.3)."""
    by_basic, by_post, public = [await provider.shop(auth_method=each) for each in ("basic", "post", "none")]
    either = await provider.shop()
    secret, other = by_basic.secret or "", by_post.secret or ""
    encoded = "".join(f"%{ord(letter):02X}" for letter in secret)
    body = {"client_id": by_post.id, "client_secret": other}
    padded = "Basic " + base64.b64encode(f"{by_basic.id}:{encoded}".encode()).decode()
    accepted: tuple[tuple[Shop, str | None, Parameters], ...] = (
        (by_basic, basic(by_basic.id, secret), {}),
        (by_basic, basic(by_basic.id, secret), {"client_id": by_basic.id}),
        (by_basic, basic(by_basic.id.replace("_", "%5F"), encoded), {}),  # Form-encoded: section 2.3.1.
        (by_basic, basic(by_basic.id, secret).replace("Basic", "bAsIc"), {}),
        *((by_basic, each, {}) for each in (padded.rstrip("="), padded.replace(" ", "   ") + " ")),
        (by_post, None, body),
        (either, basic(either.id, either.secret or ""), {}),
        (either, None, {"client_id": either.id, "client_secret": either.secret or ""}),
        (public, None, {"client_id": public.id}),
        # An empty id or secret counts as omitted.
        (public, basic(public.id, ""), {}),
        (public, basic(public.id, "").replace("Basic", "basic").rstrip("="), {"client_id": public.id}),
        (public, basic(public.id.replace("_", "%5f"), ""), {}),
        *((public, each, {"client_id": public.id}) for each in ("", basic("", ""))),
        *((by_post, each, body) for each in ("", basic("", ""), basic(by_post.id, ""))),
        (by_basic, basic("", secret), {"client_id": by_basic.id}),
    )
    for shop, header, parameters in accepted:
        with subtests.test(method=shop.client.auth_method, header=header):
            found = await provider.tokens.authenticate_client(header, parameters)
            assert found.client == shop.client
    refused: tuple[tuple[str | None, Parameters, str], ...] = (
        (None, {}, "client_id is missing"),
        (None, {"client_id": by_basic.id}, "secret is wrong"),
        (None, {"client_id": "oidc_unknown"}, "unknown"),
        (None, {"client_id": "\x00"}, "unknown"),
        (basic(by_basic.id, other), {}, "secret is wrong"),
        (basic(by_post.id, secret), {}, "secret is wrong"),
        (basic(by_basic.id, secret + "x"), {}, "secret is wrong"),
        (basic(by_basic.id, ""), {}, "secret is wrong"),
        (None, {"client_id": by_post.id, "client_secret": secret}, "secret is wrong"),
        (basic(by_post.id, other), {}, "must use client_secret_post, but the request used client_secret_basic"),
        (None, {"client_id": either.id}, "secret is wrong or missing"),
        (basic(either.id, either.secret or ""), {"client_secret": either.secret or ""}, "one place only"),
        (None, {"client_id": by_basic.id, "client_secret": secret}, "client_secret_basic"),
        (basic("", ""), {}, "client_id is missing"),
        (basic(public.id, "x"), {}, "must use no secret"),
        (basic(public.id, ""), {"client_id": by_basic.id}, "one place only"),
        (None, {"client_id": public.id, "client_secret": "x"}, "must use no secret"),
        ("Bearer " + secret, {}, "not valid HTTP Basic"),
        ("Basic", {}, "not valid HTTP Basic"),
        *((f"Basic {each}", {}, "not valid HTTP Basic") for each in ("****", "a", "ab", "YQ")),
        ("Basic " + base64.b64encode(b"\xff:\xff").decode(), {}, "not valid HTTP Basic"),
        ("Basic " + base64.b64encode(by_basic.id.encode()).decode(), {}, "not valid HTTP Basic"),
        (basic(by_basic.id, secret), {"client_secret": secret}, "one place only"),
        (basic(by_basic.id, secret), body, "one place only"),
        (basic(by_basic.id, secret), {"client_id": by_post.id}, "one place only"),
        (None, {"client_id": by_post.id, "client_assertion": "a.b.c"}, "assertions"),
    )
    for header, parameters, told in refused:
        with subtests.test(header=header, parameters=parameters), pytest.raises(OAuthError, match=told) as error:
            await provider.tokens.authenticate_client(header, parameters)
        assert error.value.status in {400, 401}
        assert secret not in error.value.description


async def test_refused_codes_stay_usable(provider: Provider, shop: Shop, subtests: pytest.Subtests) -> None:
    """A code is bound to its client, redirect URI and challenge. A refused request does not use it up."""
    code = await shop.sign_in()
    other = await provider.shop(beside=shop)
    refused: dict[str, tuple[Shop, Parameters]] = {
        "another client": (other, {}),
        "no code": (shop, {"code": ""}),
        "unknown code": (shop, {"code": code[:-1] + "-"}),
        "another redirect URI": (shop, {"redirect_uri": "https://app.example/callback/"}),
        "no redirect URI": (shop, {"redirect_uri": ""}),
        "wrong verifier": (shop, {"code_verifier": VERIFIER[::-1]}),
        "the challenge as verifier": (shop, {"code_verifier": PKCE["code_challenge"]}),
        "short verifier": (shop, {"code_verifier": "a"}),
        "no verifier": (shop, {"code_verifier": ""}),
    }
    for case, (who, changed) in refused.items():
        with subtests.test(case):
            wanted = "invalid_request" if case == "no code" else "invalid_grant"
            assert await error_of(who.redeem(code, **changed)) == wanted
    assert (await shop.redeem(code))["token_type"] == "Bearer"


async def test_without_public_access(provider: Provider) -> None:
    """Only clients with a secret begin and finish sign-ins, as verify/public gives no proofs then."""
    public = await provider.shop(auth_method="none")
    server = await provider.shop(beside=public)
    codes = [(shop, await shop.sign_in()) for shop in (public, server)]
    begun = await public.begin_device()
    browser = await public.begin()
    await public.change_project(public_access=False)
    assert await error_of(public.redeem(codes[0][1])) == "unauthorized_client"
    assert await error_of(public.poll(begun["device_code"])) == "unauthorized_client"
    for call in (public.begin(), public.begin_device(), public.authenticated()):
        assert await error_of(call) == "unauthorized_client"
    assert "id_token" in await server.redeem(codes[1][1])
    provider.later(10 * MINUTE)
    assert not (await browser.see()).can_start_again
    await public.change_project(public_access=True)
    assert (await browser.see()).can_start_again


async def test_a_client_that_became_public_needs_pkce(provider: Provider, shop: Shop) -> None:
    """A code without a challenge was protected only by the client's secret, so it becomes invalid with the secret.

    A code with a challenge needs its verifier instead.
    """
    code, bound = await shop.sign_in(code_challenge="", code_challenge_method=""), await shop.sign_in()
    changes = ClientChanges(auth_method="none")
    shop.client, shop.secret = await provider.clients.update_client(
        acting(shop.developer), shop.project.id, shop.id, changes
    )
    assert await error_of(shop.redeem(code, code_verifier="")) == "invalid_grant"
    assert await error_of(shop.redeem(bound, code_verifier="")) == "invalid_grant"
    assert "id_token" in await shop.redeem(bound)


async def test_pkce_cannot_be_downgraded(shop: Shop) -> None:
    """A verifier for a request without a challenge is refused: its challenge was removed (RFC 9700, 4.8.2)."""
    code = await shop.sign_in(code_challenge="", code_challenge_method="")
    assert await error_of(shop.redeem(code)) == "invalid_grant"
    assert "id_token" in await shop.redeem(code, code_verifier="")


async def test_a_code_lives_for_a_minute(provider: Provider, shop: Shop) -> None:
    """A code expires 60 seconds after it was given (contract.md)."""
    first, second = await shop.sign_in(), await shop.sign_in()
    provider.later(60 * SECOND - 1)
    await shop.redeem(first)
    provider.later(1)
    assert await error_of(shop.redeem(second)) == "invalid_grant"


async def test_a_second_use_revokes(provider: Provider, shop: Shop) -> None:
    """A second use fails and revokes the access token, also 30 seconds or 10 minutes later (RFC 6749, 4.1.2)."""
    for after in (0, 30 * SECOND, 600 * SECOND):
        code = await shop.sign_in()
        tokens = await shop.redeem(code)
        assert (await provider.access_tokens.read_user(tokens["access_token"]))["sub"] == "1001"
        provider.later(after)
        assert await error_of(shop.redeem(code)) == "invalid_grant"
        assert await userinfo_error(shop, tokens["access_token"]) == "invalid_token"


async def test_of_many_uses_one_succeeds(provider: Provider, shop: Shop) -> None:
    """Of 16 uses at once, one gives tokens, and the others revoke them."""
    code = await shop.sign_in()
    answers = await asyncio.gather(*(shop.redeem(code) for _ in range(16)), return_exceptions=True)
    (tokens,) = (each for each in answers if isinstance(each, dict))
    assert {each.error for each in answers if isinstance(each, OAuthError)} == {"invalid_grant"}
    assert await userinfo_error(shop, tokens["access_token"]) == "invalid_token"


async def test_the_response(provider: Provider, subtests: pytest.Subtests) -> None:
    """The tokens have the form, the claims and the lifetimes that contract.md names, with both algorithms."""
    for alg, lifetime in (("RS256", 3600), ("ES256", 300)):
        with subtests.test(alg=alg):
            shop = await provider.shop(signing_alg=alg, id_token_lifetime=lifetime)
            browser = await shop.begin()
            await browser.confirm()
            confirmed_at = provider.node.clock.now
            provider.later(7 * SECOND)
            tokens = await shop.redeem(await browser.finish() or "")
            assert set(tokens) == {"access_token", "token_type", "expires_in", "id_token", "scope"}
            assert (tokens["expires_in"], tokens["scope"]) == (3600, "openid profile")
            claims = await claims_of(shop, tokens["id_token"])
            assert (claims["nonce"], claims["sub"], claims["name"]) == ("a nonce", "1001", "Ada Lovelace")
            assert claims["auth_time"] == confirmed_at // SECOND
            assert claims["iat"] == provider.node.clock.now // SECOND
            assert claims["exp"] - claims["iat"] == lifetime
            user = await provider.access_tokens.read_user(tokens["access_token"])
            assert user == {name: claims[name] for name in ("sub", "name", "updated_at", "preferred_username")}


async def test_each_sign_in_is_fresh(provider: Provider, shop: Shop) -> None:
    """Each request needs a new confirmation, whatever max_age and prompt say: auth_time increases, sub stays."""
    found = []
    for changed in ({}, {"prompt": "login"}, {"max_age": "1"}, {"max_age": "10000"}, {"login_hint": "ada"}):
        tokens = await shop.redeem(await shop.sign_in(**changed))
        found.append(await claims_of(shop, tokens["id_token"]))
        provider.later(2 * SECOND)
    times = [claims["auth_time"] for claims in found]
    assert times == sorted(set(times))
    assert {claims["sub"] for claims in found} == {"1001"}


async def confirm_with_phone(browser: InBrowser, number: str) -> None:
    signin = browser.provider.node.signin
    token = await browser.session_token()
    await signin.open_session(token, ADA.messenger_id)
    assert (await signin.confirm_session(token, ADA)).outcome == "phone"
    assert (await signin.give_phone(ADA, ADA.messenger_id, number, answers=lambda _: True)).changed


async def test_phone_scope(provider: Provider, shop: Shop) -> None:
    """The scope `phone` gives the number only if the project collects numbers, and no other scope gives it."""
    tokens = await shop.redeem(await shop.sign_in(scope="openid phone"))
    assert "phone_number" not in await claims_of(shop, tokens["id_token"])
    await shop.change_project(collect_phone=True)
    for scope, number in (("openid phone", "+15550100"), ("openid profile", None)):
        browser = await shop.begin(scope=scope)
        await confirm_with_phone(browser, "15550100")
        tokens = await shop.redeem(await browser.finish() or "")
        for claims in (
            await claims_of(shop, tokens["id_token"]),
            await provider.access_tokens.read_user(tokens["access_token"]),
        ):
            assert claims.get("phone_number") == number
            assert claims.get("phone_number_verified") == (True if number else None)


async def test_access_tokens(provider: Provider, shop: Shop) -> None:
    """An access token lives for an hour, serves userinfo only, and ends with its client."""
    access_token = (await shop.redeem(await shop.sign_in()))["access_token"]
    provider.later(HOUR - 1)
    await provider.access_tokens.read_user(access_token)
    provider.later(1)
    assert await userinfo_error(shop, access_token) == "invalid_token"
    second = (await shop.redeem(await shop.sign_in()))["access_token"]
    for wrong in ("", "x", second[:-1] + "~", second.upper(), shop.secret or "", "oat_" + "0" * 40):
        assert await userinfo_error(shop, wrong) == "invalid_token"
    await provider.access_tokens.read_user(second)
    await provider.clients.delete_client(acting(shop.developer), shop.project.id, shop.id)
    assert await userinfo_error(shop, second) == "invalid_token"


async def test_a_paused_project_finishes_what_was_begun(shop: Shop) -> None:
    """A paused project finishes started sign-ins, even without public access, because this client has a secret."""
    await shop.change_project(public_access=False)
    code = await shop.sign_in()
    await shop.change_project(is_active=False)
    assert await error_of(shop.begin_device()) == "unauthorized_client"
    assert "id_token" in await shop.redeem(code)


async def test_a_client_or_project_that_is_deleted_meanwhile(provider: Provider, node: Node) -> None:
    """After its client or project is gone, pages, codes and access tokens give nothing."""
    for kind in ("client", "project"):
        shop = await provider.shop()
        browser, code = await shop.begin(), await shop.sign_in()
        access_token = (await shop.redeem(await shop.sign_in()))["access_token"]
        if kind == "client":
            await provider.clients.delete_client(acting(shop.developer), shop.project.id, shop.id)
        else:
            await node.projects.delete_project(acting(shop.developer), shop.project.id)
        assert await provider.sign_ins.read_sign_in(browser.begun.id, browser.begun.browser_secret) is None
        assert await error_of(shop.redeem(code)) == "invalid_client"
        assert await error_of(shop.begin()) == "invalid_request"
        assert await userinfo_error(shop, access_token) == "invalid_token"


async def test_a_reported_sign_in(provider: Provider, node: Node, shop: Shop) -> None:
    """After "This wasn't me", neither the page, nor the code, nor the access token gives anything."""

    async def report(browser: InBrowser) -> None:
        session = (await browser.see()).authorization.session
        assert session is not None
        await node.signin.report_sign_in(session, ADA.messenger_id)
        await node.storage.users.unblock_project(ADA.messenger_id, shop.project.id)

    browser = await shop.begin()
    await browser.confirm()
    await report(browser)
    assert await browser.finish() is None
    browser = await shop.begin()
    await browser.confirm()
    code = await browser.finish() or ""
    await report(browser)
    assert await error_of(shop.redeem(code)) == "invalid_grant"
    browser = await shop.begin()
    await browser.confirm()
    access_token = (await shop.redeem(await browser.finish() or ""))["access_token"]
    await report(browser)
    assert await userinfo_error(shop, access_token) == "invalid_token"
