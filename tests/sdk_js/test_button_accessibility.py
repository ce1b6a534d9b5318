"""The button is accessible (WCAG 2.2, AA): to axe-core, by keyboard alone, and on a phone; see also tests/slow."""

import pytest
from playwright.async_api import expect
from tests.axe import assert_accessible
from tests.e2e.conftest import OwnProject, Phone
from tests.sdk_js.conftest import PHONE, OpenContext, Site, Way, decide, go, heard, part, pending, shown_link, start

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_axe_looks_into_the_panel(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """axe-core finds a panel with too little contrast, so the test above can be trusted."""
    page = await go(await open_context(bypass_csp=True), site.show(f'project-id="{project.id}"'))
    await start(page)
    await assert_accessible(page)
    await page.add_style_tag(content="taproof-button::part(status) { color: #aaa }")
    with pytest.raises(AssertionError, match="color-contrast"):
        await assert_accessible(page)


async def test_by_keyboard_alone(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """Tab and Enter are enough; the focus stays in the panel, is always visible, and returns where it was."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    await page.keyboard.press("Tab")
    await expect(part(page, "button")).to_be_focused()
    await page.keyboard.press("Enter")
    link = await shown_link(page)
    focused = """() => {
        const it = document.activeElement?.shadowRoot?.activeElement;
        return it && [it.getAttribute("part").split(" ")[0], getComputedStyle(it).outlineWidth];
    }"""
    seen = []
    for _ in range(8):
        seen.append(await page.evaluate(focused))
        await page.keyboard.press("Tab")
    reached = [name for name, width in filter(None, seen) if width == "3px"]
    assert {"close", "link", "summary"} == set(reached)
    while await page.evaluate(focused) is None or (await page.evaluate(focused))[0] != "summary":
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(part(page, "command")).to_be_visible()
    await page.keyboard.press("Tab")
    await expect(part(page, "copy")).to_be_focused()
    await decide(phone, link, "Cancel")
    await expect(part(page, "retry")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(part(page, "panel")).to_be_hidden()
    await expect(part(page, "button")).to_be_focused()
    # One sign-in ends once: closing the panel afterwards is not a second end.
    assert await heard(page, "ended") == [["ended", {"status": "cancelled"}]]


async def test_phone_has_no_code(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """A phone shows no code, because it cannot scan its own screen; a tablet does."""
    way.mode = pending()
    for size, is_visible in ((PHONE, False), ({"width": 1024, "height": 768}, True)):
        page = await go(await open_context(size, is_mobile=True), site.show(f'project-id="{project.id}"'))
        await start(page)
        await expect(part(page, "code")).to_be_visible(visible=is_visible)
