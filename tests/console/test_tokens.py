"""Access tokens: made and shown once, listed without their text, revoked at once."""

import pytest
from tests.console.browsing import Browsing, Shown
from tests.console.conftest import SESSION_COOKIE, Installation, Visitor
from tests.web.conftest import START

from taproof.core.accounts import AccessToken
from taproof.core.clock import DAY
from taproof.core.errors import InvalidAccessToken
from taproof.service import developers

TOKENS = "/console/tokens"
"""The test's clock begins at 11:06:40 UTC on this day."""
TODAY, TOMORROW = "2026-11-18", "2026-11-19"


def plaintext(shown: Shown) -> str:
    [text] = shown.texts(".//code[@class='secret']")
    return text


async def make(visitor: Visitor, **typed: str) -> Shown:
    """Make a token through the form and return the page that shows it."""
    return await visitor.follow(await visitor.submit(TOKENS, TOKENS, **typed))


async def only_token(console: Installation, visitor: Visitor) -> AccessToken:
    [token] = await console.services.developers.list_access_tokens(visitor.developer.id)
    return token


async def test_made_and_shown_once(console: Installation, visitor: Visitor) -> None:
    """A new token is shown once, works, and is in no address or readable header."""
    sent = await visitor.submit(TOKENS, TOKENS, name="deploy script")
    shown = await visitor.follow(sent)
    token = plaintext(shown)
    _, developer = await console.services.developers.authenticate(token)
    assert developer.id == visitor.developer.id
    headers = str(sent.response.headers.multi_items()) + str(shown.response.headers.multi_items())
    assert token not in headers + sent.html + sent.location
    again = await visitor.get(TOKENS)
    assert token not in again.html
    assert "deploy script" in again.text


async def test_too_many(console: Installation, visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has as many as there may be is told to revoke some, and what they typed stays."""
    monkeypatch.setattr(developers, "ACCESS_TOKEN_LIMIT", 1)
    await make(visitor, name="laptop")
    shown = await visitor.submit(TOKENS, TOKENS, name="deploy script")
    assert shown.status == 400
    [error] = shown.texts(".//p[@role='alert']")
    assert "Revoke some" in error
    assert [field.get("value") for field in shown.all(".//input[@name='name']")] == ["deploy script"]
    assert (await only_token(console, visitor)).name == "laptop"


@pytest.mark.parametrize(
    ("typed", "expires_at"),
    [
        ({"expiry": "never"}, None),
        ({"expiry": "7"}, START + 7 * DAY),
        ({"expiry": "30", "date": "nonsense"}, START + 30 * DAY),
        ({"expiry": "90"}, START + 90 * DAY),
        ({}, START + 90 * DAY),
        ({"expiry": "date", "date": TODAY}, START - START % DAY + DAY),
        ({"expiry": "date", "date": TOMORROW}, START - START % DAY + 2 * DAY),
        ({"expiry": "date", "date": "2036-11-14"}, START - START % DAY + 3650 * DAY),
    ],
)
async def test_expiry(console: Installation, visitor: Visitor, typed: dict[str, str], expires_at: int | None) -> None:
    """A token is valid for as long as was chosen; to the end of a day, in UTC, when that was."""
    shown = await make(visitor, name="laptop", **typed)
    assert (await only_token(console, visitor)).expires_at == expires_at
    [[*_, expires, _]] = shown.rows()
    assert (expires == "Never") == (expires_at is None)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"name": ""}, "name must have"),
        ({"name": "x" * 101}, "name must have"),
        ({"name": "\u202e"}, "visible"),
        ({"name": "laptop", "expiry": "date", "date": ""}, "Say until which day"),
        ({"name": "laptop", "expiry": "date", "date": "2027-02-30"}, "Say until which day"),
        ({"name": "laptop", "expiry": "date", "date": "<script>"}, "Say until which day"),
        ({"name": "laptop", "expiry": "date", "date": "2026-11-17"}, "within ten years"),
        ({"name": "laptop", "expiry": "date", "date": "0001-01-01"}, "within ten years"),
        ({"name": "laptop", "expiry": "date", "date": "2036-11-15"}, "within ten years"),
        ({"name": "laptop", "expiry": "date", "date": "9999-12-31"}, "within ten years"),
        ({"name": "laptop", "expiry": "31"}, "Choose from the list"),
    ],
)
async def test_wrong_input(console: Installation, visitor: Visitor, typed: dict[str, str], sentence: str) -> None:
    """A mistake is named above the form, which keeps what was typed, and nothing is made."""
    shown = await visitor.submit(TOKENS, TOKENS, **typed)
    assert shown.status == 400
    assert sentence in shown.texts(".//p[@role='alert']")[0]
    assert shown.fields(TOKENS)["name"] == typed["name"]
    assert await console.services.developers.list_access_tokens(visitor.developer.id) == []


async def test_list(console: Installation, visitor: Visitor) -> None:
    """A token is listed with its name as text, its preview, its use and its end, and once over it says so."""
    token = plaintext(await make(visitor, name="<b>laptop</b>", expiry="7"))
    [[name, preview, _, used, expires, _]] = (await visitor.get(TOKENS)).rows()
    assert (name, preview, used) == ("<b>laptop</b>", f"{token[:8]}…{token[-4:]}", "Never")
    assert expires == "2026-11-25 11:06:40 UTC"
    await console.services.developers.authenticate(token)
    console.clock.now += 7 * DAY
    [[*_, used, expires, _]] = (await (await console.sign_in(visitor.developer)).get(TOKENS)).rows()
    assert (used, expires) == ("2026-11-18 11:06:40 UTC", "2026-11-25 11:06:40 UTC Expired")


async def test_revoking(console: Installation, visitor: Visitor) -> None:
    """Revoking asks first without any script, says what breaks, and ends the token at once."""
    token = plaintext(await make(visitor, name="laptop"))
    path = f"{TOKENS}/{(await only_token(console, visitor)).id}/revoke"
    page = await visitor.get(TOKENS)
    [details] = page.all(".//details")
    assert details.get("open") is None
    assert details.find(f".//form[@action='{path}']") is not None
    assert "get the answer 401" in "".join(details.itertext())
    shown = await visitor.follow(await visitor.submit(TOKENS, path))
    assert shown.texts(".//p[@role='status']") == ["The access token is revoked."]
    with pytest.raises(InvalidAccessToken):
        await console.services.developers.authenticate(token)
    assert (await visitor.post(path)).status == 404


async def test_tokens_of_others(console: Installation, visitor: Visitor, stranger: Visitor) -> None:
    """Nobody sees or revokes a token of another developer, an owner neither; made-up ids are answered alike."""
    token = plaintext(await make(stranger, name="private"))
    foreign = await only_token(console, stranger)
    assert "private" not in (await visitor.get(TOKENS)).text
    answers = {
        (shown.status, shown.text)
        for shown in [await visitor.post(f"{TOKENS}/{each}/revoke") for each in (foreign.id, "tok_x", "%00", "é")]
    }
    assert len(answers) == 1
    assert answers.pop()[0] == 404
    await console.services.developers.authenticate(token)


async def test_revoking_the_token_that_one_came_in_with(console: Installation, anonymous: Browsing) -> None:
    """Who revokes the token that they signed in with is told beforehand, and is signed out with a word why."""
    developer = await console.add_developer("ada@example.com")
    visitor = await console.sign_in(developer)
    token = plaintext(await make(visitor, name="laptop"))
    await anonymous.submit("/console/sign-in", "/console/sign-in/token", access_token=token)
    path = f"{TOKENS}/{(await only_token(console, visitor)).id}/revoke"
    assert "this one too" in (await anonymous.get(TOKENS)).text
    assert "this one too" not in (await visitor.get(TOKENS)).text
    shown = await anonymous.submit(TOKENS, path)
    assert shown.location == "/console/sign-in"
    assert SESSION_COOKIE not in anonymous.client.cookies
    notice = "The access token is revoked. You had signed in with it."
    assert (await anonymous.follow(shown)).texts(".//p[@role='status']") == [notice]
    assert (await visitor.get(TOKENS)).status == 200


@pytest.mark.parametrize("expiry", ["never", "90", "30"])
async def test_a_token_made_with_a_token_ends_with_it(console: Installation, anonymous: Browsing, expiry: str) -> None:
    """Who came in with an access token cannot stay longer than that by making another one, and is told so."""
    visitor = await console.sign_in(await console.add_developer("ada@example.com"))
    first = plaintext(await make(visitor, name="leaked", expiry="7"))
    await anonymous.submit("/console/sign-in", "/console/sign-in/token", access_token=first)
    console.clock.now += DAY
    await anonymous.submit("/console/sign-in", "/console/sign-in/token", access_token=first)
    shown = await anonymous.follow(await anonymous.submit(TOKENS, TOKENS, name="another", expiry=expiry))
    assert "together with the one that you signed in with" in shown.texts(".//p[@role='status']")[0]
    tokens = await console.services.developers.list_access_tokens(visitor.developer.id)
    assert {token.expires_at for token in tokens} == {START + 7 * DAY}


async def test_a_token_made_with_a_token_may_end_sooner(console: Installation, anonymous: Browsing) -> None:
    """What was chosen is kept where it is no longer than the token that one came in with, or that one never ends."""
    visitor = await console.sign_in(await console.add_developer("ada@example.com"))
    for name, given, chosen in (("a", "90", "7"), ("b", "never", "30")):
        token = plaintext(await make(visitor, name=name, expiry=given))
        browser = await console.browser()
        await browser.submit("/console/sign-in", "/console/sign-in/token", access_token=token)
        await browser.submit(TOKENS, TOKENS, name=f"{name} more", expiry=chosen)
    tokens = await console.services.developers.list_access_tokens(visitor.developer.id)
    ends = {token.name: token.expires_at for token in tokens}
    assert (ends["a more"], ends["b more"]) == (START + 7 * DAY, START + 30 * DAY)
