"""One click opens the console as the sandbox's developer, and only in the sandbox."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.api.conftest import ManualClock
from tests.console.browsing import Browsing
from tests.console.conftest import ADA, BASE_URL, Installation, open_console

from taproof.console.sandbox_sign_in import SandboxDeveloper
from taproof.core.accounts import AccessToken, Actor, Developer

SIGN_IN = "/console/sign-in"
ONE_CLICK = f"{SIGN_IN}/sandbox"
NAME = "Open the console as the sandbox developer"


class Sandbox:
    """The sandbox's developer, and the access token that the sandbox keeps."""

    def __init__(self) -> None:
        self.console: Installation | None = None
        self.plaintext = ""
        self.token_id = ""
        self.part = SandboxDeveloper(self._authenticate, lambda host: host == BASE_URL.removeprefix("https://"))

    async def begin(self, console: Installation) -> Actor:
        developer = await console.add_developer("sandbox@localhost", is_owner=True)
        created = await console.services.developers.create_access_token(Actor(developer, "service"), "sandbox")
        self.console, self.plaintext, self.token_id = console, created.plaintext, created.token.id
        return Actor(developer, "service")

    async def _authenticate(self) -> tuple[AccessToken, Developer]:
        assert self.console is not None
        return await self.console.services.developers.authenticate(self.plaintext)


@pytest.fixture
def sandbox() -> Sandbox:
    return Sandbox()


@pytest.fixture
async def console(tmp_path: Path, clock: ManualClock, sandbox: Sandbox) -> AsyncIterator[Installation]:
    async with open_console(tmp_path, clock, in_sandbox=True, sandbox_developer=sandbox.part) as installation:
        yield installation


async def test_one_click(console: Installation, sandbox: Sandbox, anonymous: Browsing) -> None:
    """The button leads to the page that was asked for. The session ends with the access token."""
    actor = await sandbox.begin(console)
    asked = await anonymous.get("/console/tokens")
    assert NAME in (await anonymous.get(SIGN_IN)).text
    shown = await anonymous.submit(asked.location, ONE_CLICK)
    assert (shown.status, shown.location) == (303, "/console/tokens")
    assert (await anonymous.get("/console/tokens")).status == 200
    await console.services.developers.delete_access_token(actor, sandbox.token_id)
    assert (await anonymous.get("/console/tokens")).status == 303
    refused = await anonymous.follow(await anonymous.submit(SIGN_IN, ONE_CLICK))
    assert "Restart the sandbox" in refused.text


async def test_it_cannot_invite(console: Installation, sandbox: Sandbox, anonymous: Browsing) -> None:
    """Team refuses a one-click session with a sentence that names the way to a session that can invite."""
    actor = await sandbox.begin(console)
    await anonymous.submit(SIGN_IN, ONE_CLICK)
    shown = await anonymous.get("/console/team")
    assert "Open the “First sign-in” link" in shown.text
    refused = await anonymous.post("/console/team/invitations", {"email": "eve@example.com", "plan": "free"})
    assert (refused.status, "“First sign-in” link" in refused.alert) == (403, True)
    again = await console.services.invitations.invite_again(actor, actor.developer)
    await console.services.invitations.accept_invitation(again.code, ADA, address="")
    await anonymous.submit(SIGN_IN, ONE_CLICK)  # Linking an account signs out all browsers.
    shown = await anonymous.get("/console/team")
    assert "“First sign-in” link" not in shown.text
    assert "sign in with the messenger as the simulated user that is linked to you" in shown.text


async def test_not_from_elsewhere(console: Installation, sandbox: Sandbox, anonymous: Browsing) -> None:
    """Another site's page, and a page under another name that leads to this machine, open nothing."""
    await sandbox.begin(console)
    for headers, status in (
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Host": "rebound.example"}, 404),
        ({"Host": "rebound.example", "Origin": "https://rebound.example"}, 404),
    ):
        refused = await anonymous.post(ONE_CLICK, None, **headers)
        assert (refused.status, "set-cookie" in refused.response.headers) == (status, False), headers
    assert (await anonymous.get(ONE_CLICK)).status == 405


async def test_only_in_the_sandbox(tmp_path: Path, clock: ManualClock) -> None:
    """Outside the sandbox, neither the button nor its address exists."""
    async with open_console(tmp_path, clock) as console:
        browser = await console.browser()
        assert NAME not in (await browser.get(SIGN_IN)).text
        shown = await browser.post(ONE_CLICK)
        assert (shown.status, "set-cookie" in shown.response.headers) == (404, False)
