"""JupyterHub with the configuration of docs/how-to/oidc/jupyterhub.md."""

import pytest
from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import cancel_at_provider
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import Provider
from tests.slow.relying_parties.walk import Shown, sign_in_out_and_in_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def press_sign_in(page: Page) -> None:
    await page.get_by_role("button", name="Sign in with Taproof").click()


async def press_sign_out(page: Page) -> None:
    await page.get_by_role("button", name="Logout").click()


async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """The hub identifies the user by `sub` from userinfo, and stores the name."""
    party = start("jupyterhub_config.py", provider.register("/hub/oauth_callback"))

    async def read(page: Page) -> Shown:
        await expect(page).to_have_url(f"{party.base_url}/hub/home")
        await expect(page.get_by_text(phone.messenger_id, exact=True).first).to_be_visible()
        return party.told()[-1]

    await sign_in_out_and_in_again(page, party, phone, start=press_sign_in, end=press_sign_out, read=read)


async def test_a_user_cancels(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Cancel in the messenger leads back to the hub, which shows an error and signs nobody in."""
    party = start("jupyterhub_config.py", provider.register("/hub/oauth_callback"))
    await page.goto(party.base_url)
    await press_sign_in(page)
    await cancel_at_provider(page, phone, party)
    await expect(page.get_by_role("heading", name="OAuth error")).to_be_visible()
    await page.goto(party.base_url)
    await expect(page.get_by_role("button", name="Sign in with Taproof")).to_be_visible()
