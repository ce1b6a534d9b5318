"""docs/how-to/plain-html.md and docs/how-to/react.md: their pages work in Chromium with a real service."""

import asyncio
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect
from tests.chromium import open_chromium
from tests.docs.blocks import BLOCKS, ROOT, block_of
from tests.e2e.conftest import Service, launch
from tests.slow.docs.signing_in import PATIENCE, confirm, press_and_confirm

from taproof import verify_proof

HTML, REACT = "how-to/plain-html.md", "how-to/react.md"
SDK = ROOT / "sdk/js"
pytestmark = pytest.mark.browser


@dataclass
class Site:
    """An application's server: serves a page at `/`, and accepts proofs at /auth/taproof."""

    service: Service
    address: str
    page: str = ""
    script: bytes = b""
    proofs: list[str] = field(default_factory=list)

    def show(self, text: str) -> None:
        """Serve this page from now on, with the service and project of the test filled in."""
        self.page = self.real(f"<!doctype html><title>Shop</title>\n{text}")

    def real(self, text: str) -> str:
        assert "https://signin.example.com" in text
        text = text.replace("https://signin.example.com", self.service.base_url)
        return text.replace("proj_4KsdT0aQm2vXc81LpZwEyB", self.service.project_id)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("pages"))
    yield service
    service.stop()


@pytest.fixture
def site(service: Service) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = made.script if self.path == "/page.js" else made.page.encode()
            self.answer("text/javascript" if self.path == "/page.js" else "text/html", body)

        def do_POST(self) -> None:
            made.proofs.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["proof"])
            assert self.path == "/auth/taproof"
            self.answer("application/json", b'{"location": "/welcome"}')

        def answer(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Site(service, f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield made
        server.shutdown()


async def signed_in(site: Site, page: Page, button: str = "Confirm") -> None:
    await page.goto(site.address)
    await press_and_confirm(page, site.service, "Grace", button)


def is_a_proof_of(site: Site, proof: str) -> bool:
    """Return whether a proof is valid for the demo's project."""
    answer = httpx.get(
        f"{site.service.base_url}/api/v1/dev/projects/{site.service.project_id}/webhook-secret",
        headers={"Authorization": f"Bearer {site.service.access_token}"},
    )
    identity = verify_proof(proof, answer.json()["webhook_secret"], project_id=site.service.project_id)
    return identity.messenger_name == "Grace"


@pytest.mark.parametrize("part", ['com/sdk/taproof.js"></script>\n<taproof-button project-id', "crossorigin"])
def test_the_button_sends_the_proof_and_goes_on(site: Site, part: str) -> None:
    """The first two lines are enough for a page, also with a pinned version from /sdk/taproof.json."""
    found = [each.text for each in BLOCKS if each.page == HTML and part in each.text and "submit-url" in each.text]
    assert len(found) == 1
    fixed = httpx.get(f"{site.service.base_url}/sdk/taproof.json").json()
    site.show(found[0].replace("/sdk/0.1.0/taproof.js", fixed["path"]).replace("sha384-…", fixed["integrity"]))
    assert part != "crossorigin" or fixed["integrity"] in site.page

    async def go() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await signed_in(site, page)
            await page.wait_for_url(f"{site.address}/welcome", timeout=PATIENCE)

    asyncio.run(go())
    (proof,) = site.proofs
    assert is_a_proof_of(site, proof)


@pytest.mark.parametrize(("button", "text"), [("Confirm", "Grace"), ("Cancel", "cancelled")])
@pytest.mark.parametrize("part", ["taproof-confirmed", "import { resume, signIn }"])
def test_a_page_hears_how_it_ended(site: Site, part: str, button: str, text: str) -> None:
    """A page gets the outcome from the button's events, and from `signIn` with its own design."""
    site.show(block_of(HTML, "html", part).text)
    own_look = part != "taproof-confirmed"

    async def go() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await signed_in(site, page, button)
            shown = "confirmed" if own_look and button == "Confirm" else text
            await expect(page.locator("#outcome")).to_have_text(shown, timeout=PATIENCE)

    asyncio.run(go())


def test_an_own_look_goes_on_after_the_page_was_left(site: Site) -> None:
    """With its own design, a page that the phone had discarded still gets the outcome after it returns."""
    site.show(block_of(HTML, "html", "import { resume, signIn }").text)

    async def go() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await page.goto(site.address)
            await page.get_by_role("button", name="Sign in").click()
            link = page.locator("#link")
            await expect(link).to_be_visible(timeout=PATIENCE)
            assert await link.get_attribute("target") == "_blank"
            deeplink = await link.get_attribute("href") or ""
            await page.goto("about:blank")
            await page.go_back()
            await expect(link).to_have_attribute("href", deeplink, timeout=PATIENCE)
            await asyncio.to_thread(confirm, site.service, deeplink, "Grace")
            await expect(page.locator("#outcome")).to_have_text("confirmed", timeout=PATIENCE)

    asyncio.run(go())


def test_the_look_can_be_changed(site: Site) -> None:
    """The properties and the part in the page's style exist, and every part of the button is on the page."""
    text = (ROOT / "docs" / HTML).read_text(encoding="utf-8")
    named = text.partition("The parts are ")[2].partition(". ")[0].replace("`", "").replace(" and ", ", ")
    site.show(block_of(HTML, "html", "--taproof-accent").text)

    async def go() -> tuple[str, str, list[str]]:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await page.goto(site.address)
            button = page.get_by_role("button", name="Sign in")
            await expect(button).to_be_visible(timeout=PATIENCE)
            style = "each => [getComputedStyle(each).backgroundColor, getComputedStyle(each).textTransform]"
            color, transform = await button.evaluate(style)
            parts = "each => [...each.shadowRoot.querySelectorAll('[part]')].map(each => each.part[0])"
            return color, transform, await page.locator("taproof-button").evaluate(parts)

    color, transform, parts = asyncio.run(go())
    assert (color, transform) == ("rgb(10, 100, 60)", "uppercase")
    assert {each.strip() for each in named.split(",")} == set(parts)


@pytest.fixture(scope="module")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory in which `taproof` and React can be imported."""
    place = tmp_path_factory.mktemp("react")
    (place / "node_modules").mkdir()
    (place / "node_modules/taproof").symlink_to(SDK)
    for name in ("react", "react-dom", "scheduler"):
        (place / "node_modules" / name).symlink_to(SDK / "node_modules" / name)
    return place


@pytest.mark.parametrize("name", ["TaproofButton", "useTaproof"])
def test_the_components(site: Site, node_modules: Path, name: str) -> None:
    """Both components sign a user in, bundled with React as in applications."""
    program = site.real(block_of(REACT, "jsx", f"import {{ {name} }}").text)
    program += '\nimport { createRoot } from "react-dom/client";\n'
    program += 'createRoot(document.querySelector("#root")).render(<SignIn />);\n'
    source, bundle = node_modules / f"{name}.jsx", node_modules / f"{name}.js"
    source.write_text(program, encoding="utf-8")
    command = [
        str(SDK / "node_modules/.bin/esbuild"),
        str(source),
        "--bundle",
        "--jsx=automatic",
        f"--outfile={bundle}",
    ]
    options = ["--format=esm", '--define:process.env.NODE_ENV="production"', "--log-level=warning"]
    subprocess.run([*command, *options], check=True, timeout=120)
    site.script = bundle.read_bytes()
    site.page = '<!doctype html><title>Shop</title><div id="root"></div><script type="module" src="/page.js"></script>'

    async def go() -> None:
        async with open_chromium() as browser:
            page = await browser.new_page()
            await signed_in(site, page)
            if name == "TaproofButton":
                await page.wait_for_url(f"{site.address}/welcome", timeout=PATIENCE)
            else:
                await expect(page.get_by_text("Grace")).to_be_visible(timeout=PATIENCE)

    asyncio.run(go())
