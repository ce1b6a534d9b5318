"""Access tokens: created and shown once, listed without their text, revoked at once."""

import pytest
from tests.api.conftest import START
from tests.console.browsing import Browsing, Shown
from tests.console.conftest import SESSION_COOKIE, Installation, Visitor

from taproof.core.accounts import AccessToken
from taproof.core.clock import DAY
from taproof.core.errors import InvalidAccessToken
from taproof.core.oidc.clients import ClientChanges

TOKENS = "/console/tokens"
"""The test's clock begins at 11:06:40 UTC on this day."""
TODAY, TOMORROW = "2026-11-18", "2026-11-19"


def plaintext(shown: Shown) -> str:
    [text] = shown.texts(".//code[@class='secret']")
    return text


async def make(visitor: Visitor, **typed: str) -> Shown:
    """Create a token through the form and return the page that shows it."""
    return await visitor.follow(await visitor.submit(TOKENS, TOKENS, **typed))


async def only_token(console: Installation, visitor: Visitor) -> AccessToken:
    [token] = await console.services.developers.list_access_tokens(visitor.developer.id)
    return token


async def test_created_and_shown_once(console: Installation, visitor: Visitor) -> None:
    """A new token is shown once and works; it is in no address or readable header."""
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
    """A token is valid for the chosen time; a date is valid to its end, in UTC."""
    shown = await make(visitor, name="laptop", **typed)
    assert (await only_token(console, visitor)).expires_at == expires_at
    [[*_, expires, _]] = shown.rows()
    assert (expires == "Never") == (expires_at is None)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"name": ""}, "name must have"),
        ({"name": "laptop", "expiry": "date", "date": ""}, "Enter the last day"),
        ({"name": "laptop", "expiry": "date", "date": "2027-02-30"}, "Enter the last day"),
        ({"name": "laptop", "expiry": "date", "date": "2026-11-17"}, "ten years from now"),
        ({"name": "laptop", "expiry": "date", "date": "2036-11-15"}, "ten years from now"),
        ({"name": "laptop", "expiry": "31"}, "Choose how long"),
    ],
)
async def test_wrong_input(console: Installation, visitor: Visitor, typed: dict[str, str], sentence: str) -> None:
    """A mistake is shown above the form, which keeps the input, and no token is created."""
    shown = await visitor.submit(TOKENS, TOKENS, **typed)
    assert shown.status == 400
    assert sentence in shown.alert
    assert shown.fields(TOKENS)["name"] == typed["name"]
    assert await console.services.developers.list_access_tokens(visitor.developer.id) == []


async def test_list(console: Installation, visitor: Visitor) -> None:
    """A token is listed with its name as text, its preview, last use and expiry, and is marked once expired."""
    token = plaintext(await make(visitor, name="<b>laptop</b>", expiry="7"))
    [[name, preview, scopes, _, used, expires, _]] = (await visitor.get(TOKENS)).rows()
    assert (name, preview, scopes, used) == (
        "<b>laptop</b>",
        f"{token[:8]}…{token[-4:]}",
        "read, write",
        "Never",
    )
    assert expires == "in 7 days"
    await console.services.developers.authenticate(token)
    console.clock.now += 7 * DAY
    [[*_, used, expires, _]] = (await (await console.sign_in(visitor.developer)).get(TOKENS)).rows()
    assert (used, expires) == ("7 days ago", "now Expired")


async def test_revoking(console: Installation, visitor: Visitor) -> None:
    """Revoking asks first, without JavaScript, names the effects, and ends the token at once."""
    token = plaintext(await make(visitor, name="laptop"))
    path = f"{TOKENS}/{(await only_token(console, visitor)).id}/revoke"
    page = await visitor.get(TOKENS)
    [details] = page.all(".//details")
    assert details.get("open") is None
    assert details.find(f".//form[@action='{path}']") is not None
    assert "will fail with 401" in "".join(details.itertext())
    shown = await visitor.follow(await visitor.submit(TOKENS, path))
    assert shown.texts(".//p[@role='status']") == ["Access token revoked."]
    with pytest.raises(InvalidAccessToken):
        await console.services.developers.authenticate(token)
    assert (await visitor.post(path)).status == 404


async def test_revoking_the_token_of_the_own_session(console: Installation, anonymous: Browsing) -> None:
    """Revoking the token of the own session is announced, and signs the visitor out with a notice."""
    developer = await console.add_developer("ada@example.com")
    visitor = await console.sign_in(developer)
    token = plaintext(await make(visitor, name="laptop"))
    await anonymous.submit("/console/sign-in", "/console/sign-in/token", access_token=token)
    path = f"{TOKENS}/{(await only_token(console, visitor)).id}/revoke"
    assert "including this one" in (await anonymous.get(TOKENS)).text
    assert "including this one" not in (await visitor.get(TOKENS)).text
    shown = await anonymous.submit(TOKENS, path)
    assert shown.location == "/console/sign-in"
    assert SESSION_COOKIE not in anonymous.client.cookies
    notice = "Access token revoked. You had signed in with it, so you are signed out."
    assert (await anonymous.follow(shown)).texts(".//p[@role='status']") == [notice]
    assert (await visitor.get(TOKENS)).status == 200


async def test_a_token_created_with_a_token_ends_with_it(console: Installation, anonymous: Browsing) -> None:
    """A session from an access token cannot create a token that lives longer, and the page says so."""
    visitor = await console.sign_in(await console.add_developer("ada@example.com"))
    first = plaintext(await make(visitor, name="leaked", expiry="7", scope_tokens="on"))
    await anonymous.submit("/console/sign-in", "/console/sign-in/token", access_token=first)
    console.clock.now += DAY
    await anonymous.submit("/console/sign-in", "/console/sign-in/token", access_token=first)
    shown = await anonymous.follow(await anonymous.submit(TOKENS, TOKENS, name="another", expiry="90"))
    assert "at the same time as the token that you signed in with" in shown.texts(".//p[@role='status']")[0]
    tokens = await console.services.developers.list_access_tokens(visitor.developer.id)
    assert {token.expires_at for token in tokens} == {START + 7 * DAY}


async def came_in(console: Installation, visitor: Visitor, **scopes: str) -> Browsing:
    """Return a browser that is signed in with a new token of the visitor."""
    token = plaintext(await make(visitor, name="leaked", **scopes))
    browser = await console.browser()
    await browser.submit("/console/sign-in", "/console/sign-in/token", access_token=token)
    return browser


async def test_scopes(console: Installation, visitor: Visitor) -> None:
    """A token has the checked scopes; at least one is required, and a refused form keeps the boxes."""
    await make(visitor, name="laptop", scope_write="", scope_tokens="on")
    assert (await only_token(console, visitor)).scopes == ("read", "tokens")
    [[_, _, scopes, *_]] = (await visitor.get(TOKENS)).rows()
    assert scopes == "read, tokens"
    shown = await visitor.submit(TOKENS, TOKENS, name="none", scope_read="", scope_write="")
    assert shown.status == 400
    assert shown.alert == "Choose at least one scope."
    assert not shown.fields(TOKENS).keys() & {"scope_read", "scope_write", "scope_tokens"}
    await only_token(console, visitor)


async def test_a_session_offers_the_scopes_that_it_has(console: Installation, visitor: Visitor) -> None:
    """The form has no box for a scope that the session lacks; a form that sends it is refused."""
    browser = await came_in(console, visitor, scope_write="", scope_tokens="on")
    assert {"scope_read", "scope_tokens"} <= {box.get("name") for box in (await browser.get(TOKENS)).all(".//input")}
    assert (await browser.get(TOKENS)).all(".//input[@name='scope_write']") == []
    shown = await browser.post(TOKENS, {"name": "more", "expiry": "7", "scope_read": "on", "scope_write": "on"})
    assert shown.status == 400
    assert "scopes cannot include write" in shown.alert
    assert (await only_token(console, visitor)).name == "leaked"


async def test_a_session_without_the_scope_tokens(console: Installation, visitor: Visitor) -> None:
    """A session without the scope sees a sentence instead of the form, and can revoke only its own token."""
    await make(visitor, name="mine")
    [mine] = await console.services.developers.list_access_tokens(visitor.developer.id)
    browser = await came_in(console, visitor)
    shown = await browser.get(TOKENS)
    assert shown.all(f".//form[@action='{TOKENS}']") == []
    assert "does not have the scope tokens" in shown.text
    assert len(shown.all(".//details")) == 1
    for path, sent in (
        (TOKENS, {"name": "more", "expiry": "7", "scope_read": "on"}),
        (f"{TOKENS}/{mine.id}/revoke", {}),
    ):
        refused = await browser.post(path, sent)
        assert refused.status == 403
        assert "This needs the scope tokens" in refused.text
    tokens = await console.services.developers.list_access_tokens(visitor.developer.id)
    assert {token.name for token in tokens} == {"leaked", "mine"}


CLIENT = {"auth_method": "basic", "signing_alg": "RS256", "email": "none", "id_token_lifetime": "3600"}
CLIENT |= {"authorization_code": "on"}


async def test_a_session_that_may_only_read(console: Installation, visitor: Visitor) -> None:
    """Without the scope `write`, every form except signing out is refused with a page that names the scope."""
    project, _ = await visitor.create_project("Shop", webhook_url="https://example.com/")
    client, _ = await console.services.clients.create_client(
        visitor.actor, project.id, ClientChanges(name="App", redirect_uris=("https://app.example/",))
    )
    browser = await came_in(console, visitor, scope_write="")
    home = f"/console/projects/{project.id}"
    assert (await browser.get(home)).status == 200
    forms: list[tuple[str, dict[str, str]]] = [
        ("/console/projects", {"name": "Another", "auth.confirmed": "on"}),
        (f"{home}/settings", {"name": "Renamed", "was_name": "Shop"}),
        (f"{home}/regenerate", {"confirmation": "Shop"}),
        (f"{home}/delete", {"confirmation": "Shop"}),
        (f"{home}/bot", {"bot_token": "1:a"}),
        (f"{home}/bot/remove", {}),
        (f"{home}/try", {}),
        (f"{home}/clients", {"name": "Grafana", "redirect_uris": "https://grafana.example/", **CLIENT}),
        (f"{home}/clients/{client.id}", {"name": "Renamed"}),
        (f"{home}/clients/{client.id}/regenerate", {}),
        (f"{home}/clients/{client.id}/delete", {}),
        (f"{home}/webhooks/secret", {}),
        (f"{home}/webhooks/rotate", {"overlap_hours": "24"}),
        (f"{home}/webhooks/promote", {}),
        (f"{home}/webhooks/test", {}),
        ("/console/users/9/erase", {"confirmation": "9"}),
        ("/console/sign-out-everywhere", {}),
    ]
    failures = []
    for path, sent in forms:
        shown = await browser.post(path, sent)
        if shown.status != 403 or "This needs the scope" not in shown.text:
            failures.append((path, shown.status, shown.location, shown.text[:200]))
    assert failures == []
    assert await console.services.projects.list_projects(visitor.developer) == [project]
    assert await console.services.clients.list_clients(visitor.developer, project.id) == [client]
    assert (await browser.post("/console/sign-out")).location == "/console/sign-in"


async def test_a_session_that_may_not_read(console: Installation, visitor: Visitor) -> None:
    """Without the scope `read`, no page or answer shows any data; the session can sign out."""
    await visitor.create_project("Private")
    browser = await came_in(console, visitor, scope_read="", scope_tokens="on")
    for shown in [
        *[await browser.get(path) for path in ("/console/projects", TOKENS, "/console/audit", "/console/account")],
        *[await browser.post(path, {"name": ""}) for path in ("/console/projects", TOKENS, "/console/sessions")],
    ]:
        assert (shown.status, "This needs the scope read" in shown.text) == (403, True)
        assert "Private" not in shown.html
    assert (await browser.post("/console/sign-out")).location == "/console/sign-in"


async def test_revoking_what_was_created_with_a_token(console: Installation, visitor: Visitor) -> None:
    """The list names the token that created another; revoking it revokes those too, unless the box is unchecked."""
    for kept in (False, True):
        browser = await came_in(console, visitor, scope_tokens="on")
        await make(Visitor(browser.client, visitor.developer, console), name="child")
        tokens = {
            token.name: token for token in await console.services.developers.list_access_tokens(visitor.developer.id)
        }
        path = f"{TOKENS}/{tokens['leaked'].id}/revoke"
        page = await visitor.get(TOKENS)
        came_from = {row[0]: row[1].partition(" ")[2] for row in page.rows()}
        assert came_from == {"leaked": "", "child": "created with leaked"}
        assert page.fields(path) == {"created": "revoke"}
        assert page.fields(f"{TOKENS}/{tokens['child'].id}/revoke") == {"created": "revoke"}
        [box] = page.form(path).findall(".//input")
        assert box.get("type") == "checkbox"
        shown = await visitor.follow(await visitor.post(path, {} if kept else page.fields(path)))
        notice = "Access token revoked." if kept else "2 access tokens revoked."
        assert shown.texts(".//p[@role='status']") == [notice]
        left = await console.services.developers.list_access_tokens(visitor.developer.id)
        assert [token.id for token in left] == ([tokens["child"].id] if kept else [])
