"""The demo and the phone in a real browser, on the real service: a new user after `make run`.

Every test fails if the browser reports a problem: an error in the console, a breach of a page's
Content-Security-Policy, or a request that leaves the service.
"""

import hashlib
import re
from collections.abc import AsyncIterator

import apsw
import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    expect,
)
from tests.e2e.conftest import NewPhone, OwnProject, Service

from taproof.core.names import isolated_name
from taproof.messengers.texts.catalog import texts_for

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DEMO = isolated_name("Demo")


@pytest_asyncio.fixture(loop_scope="session")
async def context(service: Service, browser: Browser) -> AsyncIterator[BrowserContext]:
    """Yield a fresh browser context, and fail if the browser reported a problem."""
    context = await browser.new_context(base_url=service.base_url)
    complaints: list[str] = []

    def on_console(line: ConsoleMessage) -> None:
        if line.type in {"error", "warning"}:
            complaints.append(line.text)

    def on_request(request: Request) -> None:
        if not request.url.startswith((f"{service.base_url}/", "data:", f"blob:{service.base_url}/")):
            complaints.append(f"left the service: {request.url}")

    context.on("console", on_console)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("request", on_request)
    yield context
    await context.close()
    assert complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def demo(context: BrowserContext) -> Page:
    page = await context.new_page()
    await page.goto("/demo")
    return page


async def click_sign_in(demo: Page) -> Page:
    """Click Sign in and return the phone that opens."""
    async with demo.expect_popup() as opened:
        await demo.click("#sign-in")
    phone = await opened.value
    await expect(phone.locator("#start")).to_be_visible()
    return phone


async def be(phone: Page, user_id: str) -> None:
    """Switch to another simulated user."""
    await phone.select_option("#user", user_id)
    await expect(phone.locator("#start")).to_be_visible()


def button(phone: Page, label: str) -> Locator:
    """Return a button of the newest prompt."""
    return phone.locator("[data-buttons]").last.get_by_role("button", name=label, exact=True)


def newest(phone: Page) -> Locator:
    """Return the text of the bot's newest message."""
    return phone.locator("[data-from=bot] .bubble > div").last


async def status_is(demo: Page, status: str) -> None:
    await expect(demo.locator("#status")).to_have_attribute("data-status", status)


async def test_three_clicks(demo: Page) -> None:
    """Sign in, Start, Confirm: the user is signed in and stays so after a reload until they sign out."""
    await expect(demo.locator("#status")).to_have_text("You are not signed in.")
    phone = await click_sign_in(demo)
    assert await phone.evaluate("window.opener") is None
    await phone.click("#start")
    await expect(newest(phone)).to_contain_text(f"Sign in to {DEMO}?")
    await button(phone, "Confirm").click()
    await expect(demo.locator("#who")).to_have_text("Signed in as Ada Lovelace @ada")
    await expect(newest(phone)).to_contain_text(f"You confirmed the sign-in to {DEMO}.")
    await expect(phone.locator("[data-message]").last.locator("button")).to_have_count(0)
    await expect(demo.locator("#claims")).to_contain_text('"messenger_id": "1001"')
    # The link's token is used up, and is not left in the address bar or the history.
    assert "start=" not in phone.url

    await demo.reload()
    await expect(demo.locator("#who")).to_have_text("Signed in as Ada Lovelace @ada")
    await demo.click("#sign-out")
    await status_is(demo, "idle")
    await demo.reload()
    await expect(demo.locator("#status")).to_have_text("You are not signed in.")


async def test_cancel_and_try_again(demo: Page, new_phone: NewPhone) -> None:
    """Cancel signs nobody in and says so on both sides; a new sign-in works at once."""
    user = new_phone("Grace").messenger_id
    phone = await click_sign_in(demo)
    await be(phone, user)
    await phone.click("#start")
    await button(phone, "Cancel").click()
    await expect(newest(phone)).to_contain_text("Nobody was signed in.")
    await status_is(demo, "cancelled")
    await expect(demo.locator("#sign-in")).to_have_text("Try again")

    again = await click_sign_in(demo)
    # The phone remembers its user.
    await expect(again.locator("#user")).to_have_value(user)
    await again.click("#start")
    await button(again, "Confirm").click()
    await expect(demo.locator("#who-name")).to_have_text("Grace")


async def open_messenger(demo: Page) -> Page:
    """Click Sign in with OpenID Connect, then the button of the service's page; return the phone that opens."""
    await demo.click("#sign-in-openid")
    async with demo.expect_popup() as opened:
        await demo.get_by_role("link", name="Open the messenger").click()
    phone = await opened.value
    await expect(phone.locator("#start")).to_be_visible()
    return phone


async def test_openid(demo: Page, new_phone: NewPhone, service: Service) -> None:
    """The demo sends the user to the service's page, and gets them back signed in, with nothing left in its address."""
    user = new_phone("Grace", username="grace_openid").messenger_id
    screen = service.screen()
    assert f"OpenID issuer {service.base_url}\n" in screen
    assert f"OpenID client {await demo.locator('body').get_attribute('data-client-id')}\n" in screen
    phone = await open_messenger(demo)
    await be(phone, user)
    await phone.click("#start")
    await button(phone, "Confirm").click()
    await expect(demo.locator("#who")).to_have_text("Signed in as Grace @grace_openid")
    await expect(demo.locator("#who")).to_be_focused()
    assert demo.url == f"{service.base_url}/demo"
    await expect(demo.locator("#steps li")).to_have_count(4)
    await expect(demo.locator("#claims")).to_contain_text(f'"sub": "{user}"')
    await expect(demo.locator("#contents")).to_contain_text("What the ID token contains")
    assert await demo.evaluate("sessionStorage.length") == 0

    await demo.reload()
    await expect(demo.locator("#who-name")).to_have_text("Grace")
    await demo.click("#sign-out")
    await status_is(demo, "idle")
    await demo.reload()
    await expect(demo.locator("#status")).to_have_text("You are not signed in.")


async def test_openid_without_a_code(demo: Page, service: Service) -> None:
    """A user who goes back is told so kindly. A response to no request of this tab is refused, and adds no step."""
    await demo.click("#sign-in-openid")
    await demo.get_by_role("button", name="Back to Demo").click()
    await status_is(demo, "cancelled")
    await expect(demo.locator("#steps")).to_contain_text("/demo?error=access_denied&state=…&iss=…")
    await expect(demo.locator("#status")).to_have_text("You went back without signing in. Nothing was shared.")
    await expect(demo.locator("#sign-in-openid")).to_be_focused()
    assert demo.url == f"{service.base_url}/demo"
    await demo.goto("/demo?error=Your+account+is+locked&state=planted")
    await status_is(demo, "error")
    await expect(demo.locator("#status")).to_contain_text("not started in this tab")
    await expect(demo.locator("#steps li")).to_have_count(0)


async def test_expiry(demo: Page, service: Service, new_phone: NewPhone) -> None:
    """A session expires after ten minutes without any action, and a late tap on its prompt confirms nothing."""
    user = new_phone("Grace").messenger_id
    phone = await click_sign_in(demo)
    await be(phone, user)
    await phone.click("#start")
    await expect(button(phone, "Confirm")).to_be_visible()
    deeplink = await demo.locator("#deeplink").get_attribute("href") or ""
    token_hash = hashlib.sha256(deeplink.partition("start=")[2].encode()).digest()
    store = apsw.Connection(str(service.database))
    store.set_busy_timeout(10_000)
    store.execute("UPDATE sessions SET expires_at = created_at + 1 WHERE token_hash = ?", (token_hash,))
    assert store.changes() == 1
    store.close()
    await status_is(demo, "expired")
    await expect(demo.locator("#sign-in")).to_have_text("Try again")
    await button(phone, "Confirm").click()
    await expect(newest(phone)).to_contain_text(f"The request to sign in to {DEMO} has expired.")
    await expect(phone.locator("[data-message]").last.locator("button")).to_have_count(0)
    await status_is(demo, "expired")


async def test_somebody_elses_link(demo: Page, context: BrowserContext, new_phone: NewPhone) -> None:
    """The first account that opens the link owns the decision; the next one is told so and gets no buttons."""
    user = new_phone("Grace").messenger_id
    phone = await click_sign_in(demo)
    await be(phone, user)
    await phone.click("#start")
    await expect(button(phone, "Confirm")).to_be_visible()

    other = await context.new_page()
    await other.goto(await demo.locator("#deeplink").get_attribute("href") or "")
    await other.click("#new-user")
    await other.fill("[name=first_name]", "Mallory")
    await other.click("button[value=add]")
    await expect(other.locator("#user option:checked")).to_have_text("Mallory")
    await other.click("#start")
    await expect(newest(other)).to_contain_text("belongs to someone else")
    await expect(other.locator("[data-buttons]")).to_have_count(0)

    await status_is(demo, "pending")
    await button(phone, "Confirm").click()
    await expect(demo.locator("#who-name")).to_have_text("Grace")


async def test_a_persian_user(demo: Page, new_phone: NewPhone) -> None:
    """The bot speaks the user's language, and the phone shows it in the right direction."""
    user = new_phone("سارا", language_code="fa").messenger_id
    phone = await click_sign_in(demo)
    await be(phone, user)
    await phone.click("#start")
    texts = texts_for("fa")
    await expect(newest(phone)).to_contain_text(re.compile("[\u0600-\u06ff]"))
    assert await newest(phone).evaluate("each => getComputedStyle(each).direction") == "rtl"
    await expect(button(phone, texts.cancel_button)).to_be_visible()
    await button(phone, texts.confirm_button).click()
    await expect(demo.locator("#who-name")).to_have_text("سارا")
    # An English sentence around a Persian name stays English.
    assert await demo.locator("#who").evaluate("each => getComputedStyle(each).direction") == "ltr"
    assert await demo.locator("#who-name").evaluate("each => getComputedStyle(each).unicodeBidi") == "isolate"


async def test_notices_have_their_direction(context: BrowserContext) -> None:
    """Notices above the chat have the user's language and direction too."""
    phone = await context.new_page()
    await phone.goto("/sandbox/phone")
    for notice in ("#toast", "#alert-text"):
        assert await phone.locator(notice).get_attribute("dir") == "auto"


async def test_hostile_names(demo: Page, context: BrowserContext, project: OwnProject, new_phone: NewPhone) -> None:
    """Names of projects and users are always plain text: they add no element and change no direction."""
    hostile = "<img src=x onerror=document.title='broken'>\u202eknaB\u202c <b>Bank</b> &amp;"
    renamed = project.developer.ask("PATCH", f"/projects/{project.id}", json={"name": hostile})
    assert "<b>Bank</b> &amp;" in renamed["name"]
    user = new_phone("<i>Eve</i>\u202e", last_name="</option><script>").messenger_id

    phone = await context.new_page()
    await phone.goto(project.generate()["deeplink"])
    await be(phone, user)
    await expect(phone.locator("#user option:checked")).to_contain_text("<i>Eve</i>")
    await phone.click("#start")
    await expect(newest(phone)).to_contain_text("<b>Bank</b> &amp;")
    assert "\u202e" not in await newest(phone).inner_text()
    await expect(phone.locator("#messages :is(img, script, b, i)")).to_have_count(0)
    await button(phone, "Confirm").click()
    await expect(newest(phone)).to_contain_text("<b>Bank</b> &amp;")
    await expect(phone).to_have_title("Sandbox phone")

    second = await click_sign_in(demo)
    await second.click("#start")
    await button(second, "Confirm").click()
    await expect(demo.locator("#who-name")).to_contain_text("<i>Eve</i>")
    await expect(demo.locator("#who-name *")).to_have_count(0)


async def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    for _ in range(20):
        if await target.evaluate("each => each === document.activeElement"):
            return
        await page.keyboard.press("Tab")
    pytest.fail(f"The keyboard does not reach {target}")


async def test_by_keyboard_alone(demo: Page) -> None:
    """Three presses of Enter can replace the three clicks, and the focus ends on the result."""
    await tab_to(demo, demo.locator("#sign-in"))
    async with demo.expect_popup() as opened:
        await demo.keyboard.press("Enter")
    phone = await opened.value
    await expect(phone.locator("#start")).to_be_focused()
    await phone.keyboard.press("Enter")
    await expect(button(phone, "Confirm")).to_be_visible()
    await expect(phone.locator("#start")).to_be_hidden()
    await tab_to(phone, button(phone, "Confirm"))
    await phone.keyboard.press("Enter")
    await expect(demo.locator("#who")).to_be_focused()
    await tab_to(demo, demo.locator("#sign-out"))
    await demo.keyboard.press("Enter")
    await expect(demo.locator("#sign-in")).to_be_focused()


@pytest.mark.parametrize("path", ["/demo", "/sandbox/phone", "/docs"])
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
