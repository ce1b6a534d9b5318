"""The demo in a real browser, on the real service: what a new user sees first. tests/slow has the other endings."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from tests.axe import DESKTOP, PHONE, assert_accessible
from tests.e2e.conftest import Service
from tests.e2e.console_browser import watched
from tests.e2e.demo import Demo

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def demo(service: Service, browser: Browser) -> AsyncIterator[Demo]:
    async with watched(browser, service.base_url) as context:
        demo = Demo(await context.new_page())
        await demo.open()
        yield demo


async def test_two_taps_in_one_tab(demo: Demo) -> None:
    """The button and Confirm sign the user in. The drawer shows each call and event, in order, without a secret."""
    await demo.guides("idle")
    await expect(demo.phone.locator("#empty")).to_have_text("Sign-in requests appear here.")
    await demo.press_button()
    await expect(demo.page.locator("#guide")).to_have_text("Tap Confirm on the phone.")
    await expect(demo.newest).to_contain_text("Sign in to \u2068Kite & Kettle\u2069?")
    await expect(demo.shop.locator("taproof-button [part=code]")).to_be_hidden()
    await demo.choice("Confirm").click()
    await demo.signs_in("Ada Lovelace")
    await demo.guides("done")
    await expect(demo.steps()).to_have_text(
        [
            "Asks for a session",
            "Opens the link",
            "Shows that the link is open",
            "Waits for your decision",
            "You confirmed",
            "Sends the proof",
            "Checks the proof without a call",
        ]
    )
    await expect(demo.steps("result")).to_have_text(["200", "200 confirmed", "200", "valid"])
    await demo.steps("result").last.click()
    claims = demo.page.locator("#steps pre").last
    await expect(claims).to_contain_text('"messenger_id": "1001"')
    assert "whsec_" not in await demo.page.content()
    assert len(demo.page.context.pages) == 1

    await demo.page.reload()
    await demo.signs_in("Ada Lovelace")
    await demo.shop.get_by_role("button", name="Sign out").click()
    await expect(demo.shop.locator("#signed-out")).to_be_visible()


async def test_the_sheet_on_a_phone(demo: Demo) -> None:
    """On a narrow screen, the phone comes up as a sheet when it is needed, and gives way to the shop afterwards."""
    await demo.page.set_viewport_size({"width": 390, "height": 844})
    await expect(demo.page.locator("#phone")).to_be_hidden()
    await demo.press_button()
    await demo.choice("Confirm").click()
    await demo.signs_in("Ada Lovelace")
    await expect(demo.page.locator("#phone")).to_be_hidden()
    await demo.page.click("#drawer-toggle")
    await expect(demo.steps().last).to_be_in_viewport()
    await demo.page.click("#phone-toggle")
    await expect(demo.steps().last).to_be_hidden()


async def test_axe(service: Service, browser: Browser) -> None:
    """axe-core finds nothing on the page, in the shop and on the phone, in both themes and sizes."""
    context = await browser.new_context(base_url=service.base_url, reduced_motion="reduce", bypass_csp=True)
    page = await context.new_page()
    for path, sizes in (("/demo", [DESKTOP, PHONE]), ("/demo/shop", [DESKTOP, PHONE]), ("/sandbox/phone", [PHONE])):
        await page.goto(path)
        await assert_accessible(page, sizes)
    await context.close()


async def test_one_click_opens_the_console(demo: Demo) -> None:
    """In the sandbox, the console opens as its developer."""
    await demo.page.get_by_role("button", name="Open the console").click()
    await expect(demo.page.locator("h1")).to_have_text("Projects")
    await expect(demo.page.get_by_text("sandbox@localhost")).to_be_visible()
