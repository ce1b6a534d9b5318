"""The phone in a real browser, with a real bot on the other side."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect
from tests.sandbox.bot import Bot
from tests.sandbox.conftest import ADA, BORIS, EchoBot, Running, buttons
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, running: Running) -> AsyncIterator[Page]:
    """Open a page of the size of a phone; any error of its scripts fails the test."""
    page = await browser.new_page(base_url=running.base, viewport={"width": 390, "height": 844})
    complaints: list[str] = []
    # That a request was refused the browser notes by itself: the page has a sentence for it, which a test looks at.
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text)
            if message.type == "error" and "Failed to load resource" not in message.text
            else None
        ),
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    await page.close()
    assert complaints == []


async def test_start_and_confirm_are_two_clicks(page: Page, echo: EchoBot) -> None:
    """The deeplink's page has one Start button.

    Then the bot's prompt with its buttons appears, then the result of the tap.
    """
    await page.goto("/sandbox/phone?start=token_1")
    await expect(page.locator("#composer")).to_be_hidden()
    await expect(page.locator("#start")).to_be_focused()
    await page.click("#start")
    await page.click("[data-buttons] button:has-text('Confirm')")
    await expect(page.locator("#toast")).to_have_text("Done.")
    await expect(page.locator("[data-message]").last).to_contain_text("You chose c:token")
    await expect(page.locator("[data-buttons] button")).to_have_count(0)
    # The token is neither in the address bar nor, as in the real messenger, in what the person sees.
    await expect(page).to_have_url(re.compile("/sandbox/phone$"))
    await expect(page.locator("[data-from=user] .bubble > div")).to_have_text("/start")
    await page.reload()
    await expect(page.locator("[data-message]")).to_have_count(2)
    await expect(page.locator("#start")).to_be_hidden()


async def test_a_link_button_opens_its_page(page: Page, running: Running, bot: Bot) -> None:
    """The page opens in another tab without access to this one; links of the messenger's own scheme do nothing here."""
    await running.post(f"users/{ADA}/send", {"text": "/start"})
    links = [f"{running.base}/sandbox/phone#taproof_return=code", "tg://resolve?domain=a"]
    keyboard = [[{"text": f"Back {number}", "url": url}] for number, url in enumerate(links)]
    message: dict[str, Any] = {"chat_id": ADA, "text": "x", "reply_markup": {"inline_keyboard": keyboard}}
    await running.call("sendMessage", **message, protect_content=True)
    await page.goto("/sandbox/phone")
    await expect(page.get_by_title("This message cannot be forwarded or saved.")).to_have_count(1)
    await expect(page.locator("[data-buttons] button")).to_have_count(0)
    await expect(page.get_by_text("Back 1")).not_to_have_attribute("href", re.compile("."))
    async with page.context.expect_page() as opened:
        await page.get_by_role("link", name="Back 0").click()
    tab = await opened.value
    await tab.wait_for_load_state()
    assert tab.url.endswith("#taproof_return=code")
    assert await tab.evaluate("[window.opener, document.referrer]") == [None, ""]
    await tab.close()


async def test_everything_by_keyboard(page: Page, echo: EchoBot) -> None:
    """Start, the buttons and the message field are reached and used without a mouse."""
    await page.goto("/sandbox/phone?start=token_1")
    await expect(page.locator("#start")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#messages")).to_be_focused()
    await expect(page.locator("[data-buttons] button")).to_have_count(2)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-message]").last).to_contain_text("You chose x:token")
    await page.get_by_label("Message", exact=True).fill("hello")
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-from=user]").last).to_contain_text("hello")


async def test_hostile_text_stays_text(page: Page, running: Running, bot: Bot) -> None:
    """Markup in a message is shown as written; the bot's formatting is applied, also nested and next to emoji."""
    await running.post(f"users/{ADA}/send", {"text": "<img src=x onerror=alert(1)>"})
    text = "😀<b>bo<i>th</i></b> &lt;script&gt; <code>c</code> <a href='https://a.example'>l</a>"
    await bot.send_message(ADA, text, reply_markup=buttons(("<b>&", "c:1")))
    await page.goto("/sandbox/phone")
    await expect(page.locator("[data-from=user] .bubble")).to_contain_text("<img src=x onerror=alert(1)>")
    written = page.locator("[data-from=bot] .bubble > div")
    assert await written.inner_html() == (
        '😀<b>bo<i>th</i></b> &lt;script&gt; <code>c</code> <span class="link" title="https://a.example/">l</span>'
    )
    await expect(page.locator("[data-buttons] button")).to_have_text("<b>&")


async def test_an_alert_is_a_dialog(page: Page, running: Running, bot: Bot) -> None:
    """A notice with show_alert waits for OK."""
    await running.post(f"users/{ADA}/send", {"text": "x"})
    await bot.send_message(ADA, "x", reply_markup=buttons(("Yes", "c:1")))
    await page.goto("/sandbox/phone")
    await page.get_by_role("button", name="Yes").click()
    query = None
    while query is None:
        query = (await bot.get_updates(-1, timeout=5))[0].callback_query
    await expect(page.get_by_role("button", name="Yes")).to_be_disabled()
    await bot.answer_callback_query(query.id, text="Look <b>here", show_alert=True)
    await expect(page.locator("#alert-text")).to_have_text("Look <b>here")
    await page.get_by_role("button", name="OK").click()
    await expect(page.locator("#alert")).to_be_hidden()


async def test_choice_of_users(page: Page, running: Running) -> None:
    """Each user has a separate chat; a new user can be created; the choice is kept."""
    await running.post(f"users/{BORIS}/send", {"text": "privet"})
    await page.goto("/sandbox/phone")
    await expect(page.locator("#user option")).to_have_text(
        ["Ada Lovelace (@ada)", "Борис Петров", "سارا احمدی (@sara_ahmadi)"]
    )
    await expect(page.locator("#empty")).to_be_visible()
    await page.select_option("#user", label="Борис Петров")
    await expect(page.locator("[data-message]")).to_contain_text("privet")
    await page.get_by_role("button", name="New user").click()
    await page.get_by_label("First name").fill("Grace")
    await page.get_by_label("Language code").fill("es")
    await page.get_by_label("Phone number").fill("4915123456789")
    await page.get_by_role("button", name="Add").click()
    await expect(page.locator("#user")).to_have_value("1004")
    await expect(page.locator("[data-message]")).to_have_count(0)
    await page.reload()
    await expect(page.locator("#user")).to_have_value("1004")
    users = (await running.http.get("/sandbox/users")).json()["users"]
    assert (users[-1]["first_name"], users[-1]["language_code"], users[-1]["username"]) == ("Grace", "es", None)
    assert users[-1]["phone"] == "4915123456789"


async def test_blocking(page: Page, running: Running) -> None:
    """A user who blocks the bot cannot write to it until they unblock it."""
    await page.goto("/sandbox/phone")
    await page.get_by_role("button", name="Block bot").click()
    await expect(page.locator("#start")).to_be_hidden()
    await expect(page.locator("#composer")).to_be_hidden()
    await page.get_by_role("button", name="Unblock bot").click()
    await page.click("#start")
    await expect(page.locator("[data-message]")).to_have_count(1)
    await expect(page.get_by_label("Message", exact=True)).to_be_visible()


async def test_controls_wait_for_what_they_act_on(page: Page, running: Running) -> None:
    """A click before the page has loaded the users and the chat is neither lost nor sent for nobody."""
    held: dict[str, Route] = {}

    async def hold(route: Route) -> None:
        held[route.request.url.rsplit("/", 1)[-1].partition("?")[0]] = route

    async def until_held(name: str) -> Route:
        await until(lambda: name in held, f"a request for {name}")
        return held.pop(name)

    controls = [page.get_by_role("button", name=name) for name in ("New user", "Send", "Share a contact")]
    block = page.get_by_role("button", name="Block bot")
    await page.route(re.compile(r"/sandbox/(users|bots|users/\d+/messages)(\?|$)"), hold)
    await page.goto("/sandbox/phone")
    bots = await until_held("bots")
    for control in [*controls, block]:
        await expect(control).to_be_disabled()
    await bots.continue_()
    await (await until_held("users")).continue_()
    for control in controls:
        await expect(control).to_be_enabled()
    await expect(block).to_be_disabled()
    await (await until_held("messages")).continue_()
    await expect(block).to_be_enabled()
    await page.unroute_all(behavior="ignoreErrors")


async def test_a_failure_is_said(page: Page) -> None:
    """A deeplink that cannot be opened shows the reason, and Start stays."""
    await page.goto("/sandbox/phone?start=not%20a%20token")
    await page.click("#start")
    await expect(page.locator("#toast")).to_contain_text("The deeplink must be")
    await expect(page.locator("#start")).to_be_enabled()


async def test_headers_and_accessible_names(page: Page, running: Running) -> None:
    """The page runs only its own files and cannot be framed, and every control has a name."""
    response = await page.goto("/sandbox/phone?start=x")
    assert response is not None
    policy = await response.header_value("content-security-policy") or ""
    assert "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'" in policy
    assert "frame-ancestors 'self'" in policy
    assert await response.header_value("referrer-policy") == "no-referrer"
    body = (await running.http.get("/sandbox/phone")).text
    assert re.search(r"<script(?![^>]*src=)|<style|style=|\son[a-z]+=", body) is None
    await expect(page.get_by_label("You are")).to_be_visible()
    await expect(page.get_by_role("log", name="Chat with the bot")).to_be_attached()
    # All at once: the bot's answer to /start takes a button away.
    controls = page.locator("button:visible, input:visible, select:visible")
    names = await controls.evaluate_all("all => all.map(each => each.innerText || each.labels?.length)")
    assert len(names) > 2
    assert all(names)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    redirect = await running.http.get("/sandbox")
    assert (redirect.status_code, redirect.headers["location"]) == (307, "/sandbox/phone")


async def test_a_suggested_bot_is_created(page: Page, running: Running) -> None:
    """The page of a link asks first, with the suggested names; then the phone shows the chat with the new bot."""
    await page.goto("/sandbox/newbot/taproof_sandbox_bot/ada_shop_bot?name=Ada%27s%20shop%20%3Cb%3E")
    dialog = page.get_by_role("dialog", name="Create a bot?")
    await expect(dialog.get_by_label("Its username")).to_have_value("ada_shop_bot")
    await expect(dialog.get_by_label("Its name")).to_have_value("Ada's shop <b>")
    await dialog.get_by_label("Its username").fill("taproof_sandbox_bot")
    await dialog.get_by_role("button", name="Create").click()
    await expect(page.locator("#toast")).to_contain_text("Another bot or a simulated user has this username.")
    await page.reload()
    await dialog.get_by_role("button", name="Create").click()
    await page.wait_for_url("**/sandbox/phone/ada_shop_bot")
    await expect(page.locator("#bot-name")).to_have_text("Ada's shop <b>")
    (update,) = (await running.call("getUpdates", allowed_updates=["managed_bot"]))["result"]
    assert update["managed_bot"]["bot"]["username"] == "ada_shop_bot"
