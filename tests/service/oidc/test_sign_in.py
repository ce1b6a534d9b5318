"""The sign-in page: its states, its browser, and its code."""

import asyncio

import pytest
from tests.openid_provider import ADA, REDIRECT_URI, REQUESTER, InBrowser, Provider, Shop, error_of
from tests.service.conftest import Node, acting

from taproof.core.clock import MINUTE, SECOND
from taproof.core.errors import CodeVerifierMissing, ProjectPaused, SessionNotFound
from taproof.core.oidc.clients import ClientChanges
from taproof.core.oidc.errors import RefusedOnPage
from taproof.core.oidc.model import AUTHORIZATION_LIFETIME, PUSHED_LIFETIME
from taproof.core.oidc.requests import RefusedByRedirect
from taproof.service.oidc.sign_in import PageState


async def state_of(browser: InBrowser) -> tuple[PageState, bool]:
    """Return the state of the page, and whether it offers to start again."""
    seen = await browser.see()
    assert (seen.deeplink is not None) == (seen.state == "waiting")
    return seen.state, seen.can_start_again


async def test_the_states_of_a_page(provider: Provider, node: Node, shop: Shop) -> None:
    """The page waits, then shows what the user decided; it gives one code."""
    browser = await shop.begin()
    assert await state_of(browser) == ("waiting", False)
    assert await browser.finish() is None
    await browser.open()
    assert await state_of(browser) == ("waiting", False)
    await node.signin.confirm_session(await browser.session_token(), ADA)
    assert await state_of(browser) == ("confirmed", False)
    code = await browser.finish()
    assert await state_of(browser) == ("confirmed", False)
    assert await browser.finish() == code
    await shop.redeem(code or "")
    assert await state_of(browser) == ("finished", False)
    assert await browser.finish() is None


async def test_start_again(provider: Provider, node: Node, shop: Shop) -> None:
    """After expiry, another session can be started until the sign-in's own time is over; after Cancel, none can."""
    refused = await shop.begin()
    await node.signin.cancel_session(await refused.open(), ADA.messenger_id)
    assert await state_of(refused) == ("cancelled", False)
    assert not await provider.sign_ins.start_again(await refused.see(), REQUESTER)
    browser = await shop.begin()
    second = await browser.open()
    provider.later(10 * MINUTE)
    assert await state_of(browser) == ("expired", True)
    assert await provider.sign_ins.start_again(await browser.see(), REQUESTER)
    seen = await browser.see()
    assert not await provider.sign_ins.start_again(seen, REQUESTER)
    assert (await browser.see()).deeplink == seen.deeplink, "A session that is not over is kept."
    # An old session no longer counts.
    assert (await node.signin.open_session(second, ADA.messenger_id)).outcome == "expired"
    await browser.confirm()
    assert await browser.finish() is not None
    late = await shop.begin()
    provider.later(AUTHORIZATION_LIFETIME)
    assert await state_of(late) == ("expired", False)


async def test_a_paused_project_starts_nothing_again(provider: Provider, shop: Shop) -> None:
    """A paused project refuses the next session, and the page keeps its state."""
    browser = await shop.begin()
    provider.later(10 * MINUTE)
    await shop.change_project(is_active=False)
    with pytest.raises(ProjectPaused):
        await provider.sign_ins.start_again(await browser.see(), REQUESTER)
    assert await state_of(browser) == ("expired", True)


async def test_leave(provider: Provider, shop: Shop) -> None:
    """A user who goes back ends the sign-in, also in the messenger, where Confirm comes too late."""
    browser = await shop.begin()
    token = await browser.open()
    assert await provider.sign_ins.leave_sign_in(await browser.see())
    assert await state_of(browser) == ("finished", False)
    assert not await provider.sign_ins.leave_sign_in(await browser.see())
    assert (await provider.node.signin.confirm_session(token, ADA)).outcome == "withdrawn"
    assert await browser.finish() is None
    assert provider.counted == ["withdrawn"]
    browser = await shop.begin()
    await browser.confirm()
    assert await browser.finish() is not None
    assert not await provider.sign_ins.leave_sign_in(await browser.see())
    assert provider.counted == ["withdrawn"]


async def test_leave_after_confirm(provider: Provider, shop: Shop) -> None:
    """After Confirm, the user can still go back. The session stays confirmed, and nobody gets a code."""
    browser = await shop.begin()
    await browser.confirm()
    assert await provider.sign_ins.leave_sign_in(await browser.see())
    assert await browser.finish() is None
    assert (await state_of(browser), provider.counted) == (("finished", False), [])


async def test_two_tabs(shop: Shop) -> None:
    """Two tabs with the same sign-in get the same code, which gives tokens once."""
    browser = await shop.begin()
    await browser.confirm()
    codes = await asyncio.gather(*(browser.finish() for _ in range(8)))
    assert len(set(codes)) == 1
    await shop.redeem(codes[0] or "")
    assert await error_of(shop.redeem(codes[0] or "")) == "invalid_grant"


async def test_a_page_belongs_to_its_browser(provider: Provider, shop: Shop) -> None:
    """Neither another secret, nor the secret of another sign-in, nor another id shows a page."""
    mine, other = (await shop.begin()).begun, (await shop.begin()).begun
    for authorization_id, secret in (
        (mine.id, other.browser_secret),
        (mine.id, mine.browser_secret[:-1]),
        (mine.id, ""),
        (mine.id, "ü"),
        ("auth_unknown", mine.browser_secret),
    ):
        assert await provider.sign_ins.read_sign_in(authorization_id, secret) is None
    assert await provider.sign_ins.read_sign_in(*mine) is not None


async def test_no_code_without_the_browser(provider: Provider, node: Node, shop: Shop) -> None:
    """The session's token, known from the QR code, gives no result at the verify endpoints."""
    browser = await shop.begin()
    token = await browser.open()
    await node.signin.confirm_session(token, ADA)
    for verifier in (None, "a" * 43):
        with pytest.raises((CodeVerifierMissing, SessionNotFound)):
            await node.signin.verify_session(shop.project.id, token, public=True, code_verifier=verifier)
    assert await browser.finish() is not None


async def test_pushed_requests(provider: Provider, shop: Shop) -> None:
    """A pushed request is used once, by its client, within 90 seconds, and nothing beside it counts (RFC 9126)."""
    other = await provider.shop(beside=shop)

    async def push(**changed: str) -> dict[str, str]:
        answer = await provider.requests.push_request(await shop.authenticated(), shop.request(**changed))
        return {"client_id": shop.id, "request_uri": str(answer["request_uri"])}

    pushed = await push(state="pushed")
    assert pushed["request_uri"].startswith("urn:ietf:params:oauth:request_uri:")
    with pytest.raises(RefusedOnPage, match="another client"):
        await provider.requests.read_request(pushed | {"client_id": other.id})
    beside = {"state": "beside", "redirect_uri": "https://evil.example/", "scope": "openid phone"}
    _, request = await provider.requests.read_request(pushed | beside)
    assert (request.state, request.redirect_uri) == ("pushed", shop.client.redirect_uris[0])
    assert request.scopes == ("openid", "profile")
    with pytest.raises(RefusedOnPage, match="used before"):
        await provider.requests.read_request(pushed)
    late = await push()
    provider.later(PUSHED_LIFETIME)
    with pytest.raises(RefusedOnPage, match="expired"):
        await provider.requests.read_request(late)
    with pytest.raises(RefusedByRedirect) as refused:
        await provider.requests.read_request(await push(prompt="none"))
    assert refused.value.error == "login_required"
    for changed, error in (
        ({"request_uri": "urn:ietf:params:oauth:request_uri:x"}, "invalid_request"),
        ({"request": "a.b."}, "request_not_supported"),
        ({"redirect_uri": "https://evil.example/"}, "invalid_request"),
        ({"redirect_uri": ""}, "invalid_request"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
    ):
        assert await error_of(push(**changed)) == error


async def test_a_code_derives_from_the_browser(shop: Shop) -> None:
    """Codes of two sign-ins differ, and have 256 bits."""
    codes = [await shop.sign_in() for _ in range(2)]
    assert len(set(codes)) == 2
    assert {len(code) for code in codes} == {43}


async def test_a_code_that_expired_is_not_sent_again(provider: Provider, shop: Shop) -> None:
    """A page that is loaded again after the code's minute shows that the sign-in is over."""
    browser = await shop.begin()
    await browser.confirm()
    await browser.finish()
    provider.later(60 * SECOND)
    assert await browser.finish() is None
    assert await state_of(browser) == ("finished", False)


async def test_a_removed_redirect_uri_receives_no_code(provider: Provider, shop: Shop) -> None:
    """A developer removes an address because an attacker has it. Sign-ins that were begun before do not lead there."""
    browser = await shop.begin()
    await browser.confirm()
    for uri, found in (("https://app.example/other", False), (REDIRECT_URI, True)):
        changes = ClientChanges(redirect_uris=(uri,))
        await provider.clients.update_client(acting(shop.developer), shop.project.id, shop.id, changes)
        seen = await provider.sign_ins.read_sign_in(browser.begun.id, browser.begun.browser_secret)
        assert (seen is not None) == found
