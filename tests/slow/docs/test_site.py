"""Every page of the built documentation in Chromium."""

import asyncio
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.async_api import Request, expect
from tests.chromium import open_chromium
from tests.docs.conftest import site
from tests.docs.test_build import Page, pages

__all__ = ["pages", "site"]
pytestmark = pytest.mark.browser
IS_WIDE = """() => [document.documentElement, ...document.querySelectorAll(".md-content td")]
    .some((each) => each.scrollWidth > each.clientWidth + 1)"""


def test_the_pages_look_right_without_a_network(site: Path, pages: dict[str, Page]) -> None:
    """No page requests anything elsewhere, reports an error or is wider than a phone, and the search finds a page."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

    async def read(base: str) -> tuple[list[str], list[str], list[str]]:
        elsewhere: list[str] = []
        errors: list[str] = []
        wide: list[str] = []

        def note(request: Request) -> None:
            if not request.url.startswith((base, "data:", "blob:")):
                elsewhere.append(request.url)

        async with open_chromium() as browser:
            page = await browser.new_page(viewport={"width": 390, "height": 844})
            page.on("request", note)
            page.on("pageerror", lambda error: errors.append(f"{page.url}: {error}"))
            page.on("console", lambda line: errors.append(f"{page.url}: {line.text}") if line.type == "error" else None)
            for name in pages:
                await page.goto(f"{base}/{name}")
                if await page.evaluate(IS_WIDE):
                    wide.append(name)
            await page.set_viewport_size({"width": 1280, "height": 800})
            await page.goto(f"{base}/index.html")
            await page.locator(".md-search__input").first.fill("code_challenge")
            await expect(page.locator(".md-search-result__link").first).to_be_visible()
        return elsewhere, errors, wide

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        elsewhere, errors, wide = asyncio.run(read(f"http://127.0.0.1:{server.server_port}"))
        server.shutdown()
    assert elsewhere == []
    assert errors == []
    assert wide == []
