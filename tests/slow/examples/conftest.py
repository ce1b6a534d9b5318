"""The example applications, each started by its own `./run` against a real sandbox, and signed in to in Chromium.

`./run` installs its packages in its directory, so the first start takes as long as that. Each example has the same two
pages, `/` with the button and `/members`, so `walk_through` does for all of them what a user does.
"""

import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Request, expect
from tests.e2e.conftest import Developer, OwnProject, Phone, Service, launch, make_phone, wait_for_server
from tests.ports import free_port

EXAMPLES = Path(__file__).parents[3] / "examples"
READY_WITHIN = 600.0
STOPPED_WITHIN = 30.0
NAME = "Ada <b>Lovelace</b> 🦊"


@dataclass
class Example:
    """A running example."""

    base_url: str
    process: subprocess.Popen[bytes]
    output: Path

    def printed(self) -> str:
        return self.output.read_text("utf-8", errors="replace")

    def stop(self) -> None:
        """End it with all its processes, as Ctrl+C in a terminal does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


StartExample = Callable[[str], Example]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A separate sandbox for this module."""
    service = launch(tmp_path_factory.mktemp("service"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def project(service: Service, client: httpx.Client) -> OwnProject:
    return Developer(client, service.access_token).create_project("The corner shop")


@pytest.fixture
def phone(client: httpx.Client) -> Phone:
    """A user with a name that an application must escape."""
    return make_phone(client, NAME)


@pytest.fixture(scope="module")
def start_example(
    service: Service, project: OwnProject, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartExample]:
    """Return a function that starts `examples/<name>/run` with the settings of `project` and waits until it answers."""
    started: list[Example] = []

    def start(name: str) -> Example:
        place = tmp_path_factory.mktemp(name)
        port = free_port()
        environment = without_settings() | {
            "TAPROOF_BASE_URL": service.base_url,
            "TAPROOF_PROJECT_ID": project.id,
            "TAPROOF_WEBHOOK_SECRET": project.webhook_secret,
            "PORT": str(port),
            "DATA_DIR": str(place),
        }
        with (place / "output").open("wb") as output:
            process = subprocess.Popen(
                ["./run"],
                cwd=EXAMPLES / name,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        example = Example(f"http://127.0.0.1:{port}", process, place / "output")
        started.append(example)
        wait_for_server(process, example.base_url, example.output, READY_WITHIN)
        assert example.base_url in example.printed()
        return example

    yield start
    for each in started:
        each.stop()


def without_settings() -> dict[str, str]:
    """Return an environment as a reader of the README has it: no settings, and no virtual environment of the tests."""
    left_out = ("TAPROOF_", "VIRTUAL_ENV", "PYTHONPATH", "PORT", "DATA_DIR", "SESSION_SECRET")
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(left_out)}


@asynccontextmanager
async def open_context(browser: Browser, example: Example, service: Service) -> AsyncIterator[BrowserContext]:
    """Open a new browser; fail if it reports a problem.

    A problem is an error in the console, a breach of the Content-Security-Policy, or a request to another host.
    """
    context = await browser.new_context(base_url=example.base_url)
    complaints: list[str] = []

    def on_console(line: ConsoleMessage) -> None:
        if line.type in {"error", "warning"}:
            complaints.append(line.text)

    def on_request(request: Request) -> None:
        if not request.url.startswith((f"{example.base_url}/", f"{service.base_url}/")):
            complaints.append(f"left for {request.url}")

    context.on("console", on_console)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    context.on("request", on_request)
    yield context
    await context.close()
    assert complaints == []


async def walk_through(browser: Browser, example: Example, service: Service, phone: Phone) -> None:
    """Open the members' page, sign in, see the user's name, and sign out."""
    async with open_context(browser, example, service) as context:
        page = await context.new_page()
        answer = await page.goto("/members")
        assert answer is not None
        policy = (await answer.all_headers())["content-security-policy"]
        assert "'unsafe-inline'" not in policy
        await expect(page).to_have_url(re.compile(f"^{re.escape(example.base_url)}/\\?next=(%2F|/)members$"))

        button = page.locator("taproof-button")
        await button.locator("[part~=button]").click()
        link = button.locator("a[part~=link]")
        await expect(link).to_have_attribute("href", re.compile(r"[?&]start=[\w-]{43}$"))
        deeplink = await link.get_attribute("href")
        assert deeplink is not None
        phone.open(deeplink)
        phone.tap("Confirm")

        await expect(page).to_have_url(f"{example.base_url}/members")
        await expect(page.locator("#name")).to_have_text(NAME)
        cookies = [cookie for cookie in await context.cookies(example.base_url) if "example" in cookie["name"]]
        assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Lax")]
        await page.reload()
        await expect(page.locator("#name")).to_have_text(NAME)

        await page.get_by_role("button", name="Sign out").click()
        await expect(page).to_have_url(f"{example.base_url}/")
        await expect(page.locator("taproof-button")).to_be_visible()
        await page.goto("/members")
        await expect(page).to_have_url(re.compile(f"^{re.escape(example.base_url)}/\\?next=(%2F|/)members$"))


def refuses_without_settings(name: str, service: Service, project: OwnProject) -> None:
    """Start the example without settings: it says how to get them, and its commands work unchanged."""
    done = subprocess.run(
        ["./run"],
        cwd=EXAMPLES / name,
        env=without_settings(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "Missing: TAPROOF_BASE_URL TAPROOF_PROJECT_ID TAPROOF_WEBHOOK_SECRET"
    commands = done.stderr.partition("filled in:")[2].partition("3. ./run")[0]
    for placeholder, value in (
        ("http://127.0.0.1:8080", service.base_url),
        ("proj_…", project.id),
        ("tap_…", service.access_token),
    ):
        assert placeholder in commands
        commands = commands.replace(placeholder, value)
    script = f'set -eu\n{commands}\necho "$TAPROOF_BASE_URL $TAPROOF_PROJECT_ID $TAPROOF_WEBHOOK_SECRET"'
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.split() == [service.base_url, project.id, project.webhook_secret]
