"""docs/tutorial/first-sign-in.md from start to end: a user signs in to the page and the server that it builds."""

import asyncio
import os
import subprocess
import sys

import httpx
import pytest
from playwright.async_api import expect
from tests.chromium import open_chromium
from tests.docs.blocks import block_of
from tests.e2e.conftest import Service, StartService, wait_for_server
from tests.ports import free_port
from tests.slow.docs.signing_in import PATIENCE, press_and_confirm
from tests.slow.docs.walk import environment_of, run

PAGE = "tutorial/first-sign-in.md"
pytestmark = pytest.mark.browser


def settings_as_the_page_says(service: Service) -> dict[str, str]:
    """Run the page's first commands, and return the environment that they set."""
    given = environment_of(service)
    block = block_of(PAGE, "bash", "TAPROOF_WEBHOOK_SECRET")
    shown = type(block)(PAGE, block.line, "bash", "", f"{block.text}\npwd\nprintenv TAPROOF_WEBHOOK_SECRET")
    variables = {
        "TAPROOF_BASE_URL": service.base_url,
        "TAPROOF_PROJECT_ID": given["TAPROOF_PROJECT_ID"],
        "ACCESS_TOKEN": given["ACCESS_TOKEN"],
    }
    done = run([shown], service, variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(service.directory / "shop"), given["TAPROOF_WEBHOOK_SECRET"]]
    return variables | {"TAPROOF_WEBHOOK_SECRET": given["TAPROOF_WEBHOOK_SECRET"]}


def start_shop(service: Service, variables: dict[str, str], port: int) -> subprocess.Popen[bytes]:
    """Save the page's two files, start its server as described, and wait until it answers."""
    place = service.directory / "shop"
    (place / "shop.html").write_text(block_of(PAGE, "html").text, encoding="utf-8")
    (place / "shop.py").write_text(block_of(PAGE, "python").text, encoding="utf-8")
    (command,) = block_of(PAGE, "console", "granian").text.splitlines()
    words = command.removeprefix("$ ../.venv/bin/python ").replace("--port 8000", f"--port {port}").split()
    assert words[:2] == ["-m", "granian"]
    output = place / "output"
    with output.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, *words], cwd=place, env=os.environ | variables, stdout=written, stderr=written
        )
    wait_for_server(process, f"http://127.0.0.1:{port}/", output)
    return process


def test_the_tutorial(start_service: StartService) -> None:
    """The page greets the user in the proof, and refuses every attempt that the tutorial calls cheating."""
    service, port = start_service(), free_port()
    process = start_shop(service, settings_as_the_page_says(service), port)
    address = f"http://127.0.0.1:{port}"

    async def sign_in() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await page.goto(address)
            await expect(page.get_by_text("Who are you?")).to_be_visible()
            await press_and_confirm(page, service, "Ada <b>")
            await expect(page.get_by_text("Welcome, Ada <b>!")).to_be_visible(timeout=PATIENCE)
            await page.reload()
            await expect(page.get_by_text("Welcome, Ada <b>!")).to_be_visible()

    try:
        asyncio.run(sign_in())
        cheat = block_of(PAGE, "bash", "made.up.proof")
        made_up = type(cheat)(PAGE, cheat.line, "bash", "", cheat.text.replace("http://127.0.0.1:8000", address))
        done = run([made_up], service, {})
        assert done.returncode == 0
        assert done.stdout.startswith('{"error":"The proof')
        foreign = httpx.post(f"{address}/auth/taproof", json={}, headers={"Sec-Fetch-Site": "cross-site"})
        assert foreign.status_code == 403
    finally:
        process.terminate()
        process.wait(60)
