"""A client can use only the grant types in its settings (RFC 6749, sections 4.1.2.1 and 5.2; RFC 8628)."""

from typing import Any

import httpx
import pytest
from tests.e2e.openid import answer_of
from tests.oidc.conftest import SAME_ORIGIN, Web
from tests.openid_provider import VERIFIER, Provider, Shop

BY_CODE = ("authorization_code",)
BY_DEVICE = ("device_code",)
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


async def call(web: Web, shop: Shop, endpoint: str, **form: str) -> tuple[int, str | None]:
    """Call an endpoint as the client; return the status and the error."""
    header, credentials = shop.credentials()
    headers = {} if header is None else {"Authorization": header}
    response = await web.post(f"/oidc/{endpoint}", data=credentials | form, headers=headers)
    return response.status_code, response.json().get("error")


async def begin_device(web: Web, shop: Shop) -> dict[str, Any]:
    header, form = shop.credentials()
    headers = {} if header is None else {"Authorization": header}
    response = await web.post("/oidc/device_authorization", data=form | {"scope": "openid"}, headers=headers)
    begun: dict[str, Any] = response.json()
    return begun


async def type_code(web: Web, user_code: str, action: str = "continue") -> httpx.Response:
    return await web.post("/device", data={"user_code": user_code, "action": action}, headers=SAME_ORIGIN)


@pytest.mark.parametrize("auth_method", ["none", "basic"])
async def test_a_client_of_the_web_starts_no_device(web: Web, provider: Provider, auth_method: str) -> None:
    """A web client's id, which anyone can know, starts no device sign-in; this is also the default."""
    settings = {"grant_types": None} if auth_method == "none" else {"grant_types": BY_CODE}
    shop = await provider.shop(auth_method=auth_method, **settings)
    assert shop.client.grant_types == BY_CODE
    assert await call(web, shop, "device_authorization", scope="openid") == (400, "unauthorized_client")
    for form in ({}, {"device_code": "unknown"}):
        assert await call(web, shop, "token", grant_type=DEVICE_GRANT, **form) == (400, "unauthorized_client")
    assert (await web.redeem(shop, await web.sign_in(shop.request()))).status_code == 200


async def test_a_client_of_devices_starts_nothing_in_a_browser(web: Web, provider: Provider) -> None:
    """The authorization endpoint answers at the redirect URI, and the other endpoints directly."""
    shop = await provider.shop(grant_types=BY_DEVICE)
    for more in ({}, {"prompt": "none"}):
        answer = answer_of(await web.authorize(shop.request(**more)))
        assert (answer["error"], answer["state"]) == ("unauthorized_client", "a state")
        assert await call(web, shop, "par", **shop.request(**more)) == (400, "unauthorized_client")
    refused = await call(web, shop, "token", grant_type="authorization_code", code="x", code_verifier=VERIFIER)
    assert refused == (400, "unauthorized_client")
    assert "user_code" in await begin_device(web, shop)


async def test_removing_a_grant_ends_its_sign_ins(web: Web, provider: Provider, shop: Shop) -> None:
    """Removing the grant ends sign-ins before and after the user typed the code, and after Confirm.

    Giving it back revives none.
    """
    waiting, typed, confirmed = [await begin_device(web, shop) for _ in range(3)]
    pages = [(await type_code(web, each["user_code"])).headers["location"] for each in (typed, confirmed)]
    await web.confirm(pages[1])
    in_browser = (await web.authorize(shop.request())).headers["location"]
    await shop.change_client(grant_types=BY_CODE)
    for each in (waiting, typed, confirmed):
        poll = {"grant_type": DEVICE_GRANT, "device_code": each["device_code"]}
        assert await call(web, shop, "token", **poll) == (400, "unauthorized_client")
    provider.later(1)
    await shop.change_client(grant_types=(*BY_CODE, *BY_DEVICE))
    for each in (waiting, typed, confirmed):
        poll = {"grant_type": DEVICE_GRANT, "device_code": each["device_code"]}
        assert await call(web, shop, "token", **poll) == (400, "access_denied")
    assert (await type_code(web, waiting["user_code"])).status_code == 404
    assert [(await web.get(page)).status_code for page in pages] == [404, 404]
    again = await begin_device(web, shop)
    assert (await type_code(web, again["user_code"])).status_code == 303
    assert (await web.get(in_browser)).status_code == 200
    await shop.change_client(grant_types=BY_DEVICE)
    assert (await web.get(in_browser)).status_code == 404


async def test_the_grant_on_a_clock_that_is_behind(web: Web, provider: Provider, shop: Shop) -> None:
    """A node whose clock is behind that of the node that added the grant can start device sign-ins."""
    await shop.change_client(grant_types=BY_CODE)
    await shop.change_client(grant_types=BY_DEVICE)
    provider.later(-5_000)
    begun = await begin_device(web, shop)
    assert (await type_code(web, begun["user_code"])).status_code == 303
