"""The demo's page in a real browser, against a stand-in of the two public endpoints that a test can turn.

The whole service with bot and phone is driven in `tests/e2e`; here each status and each failure is put on by hand.
"""

import base64
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from tests.granian_server import serve
from tests.ports import free_port

from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.model import MessengerIdentity
from taproof.core.proof import sign_proof
from taproof.sandbox.demo.server import Demo

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()
PROJECT = "proj_0123456789abcdefABCDEF"


class Service:
    """A stand-in: answers the two public endpoints with what the test has set."""

    def __init__(self) -> None:
        self.status = "pending"
        self.name = "Ada Lovelace"
        self.phone: str | None = None
        self.match_code: str | None = None
        self.failure: tuple[int, dict[str, str], dict[str, str]] | None = None
        self.generate_failure: tuple[int, dict[str, str], dict[str, str]] | None = None
        self.deeplink_base = "/phone"
        self.sessions = 0
        self.polls: list[dict[str, Any]] = []
        demo = Demo(PROJECT, self._read_secret, system_clock, system_entropy)
        self.app = Starlette(
            routes=[
                Route("/api/v1/generate/public", self._generate, methods=["POST"]),
                Route("/api/v1/verify/public", self._verify, methods=["POST"]),
                Route("/phone", lambda _: HTMLResponse("<!doctype html><title>Phone</title>")),
                Mount("/", demo.app),
            ]
        )
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    async def _read_secret(self) -> str:
        return SECRET

    async def _generate(self, request: Request) -> Response:
        assert await request.json() == {"project_id": PROJECT}
        if self.generate_failure is not None:
            status, body, headers = self.generate_failure
            return JSONResponse(body, status, headers)
        self.sessions += 1
        base = f"{self.url}{self.deeplink_base}" if self.deeplink_base.startswith("/") else self.deeplink_base
        return JSONResponse(
            {
                "session_token": f"token-{self.sessions}",
                "deeplink": f"{base}?start=token-{self.sessions}",
                "expires_at": "2026-11-20T22:44:03.127Z",
            }
            | ({} if self.match_code is None else {"match_code": self.match_code})
        )

    async def _verify(self, request: Request) -> Response:
        body = await request.json()
        self.polls.append(body)
        if self.failure is not None:
            status, answer, headers = self.failure
            return JSONResponse(answer, status, headers)
        if self.status != "confirmed":
            return JSONResponse({"status": self.status})
        self.status = "used"
        identity = MessengerIdentity("1001", self.name, "ada", self.phone)
        return JSONResponse(
            {
                "status": "confirmed",
                "messenger_id": "1001",
                "messenger_name": self.name,
                "messenger_username": "ada",
                "confirmed_at": "2026-11-20T22:44:03.127Z",
                "proof": sign_proof(identity, PROJECT, body["session_token"], SECRET, system_clock()),
            }
        )


@pytest_asyncio.fixture(loop_scope="session")
async def service() -> AsyncIterator[Service]:
    standing_in = Service()
    stop = await serve(standing_in.app, standing_in.port)
    yield standing_in
    await stop()


@pytest_asyncio.fixture(loop_scope="session")
async def page(service: Service, browser: Browser) -> AsyncIterator[Page]:
    """The demo's page; afterwards: nothing was thrown in it and the policy refused nothing."""
    page = await browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # The browser itself logs every answer that is no success, also those that a test asks for.
    page.on("console", lambda line: complaints.append(line.text) if "Failed to load" not in line.text else None)
    await page.clock.install()
    await page.goto(f"{service.url}/demo")
    yield page
    await page.close()
    assert complaints == []


async def status_is(page: Page, status: str) -> None:
    await expect(page.locator("#status")).to_have_attribute("data-status", status)


async def pass_pause(page: Page) -> None:
    """Move the page's clock over the pause before the next poll."""
    await page.clock.fast_forward(2_000)


async def sign_in(page: Page) -> None:
    """Press the button and close the phone's tab again."""
    async with page.expect_popup() as phone:
        await page.click("#sign-in")
    await (await phone.value).wait_for_url("**/phone?start=**")
    await (await phone.value).close()
    await status_is(page, "pending")


async def test_signing_in_and_out(service: Service, page: Page) -> None:
    """One click starts the sign-in and opens the phone; the proof is exchanged; a reload keeps it; sign-out ends it."""
    await expect(page.locator("#sign-in")).to_have_text("Sign in")
    async with page.expect_popup() as opened:
        await page.click("#sign-in")
    phone = await opened.value
    await phone.wait_for_url(f"{service.url}/phone?start=token-1")
    assert await phone.evaluate("window.opener") is None
    await status_is(page, "pending")
    link = page.locator("#deeplink")
    await expect(link).to_have_attribute("href", f"{service.url}/phone?start=token-1")
    await expect(link).to_have_attribute("rel", re.compile("noopener"))
    await expect(page.locator("#remaining")).to_have_text(re.compile(r"^(10:00|9:5\d) left$"))
    await expect(page.locator("#qr")).to_be_visible()
    assert await page.eval_on_selector("#qr", "image => image.decode().then(() => image.naturalWidth > 0)")
    await expect(page.locator("#sign-in")).to_be_hidden()

    service.status = "confirmed"
    service.name = "Ada <b>Love</b>\u202elace"
    await pass_pause(page)
    await expect(page.locator("#who")).to_have_text("Signed in as Ada <b>Love</b>\u202elace @ada")
    await expect(page.locator("#who-id")).to_have_text("1001")
    await expect(page.locator("#who")).to_be_focused()
    await status_is(page, "confirmed")
    await expect(page.locator("#steps li")).to_have_count(5)
    await expect(page.locator("#claims")).to_contain_text('"session_token": "token-1"')
    assert SECRET not in await page.content()
    asked = len(service.polls)
    assert service.polls[0] == {"project_id": PROJECT, "session_token": "token-1", "wait": 25}
    await page.clock.run_for(30_000)
    await page.evaluate("fetch('/phone').then((answer) => answer.text())")
    assert len(service.polls) == asked, "polling stops on a terminal status"

    await page.reload()
    await expect(page.locator("#who")).to_contain_text("Signed in as Ada")
    await page.click("#sign-out")
    await status_is(page, "idle")
    await expect(page.locator("#sign-in")).to_be_focused()
    await page.reload()
    await expect(page.locator("#status")).to_have_text("You are not signed in.")


async def test_every_other_ending(service: Service, page: Page) -> None:
    """Cancelled, expired and used each stop the polling, say so in plain words, and let the user start again."""
    for number, (status, words) in enumerate(
        [("cancelled", "You cancelled"), ("expired", "has expired"), ("used", "has already been used")], start=1
    ):
        service.status = "pending"
        await sign_in(page)
        service.status = status
        await pass_pause(page)
        await status_is(page, status)
        assert service.polls[-1]["session_token"] == f"token-{number}"
        await expect(page.locator("#status")).to_contain_text(words)
        await expect(page.locator("#sign-in")).to_have_text("Try again")
        await expect(page.locator("#sign-in")).to_be_focused()
        await expect(page.locator("#waiting")).to_be_hidden()


async def test_failures_while_polling(service: Service, page: Page) -> None:
    """After a temporary failure the page asks again, after Retry-After if given. Any other ends the sign-in."""
    await sign_in(page)
    service.failure = (503, {"error": "The store cannot be reached right now."}, {"Retry-After": "1"})
    await pass_pause(page)
    await expect(page.locator("#status")).to_have_text("The store cannot be reached right now. Trying again…")
    await status_is(page, "pending")
    service.failure = None
    await pass_pause(page)
    await expect(page.locator("#status")).to_contain_text("Waiting for you")
    await page.context.set_offline(True)
    await pass_pause(page)
    await expect(page.locator("#status")).to_contain_text("cannot be reached. Check the connection. Trying again…")
    await page.context.set_offline(False)
    await pass_pause(page)
    await expect(page.locator("#status")).to_contain_text("Waiting for you")
    service.failure = (404, {"error": "There is no such session <i>here</i>."}, {})
    await pass_pause(page)
    await status_is(page, "error")
    await expect(page.locator("#status")).to_have_text("There is no such session <i>here</i>.")
    await expect(page.locator("#sign-in")).to_be_visible()


async def test_failures_at_the_start(service: Service, page: Page) -> None:
    """A refused start shows the service's sentence and leaves no empty tab; a link that is none is never opened."""
    service.generate_failure = (400, {"error": "This project is paused."}, {})
    await page.click("#sign-in")
    await status_is(page, "error")
    await expect(page.locator("#status")).to_have_text("This project is paused.")
    service.generate_failure = None
    service.deeplink_base = "javascript:alert(1)//"
    await page.click("#sign-in")
    await expect(page.locator("#status")).to_contain_text("a link that this page does not open")
    await expect(page.locator("#deeplink")).to_be_hidden()
    assert len(page.context.pages) == 1


async def test_the_deadline(service: Service, page: Page) -> None:
    """After ten minutes the page gives up by itself, even if the service still answers pending."""
    await sign_in(page)
    await page.clock.fast_forward("09:00")
    await expect(page.locator("#remaining")).to_have_text(re.compile(r"^(1:00|0:5\d) left$"))
    await status_is(page, "pending")
    await page.clock.fast_forward("01:00")
    await page.clock.run_for(3_000)
    await status_is(page, "expired")


async def test_coming_back_to_the_tab(service: Service, page: Page) -> None:
    """Someone who comes back from the messenger is not kept waiting for the next poll."""
    await sign_in(page)
    await expect(page.locator("#steps")).to_contain_text("asked once")
    service.status = "cancelled"
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await status_is(page, "cancelled")


async def test_without_a_pop_up(service: Service, page: Page) -> None:
    """If the browser blocks the tab, the link on the page works; starting again drops the older session."""
    await page.add_init_script("window.open = () => null")
    await page.reload()
    await page.click("#sign-in")
    await expect(page.locator("#deeplink")).to_be_focused()
    await page.click("#start-again")
    await expect(page.locator("#deeplink")).to_have_attribute("href", f"{service.url}/phone?start=token-2")
    service.polls.clear()
    service.status = "confirmed"
    await pass_pause(page)
    await expect(page.locator("#who")).to_be_visible()
    assert {poll["session_token"] for poll in service.polls} == {"token-2"}


async def test_a_match_code_is_shown(service: Service, page: Page) -> None:
    """The page shows the code that the messenger asks for, and stays in front; without one it shows none."""
    service.match_code = "42"
    await page.click("#sign-in")
    await expect(page.locator("#match")).to_have_text("Choose 42 in the messenger.")
    await expect(page.locator("#deeplink")).to_be_focused()
    await expect(page.locator("#steps")).to_contain_text("match_code: 42")
    assert len(page.context.pages) == 1
    service.match_code = None
    async with page.expect_popup() as phone:
        await page.click("#start-again")
    await (await phone.value).close()
    await status_is(page, "pending")
    await expect(page.locator("#match")).to_be_hidden()


async def test_a_phone_number_is_shown_if_there_is_one(service: Service, page: Page) -> None:
    """The phone number of a proof is shown, and kept over a reload; without one the page has no word of it."""
    service.status, service.phone = "confirmed", "+12025550101"
    await page.click("#sign-in")
    await expect(page.locator("#who-phone")).to_have_text("Phone number +12025550101")
    await page.reload()
    await expect(page.locator("#who-phone")).to_have_text("Phone number +12025550101")
    await page.click("#sign-out")
    service.status, service.phone = "confirmed", None
    await page.click("#sign-in")
    await expect(page.locator("#who")).to_be_visible()
    await expect(page.locator("#who-phone")).to_be_hidden()


async def test_on_a_phone_nothing_is_cut_off(service: Service, page: Page) -> None:
    """On the narrowest phones nothing needs sideways scrolling, in light and in dark."""
    await page.set_viewport_size({"width": 320, "height": 640})
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    service.name = "A" * 300
    await sign_in(page)
    service.status = "confirmed"
    await pass_pause(page)
    await expect(page.locator("#who")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


async def test_an_unknown_status(service: Service, page: Page) -> None:
    """A status of a later version stops the sign-in with a word, instead of polling on for ever."""
    await sign_in(page)
    service.status = "constructed"
    await pass_pause(page)
    await status_is(page, "error")
    await expect(page.locator("#sign-in")).to_be_visible()
