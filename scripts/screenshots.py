"""Take the screenshots of the README and the docs: `make screenshots`; with `ARGS=demo`, only those of the demo.

With `ARGS=pages`, it takes pictures of every page for a review instead: see `page_pictures.py`.

Starts the service with the sandbox in a new directory, and takes the pictures of the demo with Chromium: see
`demo_pictures.py`. Then simulated users sign in to sample projects
over four weeks, through the service's use cases with a simulated clock. Finally it writes two screenshots of each page
of the console, light and dark: docs/images/console-NAME.png and console-NAME-dark.png. The site shows the one that fits
its own scheme: see `docs_brand.py`.
"""

import asyncio
import http.server
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import httpx
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright, expect
from scripts.demo_pictures import take_demo_pictures
from scripts.page_pictures import page_paths, take_page_pictures

from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.service.sessions.create_and_verify import SignInSessions
from taproof.service.sessions.decide import Decisions
from taproof.service.signals import Signals
from taproof.storage.sqlite.store import SqliteStorage

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
SIZE_LIMIT = 200_000
"""Bytes. Every clone contains the pictures."""
ANIMATION_LIMIT = 500_000
DESKTOP: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
PROJECTS = ("Bramble Books", "Harbour Clinic", "Night Market")
USERS = (
    MessengerIdentity("48210077", "Ada Lovelace", "ada"),
    MessengerIdentity("48210112", "Grace Hopper", "grace_h"),
    MessengerIdentity("48210390", "Søren Kjær", ""),
    MessengerIdentity("48211054", "Amina Diallo", "amina.d"),
    MessengerIdentity("48211907", "Mateo Fernández", "mateo"),
    MessengerIdentity("48212233", "Chen Xiao", "chenxiao"),
    MessengerIdentity("48212871", "Noor van Dijk", "noorvd"),
)


def free_port() -> int:
    """Return a free port on loopback."""
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


@dataclass
class Service:
    """The running sandbox."""

    base_url: str
    directory: Path
    screen: str

    @property
    def access_token(self) -> str:
        """The access token of the sandbox's developer."""
        return str(re.findall(r"\btap_[A-Za-z0-9]+", self.screen)[0])


@asynccontextmanager
async def running_service(directory: Path) -> AsyncIterator[Service]:
    """Start a sandbox in `directory`, and stop it."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith("TAPROOF_")}
    screen = directory / "screen"
    database = f"sqlite:///{directory / 'taproof.db'}"
    command = [sys.executable, "-m", "taproof", "serve", "--sandbox", "--port", str(port), "--database", database]
    with screen.open("wb") as out:
        process = subprocess.Popen(  # noqa: ASYNC220 — nothing else goes on yet.
            command, cwd=directory, env=environment, stdout=out, stderr=subprocess.DEVNULL
        )
    try:
        await until_listening(process, port)
        while "Ctrl+C" not in screen.read_text("utf-8"):  # noqa: ASYNC110 — another process writes it.
            await asyncio.sleep(0.1)
        yield Service(f"http://127.0.0.1:{port}", directory, screen.read_text("utf-8"))
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


@asynccontextmanager
async def new_service() -> AsyncIterator[Service]:
    """Start a sandbox in a new directory; stop it and delete the directory."""
    with tempfile.TemporaryDirectory() as directory:
        async with running_service(Path(directory)) as service:
            yield service


class Receiver(http.server.BaseHTTPRequestHandler):
    """Accepts every second webhook, so that there are retries to show."""

    asked = 0

    def do_POST(self) -> None:
        """Answer 200, or 503 with a sentence."""
        self.rfile.read(int(self.headers["Content-Length"]))
        Receiver.asked += 1
        self.send_response(503 if Receiver.asked == 1 else 200)
        self.end_headers()
        self.wfile.write(b"Deploying, back in a minute." if Receiver.asked == 1 else b"ok")

    def log_message(self, *_: object) -> None:
        """Suppress the log on stderr."""


async def make_history(service: Service, project_ids: list[str]) -> None:
    """Let users sign in over the last four weeks: more on weekdays, most of them to the first project."""
    instant = 0
    storage = SqliteStorage.open(service.directory / "taproof.db", int(time.time() * 1000))
    encryptor = Encryptor((service.directory / "taproof.db.key").read_text("ascii").strip())
    unheard = Signals(*[lambda *_: None] * 5)
    clock = lambda: instant  # noqa: E731
    sessions = SignInSessions(
        storage,
        encryptor,
        lambda _: "https://t.me/sandbox_bot",
        clock,
        system_entropy,
        signals=unheard,
        find_place=lambda _: "",
        own_origin="",
        require_room=None,
    )
    decisions = Decisions(storage, encryptor, clock, system_entropy, signals=unheard)
    now = int(time.time() * 1000)
    count = 0
    for day in range(27, -1, -1):
        noon = now - day * DAY - 3 * HOUR
        is_weekend = time.gmtime(noon // SECOND).tm_wday > 4
        for place in range((9 if is_weekend else 20) + (27 - day) // 3 + day * 7 % 5):
            count += 1
            instant = noon + place * 7 * MINUTE % (2 * HOUR)
            project_id = project_ids[0 if count % 7 < 4 else 1 if count % 7 < 6 else 2]
            session = await sessions.create_session(project_id, public=True)
            user = USERS[count * 5 % len(USERS)]
            user = MessengerIdentity(
                str(int(user.messenger_id) + count % 90), user.messenger_name, user.messenger_username
            )
            instant += 8 * SECOND
            if count % 11 != 0:
                await decisions.open_session(session.session_token, user.messenger_id)
                instant += 4 * SECOND
                if count % 13 == 0:
                    await decisions.cancel_session(session.session_token, user.messenger_id)
                elif count % 9 != 0:
                    await decisions.confirm_session(session.session_token, user)
                    instant += 1 * SECOND
                    await sessions.verify_session(project_id, session.session_token, public=True)
    await storage.close()


def sign_in(client: httpx.Client, session: dict[str, Any], name: str, button: str = "Confirm") -> None:
    """Let a simulated user of the sandbox open a session's link and decide."""
    user = client.post("/sandbox/users", json={"first_name": name}).json()["id"]
    client.post(f"/sandbox/users/{user}/open", json={"deeplink": session["deeplink"]}).raise_for_status()
    client.post(f"/sandbox/users/{user}/tap", json={"button": button}).raise_for_status()


def make_projects(client: httpx.Client) -> list[str]:
    """Create the projects in place of the demo's; return their ids."""
    for project in ask(client, "GET", "/projects")["projects"]:
        ask(client, "DELETE", f"/projects/{project['id']}")
    return [ask(client, "POST", "/projects", json={"name": name})["id"] for name in PROJECTS]


def make_present(client: httpx.Client, project_ids: list[str], receiver_url: str) -> tuple[str, str]:
    """Create tokens and recent sign-ins; return the id of a retried event, and its session's."""
    ask(client, "PATCH", f"/projects/{project_ids[2]}", json={"is_active": False})
    ask(client, "PATCH", f"/projects/{project_ids[0]}", json={"webhook_url": receiver_url})
    for name in ("Deploy script", "Dashboard"):
        ask(client, "POST", "/tokens", json={"name": name})
    body = {"project_id": project_ids[0]}
    for name, button in (("Ada", "Confirm"), ("Grace", "Cancel"), ("Amina", "Confirm")):
        session = client.post("/api/v1/generate/public", json=body).json()
        sign_in(client, session, name, button)
        client.post("/api/v1/verify/public", json=body | {"session_token": session["session_token"]})
    client.post("/api/v1/generate/public", json=body)
    while True:  # The first webhook is retried after five seconds.
        for delivery in ask(client, "GET", f"/projects/{project_ids[0]}/deliveries")["deliveries"]:
            if len(delivery["attempts"]) > 1:
                return delivery["id"], delivery["session_id"]
        time.sleep(0.5)


def signed_in_client(service: Service) -> httpx.Client:
    """Return a client of the developer API."""
    headers = {"Authorization": f"Bearer {service.access_token}"}
    return httpx.Client(base_url=service.base_url, headers=headers, timeout=30)


async def make_samples(client: httpx.Client, service: Service, receiver_url: str) -> tuple[list[str], str, str]:
    """Create projects with past and recent sign-ins; return their ids, and those of a retried event and its session."""
    project_ids = make_projects(client)
    await make_history(service, project_ids)
    event, session = await asyncio.to_thread(make_present, client, project_ids, receiver_url)
    return project_ids, event, session


def ask(client: httpx.Client, method: str, path: str, **request: Any) -> Any:
    """Call the developer API."""
    return client.request(method, f"/api/v1/dev{path}", **request).raise_for_status().json()


async def take(page: Page, name: str, path: str = "") -> None:
    """Write console-NAME.png and console-NAME-dark.png of a page: the current one, or that of `path`."""
    if path:
        await page.goto(path)
    is_busy = not path or "sessions" in path  # These pages poll or wait, so the network is never idle.
    await page.wait_for_load_state("load" if is_busy else "networkidle")
    await page.emulate_media(color_scheme="dark")
    await page.screenshot(path=IMAGES / f"console-{name}-dark.png")
    await page.emulate_media(color_scheme="light")
    await page.screenshot(path=IMAGES / f"console-{name}.png")


async def console_context(browser: Browser, service: Service) -> BrowserContext:
    """Return a browser context that looks like a person's browser."""
    return await browser.new_context(
        base_url=service.base_url, viewport=DESKTOP, color_scheme="light", reduced_motion="reduce", locale="en-GB"
    )


async def take_console_pictures(browser: Browser, service: Service, receiver_url: str) -> None:
    """Take the screenshots of every console page, and of one on a phone."""
    with signed_in_client(service) as client:
        project_ids, event, session = await make_samples(client, service, receiver_url)
    project = f"/console/projects/{project_ids[0]}"
    context = await console_context(browser, service)
    page = await context.new_page()
    await take(page, "sign-in", "/console/sign-in")
    link = re.findall(r"\S+/console/invite#inv_\w+", service.screen)[0]
    await page.goto(link)
    await page.get_by_role("button", name="Continue", exact=True).click()
    await expect(page.get_by_role("button", name="Continue in the messenger")).to_be_visible()
    await take(page, "invite")
    await page.get_by_role("button", name="Continue in the messenger").click()
    await expect(page.get_by_text("The simulated phone opens in a second tab")).to_be_visible()
    await take(page, "waiting")
    deeplink = await page.get_by_role("link", name="Open the messenger").get_attribute("href")
    match_code = await page.locator(".match-code").inner_text()
    with httpx.Client(base_url=service.base_url, timeout=30) as client:
        sign_in(client, {"deeplink": deeplink}, "Ada", match_code)
    await expect(page.locator("h1")).to_have_text("Is that you?")
    await page.get_by_role("button", name="Yes, link this account").click()
    await expect(page.locator("h1")).to_have_text("Projects")
    for name, path in (
        ("projects", "/console/projects"),
        ("project", project),
        ("settings", f"{project}/settings"),
        ("webhooks", f"{project}/webhooks"),
        ("delivery", f"/console/deliveries/{event}"),
        ("sessions", "/console/sessions"),
        ("session", f"/console/sessions/{session}"),
        ("analytics", "/console/analytics?days=30"),
        ("tokens", "/console/tokens"),
        ("audit", "/console/audit"),
        ("team", "/console/team"),
        ("account", "/console/account"),
    ):
        await take(page, name, path)
    await page.goto(f"{project}/try")
    await page.get_by_role("button", name="Start a sign-in").click()
    deeplink = await page.get_by_role("link", name="Open the messenger").get_attribute("href")
    with httpx.Client(base_url=service.base_url, timeout=30) as client:
        sign_in(client, {"deeplink": deeplink}, "Ada")
    await expect(page.locator("#outcome")).to_be_visible()
    await take(page, "try")
    await page.goto("/console/projects/new")
    await page.get_by_label("Name", exact=True).fill("Paper Kite")
    await page.get_by_role("button", name="Create the project").click()
    await expect(page.locator(".secrets")).to_be_visible()
    await take(page, "created")
    await page.set_viewport_size(PHONE)
    await take(page, "session-phone", f"/console/sessions/{session}")
    await context.close()


async def take_every_page(browser: Browser, service: Service, receiver_url: str) -> None:
    """Take every page at two widths, light and dark, in a browser that is signed in to the console."""
    with signed_in_client(service) as client:
        project_ids, event, session = await make_samples(client, service, receiver_url)
        empty_id = ask(client, "POST", "/projects", json={"name": "Corner Bakery"})["id"]
        new = {"name": "Grafana", "redirect_uris": ["https://grafana.example/login/generic_oauth"]}
        client_id = ask(client, "POST", f"/projects/{project_ids[0]}/clients", json=new)["client_id"]
        user = ask(client, "GET", f"/projects/{project_ids[0]}/users")["users"][0]["messenger_id"]
    ids = {"event": event, "session": session, "client": client_id, "user": user}
    signed_in = await console_context(browser, service)
    page = await signed_in.new_page()
    await page.goto("/console/sign-in")
    await page.get_by_role("button", name="Open the console").click()
    await expect(page.locator("h1")).to_have_text("Projects")
    state = await signed_in.storage_state()
    contexts = {
        f"{size['width']}-{scheme}": await browser.new_context(
            base_url=service.base_url,
            viewport=size,
            color_scheme=scheme,
            reduced_motion="reduce",
            locale="en-GB",
            storage_state=state,
        )
        for size in (DESKTOP, PHONE)
        for scheme in SCHEMES
    }
    await take_page_pictures(contexts, page_paths(project_ids[0], empty_id, ids))


async def main() -> None:
    """Take all screenshots and check their size."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    receiver_url = f"http://127.0.0.1:{receiver.server_address[1]}/hooks/taproof"
    only = sys.argv[1:]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        for scheme in SCHEMES if only != ["pages"] else ():
            async with new_service() as service:
                await take_demo_pictures(browser, service.base_url, IMAGES, scheme)
        if only != ["demo"]:
            async with new_service() as service:
                take_pictures = take_every_page if only == ["pages"] else take_console_pictures
                await take_pictures(browser, service, receiver_url)
        await browser.close()
    receiver.shutdown()
    for picture in sorted([*IMAGES.glob("*.png"), *IMAGES.glob("*.webp")]):
        size = picture.stat().st_size
        print(f"docs/images/{picture.name}: {size} bytes")
        if size > (ANIMATION_LIMIT if picture.suffix == ".webp" else SIZE_LIMIT):
            raise RuntimeError(f"{picture.name} is too large: {size} bytes.")


if __name__ == "__main__":
    asyncio.run(main())
