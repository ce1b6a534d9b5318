"""Debian's Apache with mod_auth_openidc."""

import pytest
from playwright.async_api import Page
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import Provider
from tests.slow.relying_parties.walk import press_sign_in, sign_in_out_and_in_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def press_sign_out(page: Page) -> None:
    await page.get_by_role("link", name="Sign out").click()


async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """The module needs the issuer and the client's credentials, and may send the secret in either way."""
    party = start("apache.py", provider.register("/secure/callback"))
    await sign_in_out_and_in_again(page, party, phone, start=press_sign_in, end=press_sign_out)
