"""Start Debian's Chromium for every browser test and the screenshots: headless, a fresh profile, no calls home."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, async_playwright

_EXECUTABLE = os.environ.get("TAPROOF_TEST_CHROMIUM", "/usr/bin/chromium")
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_PATIENCE = 120_000
"""The milliseconds after which an action fails, long enough for a busy machine."""


@asynccontextmanager
async def open_chromium(options: Sequence[str] = (), *, keeps_pages: bool = False) -> AsyncIterator[Browser]:
    """Yield a browser, with further command-line `options` if any.

    With `keeps_pages`, the back button restores pages as they were left. Users' browsers do that; Playwright's do not.
    """
    left_out = ["--disable-back-forward-cache"] if keeps_pages else None
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=_EXECUTABLE, args=[*_OPTIONS, *options], ignore_default_args=left_out
        )
        browser.on("context", lambda context: context.set_default_timeout(_PATIENCE))
        yield browser
        await browser.close()


@asynccontextmanager
async def open_profile(directory: Path) -> AsyncIterator[BrowserContext]:
    """Yield a browser that keeps its profile, with the history, in a directory."""
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            directory, executable_path=_EXECUTABLE, args=list(_OPTIONS)
        )
        context.set_default_timeout(_PATIENCE)
        yield context
        await context.close()
