"""The console is accessible (WCAG 2.2, AA): every page in both themes and sizes, by axe-core and by keyboard."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, ViewportSize, expect
from tests.axe import DESKTOP, PHONE, assert_accessible
from tests.e2e.conftest import Developer, Service, make_phone
from tests.e2e.console_browser import binding_link, confirm, heading, open_invitation, sign_in_with_token
from tests.e2e.receiver import receiving
from tests.e2e.test_console_accessibility import THEMES, new_page, sandbox

__all__ = ["sandbox"]
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LONG = "A long name of a project that fits on no phone, and Onewordwithoutanyspaceatallinitwhatsoever"


@pytest.fixture(scope="module")
def client(sandbox: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sandbox.base_url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def addresses(sandbox: Service, client: httpx.Client) -> list[str]:
    """Return every page of a developer who has one of everything."""
    developer = Developer(client, sandbox.access_token)
    with receiving() as received:
        project = developer.create_project(LONG, webhook_url=received.url)
        make_phone(client, "Ada", username="ada_of_axe").sign_in(project.generate())
        make_phone(client, "Grace").sign_in(project.generate(), "Cancel")
        project.generate()
        received.wait_for(2)
        developer.ask("POST", "/tokens", json={"name": LONG})
    new = {"name": LONG, "redirect_uris": [f"https://{'very-' * 11}long.example/login/generic_oauth"]}
    client_id = developer.ask("POST", f"/projects/{project.id}/clients", json=new)["client_id"]
    session = developer.ask("GET", "/sessions", params={"status": "confirmed"})["sessions"][0]
    event = developer.ask("GET", f"/projects/{project.id}/deliveries")["deliveries"][0]
    own = f"/console/projects/{project.id}"
    return [
        "/console/projects",
        "/console/projects/new",
        own,
        f"{own}/settings",
        f"{own}/members",
        f"{own}/webhooks",
        f"{own}/clients",
        f"{own}/clients/{client_id}",
        f"{own}/try",
        f"/console/deliveries/{event['id']}",
        "/console/sessions",
        "/console/sessions?status=expired",
        f"/console/sessions?messenger_id={session['messenger_id']}",
        f"/console/users/{session['messenger_id']}/erase",
        f"{own}/users",
        f"{own}/users/{session['messenger_id']}",
        f"/console/sessions/{session['id']}",
        "/console/analytics",
        "/console/analytics?days=90",
        "/console/tokens",
        "/console/audit",
        "/console/team",
        "/console/account",
        "/console/nothing",
    ]


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_axe(browser: Browser, sandbox: Service, addresses: list[str], size: ViewportSize) -> None:
    """axe-core finds nothing on any page, nor in the results of forms, and no page scrolls sideways."""
    async with new_page(browser, sandbox, size) as page:
        for path in ("/console/sign-in", "/console/invite", "/console/join", "/console/sign-in/waiting"):
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
        await page.get_by_text("Danger zone").last.click()
        await assert_accessible(page, [size])
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
  .filter((it) => it.checkVisibility() && !it.matches(":disabled") && it.type !== "hidden")
  .filter((it) => it.type !== "radio" || it.checked).length"""  # Arrow keys reach the rest of a radio group.
ACCENT = "getComputedStyle(document.querySelector('main .button:not(.quiet)')).backgroundColor"


async def test_keyboard(browser: Browser, sandbox: Service, addresses: list[str]) -> None:
    """Tab reaches every control of every page in visual order, each with a visible focus ring in both themes.

    The first control is the link that skips the menu.
    """
    async with new_page(browser, sandbox) as page:
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
