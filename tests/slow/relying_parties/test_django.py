"""mozilla-django-oidc, with the settings and the backend of docs/how-to/oidc/mozilla-django-oidc.md."""

import pytest
from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import cancel_at_provider
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import Provider
from tests.slow.relying_parties.walk import Shown, press_sign_in, press_sign_out, read_page, sign_in_out_and_in_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """The backend finds the same Django user by `sub` at both sign-ins, and needs no e-mail address."""
    party = start("django_site.py", provider.register("/oidc/callback/"))

    async def read(page: Page) -> Shown:
        shown = await read_page(page)
        assert shown["sub"].startswith("messenger_")
        assert (shown["number"], shown["email"]) == ("1", "")
        return shown | {"sub": shown["sub"].removeprefix("messenger_")}

    async def end(page: Page) -> None:
        await press_sign_out(page)
        await expect(page.locator("#sub")).to_have_count(0)

    await sign_in_out_and_in_again(page, party, phone, end=end, read=read)


async def test_a_user_cancels(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Cancel in the messenger leads back to the site, and nobody is signed in."""
    party = start("django_site.py", provider.register("/oidc/callback/"))
    await page.goto(party.base_url)
    await press_sign_in(page)
    await cancel_at_provider(page, phone, party)
    await expect(page).to_have_url(f"{party.base_url}/")
    await expect(page.locator("#sub")).to_have_count(0)
