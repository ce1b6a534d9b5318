"""The phone in a real browser: keyboards below the message field, contacts, and several bots."""

import re
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect
from tests.axe import PHONE, assert_accessible
from tests.sandbox.bot import Bot, KeyboardButton, ReplyKeyboardMarkup, ReplyKeyboardRemove
from tests.sandbox.conftest import ADA, BORIS, Running, buttons
from tests.sandbox.phone.test_page import page

__all__ = ["page"]

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ASK = ReplyKeyboardMarkup(
    keyboard=[[KeyboardButton(text="Share <my> number", request_contact=True)], [KeyboardButton(text="/sessions")]],
    one_time_keyboard=True,
    input_field_placeholder="Tap the button",
)


async def ask(running: Running, bot: Bot) -> None:
    await running.post(f"users/{ADA}/send", {"text": "/start"})
    await bot.send_message(ADA, "Your number?", reply_markup=ASK)


async def newest(bot: Bot) -> dict[str, Any]:
    """Return the newest update's message."""
    [update] = await bot.get_updates(-1)
    assert update.message is not None
    return update.message.as_sent()


async def test_the_own_number_is_shared_after_a_question(page: Page, running: Running, bot: Bot) -> None:
    """The button asks before it sends the number; a one-time keyboard then folds, unfolds on demand, and goes."""
    await ask(running, bot)
    await page.goto("/sandbox/phone")
    keyboard = page.locator("#keyboard")
    await expect(keyboard.locator("button")).to_have_text(["Share <my> number", "/sessions"])
    await expect(page.locator("#text")).to_have_attribute("placeholder", "Tap the button")
    await keyboard.get_by_role("button", name="Share <my> number").click()
    await expect(page.locator("#own-number")).to_have_text("+12025550101")
    await page.get_by_role("button", name="Cancel").click()
    assert len(await running.messages()) == 2
    await keyboard.get_by_role("button", name="Share <my> number").click()
    await page.get_by_role("button", name="Share my number").click()
    card = page.locator("[data-from=user] .contact")
    await expect(card).to_have_text("Ada Lovelace+12025550101user 1001")
    await expect(keyboard).to_be_hidden()
    assert (await newest(bot))["contact"]["user_id"] == ADA
    toggle = page.get_by_role("button", name="The bot's keyboard")
    await expect(toggle).to_have_attribute("aria-expanded", "false")
    await toggle.click()
    await expect(keyboard).to_be_visible()
    await expect(toggle).to_have_attribute("aria-expanded", "true")
    await bot.send_message(ADA, "Thanks", reply_markup=ReplyKeyboardRemove())
    await expect(keyboard).to_be_hidden()
    await expect(toggle).to_be_hidden()
    await expect(page.locator("#text")).to_have_attribute("placeholder", "Message")


async def test_a_text_button_types_its_text(page: Page, running: Running, bot: Bot) -> None:
    """A button without a request sends its text; everything works without a mouse."""
    await ask(running, bot)
    await page.goto("/sandbox/phone")
    button = page.get_by_role("button", name="/sessions")
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-from=user]").last).to_contain_text("/sessions")
    await expect(page.locator("#messages")).to_be_focused()
    assert (await newest(bot))["text"] == "/sessions"


async def test_foreign_contacts_from_the_attachment_menu(page: Page, running: Running, bot: Bot) -> None:
    """The attachment menu shares another user's contact, an unknown number, and forwards, as attackers do."""
    await running.post(f"users/{ADA}/send", {"text": "/start"})
    await page.goto("/sandbox/phone")
    attach, share = (
        page.get_by_role("button", name="Share a contact"),
        page.get_by_role("button", name="Share", exact=True),
    )
    await attach.click()
    await expect(page.locator("#contact-other")).to_be_hidden()
    await page.select_option("#contact-whose", label="Борис Петров")
    await share.click()
    await expect(page.locator(".contact")).to_contain_text("user 1002")
    assert (await newest(bot))["contact"]["user_id"] == BORIS
    await attach.click()
    await page.select_option("#contact-whose", label="Someone else")
    await share.click()
    await expect(page.locator("#contact-number")).to_be_focused()
    await page.fill("#contact-number", "4915123456789")
    await page.fill("#contact-name", "<i>Victim")
    await page.select_option("#contact-from", label="Борис Петров")
    await share.click()
    await expect(page.locator(".contact").last).to_have_text("<i>Victim4915123456789not known to the messenger")
    await expect(page.locator(".forwarded")).to_have_text("Forwarded from Борис Петров")
    message = await newest(bot)
    assert message["contact"] == {"phone_number": "4915123456789", "first_name": "<i>Victim"}
    assert message["forward_origin"]["sender_user"]["id"] == BORIS
    await attach.click()
    await page.get_by_role("button", name="Close").click()
    assert len(await running.messages()) == 3


async def test_three_buttons_in_a_row(page: Page, running: Running, bot: Bot) -> None:
    """Three choices are side by side even on the narrowest phones, the others below, and nothing is cut off."""
    await page.set_viewport_size({"width": 320, "height": 640})
    await running.post(f"users/{ADA}/send", {"text": "/start"})
    keyboard = buttons(("17", "m:0"), ("42", "m:1"), ("88", "m:2"))
    keyboard.inline_keyboard += buttons(("This wasn't me", "r:0")).inline_keyboard
    await bot.send_message(ADA, "Which number does the page show?", reply_markup=keyboard)
    await page.goto("/sandbox/phone")
    await expect(page.locator("[data-buttons] button")).to_have_count(4)
    tops = await page.locator("[data-buttons] button").evaluate_all(
        "all => all.map(each => Math.round(each.getBoundingClientRect().top))"
    )
    assert tops[0] == tops[1] == tops[2] < tops[3]
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_the_chats_with_several_bots(page: Page, running: Running, bot: Bot) -> None:
    """A link opens the chat with its bot, the page lists the chats, and the choice is in the address."""
    made = await running.post("bots", {"username": "acme_login_bot", "name": "Acme <b>login"})
    other = Bot(running.http, made["token"])
    await page.goto("/sandbox/phone/acme_login_bot?start=tok")
    await expect(page.locator("#bot-name")).to_have_text("Acme <b>login")
    await expect(page.locator("#bot option")).to_have_text(
        ["Taproof sandbox (@taproof_sandbox_bot)", "Acme <b>login (@acme_login_bot)"]
    )
    await page.click("#start")
    await expect(page.locator("[data-from=user]")).to_have_count(1)
    [update] = await other.get_updates()
    assert update.message is not None
    assert update.message.text == "/start tok"
    await other.send_message(ADA, "From Acme", reply_markup=buttons(("Yes", "c:1")))
    await expect(page.locator("[data-from=bot]")).to_contain_text("From Acme")
    # The page removes the token once its own request is answered.
    await expect(page).to_have_url(re.compile("/sandbox/phone/acme_login_bot$"))
    await page.select_option("#bot", "taproof_sandbox_bot")
    await expect(page.locator("[data-message]")).to_have_count(0)
    await expect(page).to_have_url(re.compile("/sandbox/phone$"))
    await page.click("#start")
    assert (await newest(bot))["text"] == "/start"
    await page.goto("/sandbox/phone/acme_login_bot")
    await page.get_by_role("button", name="Yes").click()
    query = None
    while query is None:
        query = (await other.get_updates(-1, timeout=5))[0].callback_query
    await other.answer_callback_query(query.id, text="Got it")
    await expect(page.locator("#toast")).to_have_text("Got it")


async def test_one_bot_needs_no_list(page: Page) -> None:
    """With only the service's own bot, there is no list; an address of an unknown bot says so."""
    await page.goto("/sandbox/phone/nobody_bot")
    await expect(page.locator("#toast")).to_have_text("There is no bot @nobody_bot in this sandbox.")
    await expect(page.locator("#bots")).to_be_hidden()
    await expect(page.locator("#bot-name")).to_have_text("Taproof sandbox")


async def test_everybody_can_use_it(browser: Browser, running: Running, bot: Bot) -> None:
    """axe-core finds nothing (WCAG 2.2, AA) in the chat, its keyboard and the dialogs, in both themes."""
    await running.post("bots", {"username": "acme_login_bot"})
    await ask(running, bot)
    await running.post(f"users/{ADA}/share", {"contact": BORIS, "forwarded_from": BORIS})
    await bot.send_message(ADA, "<b>Confirm</b>?", reply_markup=buttons(("17", "m:0"), ("42", "m:1"), ("88", "m:2")))
    # The page's own policy would keep axe-core out. Other tests hold the page to it.
    context = await browser.new_context(base_url=running.base, bypass_csp=True, reduced_motion="reduce", viewport=PHONE)
    page = await context.new_page()
    await page.goto("/sandbox/phone")
    await expect(page.locator("#keyboard")).to_be_visible()
    await assert_accessible(page, [PHONE])
    for opener, dialog in (
        ("Share <my> number", "#own-contact"),
        ("Share a contact", "#contact"),
        ("New user", "#person"),
    ):
        await page.get_by_role("button", name=opener).click()
        await expect(page.locator(dialog)).to_be_visible()
        if dialog == "#contact":
            await page.select_option("#contact-whose", label="Someone else")
        await assert_accessible(page, [PHONE])
        await page.keyboard.press("Escape")
        await expect(page.locator(dialog)).to_be_hidden()
    await context.close()
