"""Signing out at the request of an application (OpenID Connect RP-Initiated Logout 1.0)."""

from typing import Any

import httpx
import jwt
import pytest
from tests.oidc.conftest import Web
from tests.openid_provider import ADA, ISSUER, Parameters, Provider, Shop
from tests.service.oidc.test_grants import OFFLINE, Kept, stored

from taproof.contract.client import GROUPS_LIMIT
from taproof.core.clock import DAY, HOUR
from taproof.core.oidc.requests import VALUE_LIMIT
from taproof.oidc.pages.texts.catalog import LANGUAGES

BACK = "https://app.example/bye?a=b"


@pytest.fixture
async def shop(provider: Provider) -> Shop:
    return await provider.shop(post_logout_redirect_uris=(BACK, "http://127.0.0.1/bye"), name="The <Shop>")


async def kept(web: Web, shop: Shop, **changed: str) -> Kept:
    response = await web.redeem(shop, await web.sign_in(shop.request(**{"scope": OFFLINE} | changed)))
    return Kept(shop, response.json())


async def end_session(web: Web, **parameters: str) -> httpx.Response:
    return await web.get("/oidc/end_session", params=parameters)


async def is_live(user: Kept) -> bool:
    return (await stored(user)).ended_at is None


async def test_signing_out_leads_back_to_the_application(web: Web, shop: Shop) -> None:
    """GET and POST both work, with the state. The tokens end, and the client is not notified, because it asked."""
    for method in ("GET", "POST"):
        user = await kept(web, shop)
        shop.provider.later(2 * HOUR)  # An expired ID token still names its user (section 2).
        parameters = {"id_token_hint": user.tokens["id_token"], "post_logout_redirect_uri": BACK, "state": "a b&"}
        if method == "GET":
            response = await end_session(web, **parameters)
        else:
            response = await web.post("/oidc/end_session", data=parameters | {"client_id": shop.id})
        assert (response.status_code, response.headers["location"]) == (303, f"{BACK}&state=a+b%26")
        assert response.headers["cache-control"] == "no-store"
        assert (await stored(user)).ended_reason == "signed_out"
        assert await user.refused() == "invalid_grant"
    # The port of a loopback address is free, as for redirect URIs.
    response = await end_session(web, client_id=shop.id, post_logout_redirect_uri="http://127.0.0.1:4711/bye")
    assert response.headers["location"] == "http://127.0.0.1:4711/bye"


async def test_the_id_token_of_a_user_in_many_groups(web: Web, shop: Shop) -> None:
    """It is longer than other parameters may be, and is accepted for the next sign-in too."""
    groups = {f"{number:064}": (ADA.messenger_id,) for number in range(GROUPS_LIMIT)}
    await shop.change_client(groups=groups)
    user = await kept(web, shop, scope=f"{OFFLINE} groups")
    hint = user.tokens["id_token"]
    assert len(hint) > VALUE_LIMIT
    again = await web.authorize(shop.request(id_token_hint=hint))
    assert again.headers["location"].startswith(f"{ISSUER}/oidc/authorize/auth_")
    assert (await end_session(web, id_token_hint=hint, post_logout_redirect_uri=BACK)).headers["location"] == BACK
    assert not await is_live(user)


async def test_only_the_sign_in_of_the_id_token_ends(web: Web, provider: Provider, shop: Shop) -> None:
    """The user's other sign-ins, at this client and at others, stay."""
    other_shop = await provider.shop(beside=shop)
    user, elsewhere, other = await kept(web, shop), await kept(web, shop), await kept(web, other_shop)
    page = await end_session(web, id_token_hint=user.tokens["id_token"])
    assert page.status_code == 200
    assert "You are signed out of <bdi>The &lt;Shop&gt;</bdi>." in page.text
    assert [await is_live(each) for each in (user, elsewhere, other)] == [False, True, True]
    assert (await end_session(web, id_token_hint=user.tokens["id_token"])).status_code == 200


async def test_an_id_token_without_a_sid_ends_the_users_grants(web: Web, shop: Shop) -> None:
    """An ID token of a sign-in without a grant names only the user and the client."""
    user = await kept(web, shop)
    plain = await kept(web, shop, scope="openid")
    assert "sid" not in jwt.decode(plain.tokens["id_token"], options={"verify_signature": False})
    assert (await end_session(web, id_token_hint=plain.tokens["id_token"])).status_code == 200
    assert not await is_live(user)


async def test_signing_out_ends_the_access_token_of_an_ordinary_sign_in(web: Web, shop: Shop) -> None:
    """Without a grant, it is found by at_hash. The access token of another sign-in of the user goes on."""
    first, second = [(await web.redeem(shop, await web.sign_in(shop.request()))).json() for _ in range(2)]

    async def status(tokens: dict[str, Any]) -> int:
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        return (await web.get("/oidc/userinfo", headers=bearer)).status_code

    assert "sid" not in jwt.decode(first["id_token"], options={"verify_signature": False})
    assert (await end_session(web, id_token_hint=first["id_token"])).status_code == 200
    assert (await status(first), await status(second)) == (401, 200)


async def test_without_a_hint_nothing_ends(web: Web, shop: Shop) -> None:
    """Any page can send its visitors here, so nothing ends.

    A registered address of a named client is still followed.
    """
    user = await kept(web, shop)
    response = await end_session(web, client_id=shop.id, post_logout_redirect_uri=BACK, logout_hint="1001")
    assert (response.status_code, response.headers["location"]) == (303, BACK)
    for parameters in ({}, {"client_id": shop.id}):
        page = await end_session(web, **parameters)
        assert page.status_code == 200
        assert "does not keep you signed in" in page.text
    assert await is_live(user)


async def test_wrong_requests_lead_nowhere(web: Web, provider: Provider, shop: Shop, subtests: pytest.Subtests) -> None:
    """The page explains the error for the developer. A wrong hint ends nothing."""
    user = await kept(web, shop)
    hint = user.tokens["id_token"]
    other = await provider.shop(beside=shop, post_logout_redirect_uris=(BACK,))
    header, payload, signature = hint.split(".")
    forged = jwt.encode(jwt.decode(hint, options={"verify_signature": False}), "secret" * 8, headers={"kid": "x"})
    surrogate = jwt.encode({"aud": "\ud800"}, "secret" * 8)  # No text that a database stores.
    refused: dict[str, tuple[Parameters, str]] = {
        "another address": ({"client_id": shop.id, "post_logout_redirect_uri": BACK + "x"}, "is not registered"),
        "an address of nobody": ({"post_logout_redirect_uri": BACK}, "needs id_token_hint or client_id"),
        "an unknown client": ({"client_id": "oidc_unknown", "post_logout_redirect_uri": BACK}, "no client"),
        "another client": ({"client_id": other.id, "id_token_hint": hint, "post_logout_redirect_uri": BACK}, "issued"),
        "a forged hint": ({"id_token_hint": forged, "post_logout_redirect_uri": BACK}, "issued to this client"),
        "a client that is no text": ({"id_token_hint": surrogate}, "issued to this client"),
        "another signature": ({"id_token_hint": f"{header}.{payload}.{signature[:-4]}AAAA"}, "issued to this client"),
        "no hint": ({"id_token_hint": "x", "post_logout_redirect_uri": BACK}, "issued to this client"),
        "an access token": ({"id_token_hint": user.access_token}, "issued to this client"),
    }
    for name, (parameters, told) in refused.items():
        with subtests.test(name):
            page = await end_session(web, **parameters)
            assert page.status_code == 400
            assert told in page.text
            assert "location" not in page.headers
            assert await is_live(user)
    doubled = await web.get(f"/oidc/end_session?client_id={shop.id}&client_id={shop.id}")
    assert doubled.status_code == 400
    assert (await web.client.head("/oidc/end_session", params={"id_token_hint": hint})).status_code == 405
    assert await is_live(user)


async def test_a_hint_of_an_old_key(web: Web, shop: Shop) -> None:
    """A hint of a replaced key is accepted for 180 days."""
    user = await kept(web, shop)
    for _ in range(4):
        shop.provider.later(30 * DAY - 1)
        await user.refresh()
    hint = user.tokens["id_token"]
    await shop.provider.keys.rotate_keys()
    shop.provider.later(2 * DAY)
    await shop.provider.keys.read_jwks()
    assert (await end_session(web, id_token_hint=hint)).status_code == 200
    assert not await is_live(user)


async def test_the_page_is_in_the_users_language(web: Web, shop: Shop) -> None:
    """The language is that of the request, else that of the browser."""
    user = await kept(web, shop)
    hint: dict[str, Any] = {"id_token_hint": user.tokens["id_token"]}
    for language, texts in LANGUAGES.items():
        page = await end_session(web, **hint, ui_locales=f"xx {language}")
        assert texts.signed_out.heading in page.text
        assert f'lang="{language}"' in page.text
