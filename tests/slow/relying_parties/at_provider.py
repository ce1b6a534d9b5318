"""The user's steps at the provider: sign in with the messenger, in a browser or without one; type a device's code."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from html import unescape

import httpx
from playwright.async_api import Frame, Page, Request, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.processes import Program


async def sign_in_at_provider(page: Page, phone: Phone, button: str = "Confirm") -> None:
    """Open the messenger by the link of the sign-in page, and decide there. The page then goes on by itself."""
    deeplink = await page.locator("a[href*='?start=']").get_attribute("href") or ""
    await asyncio.to_thread(phone.sign_in, {"deeplink": deeplink}, button)


async def cancel_at_provider(page: Page, phone: Phone, party: Program) -> None:
    """Tap Cancel in the messenger. The page then leads back to the application, with access_denied."""

    def is_refusal(request: Request) -> bool:
        # By GET or, with response_mode=form_post, by POST.
        return request.url.startswith(party.base_url) and "error=access_denied" in f"{request.url} {request.post_data}"

    def is_back(frame: Frame) -> bool:
        return frame.url.startswith(party.base_url)

    async with page.expect_event("framenavigated", is_back), page.expect_request(is_refusal):
        await sign_in_at_provider(page, phone, "Cancel")


async def press_and_sign_out_at_provider(page: Page, press: Callable[[Page], Awaitable[None]]) -> None:
    """Sign out of the application, which sends the user on to the provider's end_session_endpoint."""
    async with page.expect_request(lambda request: "id_token_hint=" in request.url):
        await press(page)


async def report(phone: Phone) -> None:
    """Report the newest sign-in in the messenger."""
    await asyncio.to_thread(phone.send, "/sessions")
    await asyncio.to_thread(phone.tap, "1. This wasn\N{RIGHT SINGLE QUOTATION MARK}t me")


def sign_in_without_browser(client: httpx.Client, address: str, phone: Phone) -> httpx.Response:
    """Follow an application's link to the provider, sign in there, and return the application's answer.

    The client must follow redirects.
    """
    sign_in_page = client.get(address)
    link = re.search(r'<a\b[^>]*\bhref="([^"]*\?start=[^"]*)"', sign_in_page.text)
    assert link is not None, f"{sign_in_page.url} has no link to the messenger: {sign_in_page.text}"
    phone.sign_in({"deeplink": unescape(link[1])})
    return client.get(sign_in_page.url)


async def sign_in_on_another_device(page: Page, verification_uri: str, user_code: str, phone: Phone) -> None:
    """Type the code that a device shows, confirm that it is the right device, and sign in."""
    await page.goto(verification_uri)
    field = page.locator("input[name=user_code]:visible")
    await field.fill(user_code)
    await page.get_by_role("button", name="Continue").click()
    await expect(field).to_have_count(0)
    await page.get_by_role("button", name="Continue").click()
    await sign_in_at_provider(page, phone)
