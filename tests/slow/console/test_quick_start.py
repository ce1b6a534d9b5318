"""The quick start: each program is run as pasted against a real service, and a simulated phone confirms."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import get_args

import httpx
import pytest
from playwright.async_api import Browser
from tests.console.browsing import text_of
from tests.console.conftest import BASE_URL, Installation, Visitor
from tests.e2e.conftest import Developer, OwnProject, Service, launch, make_phone

from taproof.console.quick_start import QuickStart
from taproof.contract.project import SameDevice
from taproof.core.projects import Project
from taproof.http.sdk_files import sdk_release

PROGRAMS = {"node": ["node"], "python": [sys.executable], "curl": ["bash"]}
"""The command that runs each program. Every one of them reads the program from standard input."""
PATIENCE = 60
RELEASE = sdk_release(version("taproof"))
BOTH = pytest.mark.parametrize("is_public", [True, False], ids=["public", "server-side"])
EACH = pytest.mark.parametrize("name", list(PROGRAMS))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A separate sandbox for this module."""
    service = launch(tmp_path_factory.mktemp("quick_start"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield client


def make_project(client: httpx.Client, service: Service, *, is_public: bool, match_code: str = "off") -> OwnProject:
    developer = Developer(client, service.access_token)
    return developer.create_project(public_access=is_public, match_code=match_code)


def snippet(service: Service, project: OwnProject, name: str) -> str:
    known = Project(
        id=project.id,
        developer_id="",
        name="Shop",
        secret_key_preview="",
        encrypted_webhook_secret=b"",
        webhook_url="",
        is_active=True,
        public_access=project.created["public_access"],
        collect_phone=False,
        created_at=0,
        match_code=project.created["match_code"] == "on",
    )
    texts = {each.name: each.text for each in QuickStart(service.base_url, RELEASE).snippets(known)}
    return texts[name]


class Pasted:
    """A running program.

    Of Taproof's variables, its environment has the webhook secret, and the secret key if one is given.
    """

    def __init__(self, service: Service, project: OwnProject, name: str, *, secret_key: str | None = None) -> None:
        environment = os.environ | {"TAPROOF_WEBHOOK_SECRET": project.webhook_secret}
        if secret_key is not None:
            environment["TAPROOF_SECRET_KEY"] = secret_key
        self.process = subprocess.Popen(
            PROGRAMS[name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(snippet(service, project, name))
        self.process.stdin.close()
        self.process.stdin = None

    def link(self) -> str:
        """Return the link that it prints first."""
        return self._printed(r"Open this link: (http\S+)\n")

    def match_code(self) -> str:
        """Return the number that it prints next, for a project with match codes."""
        return self._printed(r"Choose this number there: (\d\d)\n")

    def _printed(self, pattern: str) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(pattern, line)
        if found is None:
            pytest.fail(line + self.rest())
        return found[1]

    def rest(self) -> str:
        """Return the remaining output until the program ends."""
        try:
            return self.process.communicate(timeout=PATIENCE)[0]
        finally:
            self.process.kill()


@BOTH
@EACH
def test_a_program_signs_somebody_in(service: Service, client: httpx.Client, name: str, *, is_public: bool) -> None:
    """Each program as pasted starts a sign-in, prints its link, polls until the decision, and prints the user."""
    project = make_project(client, service, is_public=is_public)
    phone = make_phone(client, "Grace")
    pasted = Pasted(service, project, name, secret_key=None if is_public else project.secret_key)
    phone.sign_in({"deeplink": pasted.link()})
    output = pasted.rest()
    assert pasted.process.returncode == 0, output
    assert phone.messenger_id in output
    assert "Grace" in output
    assert project.read()["confirmed_count"] == 1


@EACH
def test_a_program_prints_the_match_code(service: Service, client: httpx.Client, name: str) -> None:
    """Each program prints the match code that the user must choose in the messenger."""
    project = make_project(client, service, is_public=True, match_code="on")
    phone = make_phone(client, "Grace")
    pasted = Pasted(service, project, name)
    link, code = pasted.link(), pasted.match_code()
    phone.sign_in({"deeplink": link}, code)
    output = pasted.rest()
    assert pasted.process.returncode == 0, output
    assert phone.messenger_id in output


@EACH
def test_a_program_ends_when_the_user_cancels(service: Service, client: httpx.Client, name: str) -> None:
    """A cancellation ends the polling too, and nobody is signed in."""
    project = make_project(client, service, is_public=True)
    phone = make_phone(client)
    pasted = Pasted(service, project, name)
    phone.sign_in({"deeplink": pasted.link()}, "Cancel")
    output = pasted.rest()
    assert "cancelled" in output
    assert phone.messenger_id not in output


@EACH
def test_a_program_says_why_it_could_not_start(service: Service, client: httpx.Client, name: str) -> None:
    """An error of the service is printed in its own words, and the program ends."""
    project = make_project(client, service, is_public=True)
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"is_active": False})
    output = Pasted(service, project, name).rest()
    assert "This project is paused" in output


@EACH
def test_a_program_that_lacks_the_key_starts_nothing(service: Service, client: httpx.Client, name: str) -> None:
    """Without its environment variable a program ends at once and says what is missing."""
    project = make_project(client, service, is_public=False)
    output = Pasted(service, project, name).rest()
    assert "TAPROOF_SECRET_KEY" in output or "the project's current secret key" in output
    assert project.read()["sessions_count"] == 0


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_the_javascript_runs_in_a_browser(browser: Browser, service: Service, client: httpx.Client) -> None:
    """The JavaScript program works in a page of another origin, in the browser's console and in a script."""
    project = make_project(client, service, is_public=True)
    phone = make_phone(client, "Grace")
    page = await browser.new_page()
    async with page.expect_console_message(lambda message: "Open this link" in message.text) as printed:
        await page.evaluate("text => { window.eval(text); }", snippet(service, project, "node"))
    link = (await printed.value).text.removeprefix("Open this link: ")
    async with page.expect_console_message(lambda message: "Open this" not in message.text) as ended:
        phone.sign_in({"deeplink": link})
    answer = await (await ended.value).args[0].json_value()
    await page.close()
    assert (answer["status"], answer["messenger_id"]) == ("confirmed", phone.messenger_id)


@asynccontextmanager
async def serving(html: str) -> AsyncIterator[str]:
    """Serve one page, as the website of an application would; yield its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + html.encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_the_button_signs_a_visitor_in(browser: Browser, service: Service, client: httpx.Client) -> None:
    """In a page of another origin, the script is loaded by its hash, and the page receives the user."""
    project = make_project(client, service, is_public=True)
    phone = make_phone(client, "Grace")
    page_text = f"<!doctype html><title>Shop</title>{snippet(service, project, 'button')}"
    async with serving(page_text) as address:
        page = await browser.new_page()
        await page.goto(address)
        heard = asyncio.ensure_future(
            page.evaluate(
                "new Promise((tell) => addEventListener('taproof-confirmed', (event) => tell(event.detail.result)))"
            )
        )
        await page.get_by_role("button", name="Sign in").first.click()
        link = await page.locator("a[href*='?start=']").first.get_attribute("href")
        assert link is not None
        phone.sign_in({"deeplink": link})
        result = await heard
        await page.close()
    assert (result["status"], result["identity"]["messengerId"]) == ("confirmed", phone.messenger_id)


@BOTH
async def test_the_page_shows_the_programs_as_they_are(
    visitor: Visitor, console: Installation, *, is_public: bool
) -> None:
    """The page shows the programs tested above, with this project's id and this service's address."""
    project, secrets = await visitor.create_project('"><script>alert(1)</script>')
    project = await visitor.change(project, public_access=is_public)
    shown = await visitor.get(f"/console/projects/{project.id}")
    snippets = QuickStart(BASE_URL, RELEASE).snippets(project)
    assert [each.name for each in snippets] == [*(["button"] if is_public else []), *PROGRAMS, "oidc"]
    for each in snippets:
        assert "".join(shown.one(f".//*[@id='snippet-{each.name}']").itertext()) == each.text
        assert shown.one(f".//button[@data-copy='#snippet-{each.name}']").get("type") == "button"
        assert (project.id in each.text) == (each.name != "oidc")
        assert f'"{BASE_URL}' in each.text
        assert "alert" not in each.text
        if each.name in {"curl", "node"}:
            assert ("/public" in each.text) == is_public
        assert ("TAPROOF_SECRET_KEY" in each.text) == (not is_public and each.name != "oidc")
    for secret in (secrets.secret_key, secrets.webhook_secret):
        assert secret not in shown.html
    assert ("TAPROOF_SECRET_KEY" in shown.text) == (not is_public)
    assert "TAPROOF_WEBHOOK_SECRET" in shown.text
    for button in shown.all(".//section[@aria-labelledby='quick-start']//button"):
        assert shown.one(f".//*[@id='{button.get('data-copy', '')[1:]}']").tag == "code"


async def test_the_page_says_how_the_user_confirms(visitor: Visitor, console: Installation) -> None:
    """With match codes the page and programs mention a number; without them they do not. Only programs print a link."""
    project, _ = await visitor.create_project("Shop")
    shown = await visitor.get(f"/console/projects/{project.id}")
    panels = {each.get("data-panel"): text_of(each) for each in shown.all(".//section[@data-panel]")}
    printing = {
        name for name, text in panels.items() if "Open the link that the program prints and tap Confirm." in text
    }
    assert (set(panels) - printing, printing) == ({"button", "oidc"}, set(PROGRAMS))
    assert "number" not in shown.texts(".//section[@aria-labelledby='quick-start']")[0]
    await visitor.change(project, match_code=True)
    shown = await visitor.get(f"/console/projects/{project.id}")
    assert "tap Confirm or choose the printed number." in shown.text
    for name in PROGRAMS:
        assert "Choose this number there:" in "".join(shown.one(f".//*[@id='snippet-{name}']").itertext())


@BOTH
async def test_a_project_that_requires_the_same_device(
    visitor: Visitor, console: Installation, *, is_public: bool
) -> None:
    """Its sign-ins need a page to return to, which the programs do not have: only the button is shown."""
    project, _ = await visitor.create_project("Shop")
    section = ".//section[@aria-labelledby='quick-start']"
    details = ".//section[@aria-labelledby='facts']"
    for policy in get_args(SameDevice):
        origins = ("https://shop.example",)
        await visitor.change(project, public_access=is_public, same_device=policy, allowed_origins=origins)
        shown = await visitor.get(f"/console/projects/{project.id}")
        assert f"Same device{policy.capitalize()} " in shown.texts(details)[0]
        names = [each.get("data-panel") for each in shown.all(f"{section}//section")]
        button = ["button"] if is_public else []
        assert names == ([*button, "oidc"] if policy == "require" else [*button, *PROGRAMS, "oidc"])
        assert [each.get("id") for each in shown.all(f"{section}//input")] == [f"show-{name}" for name in names]
        text = shown.texts(section)[0]
        assert ("docs/how-to/phishing.md" in text) == (policy == "require")
        assert ("QR code" in text) == (is_public and policy != "require")
        assert ('same-device="require"' in text) == (is_public and policy == "require")
        assert ("TAPROOF_SECRET_KEY" in text) == (not is_public and policy != "require")
