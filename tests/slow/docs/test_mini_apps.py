"""docs/how-to/mini-app.md: its page signs in, in Chromium, with data that the sandbox's messenger signed."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, Route, expect
from tests.chromium import open_chromium
from tests.docs.blocks import block_of
from tests.e2e.conftest import Developer, OwnProject, Phone, Service, launch, make_phone
from tests.slow.docs.signing_in import PATIENCE
from werkzeug.serving import make_server

PAGE = "how-to/mini-app.md"
TELEGRAM = "https://telegram.org/js/telegram-web-app.js"
pytestmark = pytest.mark.browser


@dataclass
class Shop:
    """The page and the server of the example, with a project whose bot has the Mini App."""

    address: str
    bot: str
    phone: Phone

    def open_mini_app(self, **fields: Any) -> str:
        data: str = self.phone.post("mini-app", {"bot": self.bot, **fields})["init_data"]
        return data


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("mini_app"))
    yield service
    service.stop()


@pytest.fixture
def shop(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        bot = client.post("/sandbox/bots", json={"username": "mini_shop_bot"}).json()
        project = Developer(client, service.access_token).create_project("Shop", bot_token=bot["token"])
        with serving(service, project, monkeypatch) as address:
            yield Shop(address, bot["username"], make_phone(client, "Grace", last_name="Hopper"))


@contextmanager
def serving(service: Service, project: OwnProject, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the server of the example, which also serves its page here; yield the address."""
    monkeypatch.setenv("FLASK_SECRET_KEY", "of the test")
    monkeypatch.setenv("TAPROOF_WEBHOOK_SECRET", project.webhook_secret)
    monkeypatch.setenv("TAPROOF_PROJECT_ID", project.id)
    names: dict[str, Any] = {"__name__": "app"}
    program = compile(block_of(PAGE, "python", "verify_proof").text, PAGE, "exec")
    exec(program, names)  # noqa: S102 — it is this repository's own.
    page = block_of(PAGE, "html").text
    replaced = {"https://signin.example.com": service.base_url, "proj_4KsdT0aQm2vXc81LpZwEyB": project.id}
    for placeholder, value in replaced.items():
        assert placeholder in page
        page = page.replace(placeholder, value)
    names["app"].get("/")(lambda: f"<!doctype html><title>Shop</title>{page}")
    server = make_server("127.0.0.1", 0, names["app"], threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def show(page: Page, address: str, init_data: str) -> None:
    """Open the page as Telegram does: its script provides the data."""

    async def script(route: Route) -> None:
        body = f"window.Telegram = {{WebApp: {{initData: {json.dumps(init_data)}}}}};"
        await route.fulfill(content_type="text/javascript", body=body)

    await page.route(TELEGRAM, script)
    await page.goto(address)


def test_the_page_signs_in_once(shop: Shop) -> None:
    """The page greets the user of the Mini App; with used or stale data, or none, it says what to do."""
    data = shop.open_mini_app()
    stale = shop.open_mini_app(auth_date=1_700_000_000)
    shown = {
        data: "Welcome, Grace Hopper",
        stale: "This init_data is more than five minutes old. Close the Mini App and open it again.",
        "": "Open this page as a Mini App in Telegram.",
        shop.open_mini_app(chat_type="group"): "The Mini App was opened in a group or channel. ",
    }

    async def go() -> None:
        async with open_chromium() as browser:
            for init_data, greeting in shown.items():
                page = await browser.new_page()
                await show(page, shop.address, init_data)
                await expect(page.locator("#greeting")).to_contain_text(greeting, timeout=PATIENCE)
                if init_data == data:
                    (cookie,) = await page.context.cookies()
                    assert (cookie["name"], cookie["sameSite"], cookie["secure"]) == ("session", "None", True)
                    await page.reload()
                    used = "This init_data has already signed its user in."
                    await expect(page.locator("#greeting")).to_contain_text(used, timeout=PATIENCE)
                await page.close()

    asyncio.run(go())
