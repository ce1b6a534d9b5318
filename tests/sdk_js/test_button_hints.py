"""The button shows what the user is doing in the messenger, and cancels the sign-in when its panel is closed."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import expect
from tests.axe import assert_accessible
from tests.e2e.conftest import OwnProject, Phone
from tests.sdk_js.conftest import OpenContext, Site, Way, go, heard, part, shown_link, start, wait_for
from tests.sdk_js.stand_in import StandIn
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SAID = {
    "opened": "Opened in Telegram: confirm there",
    "choosing": "Opened in Telegram: choose 42",
    "phone_asked": "Telegram asks for your phone number: answer there",
    "unreachable": "You have blocked the bot. Unblock it, then open Telegram again.",
    "return": "Confirmed. To finish, tap the Back button in Telegram",
}


@pytest.fixture
def service(way: Way) -> StandIn:
    service = StandIn(match_code="42")
    way.mode = service.answer
    return service


async def test_each_hint(site: Site, way: Way, service: StandIn, open_context: OpenContext) -> None:
    """Each hint has a text and an event; the next call names it, so that the service can wait for another."""
    service.accepts_return = False
    context = await open_context(breaks=True, bypass_csp=True, reduced_motion="reduce")
    page = await go(context, site.show('project-id="proj_1"'))
    await start(page)
    for name in ("code", "scan", "number"):
        await expect(part(page, name)).to_be_visible()
    turns = "(it) => getComputedStyle(it, '::before').display !== 'none'"
    for hint, said in SAID.items():
        service.last.become(hint)
        await expect(part(page, "status")).to_have_text(said)
        # Nothing is left to scan, and after the choice nothing to choose; a blocked bot does nothing.
        for name in ("code", "scan"):
            await expect(part(page, name)).to_be_hidden()
        await expect(part(page, "number")).to_have_text("42" if hint in {"opened", "choosing"} else "")
        assert await part(page, "status").evaluate(turns) is (hint != "unreachable")
        await expect(part(page, "link")).to_be_visible()
        await assert_accessible(page)
    await expect(part(page, "help")).to_be_hidden()
    assert [detail["hint"] for _, detail in await heard(page, "hint")] == ["waiting", *SAID]
    # The status has not changed for pages that do not know hints.
    assert [detail["status"] for _, detail in await heard(page, "status")] == ["starting", "pending"]
    await until(lambda: [call["seen_hint"] for call in way.calls if "wait" in call] == ["waiting", *SAID])
    assert [call["wait"] for call in way.calls if "wait" in call] == [25] * 6


async def test_a_hint_comes_back_after_a_lost_connection(
    site: Site, way: Way, service: StandIn, open_context: OpenContext
) -> None:
    """The hint is shown again when the service is back, and after a reload; a new sign-in begins without it."""
    page = await go(await open_context(breaks=True), site.show('project-id="proj_1"'))
    await start(page)
    service.last.become("opened")
    await expect(part(page, "status")).to_have_text(SAID["opened"])
    way.mode = "html"
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(part(page, "status")).to_have_text("No connection. Trying again…")
    await expect(part(page, "code")).to_be_hidden()
    way.mode = service.answer
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(part(page, "status")).to_have_text(SAID["opened"])
    await page.reload()
    await expect(part(page, "status")).to_have_text(SAID["opened"])
    service.last.become("opened", "cancelled")
    await part(page, "retry").click()
    await shown_link(page)
    await expect(part(page, "status")).to_have_text("Waiting for you to confirm…")


async def test_hints_in_another_language(site: Site, service: StandIn, open_context: OpenContext) -> None:
    """Each text is in the panel's language and names the number in it."""
    page = await go(await open_context(), site.show('project-id="proj_1" language="fa"'))
    await part(page, "button").click()
    await shown_link(page)
    for hint, english in SAID.items():
        before = await part(page, "status").inner_text()
        service.last.become(hint)
        await expect(part(page, "status")).not_to_have_text(before)
        said = await part(page, "status").inner_text()
        assert (said == english, "42" in said) == (False, hint == "choosing")


async def test_an_unknown_hint(site: Site, service: StandIn, open_context: OpenContext) -> None:
    """A hint that the button does not know changes nothing in the panel, which then has its QR code."""
    service.accepts_return = False
    page = await go(await open_context(breaks=True), site.show('project-id="proj_1"'))
    await start(page)
    unknown: list[Any] = ["<b>x</b>", "constructor", 7, None]
    for hint in unknown:
        service.last.become(hint)
        service.last.become("opened")
        await expect(part(page, "status")).to_have_text(SAID["opened"])
        service.last.become(hint)
        said = SAID["opened"] if hint is None else "Waiting for you to confirm…"
        await expect(part(page, "status")).to_have_text(said)
        await expect(part(page, "code")).to_be_visible(visible=hint is not None)


@pytest.mark.parametrize("how", ["Escape", "close", "removed", "before the link"])
async def test_closing_cancels(site: Site, way: Way, service: StandIn, open_context: OpenContext, how: str) -> None:
    """Closing the panel or removing the button ends the sign-in, deletes its data, and cancels it at the service."""
    page = await go(await open_context(breaks=True), site.show('project-id="proj_1"'))
    if how == "before the link":
        way.mode = "html"
        await part(page, "button").click()
        await until(lambda: way.calls)
    else:
        await start(page)
        assert await page.evaluate("sessionStorage.length") == 1
    if how == "close":
        await page.get_by_role("button", name="Close").click()
    elif how == "removed":
        await page.evaluate(
            """() => {
                const button = document.querySelector("taproof-button");
                button.addEventListener("taproof-ended", ({detail}) => heard.push(["ended", detail]));
                button.remove();
            }"""
        )
    else:
        await page.keyboard.press("Escape")
    assert await wait_for(page, "ended") == {"status": "aborted"}
    assert await page.evaluate("sessionStorage.length") == 0
    if how == "before the link":
        assert not any("cancel" in call["path"] for call in way.calls)
        return
    await until(lambda: service.last.status == "cancelled")
    [cancel] = [call for call in way.calls if call["path"] == "/api/v1/cancel/public"]
    assert cancel.keys() == {"path", "project_id", "session_token", "code_verifier"}


async def test_a_lost_cancel(site: Site, way: Way, service: StandIn, open_context: OpenContext) -> None:
    """If the service cannot be reached, the sign-in still ends on the page."""
    page = await go(await open_context(breaks=True), site.show('project-id="proj_1"'))
    await start(page)
    way.mode = "drop"
    await page.keyboard.press("Escape")
    assert await wait_for(page, "ended") == {"status": "aborted"}
    await until(lambda: "cancel" in way.calls[-1]["path"])
    assert service.last.status == "pending"
    assert await page.evaluate("sessionStorage.length") == 0
    [left] = await page.evaluate("Object.values(localStorage).map(JSON.parse)")
    assert left.keys() == {"expiresAt"}


async def test_an_ended_sign_in_is_not_cancelled(
    site: Site, way: Way, service: StandIn, open_context: OpenContext
) -> None:
    """Closing the panel after the end, or leaving the page, cancels nothing."""
    context = await open_context()
    page = await go(context, site.show('project-id="proj_1"'))
    await start(page)
    await page.goto("about:blank")
    page = await go(context, site.url)
    service.sessions.clear()
    await start(page)
    service.last.become("opened", "cancelled")
    await expect(part(page, "status")).to_have_text("Cancelled")
    await page.keyboard.press("Escape")
    await expect(part(page, "panel")).to_be_hidden()
    assert not any("cancel" in call["path"] for call in way.calls)


async def test_the_real_messenger(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """The page follows the user who opens the link, and blocks and unblocks the bot; the prompt follows the panel."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    link = await start(page)
    await asyncio.to_thread(phone.open, link)
    await expect(part(page, "status")).to_have_text(SAID["opened"])
    for act, hint in (("block", "unreachable"), ("unblock", "opened")):
        await asyncio.to_thread(phone.post, act, {})
        await expect(part(page, "status")).to_have_text(SAID[hint])
    await page.keyboard.press("Escape")
    assert await wait_for(page, "ended") == {"status": "aborted"}

    def prompt() -> str:
        messages = phone.client.get(f"/sandbox/users/{phone.messenger_id}/messages").json()["messages"]
        return str(messages[-1]["text"])

    withdrawn = "cancelled this request: the page was closed or started again."
    await until(lambda: asyncio.to_thread(lambda: withdrawn in prompt()))
    [session] = project.developer.ask("GET", f"/sessions?project_id={project.id}")["sessions"]
    assert session["status"] == "cancelled"
