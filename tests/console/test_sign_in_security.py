"""The cookies of a sign-in, and their lifetime."""

import httpx
from tests.console.browsing import Browsing
from tests.console.conftest import GRACE, SESSION_COOKIE, Installation, Visitor
from tests.console.test_sign_in import SIGN_IN, SIGN_IN_COOKIE, WAITING, bind, is_signed_in, new_token

from taproof.core.accounts import Actor
from taproof.core.clock import HOUR

# ---- cookies


async def test_cookies_over_https(console: Installation, anonymous: Browsing) -> None:
    """Over HTTPS every cookie is bound to this host, hidden from scripts, and not sent by other sites."""
    await bind(console, await console.add_developer("ada@example.com"))
    started = await anonymous.submit(SIGN_IN, SIGN_IN)
    await console.messenger.confirm((await anonymous.follow(started)).deeplink)
    finished = await anonymous.get(WAITING)
    given = [*started.response.headers.get_list("set-cookie"), *finished.response.headers.get_list("set-cookie")]
    assert {cookie.partition("=")[0] for cookie in given} == {SIGN_IN_COOKIE, SESSION_COOKIE}
    for cookie in given:
        attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"secure", "httponly", "samesite=lax", "path=/"} <= attributes, cookie
        assert not [each for each in attributes if each.startswith("domain")], cookie
    [session] = [cookie for cookie in given if cookie.startswith(SESSION_COOKIE)]
    assert "max-age" not in session.lower(), "it ends with the browser"


async def test_cookies_over_http(console: Installation) -> None:
    """Over plain HTTP, for this machine only, cookies lack the prefix and Secure, and are otherwise the same."""
    _, token = await new_token(console, await console.add_developer("ada@example.com"))
    transport = httpx.ASGITransport(console.app.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
        browser = Browsing(client)
        shown = await browser.submit(SIGN_IN, f"{SIGN_IN}/token", access_token=token)
        [cookie] = shown.response.headers.get_list("set-cookie")
        name, _, rest = cookie.partition("=")
        assert name == "taproof_session"
        attributes = {part.strip().lower() for part in rest.split(";")[1:]}
        assert {"httponly", "samesite=lax", "path=/"} == attributes
        assert await is_signed_in(browser)


async def test_no_fixation(console: Installation, anonymous: Browsing) -> None:
    """Each sign-in sets a new, unpredictable cookie, so a planted or earlier one is worthless."""
    developer = await console.add_developer("ada@example.com")
    _, token = await new_token(console, developer)
    values = ["con_" + "A" * 49]
    anonymous.client.cookies.set(SESSION_COOKIE, values[0], domain="console.example", path="/")
    for _ in range(2):
        await anonymous.submit(SIGN_IN, f"{SIGN_IN}/token", access_token=token)
        values.append(anonymous.client.cookies[SESSION_COOKIE])
        assert await is_signed_in(anonymous)
        await anonymous.post("/console/sign-out")
        assert not await is_signed_in(anonymous)
    assert len(set(values)) == 3
    for value in values:
        anonymous.client.cookies.set(SESSION_COOKIE, value, domain="console.example", path="/")
        assert not await is_signed_in(anonymous)


async def test_another_sign_in_ends_the_session_before(console: Installation, visitor: Visitor) -> None:
    """A sign-in as another developer ends the session that the browser had."""
    before = visitor.client.cookies[SESSION_COOKIE]
    link = await console.services.invitations.invite_developer(None, "grace@example.com")
    await visitor.submit("/console/invite", "/console/invite", code=link.code)
    shown = await visitor.submit("/console/invite/accept", "/console/invite/accept")
    await console.messenger.confirm((await visitor.follow(shown)).deeplink, GRACE)
    assert (await visitor.submit(WAITING, "/console/invite/confirm")).status == 303
    assert "grace@example.com" in (await visitor.get("/console/account")).text
    other = await console.browser()
    other.client.cookies.set(SESSION_COOKIE, before)
    assert not await is_signed_in(other)


# ---- how long it lasts


async def test_ends_with_its_access_token(console: Installation, anonymous: Browsing) -> None:
    """A session from an access token ends when the token is revoked or expires."""
    developer = await console.add_developer("ada@example.com")
    token_id, token = await new_token(console, developer)
    await anonymous.submit(SIGN_IN, f"{SIGN_IN}/token", access_token=token)
    assert await is_signed_in(anonymous)
    await console.services.developers.delete_access_token(Actor(developer, "command_line"), token_id)
    assert not await is_signed_in(anonymous)
    _, token = await new_token(console, developer, expires_at=console.clock.now + HOUR)
    await anonymous.submit(SIGN_IN, f"{SIGN_IN}/token", access_token=token)
    assert await is_signed_in(anonymous)
    console.clock.now += HOUR
    assert not await is_signed_in(anonymous)
