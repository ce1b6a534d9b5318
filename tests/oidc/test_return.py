"""Sign-ins that end in the browser in which they began: the page to which the messenger leads, and its return code."""

import httpx
import pytest
from tests.e2e.openid import DEEPLINK, answer_of
from tests.oidc.conftest import SAME_ORIGIN, Web
from tests.openid_provider import ADA, ISSUER, REQUESTER, Shop, error_of

from taproof.core.clock import MINUTE
from taproof.core.errors import ReturnUrlNotAllowed, SameDeviceRequired
from taproof.core.identifiers import session_key

FRAGMENT = "#taproof_return="


async def begin(web: Web, shop: Shop, policy: str = "require", **changed: str) -> str:
    """Start a sign-in of a project with a policy; return its page."""
    await shop.change_project(same_device=policy, allowed_origins=("https://app.example",))
    page: str = (await web.authorize(shop.request(**changed))).headers["location"]
    return page


async def come_back(web: Web, page: str, code: str) -> httpx.Response:
    """Send the form of the page to which the messenger leads."""
    return await web.post(f"{page}/return", data={"return_code": code}, headers=SAME_ORIGIN)


async def state_of(web: Web, page: str) -> str:
    return str((await web.get(f"{page}/status")).json()["state"])


async def seen_elsewhere(web: Web, page: str) -> str:
    """Return the page to which the messenger leads, as another browser sees it."""
    cookies = dict(web.client.cookies)
    web.client.cookies.clear()
    shown = (await web.get(f"{page}/return")).text
    web.client.cookies.update(cookies)
    return shown


async def test_a_whole_sign_in(web: Web, shop: Shop) -> None:
    """With `require`, Confirm alone signs nobody in; the page to which the messenger leads gets the code, once."""
    page = await begin(web, shop)
    shown = (await web.get(page)).text
    assert "Only this browser can finish the sign-in." in shown
    assert "QR code" not in shown
    assert (await web.get(f"{page}/qr.svg")).status_code == 404
    back, _, code = (await web.confirm(page)).partition(FRAGMENT)
    assert back == f"{page}/return"
    answer = (await web.get(f"{page}/status?seen=waiting&hint=waiting")).json()
    assert answer == {"state": "returning", "hint": "return", "text": "Waiting for you to come back…"}
    waiting = await web.get(page)
    assert (waiting.status_code, "<h1>Confirmed</h1>" in waiting.text) == (200, True)
    # A redirect would take the fragment along.
    landed = await web.get(back)
    assert (landed.status_code, f'action="/oidc/authorize/{page.rpartition("/")[2]}/return"' in landed.text) == (
        200,
        True,
    )
    assert "form-action" not in landed.headers["content-security-policy"]
    response = await come_back(web, page, code)
    assert answer_of(response).keys() == {"code", "state", "iss"}
    # The other tab must not send the application the same code: its second use would revoke the tokens.
    assert await state_of(web, page) == "returned"
    other_tab = await web.get(page)
    assert (other_tab.status_code, "<h1>This sign-in is finished</h1>" in other_tab.text) == (200, True)
    assert answer_of(await come_back(web, page, code)) == answer_of(response)
    assert (await web.redeem(shop, response)).status_code == 200
    assert (await come_back(web, page, code)).headers["location"] == page
    assert (await web.get(page)).status_code == 200


async def test_codes_that_give_nothing(web: Web, shop: Shop) -> None:
    """No code, a wrong one, and that of another sign-in leave the sign-in as it is; so does another site."""
    page = await begin(web, shop)
    other = await begin(web, shop)
    code = (await web.confirm(page)).partition(FRAGMENT)[2]
    foreign = (await web.confirm(other)).partition(FRAGMENT)[2]
    for wrong in ("", "x", foreign, code[:-1], code + "A", code.swapcase()):
        response = await come_back(web, page, wrong)
        assert (response.status_code, response.headers["location"]) == (303, page)
        assert await state_of(web, page) == "returning"
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        refused = await web.post(f"{page}/return", data={"return_code": code}, headers=headers)
        assert refused.status_code == 404
    assert await state_of(web, page) == "returning"
    # Telegram shows the button again with another code when the user opens the link again.
    renewed = (await web.provider.node.signin.confirm_session(await web.token_of(page), ADA)).return_link or ""
    assert (await come_back(web, page, code)).headers["location"] == page
    assert "code" in answer_of(await come_back(web, page, renewed.partition(FRAGMENT)[2]))


async def test_another_browser(web: Web, shop: Shop) -> None:
    """After a relayed link, the user's own browser explains what to do and sends nothing; the attacker's page waits."""
    page = await begin(web, shop)
    back, _, code = (await web.confirm(page)).partition(FRAGMENT)
    cookies = dict(web.client.cookies)
    web.client.cookies.clear()
    shown = await web.get(back, headers={"Accept-Language": "es"})
    assert (shown.status_code, "<h1>Este es otro navegador</h1>" in shown.text) == (404, True)
    assert shop.project.name not in shown.text
    assert (await come_back(web, page, code)).status_code == 404
    web.client.cookies.update(cookies)
    assert await state_of(web, page) == "returning"
    web.provider.later(5 * MINUTE)
    assert (await come_back(web, page, code)).headers["location"] == page
    assert "The request has expired" in (await web.get(page)).text


async def test_leaving_after_confirm(web: Web, shop: Shop) -> None:
    """A user who goes back to the application instead is not signed in, and the identity is erased from the store."""
    page = await begin(web, shop)
    token = await web.token_of(page)
    code = (await web.confirm(page)).partition(FRAGMENT)[2]
    assert answer_of(await web.post(f"{page}/leave", headers=SAME_ORIGIN))["error"] == "access_denied"
    assert (await come_back(web, page, code)).headers["location"] == page
    key = session_key(token)
    assert key is not None
    session = await web.provider.node.storage.sessions.read_session(key)
    assert session is not None
    assert (session.status, session.identity, session.confirmed_at) == ("cancelled", None, None)
    assert (await web.provider.node.signin.confirm_session(token, ADA)).outcome == "withdrawn"


async def test_a_crash_between_return_and_code(web: Web, shop: Shop) -> None:
    """If the process ends after the return, the same form finishes the sign-in.

    Until then, no page calls it finished.
    """
    page = await begin(web, shop)
    code = (await web.confirm(page)).partition(FRAGMENT)[2]
    token = await web.token_of(page)
    key = session_key(token)
    assert key is not None
    assert await web.provider.node.signin.accept_return(key, token, code)
    # The answer comes at once, because nothing announces the code.
    answer = (await web.get(f"{page}/status?seen=returning&hint=return")).json()
    assert answer == {"state": "returning", "hint": "return", "text": "Waiting for you to come back…"}
    shown = (await web.get(page)).text
    assert ("<h1>Confirmed</h1>" in shown, DEEPLINK.search(shown)) == (True, None)
    assert (await come_back(web, page, "x")).headers["location"] == page
    assert "code" in answer_of(await come_back(web, page, code))
    assert await state_of(web, page) == "returned"
    assert "<h1>This sign-in is finished</h1>" in (await web.get(page)).text


@pytest.mark.parametrize("policy", ["off", "offer"])
async def test_without_require(web: Web, shop: Shop, policy: str) -> None:
    """With `offer`, the page to which the messenger leads finishes the sign-in, as the first page does."""
    page = await begin(web, shop, policy)
    assert "QR code" in (await web.get(page)).text
    link = await web.confirm(page)
    assert link.startswith(f"{page}/return{FRAGMENT}") == (policy == "offer")
    assert (await web.get(f"{page}/return")).status_code == 200
    assert "You are signed in where you started. You can close this page." in await seen_elsewhere(web, page)
    response = await come_back(web, page, "")
    assert answer_of(await web.get(page)) == answer_of(response)
    assert (await web.redeem(shop, response)).status_code == 200
    assert "You are signed in where you started." in await seen_elsewhere(web, page)


@pytest.mark.parametrize("ending", ["wait", "leave", "expire"])
async def test_elsewhere_before_it_is_finished(web: Web, shop: Shop, ending: str) -> None:
    """Another browser says that the user is signed in only if that is so."""
    page = await begin(web, shop, "offer")
    if ending != "wait":
        await web.confirm(page)
    if ending == "leave":
        await web.post(f"{page}/leave", headers=SAME_ORIGIN)
    if ending == "expire":
        web.provider.later(MINUTE * 30)
    assert "open this address there" in await seen_elsewhere(web, page)


async def test_form_post(web: Web, shop: Shop) -> None:
    """The code also reaches an application that asks for `form_post`."""
    page = await begin(web, shop, response_mode="form_post")
    code = (await web.confirm(page)).partition(FRAGMENT)[2]
    response = await come_back(web, page, code)
    assert (response.status_code, f'action="{shop.client.redirect_uris[0]}"' in response.text) == (200, True)


async def test_pages_of_this_service_are_not_allowed_to_others(web: Web, shop: Shop) -> None:
    """A client cannot register a page of this service, because it may redirect to an attacker with the fragment.

    A project cannot allow such a page either, even if it lists the service's origin and the page.
    """
    redirects = f"{ISSUER}/oidc/authorize?prompt=none"
    for lists in ({}, {"allowed_origins": (ISSUER,), "return_urls": (redirects,)}):
        for policy in ("offer", "require"):
            await begin(web, shop, policy)
            await shop.change_project(**lists)
            for return_url in (f"{ISSUER}/oidc/authorize/auth_1/return", redirects, f"{ISSUER.upper()}:443"):
                for public in (True, False):
                    with pytest.raises(ReturnUrlNotAllowed):
                        await web.provider.node.signin.create_session(
                            shop.project.id, public=public, code_challenge="c" * 43, return_url=return_url
                        )


async def test_a_host_that_telegram_opens_not(web: Web, shop: Shop) -> None:
    """Telegram refuses buttons that lead to a host without a dot, so a sign-in that needs the button does not start."""
    for base_url in ("http://localhost:3000", "https://sso"):
        web.provider.sign_ins._base_url = base_url
        for policy in ("off", "offer"):
            page = await begin(web, shop, policy)
            assert await web.confirm(page) == ""
            assert "code" in answer_of(await web.get(page))
        expired = await begin(web, shop, "offer")
        await shop.change_project(same_device="require")
        assert answer_of(await web.authorize(shop.request()))["error"] == "unauthorized_client"
        web.provider.later(10 * MINUTE)
        refused = await web.post(f"{expired}/start-again", headers=SAME_ORIGIN)
        assert answer_of(refused)["error"] == "unauthorized_client"


async def test_devices(web: Web, shop: Shop) -> None:
    """The device grant moves a sign-in to another browser by design, so `require` refuses it, even if set later."""
    begun = await shop.begin_device()
    await begin(web, shop)
    assert await error_of(shop.begin_device()) == "unauthorized_client"
    with pytest.raises(SameDeviceRequired):
        await web.provider.devices.continue_device(begun["user_code"], REQUESTER)
    assert await error_of(shop.poll(begun["device_code"])) == "access_denied"


async def test_a_device_with_offer(web: Web, shop: Shop) -> None:
    """The sign-in of a device has no page to return to."""
    await begin(web, shop, "offer")
    begun = await shop.begin_device()
    typed = {"user_code": begun["user_code"], "action": "continue"}
    page = (await web.post("/device", data=typed, headers=SAME_ORIGIN)).headers["location"]
    assert await web.confirm(page) == ""
    assert (await come_back(web, page, "")).headers["location"] == page
    assert "id_token" in await shop.poll(begun["device_code"])
