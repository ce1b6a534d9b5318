"""A user who signs in on a page, in Chromium and on the sandbox's phone."""

import asyncio

import httpx
from playwright.async_api import Page, expect
from tests.docs.walk import opened
from tests.e2e.conftest import Service, make_phone

PATIENCE = 20_000
"""Milliseconds: the machine that runs the tests may be busy."""


async def press_and_confirm(page: Page, service: Service, name: str, button: str = "Confirm") -> None:
    """Press the page's button, open the link that it then shows, and tap."""
    await page.get_by_role("button", name="Sign in").first.click()
    link = page.locator("a[href*='start=']").first
    await expect(link).to_be_visible(timeout=PATIENCE)
    deeplink = await link.get_attribute("href") or ""
    await asyncio.to_thread(confirm, service, deeplink, name, button)


def confirm(service: Service, deeplink: str, name: str, button: str = "Confirm") -> None:
    """Let a user of this name open a link and tap."""
    with httpx.Client(base_url=service.base_url, timeout=30) as client:
        phone = make_phone(client, name)
        opened(client, phone, deeplink)
        phone.tap(button)
