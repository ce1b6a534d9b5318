"""A whole sign-in that must end in the browser where it began, in Chromium with the sandbox's messenger."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from playwright.async_api import Browser, Page, expect
from tests.e2e.conftest import Developer, Phone, Service, launch, make_phone
from tests.e2e.openid import Client, create_client
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DONE = "/healthz"
"""The path to which the application's redirect URI leads: any page that answers."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory: Path = tmp_path_factory.mktemp("return")
    service = launch(directory)
    yield service
    service.stop()


@pytest.fixture
def http(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield client


@pytest.fixture
def shop(service: Service, http: httpx.Client) -> Client:
    """A client of a project with the policy `require`."""
    developer = Developer(http, service.access_token)
    project = developer.create_project(same_device="require", allowed_origins=["https://app.example"])
    return create_client(developer, project.id, redirect_uris=[f"{service.base_url}{DONE}"])


async def begin(page: Page, service: Service, shop: Client, phone: Phone) -> str:
    """Start a sign-in, and confirm it in the messenger; return the link back."""
    await page.goto(f"{service.base_url}/oidc/authorize?{urlencode(shop.request())}")
    deeplink = await page.get_by_role("link", name="Open the messenger").get_attribute("href")
    assert deeplink is not None
    await expect(page.get_by_role("img")).to_have_count(0)
    phone.open(deeplink)
    await expect(page.get_by_role("status")).to_have_text("Opened in the messenger: confirm there.")
    phone.tap("Confirm")
    await expect(page.get_by_role("heading", name="Confirmed")).to_be_visible()
    return str(await until(phone.link_back))


async def test_the_browser_where_it_began(browser: Browser, service: Service, shop: Client) -> None:
    """The messenger opens a second tab, which reaches the application. No address in its history has the code."""
    phone = make_phone(shop.http)
    context = await browser.new_context()
    first, second = await context.new_page(), await context.new_page()
    link = await begin(first, service, shop, phone)
    requested: list[str] = []
    context.on("request", lambda request: requested.extend((request.url, request.headers.get("referer", ""))))
    await second.goto(link, wait_until="commit")
    await second.wait_for_url(f"**{DONE}?*")
    await expect(first.get_by_role("heading", name="This sign-in is finished")).to_be_visible()
    tokens = shop.redeem(httpx.URL(second.url).params["code"]).json()
    assert shop.read_id_token(tokens["id_token"])["sub"] == phone.messenger_id
    code = link.partition("=")[2]
    assert not [url for url in requested if code in url.partition("#")[0]]
    visited = await second.evaluate("navigation.entries().map((each) => each.url)")
    assert not [url for url in visited if code in url]
    await context.close()


async def test_another_browser(browser: Browser, service: Service, shop: Client) -> None:
    """A relayed link signs nobody in: the victim's browser says so, and the attacker's page keeps waiting."""
    attacker, victim = await browser.new_context(), await browser.new_context()
    waiting, opened = await attacker.new_page(), await victim.new_page()
    link = await begin(waiting, service, shop, make_phone(shop.http))
    await opened.goto(link)
    await expect(opened.get_by_role("heading", name="This is another browser")).to_be_visible()
    await expect(opened.get_by_role("link", name=link)).to_be_visible()
    assert "#" not in opened.url
    await waiting.reload()
    await expect(waiting.get_by_role("heading", name="Confirmed")).to_be_visible()
    # The user opens the address in the right browser after all.
    await waiting.goto(link, wait_until="commit")
    await waiting.wait_for_url(f"**{DONE}?*code=*")
    await attacker.close()
    await victim.close()


async def test_without_scripts(browser: Browser, service: Service, shop: Client) -> None:
    """The page to which the messenger leads says that it needs scripts, and sends no code without them."""
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{service.base_url}/oidc/authorize?{urlencode(shop.request())}")
    phone = make_phone(shop.http)
    phone.open(await page.get_by_role("link", name="Open the messenger").get_attribute("href") or "")
    phone.tap("Confirm")
    await page.goto(str(await until(phone.link_back)))
    await expect(page.locator("noscript p")).to_contain_text("Your browser blocks scripts")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("heading", name="Confirmed")).to_be_visible()
    await context.close()
