"""Signing in with the messenger and with an access token, and refused attempts."""

import asyncio
from typing import Any

import pytest
from tests.console.browsing import Browsing
from tests.console.conftest import ADA, SESSION_COOKIE, Installation, Visitor

from taproof.console.access import safe_next
from taproof.core.accounts import Actor, Developer
from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges

SIGN_IN = "/console/sign-in"
WAITING = "/console/sign-in/waiting"
STATE = "/console/sign-in/state"
SIGN_IN_COOKIE = "__Host-taproof_signin"


async def bind(console: Installation, developer: Developer, identity: MessengerIdentity = ADA) -> None:
    """Link a messenger account to a developer, as the operator's invitation does."""
    invited = await console.services.invitations.invite_again(Actor(developer, "command_line"), developer)
    await console.services.invitations.accept_invitation(invited.code, identity, address="192.0.2.9")


async def start(browser: Browsing, path: str = SIGN_IN) -> str:
    """Start a sign-in with the messenger and return the deeplink that the waiting page shows."""
    shown = await browser.submit(path, SIGN_IN)
    assert shown.location == WAITING
    return (await browser.follow(shown)).deeplink


async def new_token(console: Installation, developer: Developer, *, expires_at: int | None = None) -> tuple[str, str]:
    """Return the id and the plaintext of another access token."""
    actor = Actor(developer, "command_line")
    created = await console.services.developers.create_access_token(actor, "laptop", expires_at=expires_at)
    return created.token.id, created.plaintext


async def is_signed_in(browser: Browsing) -> bool:
    return (await browser.get("/console/account")).status == 200


def session_cookie(browser: Browsing) -> str | None:
    return browser.client.cookies.get(SESSION_COOKIE)


# ---- with the messenger


async def test_the_whole_way(console: Installation, anonymous: Browsing) -> None:
    """After the confirmation, the waiting page signs the visitor in and opens the page that they asked for."""
    await bind(console, await console.add_developer("ada@example.com"))
    asked = await anonymous.get("/console/tokens")
    link = await start(anonymous, asked.location)
    assert (await anonymous.get(STATE)).response.json() == {"status": "pending"}
    await console.messenger.confirm(link)
    assert (await anonymous.get(STATE)).response.json() == {"status": "confirmed"}
    shown = await anonymous.get(WAITING)
    assert (shown.status, shown.location) == (303, "/console/tokens")
    assert (await anonymous.follow(shown)).heading == "Access tokens"
    assert SIGN_IN_COOKIE not in anonymous.client.cookies


async def test_waiting_page(console: Installation, anonymous: Browsing) -> None:
    """The waiting page has the link, its QR code, the line to paste and the time left, and needs no script."""
    shown = await anonymous.follow(await anonymous.submit(SIGN_IN, SIGN_IN))
    link = shown.one(".//a[@target='_blank']")
    assert link.get("rel") == "noopener"
    assert link.get("href", "").startswith("https://t.me/test_bot?start=")
    token = link.get("href", "").partition("?start=")[2]
    assert shown.texts(".//code") == [f"/start {token}"]
    assert len(shown.all(".//svg")) == 1
    assert shown.one(".//noscript/meta").get("http-equiv") == "refresh"
    assert shown.texts(".//span[@id='waiting-left']") == ["about 10 min"]
    console.clock.now += 8 * MINUTE + 1
    later = await anonymous.get(WAITING)
    assert later.texts(".//span[@id='waiting-left']") == ["about 2 min"]
    assert 0 < int(later.one(".//section[@id='waiting']").get("data-left", "")) < 2 * MINUTE


async def test_waiting_ends_with_the_decision(console: Installation, anonymous: Browsing) -> None:
    """A waiting call of the script is answered at the decision, not at the end of its time."""
    link = await start(anonymous)
    asked = asyncio.create_task(anonymous.get(STATE, wait="25"))
    while not console.messenger.signin.waiting.count:  # noqa: ASYNC110 — it is a count, and tells nobody.
        await asyncio.sleep(0)
    await console.messenger.cancel(link)
    assert (await asked).response.json() == {"status": "cancelled"}


async def test_waiting_is_bounded(anonymous: Browsing) -> None:
    """A call waits for 25 seconds at most; any other value is refused."""
    await start(anonymous)
    for wait in ("26", "-1", "x", "1.5", "1e1", "٣", "1" * 5000):
        assert (await anonymous.get(STATE, wait=wait)).status == 400, wait


async def test_nobody_has_the_account(console: Installation, anonymous: Browsing) -> None:
    """A messenger account without a developer is not signed in; the page names it as text and says whom to ask."""
    await bind(console, await console.add_developer("ada@example.com"))
    await console.messenger.confirm(await start(anonymous), MessengerIdentity("77", "<b>Eve</b>\u202e", ""))
    shown = await anonymous.get(WAITING)
    assert shown.status == 403
    assert "\u2068<b>Eve</b>\u2069" in shown.text
    assert "taproof developers invite EMAIL" in shown.text
    assert not await is_signed_in(anonymous)
    assert (await anonymous.submit(SIGN_IN, SIGN_IN)).location == WAITING


async def test_cancelled(console: Installation, anonymous: Browsing) -> None:
    """After a cancellation the page says so; its button starts again and keeps the next page."""
    link = await start(anonymous, f"{SIGN_IN}?next=/console/audit")
    await console.messenger.cancel(link)
    shown = await anonymous.get(WAITING)
    assert shown.status == 400
    assert "You tapped Cancel" in shown.alert
    assert shown.fields(SIGN_IN) == {"next": "/console/audit"}
    assert not await is_signed_in(anonymous)


async def test_finished_once(console: Installation, anonymous: Browsing) -> None:
    """One sign-in opens one console session, even if several tabs load the waiting page."""
    developer = await console.add_developer("ada@example.com")
    await bind(console, developer)
    await console.messenger.confirm(await start(anonymous))
    kept = anonymous.client.cookies[SIGN_IN_COOKIE]
    shown = [await anonymous.get(WAITING) for _ in range(2)]
    assert [(each.status, each.location) for each in shown] == [(303, "/console/projects")] * 2
    assert len(await console.services.console_sessions.list_console_sessions(developer)) == 1
    replayed = await console.browser()
    replayed.client.cookies.set(SIGN_IN_COOKIE, kept)
    assert "already used" in (await replayed.get(WAITING)).texts(".//p[@role='alert']")[0]
    assert not await is_signed_in(replayed)


async def test_head_finishes_nothing(console: Installation, anonymous: Browsing) -> None:
    """A HEAD request for the waiting page signs nobody in and does not use up the confirmation."""
    await bind(console, developer := await console.add_developer("ada@example.com"))
    await console.messenger.confirm(await start(anonymous))
    for path in (WAITING, SIGN_IN, STATE):
        answer = await anonymous.client.head(path)
        assert (answer.status_code, "set-cookie" in answer.headers) == (200, False), path
    assert await console.services.console_sessions.list_console_sessions(developer) == []
    assert (await anonymous.get(WAITING)).location == "/console/projects"


async def test_only_the_browser_that_started_it(console: Installation, anonymous: Browsing) -> None:
    """A stranger who knows the link, as from a photograph of the QR code, sees nothing and is not signed in."""
    await bind(console, await console.add_developer("ada@example.com"))
    link = await start(anonymous)
    await console.messenger.confirm(link)
    for stolen in (link, link.partition("?start=")[2], "", "AAAA", "é"):
        thief = await console.browser()
        headers = {b"Cookie": f"{SIGN_IN_COOKIE}={stolen}".encode()}
        answer = await thief.client.get(WAITING, headers=headers)
        assert (answer.status_code, "set-cookie" in answer.headers) == (400, False)
        assert (await thief.client.get(STATE, headers=headers)).json() == {"status": "expired"}
    assert (await anonymous.get(WAITING)).status == 303


async def test_altered_cookie(console: Installation, visitor: Visitor, anonymous: Browsing) -> None:
    """An encrypted cookie that was altered, or that has another purpose, cannot be read."""
    await visitor.post("/console/sign-out")
    await bind(console, visitor.developer)
    await console.messenger.confirm(await start(anonymous))
    kept = anonymous.client.cookies[SIGN_IN_COOKIE]
    for place in range(0, len(kept), 7):
        other = "A" if kept[place] != "A" else "B"
        altered = await console.browser()
        altered.client.cookies.set(SIGN_IN_COOKIE, kept[:place] + other + kept[place + 1 :])
        assert (await altered.get(WAITING)).status == 400, place
    moved = await console.browser()
    moved.client.cookies.set(SIGN_IN_COOKIE, visitor.client.cookies["__Host-taproof_flash"])
    assert (await moved.get(WAITING)).status == 400
    assert (await anonymous.get(WAITING)).status == 303


async def test_the_cookie_ends(console: Installation, anonymous: Browsing) -> None:
    """A sign-in's cookie is valid for eleven minutes, even in a browser that keeps it longer."""
    await start(anonymous)
    console.clock.now += 11 * MINUTE
    shown = await anonymous.get(WAITING)
    assert "no sign-in in progress" in shown.alert


async def test_messenger_unavailable(console: Installation, anonymous: Browsing) -> None:
    """Without the messenger, the page says so, and an access token still works."""
    console.bot_father.is_away = True
    _, token = await new_token(console, await console.add_developer("ada@example.com"))
    shown = await anonymous.submit(SIGN_IN, SIGN_IN)
    assert (shown.status, shown.response.headers["retry-after"]) == (503, "1")
    sentence = shown.alert
    assert "The messenger cannot be reached" in sentence
    assert sentence.endswith("with: taproof doctor")
    answer = await anonymous.post(f"{SIGN_IN}/token", shown.fields(f"{SIGN_IN}/token") | {"access_token": token})
    assert answer.status == 303
    assert await is_signed_in(anonymous)


# ---- with an access token


async def test_access_token(console: Installation, anonymous: Browsing) -> None:
    """An access token signs in, and no answer contains it."""
    token_id, token = await new_token(console, developer := await console.add_developer("ada@example.com"))
    path = f"{SIGN_IN}?next=/console/audit"
    shown = await anonymous.submit(path, f"{SIGN_IN}/token", access_token=f" {token} ")
    assert shown.location == "/console/audit"
    assert token not in shown.html + str(shown.response.headers)
    [session] = await console.services.console_sessions.list_console_sessions(developer)
    assert session.access_token_id == token_id


async def test_wrong_access_token(console: Installation, anonymous: Browsing) -> None:
    """Every invalid token gets 401 and the same sentence, and is not shown again."""
    developer = await console.add_developer("ada@example.com")
    _, expired = await new_token(console, developer, expires_at=console.clock.now + 1)
    console.clock.now += 1
    project, secrets = await console.services.projects.create_project(
        Actor(developer, "command_line"), ProjectChanges(name="Shop")
    )
    sentences = set()
    for wrong in (expired, secrets.secret_key, project.id, "tap_wrong", "", "é\0"):
        shown = await anonymous.submit(SIGN_IN, f"{SIGN_IN}/token", access_token=wrong)
        assert shown.status == 401
        assert wrong not in shown.html or not wrong
        sentences.update(shown.texts(".//p[@role='alert']"))
    assert len(sentences) == 1
    assert not await is_signed_in(anonymous)
    field = (await anonymous.get(SIGN_IN)).one(".//input[@name='access_token']")
    assert (field.get("type"), field.get("autocomplete"), field.get("value")) == ("password", "off", None)


# ---- where it leads


ELSEWHERE = [
    *("https://evil.example/console/projects", "//evil.example/console/", "/\\evil.example", "/console/\\evil.example"),
    *("\\\\evil.example", "/console/\n//evil.example", "\t//evil.example", "javascript:alert(1)", "//[", ""),
    *("console/projects", "/docs", "/console/é", "/console/sign-in", "/console/sign-in/waiting"),
    "/console/" + "a" * 500,
]


async def test_next_stays_in_the_console(console: Installation, anonymous: Browsing) -> None:
    """`next` leads to a page of the console; any other value is ignored, in every way to sign in."""
    assert {each: safe_next(each) for each in ELSEWHERE} == dict.fromkeys(ELSEWHERE, "/console/projects")
    _, token = await new_token(console, await console.add_developer("ada@example.com"))
    assert (await anonymous.get(SIGN_IN, next="//evil.example")).fields(SIGN_IN) == {"next": "/console/projects"}
    sent = {"access_token": token, "next": "//evil.example"}
    assert (await anonymous.post(f"{SIGN_IN}/token", sent)).location == "/console/projects"
    assert (await anonymous.get(SIGN_IN, next="//evil.example")).location == "/console/projects"


async def test_already_signed_in(visitor: Visitor) -> None:
    """A visitor who is already signed in is redirected and starts no other session."""
    assert (await visitor.get(SIGN_IN, next="/console/audit")).location == "/console/audit"
    before = session_cookie(visitor)
    for path in (SIGN_IN, f"{SIGN_IN}/token"):
        shown = await visitor.post(path, {"next": "/console/tokens", "access_token": "tap_wrong"})
        assert (shown.status, shown.location) == (303, "/console/tokens")
    assert (await visitor.get(WAITING)).location == "/console/projects"
    assert session_cookie(visitor) == before


async def test_reported_while_it_signs_in(
    console: Installation, anonymous: Browsing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report between the confirmation and the session prevents the sign-in; the page says why."""
    await bind(console, ada := await console.add_developer("ada@example.com"))
    link = await start(anonymous, f"{SIGN_IN}?next=/console/audit")
    await console.messenger.confirm(link)
    store = console.storage.credentials.create_console_session

    async def interrupted(*what: Any, **more: Any) -> None:
        await console.messenger.report(link)
        await store(*what, **more)

    monkeypatch.setattr(console.storage.credentials, "create_console_session", interrupted)
    shown = await anonymous.get(WAITING)
    assert shown.status == 403
    assert "send /unblock to the bot" in shown.alert
    assert shown.fields(SIGN_IN) == {"next": "/console/audit"}
    assert await console.services.console_sessions.list_console_sessions(ada) == []
    assert (session_cookie(anonymous), SIGN_IN_COOKIE in anonymous.client.cookies) == (None, False)


async def test_expired(console: Installation, anonymous: Browsing) -> None:
    """After ten minutes without a decision the page says so, and so does the script's call."""
    await start(anonymous)
    console.clock.now += 10 * MINUTE
    assert (await anonymous.get(STATE, wait="25")).response.json() == {"status": "expired"}
    shown = await anonymous.get(WAITING)
    assert "expired after ten minutes" in shown.alert
    assert shown.form(SIGN_IN) is not None
