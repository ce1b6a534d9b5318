"""openid-client (npm): each way to send an authorization request and receive its response, and the device grant."""

import pytest
from playwright.async_api import BrowserContext, Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import cancel_at_provider, sign_in_on_another_device
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import NAME, Provider
from tests.slow.relying_parties.walk import press_sign_out, read_page, sign_in_out_and_in_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PROGRAM = "openid_client.mjs"


@pytest.mark.parametrize("mode", ["query", "form_post", "par"])
async def test_code(page: Page, provider: Provider, start: StartParty, phone: Phone, mode: str) -> None:
    """A user signs in with PKCE, state and nonce. The response is a query or a form; the request may be pushed."""
    party = start(PROGRAM, provider.register("/callback"))

    async def go(page: Page) -> None:
        await page.goto(f"{party.base_url}/sign-in?mode={mode}")

    await sign_in_out_and_in_again(page, party, phone, start=go)


async def test_a_user_cancels(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Cancel in the messenger leads back to the application, and nobody is signed in."""
    party = start(PROGRAM, provider.register("/callback"))
    await page.goto(f"{party.base_url}/sign-in?mode=query")
    await cancel_at_provider(page, phone, party)
    await page.goto(party.base_url)
    await expect(page.get_by_role("link", name="Sign in").first).to_be_visible()


async def test_device(context: BrowserContext, provider: Provider, start: StartParty, phone: Phone) -> None:
    """A user signs in on a device without a browser, which polls as a public client until the user confirms."""
    party = start(PROGRAM, provider.register("/callback", auth_method="none"))
    device, other = await context.new_page(), await context.new_page()
    seen = []
    for _ in range(2):
        await device.goto(party.base_url)
        await device.get_by_role("button", name="On another device").click()
        shown = {each: await device.locator(f"#{each}").inner_text() for each in ("verification_uri", "user_code")}
        await sign_in_on_another_device(other, shown["verification_uri"], shown["user_code"], phone)
        await device.goto(f"{party.base_url}/device/done")
        seen.append(await read_page(device))
        await press_sign_out(device)
        await expect(device.get_by_role("link", name="Sign in")).to_be_visible()
    first, second = seen
    assert (first["sub"], first["name"]) == (phone.messenger_id, NAME)
    assert {name for name in first if first[name] != second[name]} == {"access_token", "id_token"}
