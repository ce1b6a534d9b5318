"""The pages in Chromium: accessibility, their own policy, live changes, and the return to the application."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, expect
from tests.axe import DESKTOP, PHONE, Theme, assert_accessible, violations
from tests.oidc.pages.views import DEEPLINK, EACH, PAGES, a_view
from tests.sdk_js.qr import expected_modules

from taproof.http.qr_code import qr_code_file
from taproof.oidc.pages.rendering import SignInState

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

Headers = list[tuple[bytes, bytes]]
LONG_LINK = f"{DEEPLINK}&again={'a' * 60}"
THEMES: tuple[Theme, Theme] = ("light", "dark")
LAYOUTS = (
    "waiting",
    "match code",
    "returning",
    "same device",
    "elsewhere",
    "blocked",
    "expired",
    "finished",
    "form post",
    "problem redirect_uri",
    "device code None",
    "device code unknown",
    "device confirm",
)
"""The pages whose layouts differ."""


@dataclass
class Site:
    """The provider at 127.0.0.1, and at localhost an application, which redirects to its home at another port."""

    port: int = 0
    home_port: int = 0
    page: bytes = b""
    headers: Headers = field(default_factory=PAGES.headers)
    state: SignInState | None = None
    """The state that the status call returns; None waits forever."""
    hint: str = "waiting"
    failures: list[int] = field(default_factory=list)
    """The HTTP statuses of the next status calls."""
    calls: list[str] = field(default_factory=list)
    """The query of each status call."""
    received: dict[str, str] = field(default_factory=dict)
    """The fields that the application got."""
    app: str = ""
    """An address in an app's own scheme, to which the application redirects instead of its home."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the waiting status call is aborted, and when the page is loaded again."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/page"

    @property
    def callback(self) -> str:
        return f"http://localhost:{self.port}/callback"

    def show(self, state: SignInState, headers: Headers | None = None) -> None:
        self.page, self.state, self.headers = PAGES.sign_in(a_view(state), "en"), state, headers or PAGES.headers()
        self.changed.set()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/oidc/static/"):
            content, content_type = PAGES.static_file(request.path.rpartition("/")[2]) or (b"", "")
            return web.Response(body=content, headers={"Content-Type": content_type})
        if request.path.endswith("/status"):
            self.calls.append(request.query_string)
            if self.failures:
                return web.Response(status=self.failures.pop(0))
            seen = (request.query["seen"], request.query["hint"])
            while self.state is None or (self.state, self.hint) == seen:
                self.changed.clear()
                self.ended.clear()
                try:
                    await self.changed.wait()
                except asyncio.CancelledError:
                    self.ended.set()
                    raise
            return web.json_response({"state": self.state, "hint": self.hint, "text": f"The hint is {self.hint}."})
        if request.path.endswith("/qr.svg"):
            return web.Response(body=qr_code_file(LONG_LINK), headers={"Content-Type": "image/svg+xml"})
        if request.path.endswith("/leave"):
            if self.state == "waiting":  # As the service does: first the sign-in is over, then this is answered.
                self.show("finished")
                await self.ended.wait()
            return web.Response(status=303, headers={"Location": f"{self.callback}?error=access_denied"})
        if request.path == "/callback" or request.path.endswith("/return"):
            self.received = {name: str(value) for name, value in {**request.query, **await request.post()}.items()}
            return web.Response(status=303, headers={"Location": self.app or f"http://127.0.0.1:{self.home_port}/home"})
        if request.path == "/home":
            return web.Response(text="Home")
        self.ended.set()
        if self.state == "cancelled":  # As the service does.
            return web.Response(status=303, headers={"Location": f"{self.callback}?error=access_denied"})
        headers = {name.decode(): value.decode() for name, value in self.headers}
        return web.Response(body=self.page, headers=headers | {"Content-Type": "text/html; charset=utf-8"})


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[Site]:
    site = Site()
    runner = web.ServerRunner(web.Server(site.answer, handler_cancellation=True), shutdown_timeout=0)
    await runner.setup()
    for _ in range(2):
        await web.TCPSite(runner, "127.0.0.1", 0).start()
    site.port, site.home_port = (address[1] for address in runner.addresses)
    yield site
    await runner.cleanup()


@pytest.mark.parametrize("theme", THEMES)
async def test_contrast_is_measured(browser: Browser, site: Site, theme: Theme) -> None:
    """axe-core finds text with too little contrast in either theme, so the next test can be trusted."""
    page = await browser.new_page(base_url=site.url, reduced_motion="reduce", bypass_csp=True)
    site.show("expired")
    await page.goto(site.url)
    assert await violations(page, theme) == []
    await page.add_style_tag(content=".lead { color: var(--line) }")
    assert [each["id"] for each in await violations(page, theme)] == ["color-contrast"]
    await page.close()


@pytest.mark.parametrize("language", ["en", "fa"])
async def test_axe(browser: Browser, site: Site, language: str) -> None:
    """axe-core finds nothing on any kind of page, in both themes, on a phone and on a desktop, in either direction."""
    # The script would leave the page that posts its form. Other tests run the scripts.
    context = await browser.new_context(reduced_motion="reduce", bypass_csp=True)
    await context.route("**/form_post.js?*", lambda route: route.abort())
    page = await context.new_page()
    for name in LAYOUTS:
        site.page = EACH[name](language)
        await page.goto(site.url)
        await assert_accessible(page)
    await context.close()


async def test_layout(browser: Browser, site: Site) -> None:
    """A desktop shows the link and the QR code without scrolling; a phone shows the link first. Targets are large."""
    page = await browser.new_page(viewport=DESKTOP)
    site.show("waiting")
    await page.goto(site.url)
    link, code = page.get_by_role("link", name="Open the messenger"), page.get_by_role("img")
    await expect(code).to_be_in_viewport(ratio=1)
    await expect(link).to_be_in_viewport(ratio=1)
    await page.set_viewport_size(PHONE)
    await expect(link).to_be_in_viewport(ratio=1)
    link_box, code_box = await link.bounding_box(), await code.bounding_box()
    assert link_box is not None
    assert code_box is not None
    assert link_box["y"] + link_box["height"] < code_box["y"]
    heights = await page.evaluate("[...document.querySelectorAll('a, button')].map((each) => each.offsetHeight)")
    assert min(heights) >= 44
    await page.close()


async def test_policy_allows_the_pages(browser: Browser, site: Site) -> None:
    """No page requests anything that its own policy forbids."""
    page = await browser.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(error.message))
    for name, render in EACH.items():
        if name not in {"form post", "back in the browser"}:  # They leave at once; other tests show that they may.
            site.page = render("en")
            await page.goto(site.url)
    assert errors == []
    await page.close()


async def test_the_link_is_drawn(browser: Browser, site: Site) -> None:
    """The script draws the QR code. Without scripts, or for a link too long for it, the browser loads a drawing."""
    figure_of = {True: "svg.qr-code", False: "img.qr-code"}
    for javascript in (True, False):
        page = await browser.new_page(java_script_enabled=javascript)
        for link in (DEEPLINK, LONG_LINK):
            site.show("waiting")
            site.page = PAGES.sign_in(a_view(deeplink=link), "en")
            await page.goto(site.url)
            code = page.get_by_role("img", name="QR code of the link to the messenger")
            await expect(code).to_be_visible()
            await expect(page.locator(figure_of[javascript and link == DEEPLINK])).to_have_count(1)
            if javascript and link == DEEPLINK:
                drawn = re.findall(r"M(\d+),(\d+)h1v1h-1z", await code.locator("path").get_attribute("d") or "")
                rows = expected_modules(DEEPLINK)
                assert {(int(x), int(y)) for x, y in drawn} == {
                    (x, y) for y, row in enumerate(rows) for x, dark in enumerate(row) if dark
                }
            else:
                assert await code.evaluate("image => image.naturalWidth") > 0
        await page.close()


async def test_a_change_is_shown(browser: Browser, site: Site) -> None:
    """The page waits with the state that it shows, says when the service cannot be reached, and reloads on a change."""
    page = await browser.new_page()
    await page.clock.install()
    site.show("waiting")
    site.failures = [503, 429]
    await page.goto(site.url)
    status = page.get_by_role("status")
    await expect(status).to_have_text("No connection. Trying again…")
    while site.failures:
        await page.clock.run_for(1_000)
    await page.clock.run_for(2_000)
    await page.clock.resume()
    site.hint = "opened"
    site.changed.set()
    await expect(status).to_have_text("The hint is opened.")
    asks = page.get_by_text("Open the messenger and confirm there.")
    await expect(asks).to_be_visible()
    site.hint = "phone_asked"
    site.changed.set()
    await expect(asks).to_be_hidden()
    site.show("expired")
    await expect(page.get_by_role("heading")).to_have_text("The request has expired")
    assert site.calls == [
        *["seen=waiting&hint=waiting"] * 3,
        "seen=waiting&hint=opened",
        "seen=waiting&hint=phone_asked",
    ]
    await page.close()


async def test_the_command_for_apps_that_lose_the_link(browser: Browser, site: Site) -> None:
    """The command is folded, can be copied, and disappears when the link is open.

    Without scripts, it is on the page.
    """
    command = f"/start {DEEPLINK.rpartition('?start=')[2]}"
    site.show("waiting")
    # axe-core is an inline script.
    context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"], bypass_csp=True)
    page = await context.new_page()
    await page.goto(site.url)
    shown = page.locator("details").get_by_text(command)
    await expect(shown).to_be_hidden()
    await page.get_by_text("Does the messenger not ask you anything?").click()
    await expect(shown).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copy ✓")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == command
    site.hint = "opened"
    site.changed.set()
    await expect(shown).to_be_hidden()
    await context.close()
    bare = await browser.new_page(java_script_enabled=False)
    await bare.goto(site.url)
    await expect(bare.locator("noscript code")).to_have_text(command)
    await expect(bare.locator("details")).to_be_hidden()
    await bare.close()


async def test_the_code_leaves_the_address(browser: Browser, site: Site) -> None:
    """The right browser sends the code by POST, and neither its address nor its history keeps it."""
    page = await browser.new_page()
    site.page, site.headers = PAGES.back_in_browser("auth_1", "Shop", "en"), PAGES.headers(leaves=True)
    await page.goto(f"{site.url}#taproof_return={'c' * 32}", wait_until="commit")
    await page.wait_for_url(f"http://127.0.0.1:{site.home_port}/home")
    assert site.received == {"return_code": "c" * 32}
    visited = await page.evaluate("navigation.entries().map((each) => each.url)")
    assert not [url for url in visited if "#" in url]
    await page.close()


async def test_another_browser(browser: Browser, site: Site) -> None:
    """Another browser sends nothing, and offers the address. Without JavaScript, the address bar keeps it."""
    address = f"{site.url}#taproof_return={'c' * 32}"
    site.page = PAGES.elsewhere("en")
    context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = await context.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    await page.goto(address)
    await expect(page.get_by_role("link", name=address)).to_have_attribute("href", address)
    assert page.url == site.url
    await page.get_by_role("button", name="Copy the address").click()
    await expect(page.get_by_role("status")).to_contain_text("Copied.")
    assert await page.evaluate("navigator.clipboard.readText()") == address
    assert not [url for url in requested if "c" * 32 in url.partition("#")[0]]
    await context.close()
    bare = await browser.new_page(java_script_enabled=False)
    await bare.goto(address)
    sentence = bare.locator("noscript p")  # Playwright finds no text inside noscript.
    await expect(sentence).to_be_visible()
    await expect(sentence).to_have_text("Copy it from the address bar of this browser.")
    await expect(bare.get_by_role("button")).to_have_count(0)
    await bare.close()


async def test_a_refused_call_reloads_the_page(browser: Browser, site: Site) -> None:
    """If this browser may no longer read the state, the reloaded page says so."""
    page = await browser.new_page()
    site.show("waiting")
    site.failures = [404]
    await page.goto(site.url)
    site.page = PAGES.problem("unknown_sign_in", "", "en")
    await expect(page.get_by_role("heading")).to_have_text("Sign-in is not possible")
    await page.close()


async def test_the_time_is_counted_down(browser: Browser, site: Site) -> None:
    """The time left is shown in seconds. When it is over, the page asks again at once."""
    page = await browser.new_page()
    await page.clock.install()
    site.show("waiting")
    site.page = PAGES.sign_in(a_view(seconds_left=65), "en")
    await page.goto(site.url)
    timer = page.get_by_role("timer")
    await expect(timer).to_have_text("1:05")
    await page.clock.run_for(6_000)
    await expect(timer).to_have_text("0:59")
    site.page = PAGES.sign_in(a_view(seconds_left=3), "en")
    await page.reload()
    async with page.expect_request(lambda request: "/status" in request.url):
        await page.clock.run_for(3_000)
    await expect(timer).to_have_text("0:00")
    await page.close()


async def test_leaving_reaches_the_application(browser: Browser, site: Site) -> None:
    """The form to leave leads through the application to another origin. Chromium blocks that unless it is allowed."""
    page = await browser.new_page()
    site.show("expired", PAGES.headers(leaves=True))
    await page.goto(site.url)
    await page.get_by_role("button", name="Back to Grafana").click()
    await page.wait_for_url(f"http://127.0.0.1:{site.home_port}/home")
    site.show("expired")
    await page.goto(site.url)
    async with page.expect_console_message(lambda message: "form-action" in message.text):
        await page.get_by_role("button", name="Back to Grafana").click()
    assert page.url == site.url
    await page.close()


@pytest.mark.parametrize("name", ["expired", "form post"])
async def test_leaving_reaches_an_app(browser: Browser, site: Site, name: str) -> None:
    """The application may redirect to its app's own scheme, which no list of form-action could name."""
    site.app, site.state = "com.example.app:/signed-in", "expired"
    site.page = PAGES.form_post(site.callback, {"code": "c"}, "en") if name == "form post" else EACH[name]("en")
    site.headers = PAGES.headers(leaves=True)
    narrow = [(each, value.replace(b"base-uri", b"form-action http: https:; base-uri")) for each, value in site.headers]
    for headers, aborted in ((site.headers, site.app), (narrow, site.callback)):
        site.headers = headers
        page = await browser.new_page(java_script_enabled=name == "expired")
        await page.goto(site.url)
        # There is no such app, so the last request of either chain is aborted.
        async with page.expect_event("requestfailed", lambda each, wanted=aborted: each.url.startswith(wanted)):
            await page.get_by_role("button", name="Back to Grafana" if name == "expired" else "Continue").click()
        await page.close()


@pytest.mark.parametrize("javascript", [True, False])
async def test_cancel_in_the_messenger(browser: Browser, site: Site, *, javascript: bool) -> None:
    """The waiting page leads to the application, with and without scripts."""
    page = await browser.new_page(java_script_enabled=javascript)
    site.show("waiting", PAGES.headers(leaves=True))
    await page.goto(site.url)
    site.show("cancelled")
    await page.wait_for_url(f"http://127.0.0.1:{site.home_port}/home")
    assert site.received == {"error": "access_denied"}
    await page.close()


async def test_leaving_while_the_page_waits(browser: Browser, site: Site) -> None:
    """The page does not reload when the form to leave ends the sign-in: the application would get no answer."""
    page = await browser.new_page()
    site.show("waiting", PAGES.headers(leaves=True))
    async with page.expect_request(lambda request: "/status" in request.url):
        await page.goto(site.url)
    await page.get_by_role("button", name="Back to Grafana").click()
    await page.wait_for_url(f"http://127.0.0.1:{site.home_port}/home")
    assert site.received == {"error": "access_denied"}
    await page.close()


@pytest.mark.parametrize("javascript", [True, False])
async def test_form_post(browser: Browser, site: Site, *, javascript: bool) -> None:
    """The script submits the form; without JavaScript, the user does it with the button."""
    fields = {"code": "c&d=\"'", "state": "<s> ü+%20"}
    site.page, site.headers = PAGES.form_post(site.callback, fields, "en"), PAGES.headers(leaves=True)
    page = await browser.new_page(java_script_enabled=javascript)
    await page.goto(site.url, wait_until="commit")
    if not javascript:
        await page.get_by_role("button", name="Continue").click()
    await page.wait_for_url(f"http://127.0.0.1:{site.home_port}/home")
    assert site.received == fields
    await page.close()
