"""The console is accessible (WCAG 2.2, AA).

axe-core finds nothing on any page, in both themes, on a desktop and on a phone. Everything can be reached and seen
with the keyboard alone.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect
from tests.chromium import open_chromium
from tests.e2e.conftest import Developer, Service, launch, make_phone
from tests.e2e.console_browser import binding_link, confirm, heading, open_invitation, receiver, sign_in_with_token

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

AXE = Path(__file__).parents[1] / "npm/node_modules/axe-core/axe.min.js"
Theme = Literal["light", "dark"]
# Between the themes only the colours of a page differ.
RULES: dict[Theme, dict[str, object]] = {
    "light": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
    "dark": {"type": "rule", "values": ["color-contrast"]},
}
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 320, "height": 640}
LONG = "A long name of a project that fits on no phone, and Onewordwithoutanyspaceatallinitwhatsoever"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("console_axe"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(sandbox: Service) -> Iterator[httpx.Client]:
    """Return an HTTP client of this file's service, for phones and programs."""
    with httpx.Client(base_url=sandbox.base_url, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def addresses(sandbox: Service, client: httpx.Client) -> list[str]:
    """Return every page of a developer who has one of everything."""
    developer = Developer(client, sandbox.access_token)
    with receiver() as received:
        project = developer.create_project(LONG, webhook_url=received.url)
        make_phone(client, "Ada", username="ada_of_axe").sign_in(project.generate())
        make_phone(client, "Grace").sign_in(project.generate(), "Cancel")
        project.generate()
        received.wait_for(2)
        developer.ask("POST", "/tokens", json={"name": LONG})
    session = developer.ask("GET", "/sessions", params={"status": "confirmed"})["sessions"][0]
    event = developer.ask("GET", f"/projects/{project.id}/deliveries")["deliveries"][0]
    own = f"/console/projects/{project.id}"
    return [
        "/console/projects",
        "/console/projects/new",
        own,
        f"{own}/settings",
        f"{own}/webhooks",
        f"{own}/try",
        f"/console/deliveries/{event['id']}",
        "/console/sessions",
        "/console/sessions?status=expired",
        f"/console/sessions?messenger_id={session['messenger_id']}",
        f"/console/users/{session['messenger_id']}/erase",
        f"/console/sessions/{session['id']}",
        "/console/analytics",
        "/console/analytics?days=90",
        "/console/tokens",
        "/console/audit",
        "/console/team",
        "/console/account",
        "/console/nothing",
    ]


async def new_context(browser: Browser, sandbox: Service, theme: Theme, size: dict[str, int]) -> BrowserContext:
    return await browser.new_context(
        base_url=sandbox.base_url,
        color_scheme=theme,
        viewport={"width": size["width"], "height": size["height"]},
        reduced_motion="reduce",
        bypass_csp=True,  # The page's own policy would block axe-core. Other files test the policy.
    )


async def violations(page: Page, theme: Theme) -> list[dict[str, Any]]:
    """Return what axe-core finds on a page as it is displayed, with every part unfolded."""
    await page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    if not await page.evaluate("'axe' in window"):
        await page.add_script_tag(path=AXE)
    found: list[dict[str, Any]] = await page.evaluate(
        "async runOnly => (await axe.run(document, {runOnly, resultTypes: ['violations']})).violations", RULES[theme]
    )
    return found


async def assert_accessible(page: Page) -> None:
    """Check a page with axe-core in both sizes and themes, and assert that it is no wider than the window."""
    for size in (DESKTOP, PHONE):
        await page.set_viewport_size({"width": size["width"], "height": size["height"]})
        for theme in RULES:
            await page.emulate_media(color_scheme=theme)
            found = [
                f"{violation['id']}: {violation['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
                for violation in await violations(page, theme)
                for node in violation["nodes"]
            ]
            assert found == [], (page.url, size, theme, json.dumps(found, indent=1))
        too_wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide == 0, f"{page.url} scrolls sideways by {too_wide} px at {size['width']} px"


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_contrast_is_measured(browser: Browser, sandbox: Service, theme: Theme) -> None:
    """axe-core finds text with too little contrast in either theme, so the tests below can be trusted."""
    context = await new_context(browser, sandbox, "light", DESKTOP)
    page = await context.new_page()
    await page.goto("/console/sign-in")
    await page.emulate_media(color_scheme=theme)
    assert await violations(page, theme) == []
    await page.add_style_tag(content="main p { color: var(--line) }")
    assert [each["id"] for each in await violations(page, theme)] == ["color-contrast"]
    await context.close()


async def test_axe(browser: Browser, sandbox: Service, addresses: list[str]) -> None:
    """axe-core finds nothing on any page, and no page scrolls sideways down to a width of 320 px."""
    context = await new_context(browser, sandbox, "light", PHONE)
    page = await context.new_page()
    for path in ("/console/sign-in", "/console/invite", "/console/sign-in/waiting"):
        await page.goto(path)
        await assert_accessible(page)
    await page.goto("/console/sign-in")
    await page.get_by_role("button", name="Sign in with your messenger").click()
    await expect(page.get_by_text("The simulated phone opens in a second tab")).to_be_visible()
    await assert_accessible(page)
    await sign_in_with_token(page, sandbox.access_token)
    for path in addresses:
        await page.goto(path)
        await assert_accessible(page)

    # The results of forms: secrets shown once, and an error.
    await page.goto("/console/tokens")
    await page.get_by_role("textbox", name="Name").fill("axe")
    await page.get_by_role("button", name="Create the access token").click()
    await expect(page.locator(".secrets")).to_be_visible()
    await assert_accessible(page)
    await page.goto(f"/console/projects/{sandbox.project_id}/settings")
    await page.get_by_label(re.compile("To confirm")).first.fill("Something else")
    await page.get_by_role("button", name="Replace both secrets").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await assert_accessible(page)
    await page.goto(f"/console/projects/{sandbox.project_id}/webhooks")
    await page.get_by_role("button", name="Show the webhook secret").click()
    await assert_accessible(page)

    # Pages that need an invitation, and the forms of an owner who signed in with the messenger.
    await open_invitation(page, binding_link(sandbox))
    await assert_accessible(page)
    await page.get_by_role("button", name="Continue in the messenger").click()
    with httpx.Client(base_url=sandbox.base_url, timeout=30) as client:
        await confirm(page, make_phone(client, LONG[:60]))
    await heading(page, "Is that you?")
    await assert_accessible(page)
    await page.get_by_role("button", name="Yes, link this account").click()
    await heading(page, "Projects")
    await page.goto("/console/team")
    await expect(page.get_by_role("button", name="Create the invitation")).to_be_visible()
    await assert_accessible(page)
    await context.close()


FOCUSED = """() => {
  const it = document.activeElement;
  if (!it || it === document.body) return null;
  const style = getComputedStyle(it);
  const box = it.getBoundingClientRect();
  const name = it.getAttribute("aria-label") || it.labels?.[0]?.textContent || it.textContent || "";
  return {
    place: [...document.querySelectorAll("*")].indexOf(it),
    name: name.trim().replace(/\\s+/g, " "),
    tag: it.tagName,
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    colour: style.outlineColor,
    seen: box.bottom > 0 && box.top < innerHeight,
  };
}"""
CONTROLS = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((it) => it.checkVisibility() && !it.disabled && it.type !== "hidden").length"""


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_keyboard(browser: Browser, sandbox: Service, addresses: list[str], theme: Theme) -> None:
    """Tab reaches every control of every page in visual order, each with a visible focus ring.

    The first control is the link that skips the menu.
    """
    context = await new_context(browser, sandbox, theme, DESKTOP)
    page = await context.new_page()
    await sign_in_with_token(page, sandbox.access_token)
    accent = await page.evaluate("getComputedStyle(document.querySelector('main a, main .button')).backgroundColor")
    for path in addresses:
        await page.goto(path)
        count = await page.evaluate(CONTROLS)
        seen: list[dict[str, Any]] = []
        for _ in range(count * 5):
            await page.keyboard.press("Tab")
            focused = await page.evaluate(FOCUSED)
            if focused is None:
                break
            seen.append(focused)
        places = list(dict.fromkeys(each["place"] for each in seen))  # A date field has several tab stops.
        assert len(places) == count, (path, count, [each["name"] for each in seen])
        assert places == sorted(places), path
        assert seen[0]["name"] == "Skip to content", path
        for each in seen:
            assert each["outline"] >= 2, (path, each)
            assert each["colour"] == accent, (path, each)
            assert each["seen"], (path, each)
    await context.close()


async def test_past_the_menu(browser: Browser, sandbox: Service) -> None:
    """The first Tab and Enter skip the menu."""
    context = await new_context(browser, sandbox, "light", DESKTOP)
    page = await context.new_page()
    await sign_in_with_token(page, sandbox.access_token)
    await page.goto("/console/projects")
    await page.keyboard.press("Tab")
    await expect(page.locator(".skip")).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.querySelector('main').contains(document.activeElement)")
    await context.close()


async def test_a_project_by_keyboard(browser: Browser, sandbox: Service) -> None:
    """A project can be created with the keyboard alone."""
    context = await new_context(browser, sandbox, "light", DESKTOP)
    page = await context.new_page()
    await sign_in_with_token(page, sandbox.access_token)
    await page.goto("/console/projects/new")
    await page.get_by_label("Name", exact=True).focus()
    await page.keyboard.type("By keyboard")
    await page.keyboard.press("Enter")
    await heading(page, "By keyboard")
    await expect(page.locator(".secrets")).to_be_visible()
    await context.close()


async def test_forced_colours_and_enlarged_text(browser: Browser, sandbox: Service) -> None:
    """With forced colours every button has an edge, and with text twice as large nothing is cut off."""
    context = await new_context(browser, sandbox, "light", DESKTOP)
    page = await context.new_page()
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
    await context.close()
