"""docs/how-to/flask.md: its application signs a user in."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect
from tests.chromium import open_chromium
from tests.docs.blocks import block_of
from tests.docs.signing_in import PATIENCE, press_and_confirm
from tests.docs.walk import environment_of
from tests.e2e.conftest import StartService
from werkzeug.serving import make_server

PAGE = "how-to/flask.md"
pytestmark = pytest.mark.browser


def test_the_application(start_service: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is not signed in is sent to the button; afterwards the members' page greets them."""
    service = start_service()
    given = environment_of(service)
    monkeypatch.setenv("TAPROOF_BASE_URL", service.base_url)
    monkeypatch.setenv("TAPROOF_PROJECT_ID", given["PROJECT_ID"])
    monkeypatch.setenv("TAPROOF_WEBHOOK_SECRET", given["WEBHOOK_SECRET"])
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "app"}
    exec(compile(block_of(PAGE, "python").text, PAGE, "exec"), names)  # noqa: S102 — it is this repository's own.
    server = make_server("127.0.0.1", 0, names["app"], threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"

    async def sign_in() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await page.goto(f"{address}/members")
            assert page.url == f"{address}/?next=%2Fmembers"
            await press_and_confirm(page, service, "Grace")
            await expect(page.get_by_text("Welcome, Grace")).to_be_visible(timeout=PATIENCE)
            assert page.url == f"{address}/members"

    asyncio.run(sign_in())
    server.shutdown()
    server.server_close()
