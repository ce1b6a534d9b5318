"""The page shows the match code, the number that the user must choose in the messenger.

In the last test the service creates the code and the user chooses. In the others the proxy puts any text into
the answer as the code.
"""

import re

import pytest
from playwright.async_api import Page, expect
from tests.axe import assert_accessible
from tests.e2e.conftest import OwnProject, Phone
from tests.sdk_js.conftest import (
    PHONE,
    OpenContext,
    Site,
    Way,
    decide,
    go,
    navigations,
    part,
    pending,
    shown_link,
    start,
)

import taproof

SCHEME = '<meta name="color-scheme" content="light dark">'
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def assert_no_number(page: Page) -> None:
    """Assert that the panel has no number, no text about one, and no gap."""
    await expect(part(page, "match")).to_have_text("")
    assert await part(page, "match").evaluate("(it) => it.getBoundingClientRect().height") == 0


async def test_the_number_is_shown(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """The number is shown large next to the QR code until the sign-in is over; the next sign-in has its own."""
    way.match_code = "42"
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    link = await start(page)
    await expect(part(page, "match")).to_have_text("Choose this number in Telegram:42")
    large, normal = [
        await part(page, name).evaluate("(it) => parseFloat(getComputedStyle(it).fontSize)")
        for name in ("number", "status")
    ]
    assert large >= 2 * normal
    await expect(part(page, "number")).to_be_in_viewport(ratio=1)
    await decide(phone, link, "Cancel")
    await expect(part(page, "status")).to_have_text("Cancelled")
    await assert_no_number(page)
    way.match_code = "07"
    await part(page, "retry").click()
    await expect(part(page, "number")).to_have_text("07")


async def test_it_stays_while_there_is_no_network(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject
) -> None:
    """A lost connection does not hide the number, because the user may be choosing."""
    way.match_code = "42"
    page = await go(await open_context(breaks=True), site.show(f'project-id="{project.id}"'))
    await start(page)
    way.mode = "html"
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(part(page, "status")).to_have_text("No connection. Trying again…")
    await expect(part(page, "number")).to_be_visible()


async def test_a_phone_shows_it_first(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """A phone does not open the messenger before the number can be read; the link to tap is below it."""
    way.match_code = "42"
    context = await open_context(PHONE, is_mobile=True)
    page = await go(context, site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    link = await start(page)
    await expect(part(page, "number")).to_be_in_viewport(ratio=1)
    await expect(part(page, "link")).to_be_focused()
    await expect(part(page, "link")).to_be_in_viewport(ratio=1)
    assert len(context.pages) == 1
    async with context.expect_page() as opened:
        await part(page, "link").click()
    await expect((await opened.value).locator("#start")).to_be_visible()
    await decide(phone, link)
    await page.wait_for_url("**/welcome?from=shop")


async def test_a_phone_with_the_app_is_not_taken_there(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject
) -> None:
    """Nor does a t.me link open as tg:// by itself if there is a number to read."""
    context = await open_context(PHONE, is_mobile=True)
    page = await go(context, site.show(f'project-id="{project.id}"'))
    asked = await navigations(context, page)
    way.mode = pending() | {"match_code": "42"}
    assert await start(page) == way.mode["deeplink"]
    await expect(part(page, "number")).to_have_text("42")
    await page.reload()
    await expect(part(page, "number")).to_have_text("42")
    assert [url for url in asked if url.startswith("tg:")] == []


async def test_it_is_only_text(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """Any code from the service is shown as text and never executed."""
    way.match_code = "<img src=x onerror=alert(1)>"
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    await start(page)
    await expect(part(page, "number")).to_have_text(way.match_code)
    assert await part(page, "number").evaluate("(it) => it.childElementCount") == 0


async def test_a_screen_reader_says_it(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """The text and number enter one live region that is already rendered; otherwise screen readers stay silent."""
    way.match_code, way.mode = "42", "limit"
    page = await go(await open_context(breaks=True), site.show(f'project-id="{project.id}"'))
    async with page.expect_response("**/generate/public"):
        await part(page, "button").click()
    region = page.get_by_role("dialog").get_by_role("status").nth(0)
    await expect(region).to_have_text("")
    assert await region.evaluate("(it) => it.checkVisibility({ visibilityProperty: true })")
    said = await region.evaluate_handle(
        """(it) => {
            const said = [];
            const listen = () => said.push(it.textContent);
            new MutationObserver(listen).observe(it, { childList: true, characterData: true, subtree: true });
            return said;
        }"""
    )
    way.mode = "pass"
    await shown_link(page)
    assert set(await said.evaluate("(said) => said.filter(Boolean)")) == {"Choose this number in Telegram:42"}


async def test_axe(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """axe-core finds nothing in the panel with a number from right to left, in either colour scheme."""
    way.match_code = "42"
    context = await open_context(reduced_motion="reduce", bypass_csp=True)
    page = await context.new_page()
    await page.goto(site.show(f'project-id="{project.id}"', html='lang="fa" dir="rtl"', head=SCHEME))
    await part(page, "button").click()
    await shown_link(page)
    await expect(part(page, "number")).to_have_text("42")
    assert await part(page, "match").evaluate("(it) => getComputedStyle(it).direction") == "rtl"
    await assert_accessible(page)


async def test_the_right_choice_signs_in(
    site: Site, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """The page shows the number, also after a reload, and choosing it in the messenger signs the user in."""
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"match_code": "on"})
    page = await go(await open_context(), site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    link = await start(page)
    number = await part(page, "number").inner_text()
    assert re.fullmatch("[1-9][0-9]", number)
    await page.reload()
    await shown_link(page)
    await expect(part(page, "number")).to_have_text(number)
    await decide(phone, link, number)
    await page.wait_for_url("**/welcome?from=shop")
    identity = taproof.verify_proof(site.posted[0]["proof"], project.webhook_secret, project_id=project.id)
    assert identity.messenger_id == phone.messenger_id
