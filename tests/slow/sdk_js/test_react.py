"""taproof/react with React 19 in Chromium, in StrictMode, on another origin than the service.

The page is sdk/js/test/react_page.js, bundled with React's development build, which runs each effect twice.
"""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import BrowserContext, Page, expect
from tests.e2e.conftest import OwnProject, Phone
from tests.sdk_js.conftest import OpenContext, Way, decide, heard, serve, shown_link
from tests.waiting import until

import taproof

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SDK = Path(__file__).parents[3] / "sdk/js"
HTML = '<!doctype html><html lang="en"><title>React</title><div id="root"></div><script src="/page.js"></script>'


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    made = tmp_path_factory.mktemp("react") / "page.js"
    command = ["node_modules/.bin/esbuild", "test/react_page.js", "--bundle", "--format=iife", f"--outfile={made}"]
    options = ['--define:process.env.NODE_ENV="development"', "--define:import.meta.url=location.href"]
    subprocess.run([*command, *options, "--log-level=warning"], cwd=SDK, check=True, timeout=120)
    return made.read_bytes()


@pytest_asyncio.fixture(loop_scope="session")
async def url(bundle: bytes, way: Way) -> AsyncIterator[str]:
    """Return the site of the page, which may only run its own script and call the service."""
    policy = f"default-src 'none'; script-src 'self'; connect-src 'self' {way.url}; style-src-attr 'unsafe-inline'"

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/page.js":
            return web.Response(body=bundle, content_type="text/javascript", charset="utf-8")
        if request.path == "/auth/taproof":
            await request.json()
            return web.json_response({"location": "/welcome"})
        return web.Response(text=HTML, content_type="text/html", headers={"Content-Security-Policy": policy})

    runner, url = await serve(answer)
    yield url
    await runner.cleanup()


async def go(
    context: BrowserContext, url: str, way: Way, project: OwnProject, what: str = "hook", **query: str
) -> Page:
    page = await context.new_page()
    await page.goto(f"{url}/?{what}&{urlencode({'base': way.url, 'project': project.id, **query})}")
    return page


async def click(page: Page, name: str) -> None:
    await page.get_by_role("button", name=name, exact=True).click()


async def start(page: Page) -> str:
    """Start a sign-in with the hook; return the link that the page shows."""
    await click(page, "Start")
    return await link_of(page)


async def link_of(page: Page) -> str:
    await expect(page.locator("#link")).to_be_visible()
    return await page.locator("#link").get_attribute("href") or ""


async def status_is(page: Page, status: str) -> None:
    await expect(page.locator("#status")).to_have_text(status)


async def statuses(page: Page) -> list[Any]:
    """Return the statuses in order; StrictMode reports the first one twice."""
    everything: list[Any] = await page.evaluate("window.heard")
    return [each for at, each in enumerate(everything) if at == 0 or each != everything[at - 1]]


def generated(way: Way) -> int:
    return sum(call["path"].endswith("/generate/public") for call in way.calls)


async def test_the_hook(url: str, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """Start, link and code, the tap on the phone, and a result with a valid proof use one session in all."""
    page = await go(await open_context(), url, way, project)
    await status_is(page, "idle")
    assert way.calls == []
    link = await start(page)
    await status_is(page, "pending")
    assert await page.locator("#link").text_content() == f"/start {link.partition('start=')[2]}"
    await expect(page.locator("#qr path")).to_be_visible()
    await decide(phone, link)
    await status_is(page, "confirmed")
    await expect(page.locator("#link")).to_have_count(0)
    await expect(page.locator("#qr")).to_have_count(0)
    result = json.loads(await page.locator("#result").text_content() or "")
    identity = taproof.verify_proof(result["proof"], project.webhook_secret, project_id=project.id)
    assert identity.messenger_id == phone.messenger_id == result["identity"]["messengerId"]
    assert await statuses(page) == ["idle", "starting", "pending", "confirmed"]
    assert generated(way) == 1


async def test_the_user_cancels(
    url: str, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """After a cancellation in the messenger, another sign-in can be started."""
    page = await go(await open_context(), url, way, project)
    await decide(phone, await start(page), "Cancel")
    await status_is(page, "cancelled")
    assert json.loads(await page.locator("#result").text_content() or "") == {"status": "cancelled"}
    await decide(phone, await start(page))
    await status_is(page, "confirmed")


async def test_cancel(url: str, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """`cancel` ends a sign-in for good; `start` right after it starts another.

    During a sign-in, `start` does nothing.
    """
    page = await go(await open_context(), url, way, project)
    first = await start(page)
    await click(page, "Start")
    await click(page, "Cancel")
    await status_is(page, "aborted")
    assert generated(way) == 1
    await click(page, "Cancel")
    await start(page)
    await click(page, "Again")
    await expect(page.locator("#link")).to_be_visible()
    # The service knows it too.
    messages = await asyncio.to_thread(phone.open, first)
    assert "cancelled this request: the page was closed or started again." in messages[-1]["text"]
    await status_is(page, "pending")
    await decide(phone, await link_of(page))
    await status_is(page, "confirmed")
    assert generated(way) == 3


async def test_a_reload(url: str, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """A reload continues with the same link and match code until the end. StrictMode mounts everything twice."""
    way.match_code = "42"
    page = await go(await open_context(), url, way, project)
    link = await start(page)
    await page.reload()
    await status_is(page, "pending")
    assert await link_of(page) == link
    await expect(page.locator("#match")).to_have_text("42")
    await decide(phone, link)
    await status_is(page, "confirmed")
    await expect(page.locator("#match")).to_have_count(0)
    assert generated(way) == 1


async def test_unmounting(url: str, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """An unmounted component stops waiting and deletes its data; a new one starts fresh."""
    page = await go(await open_context(), url, way, project)
    await start(page)
    assert await page.evaluate("sessionStorage.length") == 1
    await click(page, "Mount or unmount")
    await until(lambda: page.evaluate("sessionStorage.length === 0"))
    await click(page, "Mount or unmount")
    await status_is(page, "idle")
    await expect(page.locator("#link")).to_have_count(0)
    await start(page)
    await status_is(page, "pending")
    assert generated(way) == 2


async def test_another_project(url: str, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """New options end and delete the sign-in of the old ones; if it cannot continue, that is an error."""
    page = await go(await open_context(breaks=True), url, way, project, other="proj_doesnotexist")
    await start(page)
    await click(page, "Other project")
    await status_is(page, "idle")
    await until(lambda: page.evaluate("sessionStorage.length === 0"))
    await click(page, "Start")
    await status_is(page, "error")
    await expect(page.locator("#error")).to_contain_text("project")


async def test_the_button(url: str, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """Each event is reported once, to the latest callback; preventDefault keeps the page in place."""
    page = await go(await open_context(), url, way, project, "button", submit="/auth/taproof")
    element = page.locator("taproof-button.mine")
    assert await element.evaluate("each => getComputedStyle(each).display") == "block"
    await click(page, "Render 0")
    await page.get_by_role("button", name="Come in").click()
    await decide(phone, await shown_link(page))
    await until(lambda: page.evaluate("window.heard.some(([name]) => name === 'signed-in')"))
    everything: list[Any] = await page.evaluate("window.heard")
    assert [name for name, *_ in everything] == ["status", "status", "status", "confirmed", "signed-in"]
    assert {renders for _, _, renders, _ in everything} == {1}
    [[_, result, _, kind]] = await heard(page, "confirmed")
    assert kind == "taproof-confirmed"
    assert result["identity"]["messengerId"] == phone.messenger_id
    assert (await heard(page, "signed-in"))[0][1] == "/welcome"
    assert "button" in page.url


async def test_the_button_is_unmounted(url: str, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """An unmounted button stops waiting."""
    page = await go(await open_context(), url, way, project, "button")
    await page.get_by_role("button", name="Come in").click()
    await shown_link(page)
    await page.evaluate("document.querySelector('main > button').click()")  # The panel covers it for a mouse.
    await until(lambda: page.evaluate("sessionStorage.length === 0"))
