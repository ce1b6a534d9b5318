"""Apache with mod_auth_openidc, of Debian, and with the settings of docs/how-to/oidc/apache.md."""

import httpx
import pytest
from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import (
    cancel_at_provider,
    press_and_sign_out_at_provider,
    report,
    sign_in_at_provider,
)
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import Provider
from tests.slow.relying_parties.walk import press_sign_in, read_page, sign_in_out_and_in_again
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
CALLBACK = "/secure/callback"
OPTIONAL = "OIDCResponseMode form_post\nOIDCStateTimeout 1800\nOIDCStateMaxNumberOfCookies 7 true"
"""The lines without which a user also signs in."""


async def press_sign_out(page: Page) -> None:
    await press_and_sign_out_at_provider(page, lambda page: page.get_by_role("link", name="Sign out").click())


@pytest.mark.parametrize("without", ["", OPTIONAL], ids=["settings", "defaults"])
async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone, without: str) -> None:
    """The module needs the issuer and the client's credentials. It signs its users out at Taproof, too."""
    party = start("apache.py", provider.register(CALLBACK, signed_out="/"), WITHOUT=without)
    await sign_in_out_and_in_again(page, party, phone, start=press_sign_in, end=press_sign_out)


async def test_a_user_cancels(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Cancel leads to the module's error. A sign-in after it succeeds, and Back in the browser starts no other one."""
    party = start("apache.py", provider.register(CALLBACK))
    await page.goto(party.base_url)
    await press_sign_in(page)
    await cancel_at_provider(page, phone, party)
    await expect(page.get_by_text("OpenID Connect Provider error: access_denied")).to_be_visible()
    await page.goto(party.base_url)
    await press_sign_in(page)
    await sign_in_at_provider(page, phone)
    await read_page(page)
    await page.go_back()
    await expect(page).to_have_url(f"{party.base_url}/")


async def test_an_error_without_form_post(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """In a query, the module takes the error's `iss` (RFC 9207) for a sign-in that another page starts."""
    party = start("apache.py", provider.register(CALLBACK), WITHOUT="OIDCResponseMode form_post")
    await page.goto(f"{party.base_url}/secure/")
    await cancel_at_provider(page, phone, party)
    await expect(page.get_by_text('without specifying a "target_link_uri" parameter')).to_be_visible()


async def test_a_loop_without_form_post(page: Page, provider: Provider, start: StartParty) -> None:
    """With a default address, the module answers the error's `iss` with the next sign-in."""
    default = "OIDCDefaultURL https://app.example.com/secure/"
    party = start("apache.py", provider.register(CALLBACK), WITHOUT="OIDCResponseMode form_post", MORE=default)
    await page.goto(f"{party.base_url}/secure/")
    first = page.url
    await page.get_by_role("button", name="Back to The application").click()
    await page.wait_for_url(lambda url: url.startswith(f"{provider.issuer}/oidc/authorize/") and url != first)


async def test_many_sign_ins_at_once(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Sign-ins that were left do not get in the way of the next one."""
    party = start("apache.py", provider.register(CALLBACK))
    for _ in range(9):
        await page.goto(f"{party.base_url}/secure/")
    await sign_in_at_provider(page, phone)
    assert (await read_page(page))["sub"] == phone.messenger_id


async def test_a_report_ends_the_session(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """A user's groups open the pages of these. After *This wasn't me* in the messenger, the user must sign in again."""
    registered = provider.register(CALLBACK)
    party = start("apache.py", registered)
    uri = f"{party.base_url}{CALLBACK}?logout=backchannel"
    provider.update(registered, backchannel_logout_uri=uri, groups={"admins": [phone.messenger_id], "staff": []})
    await page.goto(f"{party.base_url}/secure/")
    await sign_in_at_provider(page, phone)
    shown = await read_page(page)
    # The module leaves out https:// only.
    assert (shown["remote_user"], shown["groups"]) == (f"{phone.messenger_id}@{provider.issuer}", "admins")
    statuses = [await page.goto(f"{party.base_url}/secure/{each}/") for each in ("admins", "staff")]
    assert [each and each.status for each in statuses] == [200, 401]
    await report(phone)

    async def is_signed_out() -> bool:
        await page.goto(f"{party.base_url}/secure/")
        return page.url.startswith(provider.issuer)

    await until(is_signed_out)


async def test_refresh(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """With the scope offline_access, the module gets new tokens twice, without asking the user."""
    more = 'OIDCScope "openid profile offline_access"'
    party = start("apache.py", provider.register(CALLBACK), MORE=more)
    await page.goto(f"{party.base_url}/secure/")
    await sign_in_at_provider(page, phone)
    shown = await read_page(page)
    for _ in range(2):
        wanted = {"refresh": f"{party.base_url}/secure/", "access_token": shown["access_token"]}
        await page.goto(str(httpx.URL(f"{party.base_url}{CALLBACK}", params=wanted)))
        refreshed = await read_page(page)
        assert refreshed["sub"] == phone.messenger_id
        assert refreshed["access_token"] != shown["access_token"]
        shown = refreshed
