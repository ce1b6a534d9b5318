"""`wait` of the verify endpoints: the same answers as without it, only later, and never with an ended credential.

Also `hints` and `seen_hint`: only clients that ask for hints get them.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, get_args

import httpx
import pytest
from tests.api.conftest import Api, assert_error, client_of, session_router
from tests.waiting import until

from taproof.api.sessions import WAIT_LIMIT
from taproof.contract.session import SignInStatus
from taproof.core.identity import MessengerIdentity
from taproof.core.session_state import SESSION_LIFETIME
from taproof.service.sessions import wait
from taproof.service.sessions.wait import Waiting

PATIENCE: Final = 60.0
USER: Final = "1001"


@dataclass
class Verifier:
    """A client of both verify endpoints, for one project and its session."""

    api: Api
    http: httpx.AsyncClient
    token: str
    project: dict[str, Any]
    session_token: str
    endpoint: str = "verify/public"
    calls: list[asyncio.Task[httpx.Response]] = field(default_factory=list)

    identity: ClassVar[MessengerIdentity] = MessengerIdentity(USER, "Ada", "ada")

    @property
    def waiting(self) -> Waiting:
        return self.api.signin.waiting

    async def verify(self, **more: Any) -> httpx.Response:
        body = {"project_id": self.project["id"], "session_token": self.session_token, **more}
        headers = {}
        if self.endpoint == "verify":
            headers["Authorization"] = f"Bearer {self.project['secret_key']}"
        async with asyncio.timeout(PATIENCE):
            response = await self.http.post(f"/api/v1/{self.endpoint}", json=body, headers=headers)
        self.api.documented.check("POST", f"/api/v1/{self.endpoint}", response)
        return response

    async def wait(self, seconds: float = WAIT_LIMIT) -> asyncio.Task[httpx.Response]:
        """Call verify with `wait`, and continue once the call waits."""
        before = self.waiting.count
        call = asyncio.create_task(self.verify(wait=seconds))
        self.calls.append(call)
        await until(lambda: self.waiting.count > before)
        return call

    async def tap(self, button: str) -> None:
        await self.api.signin.open_session(self.session_token, USER)
        if button == "Confirm":
            await self.api.signin.confirm_session(self.session_token, self.identity)
        else:
            await self.api.signin.cancel_session(self.session_token, USER)

    async def manage(self, method: str, act: str = "", **request: Any) -> None:
        response = await self.api.call(method, f"/projects/{self.project['id']}{act}", self.token, **request)
        assert response.status_code == 200, response.text

    def metric(self, name: str) -> float | None:
        return self.api.metrics.registry.get_sample_value(name)


@pytest.fixture(params=["verify/public", "verify"])
async def verifier(api: Api, request: pytest.FixtureRequest) -> AsyncIterator[Verifier]:
    """Yield the public and the server-side endpoint in turn, with a pending session."""
    _, token = await api.sign_up("ada@example.com", "pro")
    project = await api.post("/projects", token, {"name": "Shop"})
    session = await api.signin.create_session(project["id"], public=False)
    async with client_of(session_router(api)) as http:
        yield Verifier(api, http, token, project, session.session_token, request.param)
    assert api.signin.waiting.count == 0


@pytest.mark.parametrize("button", ["Confirm", "Cancel"])
async def test_the_answer_comes_with_the_tap(verifier: Verifier, button: str) -> None:
    """A waiting call is answered once the user taps, exactly as a call without `wait` would be then."""
    call = await verifier.wait()
    await verifier.tap(button)
    answer = await call
    again = await verifier.verify()
    assert (answer.status_code, again.status_code) == (200, 200)
    assert {name for name in answer.headers if name != "content-length"} == {
        name for name in again.headers if name != "content-length"
    }
    assert answer.headers["cache-control"] == "no-store"
    if button == "Cancel":
        assert answer.json() == again.json() == {"status": "cancelled"}
    else:
        assert (answer.json()["status"], answer.json()["messenger_id"]) == ("confirmed", USER)
        assert again.json() == {"status": "used"}


async def test_waiting_is_no_latency(verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a verify call in the metrics begins when its wait ends."""
    now = 0.0
    monkeypatch.setattr("taproof.api.sessions.perf_counter", lambda: now)
    call = await verifier.wait()
    now = 25.0
    await verifier.tap("Cancel")
    assert (await call).json() == {"status": "cancelled"}
    assert verifier.metric("taproof_verify_seconds_count") == 1
    assert verifier.metric("taproof_verify_seconds_sum") == 0


async def test_the_time_is_over(verifier: Verifier) -> None:
    """If nobody taps in time, the answer is the usual one for a pending session."""
    answer = await verifier.verify(wait=0.02)
    assert answer.json() == {"status": "pending"}
    assert answer.headers.items() == (await verifier.verify()).headers.items()


async def test_a_session_expires_meanwhile(verifier: Verifier) -> None:
    """If a session expires during the wait, the call is answered with `expired` immediately."""
    verifier.api.clock.now += SESSION_LIFETIME - 30
    call = await verifier.wait()
    verifier.api.clock.now += 30
    assert (await call).json() == {"status": "expired"}


@pytest.mark.parametrize("seconds", [0, 0.0, 1, 30, 0.5, 30.0])
async def test_what_is_accepted(verifier: Verifier, seconds: float) -> None:
    """A number from 0 to 30, including fractions, is accepted; a decided session is answered immediately."""
    await verifier.tap("Cancel")
    assert (await verifier.verify(wait=seconds)).json() == {"status": "cancelled"}


async def test_zero_is_no_wait(verifier: Verifier) -> None:
    """`wait` of 0 is the same as no `wait`: one read, and no place taken."""
    verifier.waiting.stop()
    assert (await verifier.verify(wait=0)).json() == {"status": "pending"}
    assert verifier.metric("taproof_waits_without_place_total") == 0


REFUSED = {
    "wait": [
        *("true", "false", "null", '"5"', '""', "[]", "{}", "-1", "-0.1", "30.001", "31", "1e9", "1e400"),
        *("NaN", "Infinity", "-Infinity"),
    ],
    "hints": ['"true"', "null", "1", "0", "[]", "{}"],
    "seen_hint": ["null", "1", "0", "[]", "{}"],
}


@pytest.mark.parametrize(("field", "sent"), [(field, sent) for field, values in REFUSED.items() for sent in values])
async def test_what_is_refused(verifier: Verifier, field: str, sent: str) -> None:
    """Any other value is refused with a sentence that names the field, and nothing is read. NaN is not valid JSON."""
    await verifier.tap("Confirm")
    body = json.dumps({"project_id": verifier.project["id"], "session_token": verifier.session_token})
    response = await verifier.http.post(
        f"/api/v1/{verifier.endpoint}",
        content=f'{body[:-1]}, "{field}": {sent}}}',
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {verifier.project['secret_key']}"},
    )
    sentence = assert_error(response, 400, "invalid_request")
    is_json = sent.strip("-") not in {"NaN", "Infinity"}
    assert sentence.startswith(f"{field} must be" if is_json else "The body is not valid JSON")
    assert (await verifier.verify(seen_hint="true")).json()["status"] == "confirmed"


async def test_one_of_many_waiting_readers_gets_the_proof(verifier: Verifier) -> None:
    """Of many calls that wait for one session, one gets identity and proof, and all others get `used`."""
    calls = [await verifier.wait() for _ in range(5)]
    await verifier.tap("Confirm")
    statuses = [(await call).json()["status"] for call in calls]
    assert sorted(statuses) == ["confirmed", *["used"] * 4]


async def test_a_call_without_a_place_is_answered(verifier: Verifier) -> None:
    """Over the limit, a call is answered immediately instead of refused; waiting calls are not affected."""
    calls = [await verifier.wait() for _ in range(wait.SESSION_LIMIT)]
    answer = await verifier.verify(wait=WAIT_LIMIT)
    assert (answer.status_code, answer.json()) == (200, {"status": "pending"})
    assert verifier.metric("taproof_waiting_calls") == wait.SESSION_LIMIT
    assert verifier.metric("taproof_waits_without_place_total") == 1
    await verifier.tap("Cancel")
    assert [(await call).json()["status"] for call in calls] == ["cancelled"] * len(calls)
    assert verifier.metric("taproof_waiting_calls") == 0


async def test_waits_are_counted_as_polls(verifier: Verifier) -> None:
    """A waiting call counts as one poll with the status of its answer."""
    call = await verifier.wait()
    await verifier.tap("Cancel")
    await call
    registry = verifier.api.metrics.registry
    counted = {
        each: registry.get_sample_value("taproof_polls_total", {"status": each}) for each in get_args(SignInStatus)
    }
    assert {status: count for status, count in counted.items() if count} == {"cancelled": 1}


@pytest.mark.parametrize(
    ("endpoint", "call_to_end", "code"),
    [
        ("verify", ("POST", "/regenerate", {}), "invalid_secret_key"),
        ("verify/public", ("PATCH", "", {"public_access": False}), "public_access_disabled"),
    ],
)
async def test_a_right_that_ends_during_the_wait(
    verifier: Verifier, endpoint: str, call_to_end: tuple[str, str, Any], code: str
) -> None:
    """A replaced key or disabled public access also affects calls that are already waiting. Nothing is consumed."""
    call = await verifier.wait()
    method, act, body = call_to_end
    await verifier.manage(method, act, json=body)
    await verifier.tap("Confirm")
    if verifier.endpoint == endpoint:
        assert_error(await call, 401, code)
        verifier.endpoint = "verify" if endpoint == "verify/public" else "verify/public"
        call = asyncio.create_task(verifier.verify())
    assert (await call).json()["status"] == "confirmed"


async def test_a_project_deleted_during_the_wait(verifier: Verifier) -> None:
    """The answer is that of a fresh call: there is no such project, and its key is dead."""
    call = await verifier.wait(0.1)
    await verifier.manage("DELETE")
    if verifier.endpoint == "verify":
        assert_error(await call, 401, "invalid_secret_key")
    else:
        assert_error(await call, 404, "project_not_found")


async def test_what_is_refused_is_refused_at_once(verifier: Verifier) -> None:
    """A call for a session that the project does not have is answered immediately."""
    verifier.session_token = verifier.session_token[:-3] + "AAA"
    assert_error(await verifier.verify(wait=WAIT_LIMIT), 404, "session_not_found")


async def test_a_client_that_goes_away_consumes_nothing(verifier: Verifier) -> None:
    """An answer that nobody reads does not consume the session: the next call gets the proof."""
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    body = {"project_id": verifier.project["id"], "session_token": verifier.session_token, "wait": WAIT_LIMIT}
    content = json.dumps(body).encode()
    scope = {
        "type": "http",
        "method": "POST",
        "http_version": "1.1",
        "raw_path": f"/api/v1/{verifier.endpoint}".encode(),
        "query_string": b"",
        "headers": [
            (b"host", b"taproof.test"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            (b"authorization", f"Bearer {verifier.project['secret_key']}".encode()),
        ],
    }
    # As Granian has it: the end of the body is a message of its own, which is not read with the body.
    messages.put_nowait({"type": "http.request", "body": content, "more_body": True})
    messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    call = asyncio.ensure_future(session_router(verifier.api)(scope, messages.get, send))
    await until(lambda: verifier.waiting.count == 1 and messages.empty())
    assert not call.done()
    await verifier.api.signin.open_session(verifier.session_token, USER)
    messages.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(call, PATIENCE)
    await verifier.tap("Confirm")
    assert (await verifier.verify()).json()["status"] == "confirmed"


# ---- hints


async def test_hints_by_poll(verifier: Verifier) -> None:
    """The hint follows the user's steps.

    Without `hints`, and after the decision, the answer is exactly the status alone.
    """
    silent = b'{"status": "pending"}'
    for hint in ("waiting", "opened"):
        assert (await verifier.verify(hints=True)).content == json.dumps({"status": "pending", "hint": hint}).encode()
        assert (await verifier.verify(hints=True, seen_hint=hint)).json()["hint"] == hint
        for more in ({}, {"hints": False}, {"seen_hint": "waiting"}, {"hints": False, "seen_hint": "", "wait": 0}):
            assert (await verifier.verify(**more)).content == silent
        await verifier.api.signin.open_session(verifier.session_token, USER)
    await verifier.tap("Cancel")
    assert (await verifier.verify(hints=True)).content == b'{"status": "cancelled"}'


async def test_hints_of_a_match_code_and_a_phone_number(verifier: Verifier) -> None:
    """`choosing` while the user chooses a code, then `phone_asked` while the user is asked for the number."""
    await verifier.manage("PATCH", json={"match_code": "on", "collect_phone": True})
    created = await verifier.api.signin.create_session(verifier.project["id"], public=False)
    verifier.session_token = created.session_token
    seen = await verifier.api.signin.open_session(created.session_token, USER)
    assert (await verifier.verify(hints=True)).json()["hint"] == "choosing"
    call = await hinted_wait(verifier, "choosing")
    choice = seen.choices.index(created.match_code or "")
    await verifier.api.signin.confirm_session(created.session_token, verifier.identity, choice=choice)
    assert (await call).json() == {"status": "pending", "hint": "phone_asked"}


async def hinted_wait(verifier: Verifier, seen_hint: str, **more: Any) -> asyncio.Task[Any]:
    """Call verify with `wait` and `seen_hint`, and continue once the call waits."""
    before = verifier.waiting.count
    body = {"hints": True, "wait": WAIT_LIMIT, "seen_hint": seen_hint, **more}
    call = asyncio.create_task(verifier.verify(**body))
    await until(lambda: verifier.waiting.count > before)
    return call


async def test_a_wait_ends_with_another_hint(verifier: Verifier) -> None:
    """A call with `seen_hint` waits for the next hint or the decision; other calls wait only for the decision."""
    silent = await verifier.wait()
    ignoring = await hinted_wait(verifier, "waiting", hints=False)
    without = await verifier.verify(hints=True, wait=WAIT_LIMIT, seen_hint="other")
    assert without.json() == {"status": "pending", "hint": "waiting"}
    call = await hinted_wait(verifier, "waiting")
    await verifier.api.signin.open_session(verifier.session_token, USER)
    assert (await call).json() == {"status": "pending", "hint": "opened"}
    call = await hinted_wait(verifier, "opened")
    assert not silent.done()
    assert not ignoring.done()
    await verifier.tap("Cancel")
    assert [(await each).json() for each in (call, silent, ignoring)] == [{"status": "cancelled"}] * 3
