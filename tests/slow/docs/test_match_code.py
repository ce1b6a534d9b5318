"""docs/how-to/phishing.md: its page shows the number in Chromium, and choosing it signs the user in."""

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest
from playwright.async_api import expect
from tests.chromium import open_chromium
from tests.docs.blocks import block_of
from tests.e2e.conftest import Developer, OwnProject, Service, launch
from tests.slow.docs.signing_in import PATIENCE, confirm

PAGE = "how-to/phishing.md"
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("match_code"))
    yield service
    service.stop()


@pytest.fixture
def project(service: Service) -> Iterator[OwnProject]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield Developer(client, service.access_token).create_project("Shop", match_code="on")


@pytest.fixture
def address(service: Service, project: OwnProject) -> Iterator[str]:
    """Return the address of the page's example, with the service and project of the test."""
    text = block_of(PAGE, "html", "signIn(options)").text
    assert "https://signin.example.com" in text
    text = text.replace("https://signin.example.com", service.base_url)
    body = f"<!doctype html><title>Shop</title>{text.replace('proj_4KsdT0aQm2vXc81LpZwEyB', project.id)}".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_page_shows_the_number(service: Service, address: str) -> None:
    """The page shows the number until the sign-in is over, even after a reload, and that number confirms."""

    async def go() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await page.goto(address)
            await page.get_by_role("button", name="Sign in").click()
            match = page.get_by_role("status")
            await expect(match).to_contain_text("Choose this number in the messenger: ", timeout=PATIENCE)
            said = await match.inner_text()
            deeplink = await page.locator("#link").get_attribute("href") or ""
            await page.reload()
            await expect(match).to_have_text(said, timeout=PATIENCE)
            await asyncio.to_thread(confirm, service, deeplink, "Grace", said[-2:])
            await expect(page.locator("#outcome")).to_have_text("confirmed", timeout=PATIENCE)
            await expect(match).to_have_text("")

    asyncio.run(go())


def test_the_page_says_why_it_cannot_start(project: OwnProject, address: str) -> None:
    """The page shows the service's error, with the origin to allow, and the button works again."""
    changes = {"allowed_origins": ["https://shop.example"]}
    project.developer.ask("PATCH", f"/projects/{project.id}", json=changes)

    async def go() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await page.goto(address)
            button = page.get_by_role("button", name="Sign in")
            await button.click()
            said = f"Pages of {address} cannot start sign-ins for this project. "
            # The origin is http://127.0.0.1 with a port, like a developer's page.
            await expect(page.locator("#outcome")).to_contain_text(said, timeout=PATIENCE)
            await expect(button).to_be_enabled()

    asyncio.run(go())


def test_the_answer_is_that_of_the_service(project: OwnProject) -> None:
    """The page's example has the fields of a real answer; without a match code only that field is missing."""
    block = block_of(PAGE, "json", "match_code")
    shown = json.loads(block.text)
    answer = project.generate()
    assert shown.keys() == answer.keys()
    assert shown["match_code"].isdigit()
    assert len(shown["match_code"]) == len(answer["match_code"])
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"match_code": "off"})
    assert shown.keys() - project.generate().keys() == {"match_code"}
