"""Takes the pictures of the README: `make screenshots`.

Starts the service with the sandbox in a directory of its own, signs a pretend user in with Chromium, and writes
docs/images/phone.png (the prompt) and docs/images/demo.png (signed in).
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright, expect

IMAGES = Path(__file__).parent.parent / "docs" / "images"
CHROMIUM = os.environ.get("TAPROOF_TEST_CHROMIUM", "/usr/bin/chromium")
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--font-render-hinting=none",
]
SIZE_LIMIT = 300_000
"""Bytes. A picture comes along with every clone."""


def free_port() -> int:
    """Return a port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the service listens; raises RuntimeError if it ends instead."""
    while process.poll() is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise RuntimeError("The service did not start; see what it says above.")


async def take_pictures(browser: Browser, demo_url: str) -> None:
    """Sign in as a new user would, taking a picture of the prompt and one of the end."""
    context = await browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="light", reduced_motion="reduce", locale="en-GB"
    )
    demo = await context.new_page()
    await demo.goto(demo_url)
    async with demo.expect_popup() as opened:
        await demo.click("#sign-in")
    phone = await opened.value
    await phone.set_viewport_size({"width": 420, "height": 800})
    await phone.click("#start")
    buttons = phone.locator("[data-buttons] button")
    await expect(buttons).to_have_count(2)
    await phone.screenshot(path=IMAGES / "phone.png")
    await buttons.first.click()
    await expect(demo.locator("#who")).to_be_visible()
    await expect(demo.locator("#claims")).to_be_visible()
    await demo.bring_to_front()
    await demo.screenshot(path=IMAGES / "demo.png")
    await context.close()


async def main() -> None:
    """Take both pictures and hold them to their size."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("TAPROOF_")}
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "taproof", "serve", "--sandbox", "--port", str(port)]
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.DEVNULL)  # noqa: ASYNC220
        try:
            await until_listening(process, port)
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
                await take_pictures(browser, f"http://127.0.0.1:{port}/demo")
                await browser.close()
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait)
    for name in ("phone.png", "demo.png"):
        size = (IMAGES / name).stat().st_size
        print(f"docs/images/{name}: {size} bytes")
        if size > SIZE_LIMIT:
            raise RuntimeError(f"{name} is larger than {SIZE_LIMIT} bytes.")


asyncio.run(main())
