"""`id_token_hint`: only the account of an earlier sign-in gets a code (OpenID Connect Core, 3.1.2.1 and 3.1.2.2)."""

import base64
import json

import jwt
import pytest
from tests.e2e.openid import answer_of
from tests.oidc.conftest import SAME_ORIGIN, Web
from tests.oidc.test_redirects import Links
from tests.openid_provider import ADA, ISSUER, Provider, Shop, basic

from taproof.core.clock import DAY, HOUR
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.model import KEY_LIFETIME
from taproof.core.oidc.signing import new_private_key
from taproof.service.housekeeping import Housekeeping

GRACE = MessengerIdentity("1002", "Grace Hopper", "grace")
EXPECTED = "Confirm with the account that you used before in"


@pytest.fixture
async def hint(web: Web, shop: Shop) -> str:
    """The ID token of an earlier sign-in, which has expired."""
    tokens = (await web.redeem(shop, await web.sign_in(shop.request()))).json()
    web.provider.later(2 * HOUR)
    return str(tokens["id_token"])


async def begin(web: Web, shop: Shop, hint: str, **changed: str) -> str:
    """Start a sign-in with a hint; return its page."""
    begun = await web.authorize(shop.request(id_token_hint=hint, **changed))
    assert begun.status_code == 303, begun.text
    page: str = begun.headers["location"]
    assert page.startswith(f"{ISSUER}/oidc/authorize/auth_"), page
    return page


async def test_the_expected_account(web: Web, shop: Shop, hint: str) -> None:
    """The expected account gets a code. The page says that one account is expected, without its id or name."""
    page = await begin(web, shop, hint)
    shown = (await web.get(page)).text
    assert EXPECTED in shown
    for secret in (ADA.messenger_id, ADA.messenger_name, str(ADA.messenger_username)):
        assert secret not in shown.replace(await web.token_of(page), "")
    await web.confirm(page)
    tokens = (await web.redeem(shop, await web.get(page))).json()
    claims = jwt.decode(tokens["id_token"], options={"verify_signature": False})
    assert claims["sub"] == ADA.messenger_id
    other = (await web.authorize(shop.request())).headers["location"]
    assert EXPECTED not in (await web.get(other)).text


@pytest.mark.parametrize("mode", ["query", "form_post"])
async def test_another_account(web: Web, shop: Shop, hint: str, mode: str) -> None:
    """Another account gets login_required at the redirect URI, and no code, however often the page is loaded."""
    page = await begin(web, shop, hint, response_mode=mode)
    await web.confirm(page, identity=GRACE)
    assert (await web.get(f"{page}/status?seen=waiting&hint=waiting")).json() == {"state": "other_account"}
    elsewhere = (await web.client.get(f"{page}/return", headers={"Cookie": ""})).text
    assert "You are signed in" not in elsewhere
    response = await web.get(page)
    answer = answer_of(response) if mode == "query" else Links(response.text).fields
    assert (answer["error"], answer["state"], "code" in answer) == ("login_required", "a state", False)
    again = await web.get(page)
    assert (again.status_code, "<h1>This sign-in is finished</h1>" in again.text) == (200, True)


async def test_another_account_by_a_pushed_request(web: Web, shop: Shop, hint: str) -> None:
    """A pushed hint counts as in the browser.

    The store keeps no ID token, and no other name of the parameter counts.
    """
    headers = {"Authorization": basic(shop.id, shop.secret or "")}
    for form, expected in (
        (shop.request(id_token_hint=hint), "login_required"),
        (shop.request(id_token_hint=hint, expected_user=GRACE.messenger_id), "login_required"),
        (shop.request(expected_user=ADA.messenger_id), None),
    ):
        pushed = await web.post("/oidc/par", data=form, headers=headers)
        rows = await web.provider.node.storage.authorizations._database.read(
            "SELECT parameters FROM oidc_pushed_requests"
        )
        assert rows
        assert hint not in str(rows)
        request = {"client_id": shop.id, "request_uri": pushed.json()["request_uri"]}
        page = (await web.authorize(request)).headers["location"]
        await web.confirm(page, identity=GRACE)
        assert answer_of(await web.get(page)).get("error") == expected
    refused = await web.post("/oidc/par", data=shop.request(id_token_hint="a.b.c"), headers=headers)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request")


async def test_another_account_where_sign_ins_end_where_they_began(web: Web, shop: Shop, hint: str) -> None:
    """With `require`, another account is refused at the return; until then, nobody learns which account confirmed."""
    await shop.change_project(same_device="require", allowed_origins=("https://app.example",))
    page = await begin(web, shop, hint)
    code = (await web.confirm(page, identity=GRACE)).partition("#taproof_return=")[2]
    assert (await web.get(f"{page}/status")).json()["state"] == "returning"
    for error in ("login_required", None):
        response = await web.post(f"{page}/return", data={"return_code": code}, headers=SAME_ORIGIN)
        assert (response.status_code, response.headers["location"]) == (303, page)
        response = await web.get(page)
        assert (None if error is None else answer_of(response)["error"]) == error
    assert "<h1>This sign-in is finished</h1>" in response.text


async def test_the_expected_account_after_an_expired_request(web: Web, shop: Shop, hint: str) -> None:
    """Starting again does not forget the hint."""
    page = await begin(web, shop, hint)
    web.provider.later(10 * 60_000)
    await web.post(f"{page}/start-again", headers=SAME_ORIGIN)
    await web.confirm(page, identity=GRACE)
    assert answer_of(await web.get(page))["error"] == "login_required"


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_hints_that_are_refused(
    web: Web, provider: Provider, shop: Shop, hint: str, subtests: pytest.Subtests
) -> None:
    """A hint that Taproof did not issue to this client is invalid_request at the redirect URI, and starts nothing."""
    header, claims = jwt.get_unverified_header(hint), jwt.decode(hint, options={"verify_signature": False})
    signer = await provider.keys.find_signer("RS256")
    jwks = await provider.keys.read_jwks()
    public = next(each for each in jwks["keys"] if each["kid"] == signer.kid)
    altered = claims | {"sub": GRACE.messenger_id}
    other = await provider.shop(beside=shop)
    foreign = (await web.redeem(other, await web.sign_in(other.request()))).json()
    first, payload, signature = hint.split(".")
    refused = {
        "no token": "x",
        "not JSON": "e30.e30.",
        "unsigned": f"{_encoded(header | {'alg': 'none'})}.{payload}.",
        "altered": f"{first}.{_encoded(altered)}.{signature}",
        "another key": jwt.encode(claims, new_private_key("RS256"), "RS256", header),
        "signed with the public key": jwt.encode(altered, public["n"], "HS256", {"kid": signer.kid}),
        "unknown key": jwt.encode(claims, new_private_key("ES256"), "ES256", {"kid": "unknown"}),
        "another issuer": signer.sign(claims | {"iss": "https://other.example"}),
        "without an audience": signer.sign({name: value for name, value in claims.items() if name != "aud"}),
        "without a subject": signer.sign({name: value for name, value in claims.items() if name != "sub"}),
        "of another client": foreign["id_token"],
        "an access token": foreign["access_token"],
        "another kind of token": jwt.encode(claims, signer.key, "RS256", {"kid": signer.kid, "typ": "logout+jwt"}),
        "deep": f"{base64.urlsafe_b64encode(b'[' * 2_900).decode()}.e30.",
    }
    for case, each in refused.items():
        with subtests.test(case):
            answer = answer_of(await web.authorize(shop.request(id_token_hint=each)))
            assert (answer["error"], answer["state"]) == ("invalid_request", "a state")
            assert answer["error_description"].startswith("id_token_hint is not an ID token that Taproof issued")
    assert answer_of(await web.authorize(shop.request(id_token_hint=hint, prompt="none")))["error"] == "login_required"


async def test_hints_of_keys_that_no_longer_sign(web: Web, provider: Provider, shop: Shop, hint: str) -> None:
    """Such a hint is accepted for 180 days after its key's end, although the key is no longer published.

    Never after a leak.
    """
    node = provider.node
    housekeeping = Housekeeping(node.storage, node.encryptor, node.clock, system_entropy, 90)
    kid = jwt.get_unverified_header(hint)["kid"]

    async def accepted() -> bool:
        await housekeeping.sweep()
        return await provider.keys.read_id_token(hint, issuer=ISSUER, client_id=shop.id) is not None

    await provider.keys.read_jwks()
    provider.later(KEY_LIFETIME + 3 * DAY)
    for _ in range(2):
        assert await accepted()
    assert kid not in [key["kid"] for key in (await provider.keys.read_jwks())["keys"]]
    await begin(web, shop, hint)
    provider.later(170 * DAY)
    assert await accepted()
    provider.later(20 * DAY)
    assert not await accepted()
    tokens = (await web.redeem(shop, await web.sign_in(shop.request()))).json()
    await begin(web, shop, tokens["id_token"])
    await provider.keys.replace_keys()
    answer = answer_of(await web.authorize(shop.request(id_token_hint=tokens["id_token"])))
    assert answer["error"] == "invalid_request"


async def test_a_device_ignores_the_hint(web: Web, shop: Shop, hint: str) -> None:
    """RFC 8628 has no such parameter, so any account can confirm."""
    form = {"scope": "openid", "id_token_hint": hint}
    headers = {"Authorization": basic(shop.id, shop.secret or "")}
    begun = (await web.post("/oidc/device_authorization", data=form, headers=headers)).json()
    typed = {"user_code": begun["user_code"], "action": "continue"}
    page = (await web.post("/device", data=typed, headers=SAME_ORIGIN)).headers["location"]
    await web.confirm(page, identity=GRACE)
    assert "id_token" in await shop.poll(begun["device_code"])
