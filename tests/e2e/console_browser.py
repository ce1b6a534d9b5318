"""Shared by the console's browser tests: a browser that reports problems, a webhook receiver, and signing in."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect
from tests.e2e.conftest import Phone, Service

_REPORT_BREACHES = """
addEventListener("securitypolicyviolation", ({violatedDirective, blockedURI}) => {
  console.error(`CSP: ${violatedDirective} ${blockedURI}`);
});
"""


@asynccontextmanager
async def watched(browser: Browser, base_url: str, **options: Any) -> AsyncIterator[BrowserContext]:
    """Yield a fresh browser, and fail if it reported a problem.

    A problem is an error or warning of a script, a breach of a page's Content-Security-Policy, or a request that leaves
    the service. A 4xx answer is no problem: the test itself checks its text.
    """
    context = await browser.new_context(base_url=base_url, locale="en-GB", **options)
    complaints: list[str] = []

    def on_console(line: ConsoleMessage) -> None:
        is_refusal = re.search(r"the server responded with a status of 4\d\d", line.text)
        if line.type in {"error", "warning"} and not is_refusal:
            complaints.append(line.text)

    def on_request(request: Request) -> None:
        if not request.url.startswith((f"{base_url}/", "data:", f"blob:{base_url}/")):
            complaints.append(f"left the service: {request.url}")

    context.on("console", on_console)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("request", on_request)
    if options.get("java_script_enabled", True):
        await context.add_init_script(_REPORT_BREACHES)
    yield context
    await context.close()
    assert complaints == []


def invitation_link(service: Service) -> str:
    """Return the one-time link that the start screen shows."""
    found = re.search(r"\S+/console/invite#inv_\w+", service.screen())
    assert found, service.screen()
    return found[0]


def binding_link(service: Service) -> str:
    """Return a one-time link that links a messenger account to the sandbox's developer, as the operator creates it."""
    done = service.command("developers", "invite", "sandbox@localhost", "--json")
    assert done.returncode == 0, done.stderr
    link: str = json.loads(done.stdout)["link"]
    return link


def start_session(client: httpx.Client, project_id: str) -> dict[str, str]:
    """Start a sign-in as an application does; return `{session_token, deeplink, expires_at}`."""
    response = client.post("/api/v1/generate/public", json={"project_id": project_id})
    assert response.status_code == 200, response.text
    started: dict[str, str] = response.json()
    return started


async def confirm(page: Page, phone: Phone) -> None:
    """Tap the number that the waiting page shows, or Confirm if there is none."""
    link = page.get_by_role("link", name="Open the messenger")
    deeplink = await link.get_attribute("href") or ""
    codes = await page.locator(".match-code").all_inner_texts()
    phone.sign_in({"deeplink": deeplink}, codes[0] if codes else "Confirm")


async def open_invitation(page: Page, link: str) -> None:
    """Enter the code of an invitation, up to the page that describes it."""
    await page.goto("/console/invite")
    await page.get_by_label("Invitation code").fill(link.partition("#")[2])
    await page.get_by_role("button", name="Continue", exact=True).click()
    await heading(page, "Your invitation to Taproof")
    await expect(page.get_by_role("button", name="Continue in the messenger")).to_be_visible()


async def accept(page: Page, link: str, phone: Phone) -> None:
    """Accept an invitation with a phone, up to the list of projects."""
    await open_invitation(page, link)
    await page.get_by_role("button", name="Continue in the messenger").click()
    await confirm(page, phone)
    await heading(page, "Is that you?")
    await expect(page.locator(".lead")).to_contain_text(f"id {phone.messenger_id}, confirmed this sign-in")
    await page.get_by_role("button", name="Yes, link this account").click()
    await heading(page, "Projects")


async def sign_in_with_token(page: Page, access_token: str) -> None:
    """Sign in with an access token, up to the list of projects."""
    await page.goto("/console/sign-in")
    await page.get_by_label("Access token").fill(access_token)
    await page.get_by_role("button", name="Sign in with the access token").click()
    await heading(page, "Projects")


async def heading(page: Page, text: str | re.Pattern[str]) -> None:
    """Wait until a page with this heading is shown."""
    await expect(page.locator("h1")).to_have_text(text)
