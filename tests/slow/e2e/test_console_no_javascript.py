"""Without JavaScript every form of the console works, and nothing that needs a script is shown."""

import re
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from tests.e2e.conftest import Developer, Service, launch, make_phone
from tests.e2e.console_browser import (
    accept,
    confirm,
    heading,
    invitation_link,
    sign_in_with_token,
    start_session,
    watched,
)
from tests.e2e.receiver import receiving

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service for this file, whose first link was never opened."""
    service = launch(tmp_path_factory.mktemp("console_forms"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(sandbox: Service) -> Iterator[httpx.Client]:
    """Return an HTTP client of this file's service, for phones and programs."""
    with httpx.Client(base_url=sandbox.base_url, timeout=60) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, sandbox: Service) -> AsyncIterator[Page]:
    """Return a page of a browser with JavaScript off."""
    async with watched(browser, sandbox.base_url, java_script_enabled=False) as context:
        yield await context.new_page()


async def test_every_form(page: Page, sandbox: Service, client: httpx.Client) -> None:
    """Every form works: invitation, project, secrets, sessions, webhooks, rotation, team, tokens, deletion."""
    phone = make_phone(client, "Ada")
    await accept(page, invitation_link(sandbox), phone)

    with receiving() as received:
        await page.get_by_role("link", name="New project").click()
        await page.get_by_label("Name", exact=True).fill("Forms")
        await page.get_by_role("button", name="Create the project").click()
        await heading(page, "Forms")
        project_page = page.url
        project_id = project_page.rpartition("/")[2]
        await expect(page.locator(".secrets code")).to_have_count(2)
        await expect(page.locator("button.copy").first).to_be_hidden()
        await page.reload()
        await expect(page.locator(".secrets")).to_have_count(0)
        await page.get_by_text("Python", exact=True).click()
        await expect(page.locator("#snippet-python")).to_be_visible()
        await expect(page.locator("#snippet-button")).to_be_hidden()
        await page.goto(f"{project_page}/settings")
        await page.get_by_label("Webhook URL").fill(received.url)
        await page.get_by_role("button", name="Save changes").click()

        # An end user: the list and the timeline update on reload.
        started = start_session(client, project_id)
        await page.goto("/console/sessions")
        await expect(page.locator("#session-rows")).to_contain_text("Pending")
        await expect(page.locator("#live-pause")).to_be_hidden()
        make_phone(client, "Grace").sign_in(started)
        await page.locator(".filter summary", has_text="Project").click()
        await page.get_by_label("Project", exact=True).select_option(project_id)
        await page.locator(".filter summary", has_text="Status").click()
        await page.get_by_label("Status").select_option("confirmed")
        await page.get_by_role("button", name="Apply").click()
        await expect(page.locator("#session-rows")).to_contain_text("Grace")
        await page.locator("#session-rows a").first.click()
        await expect(page.locator("#steps > li strong").nth(2)).to_have_text("Confirmed")

        await page.goto("/console/analytics")
        await page.locator(".filter summary", has_text="Project").click()
        await page.get_by_label("Project", exact=True).select_option(project_id)
        await page.get_by_role("button", name="Apply").click()
        figures = await page.locator(".figures dd").all_text_contents()
        assert [figure.split()[0] for figure in figures[:2]] == ["1", "1"]
        await page.get_by_text("Show all figures as a table").click()
        await expect(page.locator("#days")).to_be_visible()

        event_id = received.wait_for(1)[0].headers["webhook-id"]
        await page.goto(f"{project_page}/webhooks")
        await page.get_by_role("link", name="auth.confirmed").click()
        await page.get_by_role("button", name="Send it again").click()
        assert received.wait_for(2)[1].headers["webhook-id"] == event_id

    await page.goto(f"{project_page}/webhooks")
    await page.get_by_role("button", name="Start a rotation").click()
    await page.get_by_text("Promote…", exact=True).click()
    await page.get_by_role("button", name="Promote the next secret").click()
    await expect(page.get_by_role("button", name="Start a rotation")).to_be_visible()

    # Settings: invalid input stays in its field, next to an error.
    await page.goto(f"{project_page}/settings")
    await page.get_by_label("Webhook URL").fill("ftp://example.com")
    await page.get_by_role("button", name="Save changes").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page.get_by_label("Webhook URL")).to_have_value("ftp://example.com")
    await page.get_by_label("Webhook URL").fill("")
    await page.get_by_role("button", name="Save changes").click()
    await page.get_by_text("Danger zone").last.click()
    await page.get_by_role("button", name="Pause the project").click()
    await page.get_by_role("button", name="Resume the project").click()
    await expect(page.get_by_role("status")).to_have_text("The project was resumed.")

    await page.goto("/console/team")
    await page.get_by_label("E-mail address").fill("grace@example.com")
    await page.get_by_role("button", name="Create the invitation").click()
    await expect(page.locator(".secrets code")).to_contain_text("/console/invite#inv_")
    await page.get_by_role("button", name="Revoke the invitation for grace@example.com").click()
    await expect(page.get_by_text("There are no open invitations.")).to_be_visible()

    await page.goto("/console/tokens")
    await page.get_by_label("Name").fill("script")
    await page.get_by_role("button", name="Create the access token").click()
    token = await page.locator(".secrets code").text_content() or ""
    assert Developer(client, token).call("GET", "/me").status_code == 200
    await page.get_by_label("Revoke script", exact=True).click()
    await page.get_by_role("button", name="Revoke for good: script").click()
    await heading(page, "Access tokens")
    assert Developer(client, token).call("GET", "/me").status_code == 401

    for button, after in (("Replace both secrets", "Forms"), ("Delete the project", "Projects")):
        await page.goto(f"{project_page}/settings")
        await page.get_by_text("Danger zone").last.click()
        form = page.locator("form", has=page.get_by_role("button", name=button))
        await form.get_by_role("textbox").fill("Forms")
        await form.get_by_role("button").click()
        await heading(page, re.compile(after))

    await page.goto("/console/account")
    await page.get_by_role("button", name="Sign out everywhere").click()
    await page.goto("/console/projects")
    await heading(page, "Sign in to Taproof")

    # The phone of the invitation signs in from now on; the waiting page reloads itself until it has.
    await page.get_by_role("button", name="Sign in with your messenger").click()
    await confirm(page, phone)
    await heading(page, "Projects")


async def test_try_it(page: Page, sandbox: Service, client: httpx.Client) -> None:
    """Try it works without JavaScript too."""
    await sign_in_with_token(page, sandbox.access_token)
    await page.goto(f"/console/projects/{sandbox.project_id}/try")
    await page.get_by_role("button", name="Start a sign-in").click()
    await confirm(page, make_phone(client, "Grace"))
    await expect(page.locator("#outcome")).to_contain_text("Grace")
