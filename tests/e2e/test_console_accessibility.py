"""The console is accessible (WCAG 2.2, AA): its main pages, by axe-core and by keyboard.

tests/slow checks every page in both themes and sizes.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect
from tests.axe import DESKTOP, PHONE, Theme, assert_accessible, violations
from tests.e2e.conftest import Service, launch
from tests.e2e.console_browser import heading, sign_in_with_token

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THEMES: tuple[Theme, Theme] = ("light", "dark")


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("console_axe"))
    yield service
    service.stop()


@asynccontextmanager
async def new_page(browser: Browser, sandbox: Service, size: ViewportSize = DESKTOP) -> AsyncIterator[Page]:
    context = await browser.new_context(
        base_url=sandbox.base_url,
        viewport=size,
        reduced_motion="reduce",
        bypass_csp=True,  # The page's own policy would block axe-core. Other files test the policy.
    )
    yield await context.new_page()
    await context.close()


async def test_contrast_is_measured(browser: Browser, sandbox: Service) -> None:
    """axe-core finds text with too little contrast in either theme, so the tests below can be trusted."""
    async with new_page(browser, sandbox) as page:
        await page.goto("/console/sign-in")
        assert [await violations(page, theme) for theme in THEMES] == [[], []]
        await page.add_style_tag(content="main p { color: var(--border) !important }")
        for theme in THEMES:
            assert [each["id"] for each in await violations(page, theme)] == ["color-contrast"]


async def test_axe(browser: Browser, sandbox: Service) -> None:
    """axe-core finds nothing on the pages that everybody sees first."""
    async with new_page(browser, sandbox, PHONE) as page:
        await page.goto("/console/sign-in")
        await assert_accessible(page, [PHONE])
        await sign_in_with_token(page, sandbox.access_token)
        project = f"/console/projects/{sandbox.project_id}"
        for path in ("/console/projects", project, f"{project}/members", "/console/join"):
            await page.goto(path)
            await assert_accessible(page, [PHONE])


async def test_past_the_menu(browser: Browser, sandbox: Service) -> None:
    """The first Tab and Enter skip the menu."""
    async with new_page(browser, sandbox) as page:
        await sign_in_with_token(page, sandbox.access_token)
        await page.goto("/console/projects")
        await page.keyboard.press("Tab")
        await expect(page.locator(".skip")).to_be_in_viewport()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.querySelector('main').contains(document.activeElement)")


async def test_a_project_by_keyboard(browser: Browser, sandbox: Service) -> None:
    """A project can be created with the keyboard alone."""
    async with new_page(browser, sandbox) as page:
        await sign_in_with_token(page, sandbox.access_token)
        await page.goto("/console/projects/new")
        await page.get_by_label("Name", exact=True).focus()
        await page.keyboard.type("By keyboard")
        await page.keyboard.press("Enter")
        await heading(page, "By keyboard")
        await expect(page.locator(".secrets")).to_be_visible()


async def test_forced_colours_and_enlarged_text(browser: Browser, sandbox: Service) -> None:
    """With forced colours, every button has an edge, and with text twice as large, nothing is cut off."""
    async with new_page(browser, sandbox) as page:
        await sign_in_with_token(page, sandbox.access_token)
        await page.emulate_media(forced_colors="active")
        edges = await page.evaluate(
            "[...document.querySelectorAll('button, .button, .badge')].map((it) => getComputedStyle(it).borderTopStyle)"
        )
        assert edges
        assert set(edges) == {"solid"}
        await page.emulate_media(forced_colors="none")
        await page.set_viewport_size({"width": 640, "height": 800})
        await page.add_style_tag(content="html { font-size: 200% }")
        assert await page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
