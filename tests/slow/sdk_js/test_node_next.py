"""taproof/next and taproof/react in a real Next.js application: built, started, and signed in to in Chromium."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.async_api import expect
from tests.e2e.conftest import OwnProject, Phone, Service, wait_for_server
from tests.ports import free_port
from tests.sdk_js.conftest import OpenContext, decide, shown_link, start

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SDK = Path(__file__).parents[3] / "sdk/js"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the application with a copy of the package, built without the three settings, like many images."""
    place = tmp_path_factory.mktemp("next")
    for each in (SDK / "test/next_app").rglob("*.js"):
        copied = place / each.relative_to(SDK / "test/next_app")
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(each.read_bytes())
    modules = place / "node_modules"
    modules.mkdir()
    for each in (SDK / "node_modules").iterdir():
        (modules / each.name).symlink_to(each)
    package = modules / "taproof"
    for each in [SDK / "package.json", *SDK.glob("src/**/*.js"), *SDK.glob("dist/cjs/**/*.js*")]:
        copied = package / each.relative_to(SDK)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(each.read_bytes())
    (place / "package.json").write_text('{"private": true, "type": "module"}')
    done = subprocess.run(
        ["node", "node_modules/next/dist/bin/next", "build", "--webpack"],
        cwd=place,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def environment(**settings: str) -> dict[str, str]:
    return os.environ | {"NEXT_TELEMETRY_DISABLED": "1"} | settings


@pytest.fixture
def url(built: Path, sandbox: Service, project: OwnProject) -> Iterator[str]:
    """Return the address of the application, started with the settings of `project`."""
    port = free_port()
    settings = {
        "TAPROOF_BASE_URL": sandbox.base_url,
        "TAPROOF_PROJECT_ID": project.id,
        "TAPROOF_WEBHOOK_SECRET": project.webhook_secret,
    }
    command = ["node", "node_modules/next/dist/bin/next", "start", "--hostname", "127.0.0.1", "--port", str(port)]
    with (built / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=built, env=environment(**settings), stdout=output, stderr=output, start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"
    wait_for_server(process, url, built / "output")
    yield url
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(30)


async def test_a_user_signs_in(url: str, open_context: OpenContext, phone: Phone) -> None:
    """Button, phone, the user's page and sign-out work, and the browser reports no problem."""
    context = await open_context()
    page = await context.new_page()
    await page.goto(url)
    link = await start(page, "Come in")
    assert await shown_link(page) == link
    await decide(phone, link)
    await expect(page.locator("#name")).to_have_text("Ada Lovelace")
    [cookie] = await context.cookies(url)
    assert cookie["httpOnly"]
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("button", name="Come in")).to_be_visible()
    assert await context.cookies(url) == []


async def test_whose_requests_are_taken(url: str) -> None:
    """A request of an old browser from a page of the application is accepted, one of another site is not."""
    own, other = {"Origin": url}, {"Origin": "https://evil.example"}
    for path, taken in (("/auth/taproof", 401), ("/auth/taproof/sign-out", 200)):
        for headers, status in (
            (own, taken),
            (other, 403),
            ({}, 403),
            (own | {"Sec-Fetch-Site": "cross-site"}, 403),
            (other | {"Sec-Fetch-Site": "same-origin"}, taken),
        ):
            async with httpx.AsyncClient() as client:
                answer = await client.post(url + path, json={"proof": "x"}, headers=headers)
            assert answer.status_code == status, (path, headers)
            assert answer.headers["Cache-Control"] == "no-store"
