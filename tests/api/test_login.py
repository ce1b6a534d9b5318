"""`POST /api/v1/login` and `/login/token`: one access token for the developer who confirms in the messenger."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import pytest
from structlog.testing import capture_logs
from tests.api.conftest import Api, assert_error, client_of
from tests.tapping import tap_right
from tests.waiting import until

from taproof.api.login import TOKEN_NAME, WAIT_LIMIT, LoginApi
from taproof.core.accounts import Developer
from taproof.core.clock import DAY, iso8601
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable
from taproof.core.identifiers import is_key, session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.request_context import RequestContext
from taproof.core.session_state import SESSION_LIFETIME
from taproof.core.sessions import PolledSession, SessionKey
from taproof.service.console.sign_in import CONSOLE, INVITATION, TERMINAL
from taproof.service.invitations import Invitations

PATIENCE: Final = 60.0
USER: Final = "1001"
PATHS: Final = ["/api/v1/login", "/api/v1/login/token"]


@dataclass
class Login:
    """A terminal that signs in to the service."""

    api: Api
    endpoints: LoginApi
    http: httpx.AsyncClient
    started: dict[str, Any] = field(default_factory=dict)

    async def post(self, path: str, body: Any) -> httpx.Response:
        async with asyncio.timeout(PATIENCE):
            response = await self.http.post(path, json=body)
        self.api.documented.check("POST", path, response)
        return response

    async def start(self) -> None:
        response = await self.post("/api/v1/login", {})
        assert response.status_code == 200, response.text
        self.started = response.json()

    async def ask(self, **more: Any) -> httpx.Response:
        return await self.post("/api/v1/login/token", {"device_code": self.started["device_code"], **more})

    async def tap(self, button: str = "Confirm", user: str = USER) -> None:
        token = self.started["verification_uri_complete"].rpartition("?start=")[2]
        await self.api.signin.open_session(token, user)
        if button == "Confirm":
            await tap_right(self.api.signin, token, MessengerIdentity(user, "Ada", "ada"))
        else:
            await self.api.signin.cancel_session(token, user)

    def metric(self, name: str) -> float | None:
        return self.api.metrics.registry.get_sample_value(name)


@pytest.fixture
async def login(api: Api) -> AsyncIterator[Login]:
    endpoints = LoginApi(api.use_cases.developer_sign_ins, api.developers, api.metrics, api.limits, api.clock)
    apps = dict(zip(PATHS, (endpoints.start, endpoints.create_token), strict=True))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await apps[scope["path"]](scope, receive, send)

    async with client_of(app, "203.0.113.7") as http:
        login = Login(api, endpoints, http)
        await login.start()
        yield login
    assert api.signin.waiting.count == 0


@pytest.fixture
async def ada(api: Api) -> Developer:
    """A developer whose messenger account is USER's."""
    invitations = Invitations(api.storage, api.clock, system_entropy)
    code = await invitations.invite_first()
    assert code is not None
    return await invitations.accept_invitation(
        code, MessengerIdentity(USER, "Ada", "ada"), email="ada@example.com", address=""
    )


async def test_from_the_link_to_the_token(login: Login, ada: Developer) -> None:
    """The fields are those of RFC 8628, section 3.2. The answer is pending until the tap, then the token once."""
    assert login.started.keys() == {
        "device_code",
        "verification_uri_complete",
        "match_code",
        "expires_in",
        "interval",
    }
    assert (login.started["expires_in"], login.started["interval"]) == (600, 2)
    assert login.started["verification_uri_complete"].startswith("https://t.me/test_bot?start=")
    assert_error(await login.ask(), 400, "authorization_pending")
    await login.tap()
    answer = await login.ask()
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    got = answer.json()
    assert got.keys() == {"access_token", "expires_in", "token_id", "email"}
    assert is_key(got["access_token"], "tap")
    assert got["email"] == "ada@example.com"
    assert (await login.api.call("GET", "/me", got["access_token"])).json()["id"] == ada.id
    (listed,) = (await login.api.call("GET", "/tokens", got["access_token"])).json()["tokens"]
    assert (listed["id"], listed["name"]) == (got["token_id"], TOKEN_NAME)
    assert got["expires_in"] == 90 * 86_400
    assert listed["expires_at"] == iso8601(login.api.clock.now + 90 * DAY)
    assert "has already been exchanged" in assert_error(await login.ask(), 400, "expired_token")
    assert len(await login.api.developers.list_access_tokens(ada.id)) == 1


async def test_the_prompt_of_a_terminal(login: Login) -> None:
    """The prompt shows browser and location, asks for the number of the answer, and names no page."""
    login.api.places["203.0.113.7"] = "Berlin, Germany"
    headers = {"User-Agent": "taproof-login/0.1.0 (Linux)", "Origin": "https://bank.example"}
    started = (await login.http.post("/api/v1/login", json={}, headers=headers)).json()
    token = started["verification_uri_complete"].rpartition("?start=")[2]
    seen = await login.api.signin.open_session(token, USER)
    assert seen.context == RequestContext("", headers["User-Agent"], "Berlin, Germany")
    assert len(seen.choices) == 3
    assert started["match_code"] in seen.choices


async def test_a_blind_tap_gives_no_token(login: Login, ada: Developer) -> None:
    """Confirming without the number cancels the sign-in, and a new one must be started."""
    token = login.started["verification_uri_complete"].rpartition("?start=")[2]
    await login.api.signin.open_session(token, USER)
    seen = await login.api.signin.confirm_session(token, MessengerIdentity(USER, "Ada", "ada"))
    assert seen.outcome == "mismatched"
    assert_error(await login.ask(), 400, "access_denied")
    assert await login.api.developers.list_access_tokens(ada.id) == []


async def test_of_many_who_ask_one_gets_the_token(login: Login, ada: Developer) -> None:
    """Of concurrent calls, one gets the token, and only one token is created."""
    await login.tap()
    answers = await asyncio.gather(*(login.ask() for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 9
    assert len(await login.api.developers.list_access_tokens(ada.id)) == 1


async def test_the_audit_log_tells_of_it(login: Login, ada: Developer) -> None:
    """The entry has the token's id and the address, but neither the token nor the device code."""
    await login.tap()
    got = (await login.ask()).json()
    entries = (await login.api.call("GET", "/audit", got["access_token"])).json()["entries"]
    (entry,) = [each for each in entries if each["action"] == "access_token.created"]
    assert (entry["subject"], entry["address"], entry["actor"]) == (got["token_id"], "203.0.113.7", ada.email)
    assert (entry["via"], entry["via_id"]) == ("login", "")
    for secret in (got["access_token"], login.started["device_code"]):
        assert secret not in json.dumps(entries)


async def test_only_what_was_asked_as_a_login_gives_a_token(login: Login, ada: Developer) -> None:
    """The prompt of a login mentions the access token; a session that was not started as a login gives none."""
    started = login.started["verification_uri_complete"].rpartition("?start=")[2]
    assert (await login.api.signin.open_session(started, USER)).project_name == TERMINAL.project_name
    for purpose in (CONSOLE, INVITATION):
        sign_in = await login.api.use_cases.developer_sign_ins.start(purpose)
        login.started = {"device_code": sign_in.encrypted, "verification_uri_complete": sign_in.deeplink}
        await login.tap()
        assert_error(await login.ask(), 404, "sign_in_not_found")
    assert await login.api.developers.list_access_tokens(ada.id) == []


async def test_a_token_can_be_named(login: Login, ada: Developer) -> None:
    """The name lets the owner recognize the token in the list."""
    await login.tap()
    assert (await login.ask(name=" laptop ")).status_code == 200
    (token,) = await login.api.developers.list_access_tokens(ada.id)
    assert token.name == "laptop"


WRONG: dict[str, list[Any]] = {
    "name": ["", "  ", "a\nb", "\ud800", "x" * 101, 5, None, ["a"]],
    "wait": [-1, 25.1, "5", True, None, []],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
async def test_a_wrong_field_costs_nothing(login: Login, ada: Developer, field: str, value: Any) -> None:
    """A wrong field is refused by name before anything is consumed, so the same confirmation still gives a token."""
    await login.tap()
    refused = await login.http.post(
        "/api/v1/login/token",
        content=json.dumps({"device_code": login.started["device_code"], field: value}),
        headers={"Content-Type": "application/json"},
    )
    assert assert_error(refused, 400, "invalid_request").startswith(f"{field} ")
    assert (await login.ask()).status_code == 200


async def test_cancelled_and_expired(login: Login, ada: Developer) -> None:
    """A cancelled or expired login is answered as such every time, exactly from its ten minutes on."""
    await login.tap("Cancel")
    for _ in range(2):
        assert "cancelled" in assert_error(await login.ask(), 400, "access_denied")
    await login.start()
    login.api.clock.now += SESSION_LIFETIME - 1
    assert_error(await login.ask(), 400, "authorization_pending")
    login.api.clock.now += 1
    assert_error(await login.ask(), 400, "expired_token")


@pytest.mark.parametrize("order", ["report, store", "store, report"])
async def test_reported_while_the_token_is_made(
    login: Login, ada: Developer, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No token is left: it is not created after the report, and one that was created just before has ended.

    The terminal gets a sentence that says how to go on, unless its token was stored before the report.
    """
    await login.tap()
    key = session_key(login.started["verification_uri_complete"].rpartition("?start=")[2])
    assert key is not None
    store = login.api.storage.credentials.create_access_token

    async def interrupted(*what: Any, **more: Any) -> bool:
        made = order == "store, report" and await store(*what, **more)
        assert (await login.api.signin.report_sign_in(key, USER)).changed
        return made or await store(*what, **more)

    monkeypatch.setattr(login.api.storage.credentials, "create_access_token", interrupted)
    answer = await login.ask()
    if order == "report, store":
        assert "send /unblock to the bot" in assert_error(answer, 400, "access_denied")
    else:
        assert_error(await login.api.call("GET", "/me", answer.json()["access_token"]), 401, "invalid_access_token")
    assert await login.api.developers.list_access_tokens(ada.id) == []
    assert_error(await login.ask(), 400, "expired_token")


async def test_an_account_of_no_developer(login: Login, ada: Developer) -> None:
    """The sentence says who can invite the account's owner, and no token is created."""
    await login.tap(user="1002")
    with capture_logs() as logs:
        assert "taproof developers invite" in assert_error(await login.ask(), 400, "access_denied")
    assert [(line["event"], line["kind"]) for line in logs] == [("credentials_refused", "messenger_account")]
    assert await login.api.developers.list_access_tokens(ada.id) == []


async def test_the_answer_comes_with_the_tap(login: Login, ada: Developer) -> None:
    """A waiting call holds a place, as a verify call does, and releases it."""
    call = asyncio.create_task(login.ask(wait=WAIT_LIMIT))
    await until(lambda: login.api.signin.waiting.count == 1)
    assert login.metric("taproof_waiting_calls") == 1
    await login.tap()
    assert (await call).json()["email"] == ada.email
    assert login.metric("taproof_waiting_calls") == 0


async def test_too_many_wait(login: Login) -> None:
    """A call without a place is answered immediately, and counted."""
    login.api.signin.waiting.stop()
    assert_error(await login.ask(wait=WAIT_LIMIT), 400, "authorization_pending")
    assert login.metric("taproof_waits_without_place_total") == 1


async def test_nothing_is_consumed_for_a_client_that_left(
    login: Login, ada: Developer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal that lost its connection during the wait can ask again and gets the token, even after the tap."""
    await login.tap()
    poll_session = login.api.storage.sessions.poll_session
    looks = 0

    async def poll_before_the_tap(key: SessionKey) -> PolledSession | None:
        """Answer the looks of the call that waits as if they had been a moment earlier."""
        nonlocal looks
        looks += 1
        session = await poll_session(key)
        return session._replace(status="pending") if session is not None and looks <= 2 else session

    monkeypatch.setattr(login.api.storage.sessions, "poll_session", poll_before_the_tap)
    body = json.dumps({"device_code": login.started["device_code"], "wait": WAIT_LIMIT}).encode()
    messages = iter([{"type": "http.request", "body": body}, {"type": "http.disconnect"}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/api/v1/login/token", "headers": headers}
    await asyncio.wait_for(login.endpoints.create_token(scope, receive, send), PATIENCE)
    assert (sent[0]["status"], looks) == (400, 2)
    assert (await login.ask()).json()["email"] == ada.email


async def test_what_is_no_device_code(login: Login) -> None:
    """Other texts, including the link and its token, are not found. The field is required and must be text."""
    link = login.started["verification_uri_complete"]
    codes = ("x", "\u00e9", "A" * 300, "A" * 10_000, link, link.rpartition("=")[2], login.started["device_code"][:-2])
    for code in codes:
        response = await login.post("/api/v1/login/token", {"device_code": code, "wait": WAIT_LIMIT})
        assert_error(response, 404, "sign_in_not_found")
    for body in ({}, {"device_code": ""}, {"device_code": 5}, {"device_code": None}):
        assert "device_code" in assert_error(await login.post("/api/v1/login/token", body), 400, "invalid_request")


@pytest.mark.parametrize("path", PATHS)
async def test_both_have_the_one_error_shape(login: Login, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong methods, invalid or oversized JSON, a lost store and a bug are answered as everywhere else."""
    assert (await login.http.head(path)).status_code == 405
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "BREW"):
        response = await login.http.request(method, path)
        assert_error(response, 405, "method_not_allowed")
        assert response.headers["allow"] == "POST"
    assert_error(await login.http.post(path, content=b"{}"), 400, "invalid_request")
    assert_error(await login.post(path, []), 400, "invalid_request")
    assert_error(await login.post(path, {"x": "x" * 20_000}), 413, "payload_too_large")
    for name in ("poll_session", "create_session"):
        monkeypatch.setattr(login.api.storage.sessions, name, _failing(StoreUnavailable()))
    body = {"device_code": login.started["device_code"]}
    assert_error(await login.post(path, body), 503, "store_unavailable")
    for name in ("poll_session", "create_session"):
        monkeypatch.setattr(login.api.storage.sessions, name, _failing(RuntimeError(login.started["device_code"])))
    with capture_logs() as logs:
        assert_error(await login.post(path, body), 500, "internal_error")
    assert [line["event"] for line in logs] == ["internal_error"]
    assert login.started["device_code"] not in repr(logs)


async def test_no_page_of_another_site_reads_it(login: Login) -> None:
    """No answer allows another origin to read it."""
    for path in PATHS:
        response = await login.http.post(path, json={}, headers={"Origin": "https://evil.example"})
        assert not [name for name in response.headers if name.startswith("access-control-")]


async def test_unknown_fields_are_ignored(login: Login) -> None:
    """Unknown fields are ignored, as on the session endpoints, so that newer clients can talk to older servers."""
    assert (await login.post("/api/v1/login", {"scope": "x"})).status_code == 200
    assert_error(await login.ask(scope="x"), 400, "authorization_pending")


def _failing(error: Exception) -> Any:
    async def fail(*_: object, **__: object) -> None:
        raise error

    return fail


async def test_too_many_sign_ins_of_one_address(login: Login) -> None:
    """An address may start twenty at once, then one each three seconds. Other addresses are not affected."""
    statuses = [(await login.post("/api/v1/login", {})).status_code for _ in range(21)]
    assert statuses == [200] * 19 + [429] * 2  # One was begun by the fixture.
    refused = await login.post("/api/v1/login", {})
    assert_error(refused, 429, "rate_limited")
    assert refused.headers["retry-after"] == "3"
    login.api.clock.now += 3_000
    assert (await login.post("/api/v1/login", {})).status_code == 200


async def test_who_asks_too_often_loses_nothing(login: Login, ada: Developer) -> None:
    """A terminal that asks every 1.5 seconds is never refused; after a refusal, the token is still available."""
    for _ in range(30):
        assert_error(await login.ask(), 400, "authorization_pending")
        login.api.clock.now += 1_500
    for _ in range(10):
        await login.ask()
    await login.tap()
    refused = await login.ask()
    assert_error(refused, 429, "rate_limited")
    login.api.clock.now += 1_000 * int(refused.headers["retry-after"])
    assert (await login.ask()).status_code == 200


async def test_codes_that_are_made_up_are_refused_after_a_while(login: Login) -> None:
    """Made-up codes count against the address that sends them; known logins at that address continue."""
    assert_error(await login.ask(), 400, "authorization_pending")
    for number in range(201):
        last = await login.post("/api/v1/login/token", {"device_code": f"x{number}"})
    assert_error(last, 429, "rate_limited")
    assert_error(await login.ask(), 400, "authorization_pending")
