"""The demo and the phone in a real browser, on the real service: other endings than in tests/e2e/test_demo.py.

Every test fails if the browser reports a problem: an error in the console, a breach of a page's
Content-Security-Policy, or a request that leaves the service.
"""

import hashlib
import re
from collections.abc import AsyncIterator

import apsw
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Locator, Page, expect
from tests.axe import DESKTOP, PHONE, assert_accessible
from tests.e2e.conftest import NewPhone, OwnProject, Service
from tests.e2e.console_browser import watched
from tests.e2e.demo import Demo

from taproof.core.names import isolated_name
from taproof.messengers.texts.catalog import texts_for

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SHOP = isolated_name("Kite & Kettle")


@pytest_asyncio.fixture(loop_scope="session")
async def context(service: Service, browser: Browser) -> AsyncIterator[BrowserContext]:
    async with watched(browser, service.base_url) as context:
        yield context


@pytest_asyncio.fixture(loop_scope="session")
async def demo(context: BrowserContext) -> Demo:
    demo = Demo(await context.new_page())
    await demo.open()
    return demo


async def shown_link(demo: Demo) -> str:
    """Return the link of the button's panel."""
    link = demo.shop.locator("taproof-button [part~=link]")
    await expect(link).to_be_visible()
    return await link.get_attribute("href") or ""


def newest(phone: Page) -> Locator:
    """Return the text of the bot's newest message on a phone of its own."""
    return phone.locator("[data-from=bot] .bubble > div").last


def button(phone: Page, label: str) -> Locator:
    """Return a button of the newest prompt on a phone of its own."""
    return phone.locator("[data-buttons]").last.get_by_role("button", name=label, exact=True)


async def test_cancel_and_try_again(demo: Demo, new_phone: NewPhone) -> None:
    """Cancel signs nobody in and says so on both sides; a new sign-in works at once, with the same user."""
    user = new_phone("Grace").messenger_id
    await demo.page.reload()
    await demo.be(user)
    await demo.press_button()
    await demo.choice("Cancel").click()
    await expect(demo.newest).to_contain_text("Nobody was signed in.")
    await demo.guides("cancelled")
    await demo.shop.get_by_role("button", name="Try again").click()
    await demo.choice("Confirm").click()
    await demo.signs_in("Grace")


async def test_the_panel_is_closed(demo: Demo) -> None:
    """Closing the panel cancels the sign-in, also on the phone."""
    await demo.press_button()
    await expect(demo.choice("Confirm")).to_be_visible()
    await demo.shop.get_by_role("button", name="Close").click()
    await demo.guides("aborted")
    await expect(demo.newest).to_contain_text("cancelled this request")
    await expect(demo.steps()).to_contain_text(["Cancels the session", "You closed the panel"])


async def test_a_touch_screen(service: Service, browser: Browser) -> None:
    """On a touch screen, the button opens the messenger by itself: still in the same tab."""
    async with watched(browser, service.base_url, viewport=dict(PHONE), has_touch=True, is_mobile=True) as context:
        demo = Demo(await context.new_page())
        await demo.open()
        await demo.shop.get_by_role("button", name="Sign in with Telegram").tap()
        await demo.choice("Confirm").tap()
        await demo.signs_in("Ada Lovelace")
        assert len(context.pages) == 1


async def test_the_shop_by_itself(context: BrowserContext, service: Service, new_phone: NewPhone) -> None:
    """Without the page around it, the shop works like any application: the link opens the phone in a tab."""
    user = new_phone("Grace").messenger_id
    page = await context.new_page()
    await page.goto("/demo/shop")
    await page.get_by_role("button", name="Sign in with Telegram").click()
    async with page.expect_popup() as opened:
        await page.get_by_role("link", name="Open Telegram").click()
    phone = await opened.value
    await phone.select_option("#user", user)
    await phone.click("#start")
    await button(phone, "Confirm").click()
    await expect(page.locator("#who")).to_have_text("Welcome, Grace")


async def test_openid(demo: Demo, new_phone: NewPhone, service: Service) -> None:
    """The shop sends the user to the service's page, and gets them back signed in, with a clean address."""
    user = new_phone("Grace", username="grace_openid").messenger_id
    screen = service.screen()
    client_id = await demo.shop.locator("body").get_attribute("data-client-id")
    assert f"OpenID issuer {service.base_url}\n" in screen
    assert f"OpenID client {client_id}\n" in screen
    await demo.shop.get_by_role("button", name="Use OpenID Connect instead").click()
    async with demo.page.expect_popup() as opened:
        await demo.page.get_by_role("link", name="Open the messenger").click()
    phone = await opened.value
    await phone.select_option("#user", user)
    await phone.click("#start")
    await button(phone, "Confirm").click()
    await demo.signs_in("Grace")
    assert demo.page.url == f"{service.base_url}/demo"
    await expect(demo.steps()).to_have_text(
        [
            "Sends you back to the shop",
            "Exchanges the code for an ID token",
            "Sends the ID token",
            "Checks the ID token without a call",
        ]
    )
    await demo.steps("result").last.click()
    await expect(demo.page.locator("#steps pre").last).to_contain_text(f'"sub": "{user}"')
    assert await demo.page.evaluate("sessionStorage.length") == 0


async def test_openid_without_a_code(demo: Demo, service: Service) -> None:
    """A user who goes back gets a friendly message.

    A response to a request of another tab is refused, and adds no step.
    """
    await demo.shop.get_by_role("button", name="Use OpenID Connect instead").click()
    await demo.page.get_by_role("button", name="Back to Kite & Kettle").click()
    status = demo.shop.locator("#status")
    await expect(status).to_have_text("You did not sign in. Nothing was shared.")
    await expect(demo.steps("code").first).to_have_text("/demo?error=access_denied&state=…&iss=…")
    assert demo.page.url == f"{service.base_url}/demo"
    await demo.page.goto("/demo?error=Your+account+is+locked&state=planted")
    await expect(status).to_contain_text("not started in this tab")
    await demo.guides("error")
    assert "locked" not in await demo.page.inner_text("body")


async def test_expiry(demo: Demo, service: Service, new_phone: NewPhone) -> None:
    """A session expires after ten minutes without any action, and a late tap on its prompt confirms nothing."""
    user = new_phone("Grace").messenger_id
    await demo.page.reload()
    await demo.be(user)
    await demo.press_button()
    await expect(demo.choice("Confirm")).to_be_visible()
    token = (await shown_link(demo)).partition("start=")[2]
    store = apsw.Connection(str(service.database))
    store.set_busy_timeout(10_000)
    store.execute(
        "UPDATE sessions SET expires_at = created_at + 1 WHERE token_hash = ?",
        (hashlib.sha256(token.encode()).digest(),),
    )
    assert store.changes() == 1
    store.close()
    await demo.guides("expired")
    await demo.choice("Confirm").click()
    await expect(demo.newest).to_contain_text(f"The request to sign in to {SHOP} has expired.")
    await expect(demo.phone.locator("[data-message]").last.locator("button")).to_have_count(0)


async def test_somebody_elses_link(demo: Demo, context: BrowserContext, new_phone: NewPhone) -> None:
    """The first account that opens the link owns the decision; another one is told so and gets no buttons."""
    user = new_phone("Grace").messenger_id
    await demo.page.reload()
    await demo.be(user)
    await demo.press_button()
    await expect(demo.choice("Confirm")).to_be_visible()

    other = await context.new_page()
    await other.goto(await shown_link(demo))
    await other.click("#new-user")
    await other.fill("[name=first_name]", "Mallory")
    await other.click("button[value=add]")
    await expect(other.locator("#user option:checked")).to_have_text("Mallory")
    await other.click("#start")
    await expect(newest(other)).to_contain_text("belongs to someone else")
    await expect(other.locator("[data-buttons]")).to_have_count(0)
    await other.close()

    await demo.choice("Confirm").click()
    await demo.signs_in("Grace")


async def test_a_persian_user(demo: Demo, new_phone: NewPhone) -> None:
    """The bot speaks the user's language, and the phone shows it in the right direction."""
    user = new_phone("سارا", language_code="fa").messenger_id
    await demo.page.reload()
    await demo.be(user)
    await demo.press_button()
    texts = texts_for("fa")
    await expect(demo.newest).to_contain_text(re.compile("[\u0600-\u06ff]"))
    assert await demo.newest.evaluate("each => getComputedStyle(each).direction") == "rtl"
    await expect(demo.choice(texts.cancel_button)).to_be_visible()
    await demo.choice(texts.confirm_button).click()
    await demo.signs_in("سارا")
    # An English sentence around a Persian name stays English.
    assert await demo.shop.locator("#who").evaluate("each => getComputedStyle(each).direction") == "ltr"
    assert await demo.shop.locator("#who-name").evaluate("each => getComputedStyle(each).unicodeBidi") == "isolate"


async def test_notices_have_their_direction(context: BrowserContext) -> None:
    """Notices above the chat have the user's language and direction too."""
    phone = await context.new_page()
    await phone.goto("/sandbox/phone")
    for notice in ("#toast", "#alert-text"):
        assert await phone.locator(notice).get_attribute("dir") == "auto"


async def test_hostile_names(demo: Demo, context: BrowserContext, project: OwnProject, new_phone: NewPhone) -> None:
    """Names of projects and users are always plain text: they add no element and change no direction."""
    hostile = "<img src=x onerror=document.title='broken'>\u202eknaB\u202c <b>Bank</b> &amp;"
    renamed = project.developer.ask("PATCH", f"/projects/{project.id}", json={"name": hostile})
    assert "<b>Bank</b> &amp;" in renamed["name"]
    user = new_phone("<i>Eve</i>\u202e", last_name="</option><script>").messenger_id

    phone = await context.new_page()
    await phone.goto(project.generate()["deeplink"])
    await phone.select_option("#user", user)
    await expect(phone.locator("#user option:checked")).to_contain_text("<i>Eve</i>")
    await phone.click("#start")
    await expect(newest(phone)).to_contain_text("<b>Bank</b> &amp;")
    assert "\u202e" not in await newest(phone).inner_text()
    await expect(phone.locator("#messages :is(img, script, b, i)")).to_have_count(0)
    await button(phone, "Confirm").click()
    await expect(newest(phone)).to_contain_text("<b>Bank</b> &amp;")
    await expect(phone).to_have_title("Sandbox phone")
    await phone.close()

    await demo.page.reload()
    await demo.be(user)
    await demo.press_button()
    await demo.choice("Confirm").click()
    await expect(demo.shop.locator("#who-name")).to_contain_text("<i>Eve</i>")
    await expect(demo.shop.locator("#who-name *")).to_have_count(0)


async def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus, in whichever frame it is."""
    for _ in range(40):
        if await target.evaluate("each => each.ownerDocument.hasFocus() && each.matches(':focus')"):
            return
        await page.keyboard.press("Tab")
    pytest.fail(f"The keyboard does not reach {target}")


async def test_by_keyboard_alone(demo: Demo) -> None:
    """Two presses of Enter can replace the two taps."""
    await tab_to(demo.page, demo.shop.get_by_role("button", name="Sign in with Telegram"))
    await demo.page.keyboard.press("Enter")
    await expect(demo.choice("Confirm")).to_be_visible()
    await tab_to(demo.page, demo.choice("Confirm"))
    await demo.page.keyboard.press("Enter")
    await demo.signs_in("Ada Lovelace")
    await tab_to(demo.page, demo.shop.get_by_role("button", name="Sign out"))
    await demo.page.keyboard.press("Enter")
    await expect(demo.shop.locator("#signed-out")).to_be_visible()


async def test_axe_after_a_sign_in(service: Service, browser: Browser) -> None:
    """axe-core finds nothing in the filled drawer and in the shop of a signed-in user."""
    context = await browser.new_context(base_url=service.base_url, reduced_motion="reduce", bypass_csp=True)
    demo = Demo(await context.new_page())
    await demo.open()
    await demo.press_button()
    await demo.choice("Confirm").click()
    await demo.signs_in("Ada Lovelace")
    await demo.steps("result").last.click()
    await assert_accessible(demo.page, [DESKTOP])
    await demo.page.goto("/demo/shop")
    await assert_accessible(demo.page)
    await context.close()


@pytest.mark.parametrize("path", ["/demo", "/demo/shop", "/sandbox/phone", "/docs"])
async def test_both_colour_schemes(context: BrowserContext, path: str) -> None:
    """Each page follows the system's light or dark scheme, with readable text."""
    page = await context.new_page()
    await page.goto(path)
    brightness = """() => {
        const style = getComputedStyle(document.body);
        return [style.backgroundColor, style.color].map((colour) =>
            colour.match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3);
    }"""
    await page.emulate_media(color_scheme="light")
    background, text = await page.evaluate(brightness)
    assert background - text > 120
    await page.emulate_media(color_scheme="dark")
    background, text = await page.evaluate(brightness)
    assert text - background > 120
