"""Auth.js (@auth/core) with its own pages."""

import pytest
from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import cancel_at_provider
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import Provider
from tests.slow.relying_parties.walk import press_sign_in, press_sign_out, sign_in_out_and_in_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def press_both_to_sign_in(page: Page) -> None:
    await press_sign_in(page)
    await page.get_by_role("button", name="Sign in with Messenger").click()


async def press_both_to_sign_out(page: Page) -> None:
    await page.get_by_role("link", name="Sign out").click()
    await press_sign_out(page)


async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """With the documented settings, Auth.js needs only the issuer, and reads the user from the ID token."""
    party = start("auth_core.mjs", provider.register("/auth/callback/taproof"))
    await sign_in_out_and_in_again(page, party, phone, start=press_both_to_sign_in, end=press_both_to_sign_out)


async def test_a_user_cancels(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Cancel in the messenger leads back to the application, and nobody is signed in."""
    party = start("auth_core.mjs", provider.register("/auth/callback/taproof"))
    await page.goto(party.base_url)
    await press_both_to_sign_in(page)
    await cancel_at_provider(page, phone, party)
    await page.goto(party.base_url)
    await expect(page.get_by_role("link", name="Sign in")).to_be_visible()
