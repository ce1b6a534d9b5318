"""The console in a real browser on the real service, from an empty database: a developer's first day."""

import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from tests.e2e.conftest import Developer, Service, launch, make_phone
from tests.e2e.console_browser import (
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
    service = launch(tmp_path_factory.mktemp("console"))
    yield service
    service.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, sandbox: Service) -> AsyncIterator[Page]:
    """Return a page of a fresh browser."""
    async with watched(browser, sandbox.base_url) as context:
        yield await context.new_page()


@pytest.fixture(scope="module")
def client(sandbox: Service) -> Iterator[httpx.Client]:
    """Return an HTTP client of this file's service, for phones and programs."""
    with httpx.Client(base_url=sandbox.base_url, timeout=60) as client:
        yield client


@pytest.fixture
def owner(sandbox: Service, client: httpx.Client) -> Developer:
    """Return the API access of the sandbox's developer, to compare with."""
    return Developer(client, sandbox.access_token)


async def secrets_shown(page: Page) -> dict[str, str]:
    """Return the secrets that a page shows once, by kind."""
    await expect(page.locator(".secrets")).to_be_visible()
    found = await page.locator(".secrets code").all_text_contents()
    return {secret.partition("_")[0]: secret for secret in found}


async def type_confirmation(page: Page, button: str, name: str) -> None:
    """Fill in the confirmation of a dangerous action and submit it."""
    form = page.locator("form", has=page.get_by_role("button", name=button, exact=True))
    if not await form.is_visible():
        await page.get_by_text("Danger zone").last.click()
    await form.get_by_role("textbox").fill(name)
    await form.get_by_role("button").click()


async def test_the_first_day(browser: Browser, sandbox: Service, client: httpx.Client, owner: Developer) -> None:
    """A browser and a phone are enough for everything from the link on the start screen to a deleted project."""
    link = invitation_link(sandbox)
    clipboard = ["clipboard-read", "clipboard-write"]
    with receiving() as received:
        async with watched(browser, sandbox.base_url, permissions=clipboard) as context:
            page = await context.new_page()

            # The link fills in its code, which stays neither in the address nor in the history.
            await page.goto(link)
            await expect(page.get_by_label("Invitation code")).to_have_value(link.partition("#")[2])
            await expect(page.get_by_label("Invitation code")).to_be_hidden()
            assert page.url == f"{sandbox.base_url}/console/invite"
            await page.get_by_role("button", name="Continue", exact=True).click()
            await page.get_by_role("button", name="Continue in the messenger").click()
            async with context.expect_page() as opened:
                await page.get_by_role("link", name="Open the messenger").click()
            phone_page = await opened.value
            await phone_page.click("#start")
            match_code = await page.locator(".match-code").inner_text()
            await phone_page.get_by_role("button", name=match_code, exact=True).click()
            await heading(page, "Is that you?")
            await page.get_by_role("button", name="Yes, link this account").click()
            await heading(page, "Projects")
            await expect(page.get_by_role("status").first).to_contain_text("You are signed in")
            await phone_page.close()

            # A project. Its secrets are shown once.
            await page.get_by_role("link", name="New project").click()
            await page.get_by_label("Name", exact=True).fill("Shop <b>&</b>")
            await page.get_by_role("button", name="Create the project").click()
            await heading(page, "Shop <b>&</b>")
            project_page = page.url
            project_id = project_page.rpartition("/")[2]
            secrets = await secrets_shown(page)
            assert set(secrets) == {"sk", "whsec"}
            await page.locator(".secrets").get_by_role("button", name="Copy").first.click()
            assert await page.evaluate("navigator.clipboard.readText()") in secrets.values()

            # Its webhook. The events can be chosen once there is a URL to send them to.
            await page.get_by_role("link", name="Settings", exact=True).click()
            await expect(page.get_by_label("auth.expired")).to_be_disabled()
            await page.get_by_label("Webhook URL").fill(f"{received.url}/hook")
            await expect(page.get_by_label("auth.expired")).to_be_enabled()
            await page.get_by_role("button", name="Save changes").click()
            await expect(page.get_by_role("status").first).to_have_text("Saved.")
            await page.get_by_role("link", name="Overview", exact=True).click()

            # A user signs in to it: the session appears in the list live, without a reload.
            await page.goto(f"/console/sessions?project_id={project_id}")
            await expect(page.locator("#live-state")).to_contain_text(re.compile("live", re.IGNORECASE))
            await page.evaluate("window.stayed = true")
            started = start_session(client, project_id)
            row = page.locator("#session-rows tr[data-session]")
            await expect(row).to_have_count(1)
            await expect(row).to_contain_text("Pending")
            ada = make_phone(client, "Ada <i>")
            ada.sign_in(started)
            await expect(row).to_contain_text("Confirmed")
            await expect(row).to_contain_text("Ada <i>")
            body = {"project_id": project_id, "session_token": started["session_token"]}
            assert owner.client.post("/api/v1/verify/public", json=body).json()["status"] == "confirmed"
            await expect(row.locator(".badge:not(.new)")).to_have_text("Used")
            assert await page.evaluate("window.stayed")

            # Its timeline.
            await row.get_by_role("link").first.click()
            await heading(page, "Sign-in of Ada <i>")
            await expect(page.locator("#steps > li strong")).to_have_text(["Requested", "Opened", "Confirmed", "Used"])

            # The webhook arrived, signed; it is resent from its page.
            [event] = received.wait_for(1)
            event_id = event.headers["webhook-id"]
            signature = hmac.new(secrets["whsec"].encode(), event.body, hashlib.sha256).hexdigest()
            assert event.headers["x-service-signature"] == signature
            await page.goto(f"{project_page}/webhooks")
            await expect(page.locator("#endpoint ~ p .badge").first).to_have_text("Working")
            await page.get_by_role("link", name="auth.confirmed").click()
            await heading(page, "Delivery of auth.confirmed")
            await expect(page.locator("#event-id")).to_have_text(event_id)
            await page.get_by_role("button", name="Send it again").click()
            again = received.wait_for(2)[1]
            assert (again.headers["webhook-id"], again.body) == (event_id, event.body)
            await page.goto(f"{project_page}/webhooks")
            await page.get_by_role("button", name="Send a test").click()
            assert json.loads(received.wait_for(3)[2].body)["event"] == "webhook.test"

            # Replacing the secrets requires typing the project's name.
            await page.goto(f"{project_page}/settings")
            await type_confirmation(page, "Replace both secrets", "Shop")
            await expect(page.get_by_role("alert")).to_be_visible()
            kept = owner.ask("GET", f"/projects/{project_id}/webhook-secret")["webhook_secret"]
            assert kept == secrets["whsec"]
            await type_confirmation(page, "Replace both secrets", "Shop <b>&</b>")
            replaced = await secrets_shown(page)
            assert replaced["sk"] != secrets["sk"]
            for key, status in ((secrets["sk"], 401), (replaced["sk"], 200)):
                headers = {"Authorization": f"Bearer {key}"}
                assert owner.client.post("/api/v1/generate", json={}, headers=headers).status_code == status

            # So does deleting the project.
            await page.goto(f"{project_page}/settings")
            await type_confirmation(page, "Delete the project", "Shop <b>&</b>")
            await heading(page, "Projects")
            await expect(page.get_by_role("link", name="Shop")).to_have_count(0)
            await page.goto(project_page)
            await heading(page, "Not found")

            # The audit log has all of it. Then sign out.
            await page.goto("/console/audit")
            await expect(page.locator("tbody tr")).not_to_have_count(0)
            log = await page.locator("main").inner_text()
            for secret in (*secrets.values(), *replaced.values(), link.partition("#")[2]):
                assert secret not in log
            assert log.count(project_id) + log.count("Shop") >= 5
            await page.get_by_role("button", name="Sign out", exact=True).click()
            await heading(page, "Sign in to Taproof")
            await page.goto("/console/projects")
            await heading(page, "Sign in to Taproof")


async def test_the_last_day_of_an_access_token(page: Page, sandbox: Service) -> None:
    """The expiry date is requested only after the option that needs it is chosen."""
    await sign_in_with_token(page, sandbox.access_token)
    await page.goto("/console/tokens")
    await expect(page.get_by_label("Last day")).to_be_hidden()
    await page.get_by_label("Valid").select_option("date")
    await expect(page.get_by_label("Last day")).to_be_visible()


async def test_a_form_is_sent_once(page: Page, sandbox: Service, owner: Developer) -> None:
    """Two clicks on a button create one project."""
    await sign_in_with_token(page, sandbox.access_token)
    await page.goto("/console/projects/new")
    await page.get_by_label("Name", exact=True).fill("Twice")
    await page.get_by_role("button", name="Create the project").dblclick()
    await heading(page, "Twice")
    assert [project["name"] for project in owner.ask("GET", "/projects")["projects"]].count("Twice") == 1
