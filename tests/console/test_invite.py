"""Accepting an invitation: the first developer, an invited developer, and another messenger account."""

import dataclasses

import pytest
from tests.console.browsing import Browsing, Shown
from tests.console.conftest import ADA, GRACE, SESSION_COOKIE, Installation, Visitor

from taproof.core.accounts import Actor, Developer
from taproof.core.clock import DAY, MINUTE
from taproof.core.identity import MessengerIdentity

INVITE = "/console/invite"
ACCEPT = "/console/invite/accept"
CONFIRM = "/console/invite/confirm"
WAITING = "/console/sign-in/waiting"


async def first(console: Installation) -> str:
    code = await console.services.invitations.invite_first()
    assert code is not None
    return code


async def invite(console: Installation, email: str = "grace@example.com", *, is_owner: bool = False) -> str:
    return (await console.services.invitations.invite_developer(None, email, plan="pro", is_owner=is_owner)).code


async def invite_again(console: Installation, developer: Developer) -> str:
    actor = Actor(developer, "command_line")
    return (await console.services.invitations.invite_again(actor, developer)).code


async def open_invitation(browser: Browsing, code: str) -> Shown:
    """Send the code and return the page that describes the invitation."""
    shown = await browser.submit(INVITE, INVITE, code=code)
    assert shown.location == ACCEPT
    return await browser.follow(shown)


async def begin(console: Installation, browser: Browsing, email: str = "ada@example.com") -> Shown:
    """Accept the first developer's invitation, up to the page that waits for the tap."""
    await open_invitation(browser, await first(console))
    return await browser.follow(await browser.submit(ACCEPT, ACCEPT, email=email))


async def take_up(
    console: Installation, browser: Browsing, code: str, identity: MessengerIdentity = ADA, **typed: str
) -> Shown:
    """Accept the invitation as `identity` and return the answer to "Yes, link this account"."""
    await open_invitation(browser, code)
    waiting = await browser.follow(await browser.submit(ACCEPT, ACCEPT, **typed))
    await console.messenger.confirm(waiting.deeplink, identity)
    return await browser.submit(WAITING, CONFIRM)


async def test_the_first_developer(console: Installation, anonymous: Browsing) -> None:
    """The first developer enters an e-mail address, becomes an owner, is signed in, and sees a notice once.

    Without JavaScript, a person pastes the whole link.
    """
    link = f"https://console.example/console/invite#{await first(console)}"
    shown = await take_up(console, anonymous, link, email=" ada@example.com ")
    assert (shown.status, shown.location) == (303, "/console/projects")
    landed = await anonymous.follow(shown)
    account = "the messenger account \u2068Ada Lovelace\u2069, @\u2068ada\u2069, id 1001"
    assert landed.texts(".//p[@role='status']") == [f"You are signed in. From now on, you sign in with {account}."]
    assert (await anonymous.get("/console/projects")).all(".//p[@role='status']") == []
    [developer] = await console.services.developers.list_developers()
    assert (developer.email, developer.is_owner, developer.messenger_id) == ("ada@example.com", True, "1001")
    assert (await anonymous.get("/console/team")).status == 200


async def test_an_invited_developer(console: Installation, anonymous: Browsing) -> None:
    """An invited developer sees whose account it is, and gets the invitation's address, plan and role."""
    code = await invite(console, is_owner=True)
    page = await open_invitation(anonymous, code)
    assert "This creates an account for grace@example.com, an owner of this installation." in page.text
    assert page.fields(ACCEPT) == {}
    shown = await take_up(console, anonymous, code, GRACE)
    assert shown.location == "/console/projects"
    [developer] = await console.services.developers.list_developers()
    assert (developer.email, developer.plan, developer.is_owner) == ("grace@example.com", "pro", True)


async def test_only_the_address_of_the_invitation(console: Installation, anonymous: Browsing) -> None:
    """An e-mail address in the form is ignored if the invitation has one."""
    await open_invitation(anonymous, await invite(console))
    waiting = await anonymous.follow(await anonymous.post(ACCEPT, {"email": "eve@example.com"}))
    await console.messenger.confirm(waiting.deeplink, GRACE)
    await anonymous.submit(WAITING, CONFIRM)
    assert [each.email for each in await console.services.developers.list_developers()] == ["grace@example.com"]


async def test_another_messenger_account(console: Installation, visitor: Visitor, anonymous: Browsing) -> None:
    """Linking another messenger account is announced as such, replaces the old one, and signs out all browsers."""
    first_page = await open_invitation(anonymous, await invite_again(console, visitor.developer))
    assert "previously linked" not in first_page.text
    await take_up(console, await console.browser(), await invite_again(console, visitor.developer), ADA)
    assert (await visitor.get("/console/account")).status == 303
    code = await invite_again(console, visitor.developer)
    page = await open_invitation(anonymous, code)
    assert "This links your messenger account to the Taproof account of ada@example.com." in page.text
    assert (
        "The previously linked messenger account will no longer be able to sign in. Access tokens still work"
        in page.text
    )
    landed = await anonymous.follow(await take_up(console, anonymous, code, GRACE))
    [notice] = landed.texts(".//p[@role='status']")
    assert "the messenger account \u2068Grace\u2069, id 1002." in notice
    assert "Existing access tokens still work." in notice
    assert "Grace, id 1002" in (await anonymous.get("/console/account")).text
    developers = console.services.developers
    assert await developers.read_developer_by_messenger_id(ADA.messenger_id) is None


async def test_a_get_changes_nothing(console: Installation, anonymous: Browsing) -> None:
    """A program that opens every link of an invitation, as mail scanners do, neither accepts nor starts anything."""
    code = await first(console)
    for path in (INVITE, ACCEPT, WAITING, f"{INVITE}?code={code}", f"{ACCEPT}?code={code}"):
        shown = await anonymous.get(path)
        assert "set-cookie" not in shown.response.headers
        assert code not in shown.html
    assert (await anonymous.get(ACCEPT)).location == INVITE
    assert (await console.services.invitations.read_invitation(code)).email == ""
    assert await console.services.developers.list_developers() == []


async def test_the_code_is_shown_nowhere(console: Installation, anonymous: Browsing) -> None:
    """After its form, the code is in no page, address or readable cookie."""
    code = await first(console)
    for shown in (
        await anonymous.submit(INVITE, INVITE, code=code),
        await anonymous.get(ACCEPT),
        await anonymous.submit(ACCEPT, ACCEPT, email="ada@example.com"),
        await anonymous.get(WAITING),
    ):
        assert code not in f"{shown.html} {shown.response.headers.multi_items()} {shown.response.url}"
    field = (await anonymous.get(INVITE)).one(".//input[@name='code']")
    assert (field.get("autocomplete"), field.get("value")) == ("off", None)


# ---- whoever sees the QR code may be quicker


async def test_nothing_is_bound_before_the_browser_says_yes(console: Installation, anonymous: Browsing) -> None:
    """The page names the account that confirmed and asks; reading it, even repeatedly, links and signs in nobody."""
    code = await first(console)
    await open_invitation(anonymous, code)
    waiting = await anonymous.follow(await anonymous.submit(ACCEPT, ACCEPT, email="ada@example.com"))
    mallory = MessengerIdentity("66", "<b>Ada</b>\u202e", "mallory")
    await console.messenger.confirm(waiting.deeplink, mallory)
    for _ in range(2):
        shown = await anonymous.get(WAITING)
        assert (shown.status, shown.heading) == (200, "Is that you?")
        assert "The messenger account <b>Ada</b>, @mallory, id 66, confirmed this sign-in." in shown.text
        assert shown.all(".//main//b") == []
        assert code not in shown.html
    assert (await anonymous.get(CONFIRM)).status == 405
    assert (await anonymous.post(CONFIRM, {}, **{"Sec-Fetch-Site": "cross-site"})).status == 403
    assert await console.services.developers.list_developers() == []
    assert SESSION_COOKIE not in anonymous.client.cookies


async def test_nothing_is_bound_after_a_report(console: Installation, anonymous: Browsing) -> None:
    """A victim who confirmed and then reports it is not linked; the invitation stays valid for its recipient."""
    waiting = await begin(console, anonymous, "eve@example.com")
    await console.messenger.confirm(waiting.deeplink, GRACE)
    asked = await anonymous.get(WAITING)
    assert asked.heading == "Is that you?"
    assert not (await console.messenger.report(waiting.deeplink, GRACE)).signed_out
    shown = await anonymous.post(CONFIRM, {})
    assert shown.status == 403
    assert "send /unblock to the bot" in shown.alert
    assert await console.services.developers.list_developers() == []
    assert SESSION_COOKIE not in anonymous.client.cookies
    assert (await anonymous.post(CONFIRM, {})).location == ACCEPT
    waiting = await anonymous.follow(await anonymous.submit(ACCEPT, ACCEPT, email="ada@example.com"))
    await console.messenger.confirm(waiting.deeplink, ADA)
    assert (await anonymous.submit(WAITING, CONFIRM)).location == "/console/projects"


async def test_start_again_forgets_the_stranger(console: Installation, anonymous: Browsing) -> None:
    """If a stranger confirms first, the invitation stays valid and the stranger's confirmation is dropped."""
    waiting = await begin(console, anonymous)
    await console.messenger.confirm(waiting.deeplink, MessengerIdentity("66", "Mallory", ""))
    shown = await anonymous.get(WAITING)
    [again] = [link.get("href", "") for link in shown.all(".//main//a")]
    page = await anonymous.get(again)
    assert page.fields(ACCEPT) == {"email": "ada@example.com"}
    refused = await anonymous.post(CONFIRM)
    assert (refused.status, refused.location) == (303, ACCEPT)
    waiting = await anonymous.follow(await anonymous.post(ACCEPT, page.fields(ACCEPT)))
    await console.messenger.confirm(waiting.deeplink, ADA)
    assert (await anonymous.submit(WAITING, CONFIRM)).location == "/console/projects"
    [developer] = await console.services.developers.list_developers()
    assert developer.messenger_id == ADA.messenger_id


async def test_yes_without_a_confirmation(console: Installation, anonymous: Browsing) -> None:
    """Saying yes without a confirmation, or in another browser than the one that started, links nobody."""
    code = await first(console)
    assert (await anonymous.post(CONFIRM)).location == ACCEPT
    await open_invitation(anonymous, code)
    assert (await anonymous.post(CONFIRM)).location == ACCEPT
    waiting = await anonymous.follow(await anonymous.submit(ACCEPT, ACCEPT, email="ada@example.com"))
    assert (await anonymous.post(CONFIRM)).location == ACCEPT
    await console.messenger.confirm(waiting.deeplink, ADA)
    assert (await (await console.browser()).post(CONFIRM)).location == ACCEPT
    assert await console.services.developers.list_developers() == []


async def test_head_changes_nothing(console: Installation, anonymous: Browsing) -> None:
    """A HEAD request neither uses up a confirmation nor ends a sign-in in progress."""
    waiting = await begin(console, anonymous)
    await console.messenger.confirm(waiting.deeplink, ADA)
    for path in (INVITE, ACCEPT, WAITING):
        answer = await anonymous.client.head(path)
        assert (answer.status_code, "set-cookie" in answer.headers) == (200, False), path
    assert (await anonymous.submit(WAITING, CONFIRM)).location == "/console/projects"


async def test_the_cookie_stays_small(console: Installation, anonymous: Browsing) -> None:
    """An invalid e-mail address of any length is not stored in the cookie; the longest valid names fit."""
    await open_invitation(anonymous, await first(console))
    shown = await anonymous.submit(ACCEPT, ACCEPT, email="x" * 10_000)
    assert (shown.status, "must be an e-mail address" in shown.alert) == (400, True)
    assert shown.fields(ACCEPT) == {"email": "x" * 10_000}
    assert len(anonymous.client.cookies["__Host-taproof_signin"]) < 500
    email = f"{'a' * 64}@{'b' * 185}.com"
    waiting = await anonymous.follow(await anonymous.submit(ACCEPT, ACCEPT, email=email))
    await console.messenger.confirm(waiting.deeplink, MessengerIdentity("9" * 20, "\U0001f600" * 129, "u" * 32))
    await anonymous.get(WAITING)
    assert len(anonymous.client.cookies["__Host-taproof_signin"]) < 4_000
    await anonymous.submit(WAITING, CONFIRM)
    assert [each.email for each in await console.services.developers.list_developers()] == [email]


# ---- what does not work out


@pytest.mark.parametrize("code", ["", "inv_wrong", "tap_" + "A" * 49, "inv_" + "A" * 49, "é\0", "<b>"])
async def test_no_such_invitation(anonymous: Browsing, code: str) -> None:
    """An invalid code is refused with advice."""
    shown = await anonymous.submit(INVITE, INVITE, code=code)
    assert shown.status == 404
    assert shown.alert.endswith("Ask for a new one.")


async def test_messenger_account_taken(console: Installation, anonymous: Browsing) -> None:
    """A messenger account that signs in another developer is not linked; another account works at once."""
    await take_up(console, await console.browser(), await first(console), ADA, email="ada@example.com")
    code = await invite(console)
    shown = await take_up(console, anonymous, code, ADA)
    assert shown.status == 400
    assert "use another account" in shown.alert
    waiting = await anonymous.follow(await anonymous.post(ACCEPT, shown.fields(ACCEPT)))
    await console.messenger.confirm(waiting.deeplink, GRACE)
    assert (await anonymous.submit(WAITING, CONFIRM)).location == "/console/projects"


async def test_cancelled(console: Installation, anonymous: Browsing) -> None:
    """After a cancellation in the messenger, the page shows the invitation again with the input."""
    waiting = await begin(console, anonymous)
    assert [link.get("href") for link in waiting.all(".//a[@class='button quiet']")] == [ACCEPT]
    await console.messenger.cancel(waiting.deeplink)
    shown = await anonymous.get(WAITING)
    assert shown.status == 400
    assert "You tapped Cancel" in shown.alert
    assert shown.fields(ACCEPT) == {"email": "ada@example.com"}
    again = await anonymous.follow(await anonymous.post(ACCEPT, shown.fields(ACCEPT)))
    await console.messenger.confirm(again.deeplink)
    assert (await anonymous.submit(WAITING, CONFIRM)).status == 303


async def test_a_sign_in_accepts_no_invitation(console: Installation, anonymous: Browsing) -> None:
    """A sign-in that starts after an invitation was opened does not affect the invitation."""
    code = await first(console)
    await open_invitation(anonymous, code)
    waiting = await anonymous.follow(await anonymous.submit("/console/sign-in", "/console/sign-in"))
    await console.messenger.confirm(waiting.deeplink)
    assert (await anonymous.get(WAITING)).status == 403
    assert dataclasses.astuple(await console.services.invitations.read_invitation(code))
    assert await console.services.developers.list_developers() == []


async def test_an_invitation_is_accepted_once(console: Installation, anonymous: Browsing) -> None:
    """A code works once, also for two visitors who are in the messenger with it at the same time."""
    code = await invite(console)
    second = await console.browser()
    await open_invitation(second, code)
    waiting = await second.follow(await second.submit(ACCEPT, ACCEPT))
    assert (await take_up(console, anonymous, code, GRACE)).status == 303
    assert (await anonymous.submit(INVITE, INVITE, code=code)).status == 404
    await console.messenger.confirm(waiting.deeplink, ADA)
    shown = await second.submit(WAITING, CONFIRM)
    assert shown.status == 404
    assert "it was used, was revoked or has expired" in shown.alert
    assert SESSION_COOKIE not in second.client.cookies
    assert len(await console.services.developers.list_developers()) == 1


async def test_not_the_first(console: Installation, anonymous: Browsing) -> None:
    """The link for the first developer is refused once there is one, and the page says whom to ask."""
    code = await first(console)
    await console.add_developer("ada@example.com")
    shown = await take_up(console, anonymous, code, email="eve@example.com")
    assert shown.status == 400
    assert shown.alert.endswith("Ask an owner for an invitation.")
    assert len(await console.services.developers.list_developers()) == 1


async def test_e_mail_address_taken(console: Installation, anonymous: Browsing) -> None:
    """If the invited address has become a developer's in the meantime, the page says how to sign in."""
    code = await invite(console)
    await console.add_developer("Grace@example.com")
    shown = await take_up(console, anonymous, code, GRACE)
    assert shown.status == 400
    assert "Sign in as that developer" in shown.alert
    assert SESSION_COOKIE not in anonymous.client.cookies


async def test_expired_invitation(console: Installation, anonymous: Browsing) -> None:
    """An invitation that expires while its page is open is refused, and starts nothing in the messenger."""
    code = await first(console)
    console.clock.now += DAY - MINUTE
    await open_invitation(anonymous, code)
    console.clock.now += MINUTE
    shown = await anonymous.post(ACCEPT, {"email": "ada@example.com"})
    assert shown.status == 404
    assert shown.alert.endswith("Ask for a new one.")
    assert (await anonymous.get(ACCEPT)).location == INVITE
