"""Small applications on the real frameworks, each a separate process behind real HTTP, with real proofs.

Every site has the same pages: `/`, `/plant` (stores a value in the session of an anonymous visitor), `/whoami` (401
unless signed in; the whole session as JSON), `/anybody` (the same for everybody) and `/members` (redirects anonymous
visitors to `/`).
"""

import base64
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes, token_urlsafe
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import TRUST, wait_for_server
from tests.ports import free_port

from taproof.core.identity import MessengerIdentity
from taproof.core.proof import sign_proof

SITES = Path(__file__).parent / "sites"
PROJECT = "proj_0123456789abcdefABCDEF"
OTHER_PROJECT = "proj_ffffffffffffffffffffff"
SECRET = "whsec_" + base64.b64encode(token_bytes(32)).decode()
SETTINGS = {
    "TAPROOF_BASE_URL": "https://signin.example.com",
    "TAPROOF_PROJECT_ID": PROJECT,
    "TAPROOF_WEBHOOK_SECRET": SECRET,
}
SIGN_IN = "/auth/taproof"
SIGN_OUT = "/auth/taproof/sign-out"
JSON = {"Content-Type": "application/json"}
OWN = JSON | {"Sec-Fetch-Site": "same-origin"}


def make_proof(
    messenger_id: str = "1001",
    *,
    project_id: str = PROJECT,
    age: float = 0,
    session_token: str | None = None,
    messenger_phone: str | None = None,
) -> str:
    """Sign a proof as the service does, `age` seconds ago."""
    identity = MessengerIdentity(messenger_id, "Ada <b>Lovelace</b> 🦊", "ada", messenger_phone)
    issued_at = int((time.time() - age) * 1000)
    return sign_proof(identity, project_id, session_token or token_urlsafe(32), SECRET, issued_at)


@dataclass
class Site:
    """A running application."""

    name: str
    place: Path
    base_url: str
    process: subprocess.Popen[bytes]

    def browser(self) -> httpx.Client:
        """A new browser, which keeps cookies."""
        return httpx.Client(base_url=self.base_url, timeout=60, verify=TRUST)

    def sign_in(self, browser: httpx.Client, proof: str, path: str = SIGN_IN, **headers: str) -> httpx.Response:
        return browser.post(path, json={"proof": proof}, headers=OWN | headers)

    def output(self) -> str:
        return (self.place / "output").read_text("utf-8", errors="replace")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_site(name: str, place: Path, *options: str, **environment: str) -> Site:
    """Start `sites/{name}_site.py` and wait until it answers. Sites in one place share their files."""
    environment = os.environ | {"SITE_GUARD": str(place / "proofs.db")} | SETTINGS | environment
    interface = "wsgi" if name in {"flask", "django"} else "asgi"
    if name == "django":
        for command in (["migrate", "-v0"], ["createcachetable"]):
            done = [sys.executable, str(SITES / "django_site.py"), *command]
            subprocess.run(done, env=environment | {"SITE_CACHE": "database"}, check=True, timeout=60)
    port = free_port()
    command = [sys.executable, "-m", "granian", "--interface", interface, "--port", str(port), *options]
    command += ["--working-dir", str(SITES), f"{name}_site:app"]
    with (place / "output").open("ab") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    site = Site(name, place, f"http://127.0.0.1:{port}", process)
    wait_for_server(process, site.base_url, place / "output")
    return site


StartSite = Callable[..., Site]


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartSite]:
    """Yield a function that starts a site for one test; `place` may be one that is in use."""
    started: list[Site] = []

    def start_one(name: str, *options: str, place: Path | None = None, **environment: str) -> Site:
        started.append(start_site(name, place or tmp_path_factory.mktemp(name), *options, **environment))
        return started[-1]

    yield start_one
    for each in started:
        each.stop()


@pytest.fixture(scope="module", params=["starlette", "fastapi", "flask", "django"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield each framework's site in turn."""
    site = start_site(request.param, tmp_path_factory.mktemp(request.param))
    yield site
    site.stop()


@pytest.fixture
def browser(site: Site) -> Iterator[httpx.Client]:
    with site.browser() as browser:
        yield browser


def whoami(browser: httpx.Client) -> Any:
    """Return the session of the signed-in user, or None."""
    answer = browser.get("/whoami")
    assert answer.status_code in {200, 401}, answer.text
    return answer.json()["session"] if answer.status_code == 200 else None


def start_without(site: str, place: Path, more: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Import a site as a server does when it starts, and run `more` after it."""
    return subprocess.run(
        [sys.executable, "-c", f"import {site}_site\n{more}"],
        cwd=SITES,
        env=os.environ | {"SITE_GUARD": str(place / "proofs.db"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
