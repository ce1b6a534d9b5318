"""The team page of owners: developers, invitations, and the link that is shown once."""

import pytest
from tests.console.browsing import Browsing, Shown
from tests.console.conftest import GRACE, Installation, Visitor

from taproof.core.accounts import Actor
from taproof.core.clock import DAY

TEAM = "/console/team"
INVITATIONS = "/console/team/invitations"


def link(shown: Shown) -> str:
    [text] = shown.texts(".//code[@class='secret']")
    return text


async def invited(visitor: Visitor, **typed: str) -> Shown:
    """Invite somebody and return the page that shows the link."""
    return await visitor.follow(await visitor.submit(TEAM, INVITATIONS, **typed))


async def test_developers(console: Installation, visitor: Visitor, stranger: Visitor) -> None:
    """Every developer is listed with plan, role and a linked messenger account; the visitor is marked."""
    again = await console.services.invitations.invite_again(
        Actor(stranger.developer, "command_line"), stranger.developer
    )
    await console.services.invitations.accept_invitation(again.code, GRACE, address="")
    rows = {row[0]: row[1:4] for row in (await visitor.get(TEAM)).rows()}
    assert rows == {
        "ada@example.com You": ["Business", "Owner", "None"],
        "grace@example.com": ["Business", "Developer", "Linked"],
    }


async def test_inviting(console: Installation, visitor: Visitor, anonymous: Browsing) -> None:
    """An owner gets a link once; it creates a developer with the chosen plan and role."""
    shown = await invited(visitor, email="grace@example.com", plan="pro", is_owner="on")
    address, _, code = link(shown).partition("#")
    assert address == "https://console.example/console/invite"
    assert "grace@example.com is invited." in shown.texts(".//p[@role='status']")[0]
    assert "Send it to grace@example.com only: the first person to use it gets the account." in shown.text
    assert (await visitor.get(TEAM)).all(".//code[@class='secret']") == []
    developer = await console.services.invitations.accept_invitation(code, GRACE, address="192.0.2.9")
    assert (developer.email, developer.plan, developer.is_owner) == ("grace@example.com", "pro", True)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"email": "grace"}, "must be an e-mail address"),
        ({"email": ""}, "must be an e-mail address"),
        ({"email": "ADA@example.com"}, "already exists"),
        ({"email": "grace@example.com", "plan": "gold"}, "Choose a plan"),
    ],
)
async def test_wrong_input(console: Installation, visitor: Visitor, typed: dict[str, str], sentence: str) -> None:
    """A mistake is shown above the form, which keeps the input, and nobody is invited."""
    shown = await visitor.submit(TEAM, INVITATIONS, is_owner="on", **typed)
    assert shown.status == 400
    assert sentence in shown.alert
    fields = shown.fields(INVITATIONS)
    assert (fields["email"], fields["is_owner"]) == (typed["email"], "on")
    assert await console.services.invitations.list_invitations(visitor.developer) == []


async def test_open_invitations(console: Installation, visitor: Visitor) -> None:
    """Open invitations are listed with their creator and expiry; those that link an account are marked."""
    await invited(visitor, email="grace@example.com", plan="pro", is_owner="on")
    actor = Actor(visitor.developer, "command_line")
    console.clock.now += 1
    await console.services.invitations.invite_again(actor, visitor.developer)
    rows = (await visitor.get(TEAM)).rows(".//div[@aria-label='Open invitations']/table")
    assert [row[:4] for row in rows] == [
        ["ada@example.com Links another messenger account", "Business", "Owner", "Command line"],
        ["grace@example.com", "Pro", "Owner", "ada@example.com"],
    ]
    console.clock.now += 7 * DAY
    assert "There are no open invitations." in (await (await console.sign_in(visitor.developer)).get(TEAM)).text


async def test_revoking(console: Installation, visitor: Visitor, anonymous: Browsing) -> None:
    """A revoked invitation no longer works; revoking a used or unknown one is answered with 404."""
    code = link(await invited(visitor, email="grace@example.com")).partition("#")[2]
    [invitation] = await console.services.invitations.list_invitations(visitor.developer)
    path = f"{INVITATIONS}/{invitation.id}/revoke"
    shown = await visitor.follow(await visitor.submit(TEAM, path))
    assert shown.texts(".//p[@role='status']") == ["The invitation was revoked. Its link no longer works."]
    assert (await anonymous.submit("/console/invite", "/console/invite", code=code)).status == 404
    for gone in (path, f"{INVITATIONS}/made-up/revoke", f"{INVITATIONS}/%00/revoke"):
        assert (await visitor.post(gone)).status == 404


async def test_an_access_token_invites_nobody(console: Installation, visitor: Visitor, anonymous: Browsing) -> None:
    """A visitor who signed in with an access token can read the page but change nothing, and is told why."""
    await invited(visitor, email="grace@example.com")
    before = await console.services.invitations.list_invitations(visitor.developer)
    token = await console.services.developers.create_access_token(visitor.actor, "leaked")
    await anonymous.submit("/console/sign-in", "/console/sign-in/token", access_token=token.plaintext)
    shown = await anonymous.get(TEAM)
    assert shown.status == 200
    assert "grace@example.com" in shown.text
    assert "sign in with your messenger" in shown.text
    assert shown.all(".//main//form") == []
    for path in (INVITATIONS, f"{INVITATIONS}/{before[0].id}/revoke"):
        refused = await anonymous.post(path, {"email": "eve@example.com", "plan": "free"})
        assert refused.status == 403
        assert "sign in with your messenger" in refused.alert
    assert await console.services.invitations.list_invitations(visitor.developer) == before
