"""The console's texts in the sandbox, where the messenger is a page and not a phone."""

import pytest
from tests.console.browsing import Browsing
from tests.console.conftest import ADA, Installation, Visitor

pytestmark = pytest.mark.parametrize("in_sandbox", [True])


async def test_no_code_for_a_phone(console: Installation, visitor: Visitor, anonymous: Browsing) -> None:
    """The waiting page shows no QR code, because a real phone cannot open the sandbox, but says what to do."""
    project, _ = await visitor.create_project()
    for browser, form in ((anonymous, "/console/sign-in"), (visitor, f"/console/projects/{project.id}/try")):
        waiting = await browser.follow(await browser.submit(form, form))
        codes = waiting.texts(".//*[@class='match-code']")
        button = codes[0] if browser is anonymous else "Confirm"
        assert f"The simulated phone opens in a second tab: tap Start, then {button}." in waiting.text
        assert waiting.all(".//main//svg") == []


async def test_another_simulated_user(console: Installation, anonymous: Browsing) -> None:
    """A visitor whose simulated user is taken is told how to choose another one."""
    first = await console.services.invitations.invite_developer(None, "ada@example.com")
    await console.services.invitations.accept_invitation(first.code, ADA, address="")
    code = (await console.services.invitations.invite_developer(None, "grace@example.com")).code
    invite = await anonymous.follow(await anonymous.submit("/console/invite", "/console/invite", code=code))
    assert "previously linked" not in invite.text
    waiting = await anonymous.follow(await anonymous.submit("/console/invite/accept", "/console/invite/accept"))
    await console.messenger.confirm(waiting.deeplink, ADA)
    shown = await anonymous.submit("/console/sign-in/waiting", "/console/invite/confirm")
    [sentence] = shown.texts(".//p[@role='alert']")
    assert sentence.endswith("On the simulated phone, choose another person under “You are”, or “New user”.")


async def test_an_account_that_is_not_linked(console: Installation, anonymous: Browsing) -> None:
    """A simulated user who is not linked to a developer is told which link links one."""
    waiting = await anonymous.follow(await anonymous.submit("/console/sign-in", "/console/sign-in"))
    await console.messenger.confirm(waiting.deeplink, ADA)
    shown = await anonymous.get("/console/sign-in/waiting")
    assert shown.status == 403
    [sentence] = shown.texts(".//p[@role='alert']")
    assert "Open the “First sign-in” link that make run (taproof serve --sandbox) printed" in sentence


async def test_the_command_is_for_the_sandbox(visitor: Visitor) -> None:
    """The command on the account page works for the sandbox's database and prints a link to this service."""
    [command] = (await visitor.get("/console/account")).texts(".//main//code")
    assert command == "taproof developers invite ada@example.com --base-url https://console.example --sandbox"
