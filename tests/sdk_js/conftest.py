"""A site on its own origin with the button, the real service, and a proxy between them that can fail."""

import asyncio
import contextlib
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import aiohttp
import apsw
import httpx
import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect
from playwright.async_api import Error as PlaywrightError
from tests.e2e.conftest import Developer, OwnProject, Phone, Service, launch, make_phone

PAGES = Path(__file__).parent / "pages"
BUNDLE = Path(__file__).parents[2] / "src/taproof/http/static/sdk/0.1.0/taproof.js"
TEXTS = (Path(__file__).parents[2] / "sdk/js/src/texts.js").read_text(encoding="utf-8")
LANGUAGES = re.findall(r'^  ([a-z]{2}): "', TEXTS, re.MULTILINE)
"""The languages of the button. The bot may have more."""
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 375, "height": 700}


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("sdk_js"))
    yield service
    service.stop()


@pytest.fixture(scope="session")
def client(sandbox: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sandbox.base_url, timeout=60) as client:
        yield client


@pytest.fixture
def project(sandbox: Service, client: httpx.Client) -> OwnProject:
    return Developer(client, sandbox.access_token).create_project("Shop")


@pytest.fixture
def phone(client: httpx.Client) -> Phone:
    return make_phone(client, "Ada", last_name="Lovelace")


async def serve(handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> tuple[web.ServerRunner, str]:
    """Serve one handler on a free port of loopback; return a function that stops it, and its address."""
    runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def pending(base: str = "https://t.me/shop_bot") -> dict[str, Any]:
    """Return an answer to every call, for a pending session with a link that begins with `base`."""
    token = "a-B_" * 10 + "xyz"
    return {"session_token": token, "deeplink": f"{base}?start={token}", "status": "pending"}


@dataclass
class Way:
    """A proxy between the page and the service: `mode` sets what happens to the next calls.

    `pass`; `html`: a proxy's 502 with a page; `drop`: the connection is closed; `hang`: no answer ever comes; `cut`: of
    the service's answer that says confirmed half is lost, once; `limit`: 429 with Retry-After; `deaf`: the answer of a
    service that does not know `wait`; `impatient`: a proxy's 504 for a call that waits; an answer of the test's
    own as JSON; a function that answers a call, given the verb in its path and its body, such as `StandIn.answer`.
    """

    target: str
    url: str = ""
    mode: str | dict[str, Any] | Callable[[str, dict[str, Any]], Awaitable[web.Response]] = "pass"
    match_code: str | None = None
    """Added to the service's answer to generate, as for a project whose `match_code` is on."""
    let_time_pass: Callable[[], Awaitable[Any]] = asyncio.Event().wait
    """Awaited before an impatient proxy's 504: moves the clock of the page, which measures how long the call took."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of the calls so far, each with its `path`."""
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    def waits(self) -> list[Any]:
        return [call["wait"] for call in self.calls if "wait" in call]

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        anyone = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "X-Error-Code, Retry-After"}
        sent = await request.read()
        body = json.loads(sent) if sent else {}
        if request.method == "POST":
            self.calls.append({"path": request.path, **body})
            if self.mode == "html":
                return web.Response(status=502, text="<h1>Bad Gateway</h1>", content_type="text/html", headers=anyone)
            if self.mode == "limit":
                return web.json_response({"error": "Slow down."}, status=429, headers={"Retry-After": "2", **anyone})
            if self.mode == "impatient" and body.get("wait"):
                await self.let_time_pass()
                return web.Response(status=504, text="<h1>Timeout</h1>", content_type="text/html", headers=anyone)
            if self.mode == "drop":
                self._close(request)
            elif self.mode == "hang":
                await self.closing.wait()
                self._close(request)
            elif self.mode == "deaf":
                body.pop("wait", None)
                sent = json.dumps(body).encode()
            elif isinstance(self.mode, dict):
                return web.json_response(self.mode, headers=anyone)
            elif callable(self.mode):
                answer = await self.mode(request.path.split("/")[3], body)
                answer.headers.update(anyone)
                return answer
        kept = {"host", "content-length", "transfer-encoding", "connection"}
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(
                request.method,
                f"{self.target}{request.path_qs}",
                data=sent,
                headers={name: value for name, value in request.headers.items() if name.lower() not in kept},
            ) as response,
        ):
            read = await response.read()
            headers = {name: value for name, value in response.headers.items() if name.lower() not in kept}
            if self.match_code is not None and (request.method, request.path) == ("POST", "/api/v1/generate/public"):
                read = json.dumps({**json.loads(read), "match_code": self.match_code}).encode()
            if self.mode == "cut" and b'"confirmed"' in read:
                self.mode = "pass"
                half = web.StreamResponse(status=200, headers={**headers, "Content-Length": str(len(read))})
                await half.prepare(request)
                await half.write(read[: len(read) // 2])
                self._close(request)
                return half
            return web.Response(status=response.status, body=read, headers=headers)

    def _close(self, request: web.BaseRequest) -> None:
        assert request.transport is not None
        request.transport.abort()


@pytest_asyncio.fixture(loop_scope="session")
async def way(sandbox: Service) -> AsyncIterator[Way]:
    way = Way(sandbox.base_url)
    runner, way.url = await serve(way.answer)
    yield way
    way.closing.set()
    await runner.cleanup()


@dataclass
class Site:
    """An application's site: pages with the button, and the endpoint that accepts the proof."""

    base_url: str
    """The address that its buttons call, which is that of the proxy."""
    url: str = ""
    page: str = ""
    posted: list[dict[str, Any]] = field(default_factory=list)
    answers: list[tuple[int, Any]] = field(default_factory=list)
    """Status and JSON of the next answers to a proof; a text is sent as a page. Status 0 never answers.

    Without any: to /welcome.
    """
    retry_after: str | None = None
    """A header of every answer to a proof."""

    script: str = '<script type="module" src="/taproof.js"></script>'

    def show(self, *attributes: str, html: str = 'lang="en"', head: str = "") -> str:
        """Create a page with one button for each set of attributes; return its address."""
        buttons = "\n".join(
            f'<taproof-button base-url="{self.base_url}" {each}></taproof-button>' for each in attributes
        )
        template = Template((PAGES / "button.html").read_text("utf-8"))
        self.page = template.substitute(html=html, head=head, script=self.script, buttons=buttons)
        return f"{self.url}/"

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        # Only scripts of the site, and calls to the service: no inline style, no eval.
        policy = (
            f"default-src 'none'; script-src 'self' {self.base_url}; connect-src 'self' {self.base_url}; img-src data:"
        )
        headers = {
            "Content-Security-Policy": f"{policy}; require-trusted-types-for 'script'",
            "Cache-Control": "no-cache",
        }
        if request.path == "/":
            return web.Response(text=self.page, content_type="text/html", headers=headers)
        if request.path == "/welcome":
            return web.Response(text="<title>In</title><h1>Welcome</h1>", content_type="text/html", headers=headers)
        if request.path == "/taproof.js":
            return web.Response(body=BUNDLE.read_bytes(), content_type="text/javascript")
        if request.path == "/auth/taproof":
            self.posted.append({"fetch-site": request.headers["Sec-Fetch-Site"], **await request.json()})
            status, answer = self.answers.pop(0) if self.answers else (200, {"location": "/welcome?from=shop"})
            if status == 0:
                await asyncio.Event().wait()
            pause = {} if self.retry_after is None else {"Retry-After": self.retry_after}
            if isinstance(answer, str):
                return web.Response(status=status, text=answer, content_type="text/html", headers=pause)
            return web.json_response(answer, status=status, headers=pause)
        if not (PAGES / request.path[1:]).is_file():
            return web.Response(status=404, text="<h1>Nothing here</h1>", content_type="text/html")
        kind = "text/css" if request.path.endswith(".css") else "text/javascript"
        return web.Response(body=(PAGES / request.path[1:]).read_bytes(), content_type=kind)


@pytest_asyncio.fixture(loop_scope="session")
async def site(way: Way) -> AsyncIterator[Site]:
    site = Site(way.url)
    runner, site.url = await serve(site.answer)
    yield site
    await runner.cleanup()


OpenContext = Callable[..., Awaitable[BrowserContext]]


@pytest_asyncio.fixture(loop_scope="session")
async def open_context(browser: Browser) -> AsyncIterator[OpenContext]:
    """Return a function that opens a fresh browser, and fail if the browser reported a problem.

    If a test sets `breaks`, Chromium's own messages about failed calls are allowed. With `clock`, `hurried` can move
    the time of its pages.
    """
    complaints: list[str] = []
    async with contextlib.AsyncExitStack() as stack:

        async def make(
            size: dict[str, int] = DESKTOP, *, breaks: bool = False, clock: bool = False, **options: Any
        ) -> BrowserContext:
            def on_console(line: ConsoleMessage) -> None:
                if line.type in {"error", "warning"} and not (breaks and "Failed to load resource" in line.text):
                    complaints.append(line.text)

            context = await browser.new_context(
                viewport={"width": size["width"], "height": size["height"]}, has_touch=size == PHONE, **options
            )
            stack.push_async_callback(context.close)
            if clock:
                await context.clock.install()
            context.on("console", on_console)
            context.on("weberror", lambda error: complaints.append(str(error.error)))
            return context

        yield make
    assert complaints == []


async def go(context: BrowserContext, url: str) -> Page:
    page = await context.new_page()
    await page.goto(url)
    return page


def part(page: Page, name: str) -> Locator:
    """Return a part of the page's button."""
    return page.locator(f"taproof-button [part~={name}]")


async def navigations(context: BrowserContext, page: Page) -> list[str]:
    """Return a list that gets each address which the page asks for from now on, such as that of an app."""
    asked: list[str] = []
    session = await context.new_cdp_session(page)
    await session.send("Page.enable")
    for event in ("Page.frameRequestedNavigation", "Page.frameScheduledNavigation"):
        session.on(event, lambda details: asked.append(details["url"]))
    return asked


async def start(page: Page, name: str = "Sign in with Telegram") -> str:
    """Click the button; return the link that its panel shows."""
    await page.get_by_role("button", name=name).click()
    return await shown_link(page)


async def shown_link(page: Page) -> str:
    await expect(part(page, "link")).to_be_visible()
    return await part(page, "link").get_attribute("href") or ""


async def heard(page: Page, *names: str) -> list[Any]:
    """Return the recorded events of these names, as `[name, detail]`."""
    everything: list[Any] = await page.evaluate("window.heard")
    return [each for each in everything if each[0] in names]


@contextlib.contextmanager
def case(failures: list[str], name: object) -> Iterator[None]:
    """Record a case's failure, so that the next case still runs. Assert afterwards that there are no `failures`."""
    try:
        yield
    except AssertionError as error:
        failures.append(f"{name!r}: {error}")


@contextlib.asynccontextmanager
async def hurried(page: Page) -> AsyncIterator[None]:
    """Let the time of a page pass many times as fast. Its clock must be installed."""

    async def hurry() -> None:
        while True:
            # A page that is just being replaced has no clock.
            with contextlib.suppress(PlaywrightError):
                await page.clock.fast_forward(500)
            await asyncio.sleep(0.03)

    task = asyncio.create_task(hurry())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def wait_for(page: Page, name: str) -> Any:
    """Wait for an event and return its detail. Playwright's own wait needs eval in the page."""
    for _ in range(1_200):
        if found := await heard(page, name):
            return found[0][1]
        await asyncio.sleep(0.1)
    pytest.fail(f"no taproof-{name}: {await page.evaluate('window.heard')}")


async def decide(phone: Phone, link: str, button: str = "Confirm") -> None:
    """Let the user open the link and tap while the browser and the test's servers keep running."""
    await asyncio.to_thread(phone.sign_in, {"deeplink": link}, button)


def let_expire(sandbox: Service, link: str) -> None:
    """Let a session expire."""
    token_hash = hashlib.sha256(link.partition("start=")[2].encode()).digest()
    store = apsw.Connection(str(sandbox.database))
    store.set_busy_timeout(10_000)
    store.execute("UPDATE sessions SET expires_at = created_at + 1 WHERE token_hash = ?", (token_hash,))
    assert store.changes() == 1
    store.close()
