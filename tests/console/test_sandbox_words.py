"""The console's texts in the sandbox, where the messenger is a page and not a phone."""

import pytest
from tests.console.browsing import Browsing
from tests.console.conftest import Installation, Visitor

from taproof.core.projects import Project

pytestmark = pytest.mark.parametrize("in_sandbox", [True])


async def test_no_code_for_a_phone(
    console: Installation, visitor: Visitor, anonymous: Browsing, project: Project
) -> None:
    """The waiting page shows no QR code, because a real phone cannot open the sandbox, but says what to do."""
    for browser, form in ((anonymous, "/console/sign-in"), (visitor, f"/console/projects/{project.id}/try")):
        waiting = await browser.follow(await browser.submit(form, form))
        codes = waiting.texts(".//*[@class='match-code']")
        button = codes[0] if browser is anonymous else "Confirm"
        assert f"The simulated phone opens in a second tab: tap Start, then {button}." in waiting.text
        assert waiting.all(".//main//svg") == []


async def test_the_command_is_for_the_sandbox(visitor: Visitor) -> None:
    """The command on the account page works for the sandbox's database and prints a link to this service."""
    [command] = (await visitor.get("/console/account")).texts(".//main//code")
    assert command == "taproof developers invite ada@example.com --base-url https://console.example --sandbox"
