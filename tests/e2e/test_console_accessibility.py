"""The console is accessible (WCAG 2.2, AA).

axe-core finds nothing on any page in both themes: on a phone here, on a desktop in tests/slow. Everything can
be reached and seen with the keyboard alone.
"""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, ViewportSize, expect
from tests.axe import DESKTOP, PHONE, Theme, assert_accessible, violations
from tests.e2e.conftest import Developer, Service, launch, make_phone
from tests.e2e.console_browser import binding_link, confirm, heading, open_invitation, receiver, sign_in_with_token

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THEMES: tuple[Theme, Theme] = ("light", "dark")
LONG = "A long name of a project that fits on no phone, and Onewordwithoutanyspaceatallinitwhatsoever"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("console_axe"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(sandbox: Service) -> Iterator[httpx.Client]:
    """Return an HTTP client of this file's service, for phones and programs."""
    with httpx.Client(base_url=sandbox.base_url, timeout=60) as client:
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


async def new_context(browser: Browser, sandbox: Service, size: ViewportSize) -> BrowserContext:
    return await browser.new_context(
        base_url=sandbox.base_url,
        viewport=size,
        reduced_motion="reduce",
        bypass_csp=True,  # The page's own policy would block axe-core. Other files test the policy.
    )


@pytest.mark.parametrize("theme", THEMES)
async def test_contrast_is_measured(browser: Browser, sandbox: Service, theme: Theme) -> None:
    """axe-core finds text with too little contrast in either theme, so the tests below can be trusted."""
    context = await new_context(browser, sandbox, DESKTOP)
    page = await context.new_page()
    await page.goto("/console/sign-in")
    assert await violations(page, theme) == []
    await page.add_style_tag(content="main p { color: var(--line) }")
    assert [each["id"] for each in await violations(page, theme)] == ["color-contrast"]
    await context.close()


async def test_axe(browser: Browser, sandbox: Service, addresses: list[str]) -> None:
    """axe-core finds nothing on any page of a phone, and no page scrolls sideways at a width of 320 px."""
    await visit_every_page(browser, sandbox, addresses, PHONE)


async def visit_every_page(browser: Browser, sandbox: Service, addresses: list[str], size: ViewportSize) -> None:
    """Check each page, and the results of forms, with axe-core in both themes."""
    context = await new_context(browser, sandbox, size)
    page = await context.new_page()
    for path in ("/console/sign-in", "/console/invite", "/console/sign-in/waiting"):
        await page.goto(path)
        await assert_accessible(page, [size])
    await page.goto("/console/sign-in")
    await page.get_by_role("button", name="Sign in with your messenger").click()
    await expect(page.get_by_text("The simulated phone opens in a second tab")).to_be_visible()
    await assert_accessible(page, [size])
    await sign_in_with_token(page, sandbox.access_token)
    for path in addresses:
        await page.goto(path)
        await assert_accessible(page, [size])

    # The results of forms: secrets shown once, and an error.
    await page.goto("/console/tokens")
    await page.get_by_role("textbox", name="Name").fill("axe")
    await page.get_by_role("button", name="Create the access token").click()
    await expect(page.locator(".secrets")).to_be_visible()
    await assert_accessible(page, [size])
    await page.goto(f"/console/projects/{sandbox.project_id}/settings")
    await page.get_by_label(re.compile("To confirm")).first.fill("Something else")
    await page.get_by_role("button", name="Replace both secrets").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await assert_accessible(page, [size])
    await page.goto(f"/console/projects/{sandbox.project_id}/webhooks")
    await page.get_by_role("button", name="Show the webhook secret").click()
    await assert_accessible(page, [size])

    # Pages that need an invitation, and the forms of an owner who signed in with the messenger.
    await open_invitation(page, binding_link(sandbox))
    await assert_accessible(page, [size])
    await page.get_by_role("button", name="Continue in the messenger").click()
    with httpx.Client(base_url=sandbox.base_url, timeout=60) as client:
        await confirm(page, make_phone(client, LONG[:60]))
    await heading(page, "Is that you?")
    await assert_accessible(page, [size])
    await page.get_by_role("button", name="Yes, link this account").click()
    await heading(page, "Projects")
    await page.goto("/console/team")
    await expect(page.get_by_role("button", name="Create the invitation")).to_be_visible()
    await assert_accessible(page, [size])
    await context.close()


# Notes the element that has the focus; false if there is none.
NOTE_FOCUS = """() => {
  const it = document.activeElement;
  if (!it || it === document.body) return false;
  const box = it.getBoundingClientRect();
  (window.reached ??= []).push({ it, seen: box.bottom > 0 && box.top < innerHeight });
  return true;
}"""
# Looks at the focus rings again, in the theme of now.
REACHED = """() => reached.map(({ it, seen }) => {
  it.focus({ focusVisible: true, preventScroll: true });
  const style = getComputedStyle(it);
  const name = it.getAttribute("aria-label") || it.labels?.[0]?.textContent || it.textContent || "";
  return {
    place: [...document.querySelectorAll("*")].indexOf(it),
    name: name.trim().replace(/\\s+/g, " "),
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    colour: style.outlineColor,
    seen,
  };
})"""
CONTROLS = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((it) => it.checkVisibility() && !it.disabled && it.type !== "hidden").length"""
ACCENT = "getComputedStyle(document.querySelector('main a, main .button')).backgroundColor"


async def test_keyboard(browser: Browser, sandbox: Service, addresses: list[str]) -> None:
    """Tab reaches every control of every page in visual order, each with a visible focus ring in both themes.

    The first control is the link that skips the menu.
    """
    context = await new_context(browser, sandbox, DESKTOP)
    page = await context.new_page()
    await sign_in_with_token(page, sandbox.access_token)
    accents = {}
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme)
        accents[theme] = await page.evaluate(ACCENT)
    for path in addresses:
        await page.emulate_media(color_scheme="light")
        await page.goto(path)
        count = await page.evaluate(CONTROLS)
        for _ in range(count * 5):
            await page.keyboard.press("Tab")
            if not await page.evaluate(NOTE_FOCUS):
                break
        for theme, accent in accents.items():
            await page.emulate_media(color_scheme=theme)
            reached: list[dict[str, Any]] = await page.evaluate(REACHED)
            places = list(dict.fromkeys(each["place"] for each in reached))  # A date field has several tab stops.
            assert len(places) == count, (path, count, [each["name"] for each in reached])
            assert places == sorted(places), path
            assert reached[0]["name"] == "Skip to content", path
            for each in reached:
                assert each["outline"] >= 2, (path, theme, each)
                assert each["colour"] == accent, (path, theme, each)
                assert each["seen"], (path, each)
    await context.close()


async def test_past_the_menu(browser: Browser, sandbox: Service) -> None:
    """The first Tab and Enter skip the menu."""
    context = await new_context(browser, sandbox, DESKTOP)
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
    context = await new_context(browser, sandbox, DESKTOP)
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
    context = await new_context(browser, sandbox, DESKTOP)
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
