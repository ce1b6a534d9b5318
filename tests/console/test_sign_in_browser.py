"""Signing in to the console in a real browser: one screen, and one tap in the messenger."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from tests.api.conftest import ManualClock
from tests.console.conftest import ADA, Installation, open_console
from tests.console.test_sign_in import bind
from tests.granian_server import serve
from tests.ports import free_port

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def console(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Installation]:
    """A console on the event loop of the browser, with a developer who has a messenger account."""
    async with open_console(tmp_path, clock) as installation:
        await bind(installation, await installation.add_developer("ada@example.com"))
        yield installation


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, console: Installation) -> AsyncIterator[Page]:
    """A page of a browser in which nobody is signed in."""
    port = free_port()
    stop = await serve(console.app.app, port)
    context = await browser.new_context(base_url=f"http://127.0.0.1:{port}")
    yield await context.new_page()
    await context.close()
    console.app.live.close()
    await stop()


async def shown_link(page: Page) -> str:
    return await page.get_by_role("link", name="Open the messenger").get_attribute("href") or ""


async def test_one_screen_and_one_tap(page: Page, console: Installation) -> None:
    """Opening the console shows the number and the QR code at once, and the tap signs the visitor in."""
    await page.goto("/console/tokens")
    await expect(page.locator("h1")).to_have_text("Sign in to Taproof")
    await expect(page.locator(".match-code")).to_be_visible()
    await expect(page.locator("figure svg")).to_be_visible()
    await console.messenger.confirm(await shown_link(page), ADA)
    await expect(page.locator("h1")).to_have_text("Access tokens")


async def test_a_token_instead(page: Page) -> None:
    """The screen leads to the form for an access token, which starts no sign-in."""
    await page.goto("/console")
    await page.get_by_role("link", name="sign in with an access token").click()
    await expect(page.get_by_label("Access token")).to_be_visible()
    assert page.url.endswith("/console/sign-in?with=token")
    await expect(page.locator("script[src*=sign_in]")).to_have_count(0)


async def test_an_ended_sign_in_does_not_start_again(page: Page, console: Installation) -> None:
    """After Cancel, the page says so, and waits for the visitor."""
    await page.goto("/console")
    await console.messenger.cancel(await shown_link(page), ADA.messenger_id)
    await expect(page.get_by_role("alert")).to_contain_text("nobody was signed in")
    await expect(page.locator("script[src*=sign_in]")).to_have_count(0)
    await page.get_by_role("button", name="Sign in with your messenger").click()
    await expect(page.locator(".match-code")).to_be_visible()
