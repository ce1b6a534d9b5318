"""Sign a user in on a page, in Chromium and on the sandbox's phone."""

import asyncio

import httpx
from playwright.async_api import Page, expect
from tests.chromium import open_chromium
from tests.e2e.conftest import Service, make_phone
from tests.slow.docs.walk import environment_of, opened

PATIENCE = 60_000
"""Milliseconds, long enough for a busy machine."""


async def press_and_confirm(page: Page, service: Service, name: str, button: str = "Confirm") -> None:
    """Press the page's button, open the link that it then shows, and tap."""
    await page.get_by_role("button", name="Sign in").first.click()
    link = page.locator("a[href*='start=']").first
    await expect(link).to_be_visible(timeout=PATIENCE)
    deeplink = await link.get_attribute("href") or ""
    await asyncio.to_thread(confirm, service, deeplink, name, button)


def confirm(service: Service, deeplink: str, name: str, button: str = "Confirm") -> None:
    """Let a user of this name open a link and tap."""
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        phone = make_phone(client, name)
        opened(client, phone, deeplink)
        phone.tap(button)


def sign_in_and_out(address: str, service: Service) -> None:
    """The result."""

    async def walk() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await page.goto(f"{address}/members")
            assert page.url == f"{address}/?next=%2Fmembers"
            await press_and_confirm(page, service, "Grace")
            await expect(page.get_by_text("Welcome, Grace")).to_be_visible(timeout=PATIENCE)
            assert page.url == f"{address}/members"
            await page.get_by_role("button", name="Sign out").click()
            await page.wait_for_url(f"{address}/", timeout=PATIENCE)
            await page.goto(f"{address}/members")
            assert page.url == f"{address}/?next=%2Fmembers"

    asyncio.run(walk())


def settings_of(service: Service) -> dict[str, str]:
    """Return the three settings of an application, for a new project of the service."""
    names = ("TAPROOF_BASE_URL", "TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET")
    return {name: value for name, value in environment_of(service).items() if name in names}
