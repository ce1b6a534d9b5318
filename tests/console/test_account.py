"""The account page: the developer's details, the signed-in browsers, and every way to sign out."""

import pytest
from tests.console.browsing import Browsing
from tests.console.conftest import SESSION_COOKIE, Installation, Visitor
from tests.sign_ins import stored_sign_in

from taproof.console.account import browser_in_words
from taproof.core.accounts import AccessToken
from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity

ACCOUNT = "/console/account"


async def is_signed_in(browser: Browsing) -> bool:
    return (await browser.get(ACCOUNT)).status == 200


async def second_browser(console: Installation, visitor: Visitor, *, token: AccessToken | None = None) -> Visitor:
    """Sign the same developer in with another browser, a minute later."""
    console.clock.now += MINUTE
    browser = await console.browser()
    cookie = await console.services.console_sessions.create_console_session(
        visitor.developer,
        opened_with=token or await stored_sign_in(console.storage, console.clock.now),
        address="198.51.100.7",
        user_agent="Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Safari/604.1",
    )
    browser.client.cookies.set(SESSION_COOKIE, cookie, domain="console.example")
    return Visitor(browser.client, visitor.developer, console)


async def session_id(console: Installation, browser: Visitor) -> str:
    signed_in = await console.services.console_sessions.authenticate(browser.client.cookies[SESSION_COOKIE])
    assert signed_in is not None
    return signed_in.session.id


async def test_facts(console: Installation, visitor: Visitor, stranger: Visitor) -> None:
    """The page shows e-mail address, plan, role and the linked messenger account, with its name as text."""
    shown = await visitor.get(ACCOUNT)
    assert shown.heading == "Account"
    for fact in ("ada@example.com", "Business", "Owner", "You sign in with access tokens only"):
        assert fact in shown.text
    assert "Owner" not in (await stranger.get(ACCOUNT)).text
    invited = await console.services.invitations.invite_again(visitor.actor, visitor.developer)
    hostile = MessengerIdentity("1001", "<script>\u202eAda", "")
    developer = await console.services.invitations.accept_invitation(invited.code, hostile, address="192.0.2.9")
    bound = await (await console.sign_in(developer)).get(ACCOUNT)
    assert "<script>Ada, id 1001" in bound.text
    assert bound.all(".//main//script") == []


async def test_browsers(console: Installation, visitor: Visitor) -> None:
    """Each browser is listed with its name, address, times and means of sign-in; this one is marked."""
    token = await console.services.developers.create_access_token(visitor.actor, "laptop")
    await second_browser(console, visitor, token=token.token)
    newest, oldest = (await visitor.get(ACCOUNT)).rows()
    assert newest[:2] == ["Safari on iPhone", "198.51.100.7"]
    assert newest[4] == "Access token laptop"
    assert oldest[:2] == ["Another program This browser", "192.0.2.1"]
    assert oldest[4] == "Messenger"
    assert newest[2] != oldest[2]


async def test_another_browser_is_signed_out(console: Installation, visitor: Visitor) -> None:
    """The form beside a browser signs out that browser and no other."""
    other = await second_browser(console, visitor)
    shown = await visitor.submit(ACCOUNT, f"{ACCOUNT}/sessions/{await session_id(console, other)}/end")
    assert (await visitor.follow(shown)).texts(".//p[@role='status']") == ["The browser is signed out."]
    assert not await is_signed_in(other)
    assert await is_signed_in(visitor)


async def test_signing_out(console: Installation, visitor: Visitor) -> None:
    """Signing out ends the session on the server, deletes the cookie, and is confirmed on the sign-in page."""
    cookie = visitor.client.cookies[SESSION_COOKIE]
    other = await second_browser(console, visitor)
    shown = await visitor.submit(ACCOUNT, "/console/sign-out")
    assert shown.location == "/console/sign-in"
    assert SESSION_COOKIE not in visitor.client.cookies
    assert (await visitor.follow(shown)).texts(".//p[@role='status']") == ["You are signed out."]
    replayed = await console.browser()
    replayed.client.cookies.set(SESSION_COOKIE, cookie)
    assert not await is_signed_in(replayed)
    assert await is_signed_in(other)
    again = await visitor.post("/console/sign-out")
    assert (again.status, again.location) == (303, "/console/sign-in")


async def test_signing_out_everywhere(console: Installation, visitor: Visitor, stranger: Visitor) -> None:
    """Signing out everywhere ends every session of this developer only; access tokens still work."""
    token = await console.services.developers.create_access_token(visitor.actor, "laptop")
    browsers = [await second_browser(console, visitor), visitor]
    browsers.append(await second_browser(console, visitor, token=token.token))
    shown = await visitor.submit(ACCOUNT, "/console/sign-out-everywhere")
    assert shown.location == "/console/sign-in"
    notice = "You are signed out everywhere (3 browsers). Access tokens still work."
    assert (await visitor.follow(shown)).texts(".//p[@role='status']") == [notice]
    assert [await is_signed_in(each) for each in browsers] == [False] * 3
    assert await is_signed_in(stranger)
    await console.services.developers.authenticate(token.plaintext)


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/138.0 Safari/537.36",
            "Chrome on Windows",
        ),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/138.0 Safari/537.36 Edg/138.0", "Edge on Windows"),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/138.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) CriOS/138.0 Safari/604.1", "Chrome on iPhone"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18.5 Safari/605.1.15", "Safari on macOS"),
        ("curl/8.9", "Another program"),
        ("<script>", "Another program"),
        ("", "Another program"),
    ],
)
def test_browsers_in_words(user_agent: str, words: str) -> None:
    """A browser is shown by a common name, never by the text that it sent."""
    assert browser_in_words(user_agent) == words


async def test_the_command_to_paste_is_quoted(console: Installation) -> None:
    """An e-mail address with shell syntax is quoted in the command that the page shows."""
    visitor = await console.sign_in(await console.add_developer("$(id)@x.example"))
    command = "taproof developers invite '$(id)@x.example' --base-url https://console.example"
    assert (await visitor.get(ACCOUNT)).texts(".//main//code") == [command]


async def test_it_is_in_the_log(console: Installation, visitor: Visitor) -> None:
    """The audit log records every sign-out with the session that did it and its address."""
    other = await second_browser(console, visitor)
    other_id, own_id = await session_id(console, other), await session_id(console, visitor)
    await visitor.post(f"{ACCOUNT}/sessions/{other_id}/end")
    await visitor.post("/console/sign-out-everywhere")
    again = await console.sign_in(visitor.developer)
    await again.post("/console/sign-out")
    found = {entry.action: entry for entry in await visitor.log()}
    revoked, everywhere = found["console.session_revoked"], found["console.signed_out_everywhere"]
    assert (revoked.subject, revoked.via, revoked.via_id, revoked.address) == (other_id, "console", own_id, "127.0.0.1")
    assert (everywhere.via_id, everywhere.address) == (own_id, "127.0.0.1")
    assert found["console.signed_out"].subject not in {other_id, own_id}
