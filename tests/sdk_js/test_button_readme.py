"""sdk/js/README.md is right about the browser part: its snippets run, and it names everything."""

import re
from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.e2e.conftest import OwnProject, Phone
from tests.sdk_js.conftest import OpenContext, Site, decide, go, part, shown_link, start

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PACKAGE = Path(__file__).parents[2] / "sdk/js"
README = (PACKAGE / "README.md").read_text("utf-8")
BROWSER = README[README.index("## In the browser") : README.index("## In a Telegram Mini App")]


def snippet(language: str, site: Site, project: OwnProject) -> str:
    """Return the only snippet in this language, with the addresses of the test."""
    [found] = re.findall(rf"```{language}\n(.*?)```", BROWSER, re.DOTALL)
    code: str = found.replace("https://signin.example.com", site.base_url).replace("proj_…", project.id)
    return code


async def test_tag(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """The two lines to paste are enough for a page."""
    site.show()
    head = "<!doctype html><html lang=en><title>Shop</title><link rel=icon href=data:,>"
    site.page = f"{head}<body>{snippet('html', site, project)}"
    page = await go(await open_context(), f"{site.url}/")
    await decide(phone, await start(page))
    await page.wait_for_url("**/welcome?from=shop")


async def test_style(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """The style to paste changes the button."""
    page = await go(await open_context(bypass_csp=True), site.show(f'project-id="{project.id}"'))
    await page.add_style_tag(content=snippet("css", site, project))
    button = part(page, "button")
    assert await button.evaluate("(it) => getComputedStyle(it).backgroundColor") == "rgb(20, 83, 45)"
    assert await button.evaluate("(it) => getComputedStyle(it).borderRadius") == "4px"


async def test_script(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """The script to paste signs in, and continues after a reload."""
    site.show()
    context = await open_context(bypass_csp=True)
    script = f"""
        const showLink = (link) => document.body.append(Object.assign(document.createElement("a"), {{ href: link }}));
        const sendToMyServer = (proof) => (document.title = proof);
        {snippet("js", site, project)}
    """
    site.page = (
        f"<!doctype html><title>Shop</title><link rel=icon href=data:,><body><script type=module>{script}</script>"
    )
    page = await go(context, f"{site.url}/")
    link = await page.locator("a").get_attribute("href")
    await page.reload()
    assert await page.locator("a").get_attribute("href") == link
    await decide(phone, link or "")
    await expect(page).to_have_title(re.compile(r"\w+\.\w+\."))


async def test_parts(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """The README names every part of the button."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    await start(page)
    await shown_link(page)
    parts: list[str] = await page.locator("taproof-button [part]").evaluate_all(
        "(all) => all.flatMap((it) => [...it.part])"
    )
    named = set(re.findall(r"`([a-z]+)`", BROWSER[BROWSER.index("`::part()`") : BROWSER.index("```css")]))
    assert set(parts) == named
