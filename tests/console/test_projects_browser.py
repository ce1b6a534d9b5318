"""A project's pages in Chromium, on a real sandbox: secrets do not come back, and Try it.

tests/slow/console/test_projects_no_javascript.py runs the same tests without a script.
"""

import http.server
import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect
from tests.chromium import open_chromium
from tests.e2e.conftest import Developer, Service, launch, make_phone

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A sandbox of this module's own."""
    service = launch(tmp_path_factory.mktemp("projects"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield client


@pytest.fixture
def with_script() -> bool:
    return True


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, service: Service, with_script: bool) -> AsyncIterator[Page]:  # noqa: FBT001 — a fixture's value.
    """A page in which the sandbox's developer is signed in, by access token."""
    context: BrowserContext = await browser.new_context(base_url=service.base_url, java_script_enabled=with_script)
    page = await context.new_page()
    await page.goto("/console/sign-in")
    await page.locator("input[name=access_token]").fill(service.access_token)
    await page.locator("form[action$='/token'] button").click()
    await expect(page.locator("h1")).to_have_text("Projects")
    yield page
    await context.close()


async def test_secrets_do_not_come_back(service: Service, page: Page) -> None:
    """A secret that is shown once is gone after a reload and after Back, and is in no address and no log."""
    await page.goto("/console/projects/new")
    await page.get_by_label("Name").fill("Shop")
    await page.get_by_role("button", name="Create the project").click()
    secrets = await page.locator(".secrets code").all_inner_texts()
    assert [secret.partition("_")[0] for secret in secrets] == ["sk", "whsec"]
    project = page.url
    await page.goto("/console/projects")
    await page.go_back()
    assert page.url == project
    await expect(page.locator("h1")).to_have_text("Shop")
    await expect(page.locator(".secrets")).to_have_count(0)
    await page.goto(f"{project}/webhooks")
    await page.get_by_role("button", name="Show the webhook secret").click()
    await expect(page.locator(".secrets code")).to_have_text(secrets[1])
    await page.reload()
    await expect(page.locator("h1")).to_have_text("Webhooks")
    await expect(page.locator(".secrets")).to_have_count(0)
    content = await page.content()
    for secret in secrets:
        assert secret not in content + page.url + service.log() + service.screen()


async def test_a_page_that_the_browser_kept_has_no_secret(service: Service) -> None:
    """Secrets are removed when the visitor leaves, because browsers keep whole pages for Back."""
    async with open_chromium(keeps_pages=True) as browser:
        context = await browser.new_context(base_url=service.base_url)
        page = await context.new_page()
        await page.goto("/console/sign-in")
        await page.locator("input[name=access_token]").fill(service.access_token)
        await page.locator("form[action$='/token'] button").click()
        await page.goto("/console/projects/new")
        await page.get_by_label("Name").fill("Kept")
        await page.get_by_role("button", name="Create the project").click()
        await expect(page.locator(".secrets code")).to_have_count(2)
        await page.evaluate("addEventListener('pageshow', (event) => { document.title = `kept: ${event.persisted}` })")
        await page.get_by_role("link", name="Audit log").click()
        await expect(page.locator("h1")).to_have_text("Audit log")
        await page.evaluate("history.back()")
        await expect(page).to_have_title("kept: true")
        await expect(page.locator("h1")).to_have_text("Kept")
        await expect(page.locator(".secrets")).to_have_count(0)


async def test_try_it(service: Service, client: httpx.Client, page: Page) -> None:
    """The waiting page continues once the phone has confirmed, and shows a valid proof."""
    project = Developer(client, service.access_token).create_project("Shop")
    await page.goto(f"/console/projects/{project.id}")
    await page.get_by_role("link", name="Try it").first.click()
    await page.get_by_role("button", name="Start a sign-in").click()
    await expect(page.get_by_text("The simulated phone opens in a second tab")).to_be_visible()
    link = await page.locator("a[href*='?start=']").get_attribute("href")
    assert link is not None
    phone = make_phone(client, "Grace")
    phone.sign_in({"deeplink": link})
    await expect(page.get_by_role("heading", name="Signed in: Grace")).to_be_visible()
    await expect(page.locator(".badge.good")).to_have_text("Valid")
    await expect(page.locator("#try-claims")).to_contain_text(f'"messenger_id": "{phone.messenger_id}"')
    assert project.read()["confirmed_count"] == 1


async def test_a_delivery_updates_itself(service: Service, client: httpx.Client, page: Page) -> None:
    """A delivery that is sent again is shown as being sent until the receiver answers, then with its result."""
    asked, may_answer = threading.Event(), threading.Event()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if asked.is_set():
                may_answer.wait(8)
            asked.set()
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing on stderr."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        project = Developer(client, service.access_token).create_project(
            "Shop", webhook_url=f"http://127.0.0.1:{server.server_address[1]}/"
        )
        make_phone(client).sign_in(project.generate())
        assert asked.wait(10)
        await page.goto(f"/console/projects/{project.id}/webhooks")
        await page.get_by_role("link", name="auth.confirmed").click()
        lead = page.locator(".lead")
        await expect(lead).to_contain_text("The receiver accepted it.")
        await page.get_by_role("button", name="Send it again").click()
        await expect(lead).to_contain_text("The event is being sent.")
        may_answer.set()
        await expect(lead).to_contain_text("The receiver accepted it.")
        await expect(page.locator(".attempts > li")).to_have_count(2)
        await expect(page.get_by_role("button", name="Stop updating")).to_be_hidden()
        server.shutdown()


async def test_a_program_is_copied_whole(service: Service, client: httpx.Client, page: Page) -> None:
    """The copy button copies exactly the program that is shown."""
    project = Developer(client, service.access_token).create_project("Shop")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.goto(f"/console/projects/{project.id}")
    await page.get_by_text("Python", exact=True).click()
    await page.get_by_role("button", name="Copy the Python program").click()
    await expect(page.locator("button.copy.done")).to_have_count(1)
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == await page.locator("#snippet-python").text_content()
    assert project.id in copied
