"""A developer who was tricked into confirming sign-ins to the service reports them, which ends all access."""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx
import pytest
from tests.e2e.conftest import TRUST, NewPhone, Phone, Service
from tests.e2e.test_user_control import TEXTS, newest, said

from taproof.core.names import isolated_name
from taproof.service.console.sign_in import CONSOLE, TERMINAL

WAITING = "/console/sign-in/waiting"
ACCEPT = "/console/invite/accept"
CONFIRM = "/console/invite/confirm"
NEWEST = f"1. {TEXTS.not_me_button}"


class Browser:
    """A browser that sends the forms of the console's pages."""

    def __init__(self, service: Service) -> None:
        self.client = httpx.Client(base_url=service.base_url, timeout=60, verify=TRUST)

    def submit(self, path: str, **fields: str) -> httpx.Response:
        headers = {"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}
        return self.client.post(path, content=urlencode(fields), headers=headers)

    def started(self) -> tuple[str, str]:
        """Return the link and match code of the sign-in that this browser has just started."""
        page = self.client.get(WAITING).text
        link = re.search(r'href="([^"]*[?&;]start=[^"]+)"', page)
        match_code = re.search(r'class="match-code">(\d\d)<', page)
        assert link is not None
        assert match_code is not None
        return link[1].replace("&amp;", "&"), match_code[1]

    def invited(self, code: str, phone: Phone, email: str = "") -> None:
        """Open an invitation and have it confirmed; only the last question is left."""
        assert self.submit("/console/invite", code=code).headers["location"] == ACCEPT
        assert self.submit(ACCEPT, email=email).headers["location"] == WAITING
        confirm(phone, *self.started())
        assert "Is that you?" in self.client.get(WAITING).text

    def is_signed_in(self) -> bool:
        return self.client.get("/console/projects").status_code == 200


def confirm(phone: Phone, deeplink: str, match_code: str) -> None:
    phone.open(deeplink)
    phone.tap(match_code)


def invitation(service: Service, email: str) -> str:
    done = service.command("developers", "invite", email)
    assert done.returncode == 0, done.stderr
    [code] = re.findall(r"\binv_[A-Za-z0-9]+", done.stdout)
    return str(code)


@pytest.fixture
def browsers(service: Service) -> Iterator[tuple[Browser, Browser]]:
    """Return the developer's browser and the intruder's."""
    both = Browser(service), Browser(service)
    yield both
    for each in both:
        each.client.close()


def test_whoever_came_in_is_out(service: Service, new_phone: NewPhone, browsers: tuple[Browser, Browser]) -> None:
    """After a report, no cookie or token works in the console, the API or the bot; the answer lists what was ended."""
    mine, intruder = browsers
    phone = new_phone("Ada", language_code="en")
    mine.invited(invitation(service, "reporting@example.com"), phone)
    assert mine.submit(CONFIRM).status_code == 303
    assert intruder.submit("/console/sign-in", next="").status_code == 303
    confirm(phone, *intruder.started())
    assert intruder.client.get(WAITING).status_code == 303
    started = intruder.client.post("/api/v1/login", json={}).json()
    confirm(phone, started["verification_uri_complete"], started["match_code"])
    got = intruder.client.post("/api/v1/login/token", json={"device_code": started["device_code"]}).json()
    headers = {"Authorization": f"Bearer {got['access_token']}"}
    assert (mine.is_signed_in(), intruder.is_signed_in()) == (True, True)
    assert intruder.client.get("/api/v1/dev/me", headers=headers).json()["email"] == "reporting@example.com"

    said(phone, "/sessions")
    phone.tap(NEWEST)
    expected = TEXTS.reported_developer.format(project=isolated_name(TERMINAL.project_name), unblock="Unblock")
    assert newest(phone)["text"] == expected
    assert (mine.is_signed_in(), intruder.is_signed_in()) == (False, False)
    assert intruder.client.get("/api/v1/dev/me", headers=headers).status_code == 401

    # The second report changes nothing more, and the developer gets in again.
    said(phone, "/sessions")
    phone.tap(f"2. {TEXTS.not_me_button}")
    assert isolated_name(CONSOLE.project_name) in newest(phone)["text"]
    phone.tap(TEXTS.unblock_button)
    assert mine.submit("/console/sign-in", next="").status_code == 303
    confirm(phone, *mine.started())
    assert mine.client.get(WAITING).status_code == 303
    assert mine.is_signed_in()
