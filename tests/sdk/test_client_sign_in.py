"""A whole sign-in with both clients against a real service; the sandbox's control API acts as the user."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import Developer, OwnProject, Phone, Service, launch, make_phone
from tests.sdk.either_client import KINDS, EitherClient, scripted_server
from tests.waiting import wait_until

from taproof import (
    AsyncClient,
    AuthenticationFailed,
    InvalidRequest,
    MemoryGuard,
    NotFound,
    ProofAlreadyUsed,
    SignIn,
    new_code_verifier,
    verify_proof,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("sign_in"))
    with httpx.Client(base_url=service.base_url, timeout=60) as client, suppress(AssertionError):
        # On a busy machine the bot's very first answer may come later than the sandbox waits for it.
        make_phone(client).open(Developer(client, service.access_token).create_project().generate()["deeplink"])
    yield service
    service.stop()


@pytest.fixture(scope="module")
def http(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield client


@pytest.fixture
def project(service: Service, http: httpx.Client) -> OwnProject:
    return Developer(http, service.access_token).create_project()


@pytest.fixture
def phone(http: httpx.Client) -> Phone:
    return make_phone(http)


PATIENCE = 60
"""In seconds: if the tap fails, the test fails soon after it."""
NewClient = Callable[..., EitherClient]


@pytest.fixture(params=KINDS)
def new_client(request: pytest.FixtureRequest, service: Service) -> Iterator[NewClient]:
    made = []

    def new(base_url: str = service.base_url, **credentials: Any) -> EitherClient:
        made.append(EitherClient(request.param, base_url, **credentials))
        return made[-1]

    yield new
    for each in made:
        each.shut()


@pytest.fixture(params=["public", "secret key"])
def client(request: pytest.FixtureRequest, new_client: NewClient, project: OwnProject) -> EitherClient:
    """A client of either kind, with either credential."""
    return new_client(project_id=project.id) if request.param == "public" else new_client(secret_key=project.secret_key)


def decide(phone: Phone, sign_in: SignIn, button: str = "Confirm") -> None:
    phone.open(sign_in.deeplink)
    phone.tap(button)


def test_a_whole_sign_in(client: EitherClient, project: OwnProject, phone: Phone) -> None:
    """Create, wait while the user taps, and the proof holds on the application's server, once."""
    sign_in = client.create_session()
    assert client.verify_session(sign_in).status == "pending"
    with ThreadPoolExecutor() as pool:
        tapping = pool.submit(decide, phone, sign_in)
        result = client.wait_for_user(sign_in, timeout=PATIENCE)
        tapping.result()
    assert result.is_confirmed
    assert (result.user.messenger_id, result.user.messenger_name) == (phone.messenger_id, "Ada")
    assert (result.user.messenger_username, result.user.messenger_phone, sign_in.match_code) == (None, None, None)
    assert result.confirmed_at < sign_in.expires_at
    guard = MemoryGuard()
    identity = verify_proof(result.proof, project.webhook_secret, project_id=project.id, guard=guard)
    assert (identity.messenger_id, identity.session_token) == (phone.messenger_id, sign_in.session_token)
    with pytest.raises(ProofAlreadyUsed):
        verify_proof(result.proof, project.webhook_secret, project_id=project.id, guard=guard)


def test_a_sign_in_with_a_phone_number(client: EitherClient, project: OwnProject, phone: Phone) -> None:
    """The number that the user shares in the messenger is in the result, and in the proof."""
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"collect_phone": True})
    sign_in = client.create_session()
    decide(phone, sign_in)
    assert client.verify_session(sign_in).status == "pending"
    phone.post("share", {"contact": "own", "wait": 20})
    result = client.wait_for_user(sign_in, timeout=PATIENCE)
    assert result.user.messenger_phone == phone.user["phone"]
    assert verify_proof(result.proof, project.webhook_secret).messenger_phone == phone.user["phone"]


def test_a_sign_in_with_a_match_code(client: EitherClient, project: OwnProject, phone: Phone) -> None:
    """The number that `create_session` returns is the one to choose; any other cancels the sign-in."""
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"match_code": "on"})
    right, wrong = client.create_session(), client.create_session()
    decide(phone, right, right.match_code)
    assert client.wait_for_user(right, timeout=PATIENCE).is_confirmed
    codes = phone.open(wrong.deeplink)[-1]["buttons"][0]
    assert wrong.match_code in codes
    phone.tap(next(code for code in codes if code != wrong.match_code))
    assert client.wait_for_user(wrong, timeout=PATIENCE).status == "cancelled"


def test_a_sign_in_from_a_mini_app(client: EitherClient, project: OwnProject, phone: Phone) -> None:
    """A Mini App's data gives a confirmed result once; a repetition, or a missing bot, gives an error code."""
    bot = phone.client.post("/sandbox/bots", json={"username": f"shop_{token_hex(6)}_bot"}).json()
    data = phone.post("mini-app", {"bot": bot["username"]})["init_data"]
    with pytest.raises(InvalidRequest) as caught:
        client.sign_in_mini_app(data)
    assert caught.value.code == "project_bot_needed"
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"bot_token": bot["token"]})
    result = client.sign_in_mini_app(data)
    assert result.is_confirmed
    assert (result.user.messenger_id, result.user.messenger_name) == (phone.messenger_id, "Ada")
    assert verify_proof(result.proof, project.webhook_secret, project_id=project.id).messenger_id == phone.messenger_id
    with pytest.raises(InvalidRequest) as caught:
        client.sign_in_mini_app(data)
    assert caught.value.code == "init_data_used"


def test_a_cancelled_sign_in(client: EitherClient, phone: Phone) -> None:
    """When the user cancels, the result has no identity."""
    sign_in = client.create_session()
    decide(phone, sign_in, "Cancel")
    result = client.wait_for_user(sign_in, timeout=PATIENCE)
    assert (result.status, result.user, result.proof, result.confirmed_at) == ("cancelled", None, None, None)


def test_hints_and_cancel(client: EitherClient, phone: Phone) -> None:
    """The hint changes as soon as the link is opened; a cancel ends the sign-in, but not a confirmed one."""
    sign_in = client.create_session()
    assert client.verify_session(sign_in, hints=True).hint == "waiting"
    with ThreadPoolExecutor() as pool:
        opening = pool.submit(phone.open, sign_in.deeplink)
        result = client.verify_session(sign_in, hints=True, seen_hint="waiting", wait=30)
        opening.result()
    assert (result.status, result.hint) == ("pending", "opened")
    assert client.verify_session(sign_in).hint is None
    assert [client.cancel_session(sign_in) for _ in range(2)] == ["cancelled"] * 2
    assert client.verify_session(sign_in, hints=True).status == "cancelled"
    confirmed = client.create_session()
    decide(phone, confirmed)
    assert client.cancel_session(confirmed) == "confirmed"
    assert client.wait_for_user(confirmed, timeout=PATIENCE).is_confirmed


def test_a_sign_in_that_returns(client: EitherClient, project: OwnProject, phone: Phone) -> None:
    """With `require`, the result needs the code that the button in the messenger brings back."""
    policy = {"same_device": "require", "allowed_origins": ["https://shop.example.com"]}
    project.developer.ask("PATCH", f"/projects/{project.id}", json=policy)
    for return_url, refusal in ((None, "same_device_required"), ("https://evil.example/", "return_url_not_allowed")):
        with pytest.raises(InvalidRequest) as caught:
            client.create_session(return_url=return_url)
        assert caught.value.code == refusal
    sign_in = client.create_session(return_url="https://shop.example.com/signed-in")
    assert sign_in.return_required
    decide(phone, sign_in)
    page, _, code = wait_until(phone.link_back).partition("#taproof_return=")
    assert page == "https://shop.example.com/signed-in"
    for wrong in (None, "c" * 32):
        result = client.verify_session(sign_in, return_code=wrong, hints=True)
        assert (result.status, result.hint) == ("pending", "return")
    result = client.verify_session(sign_in, return_code=code)
    assert verify_proof(result.proof, project.webhook_secret).messenger_id == phone.messenger_id
    assert client.verify_session(sign_in, return_code=code) == result


def test_nobody_taps(client: EitherClient) -> None:
    """Without time to wait, the current status is returned."""
    assert client.wait_for_user(client.create_session(), timeout=0).status == "pending"


def test_only_who_started_it_reads_the_result(
    client: EitherClient, new_client: NewClient, project: OwnProject, phone: Phone, http: httpx.Client
) -> None:
    """A person who photographed the link or QR code cannot read who signed in."""
    sign_in = client.create_session()
    decide(phone, sign_in)
    thief = new_client(project_id=project.id)
    with pytest.raises(NotFound) as caught:
        thief.wait_for_user(replace(sign_in, project_id=project.id, code_verifier=new_code_verifier()))
    assert caught.value.code == "session_not_found"
    body = {"project_id": project.id, "session_token": sign_in.session_token}
    bare = http.post("/api/v1/verify/public", json=body)
    assert (bare.status_code, bare.headers["X-Error-Code"]) == (400, "code_verifier_missing")
    assert client.wait_for_user(sign_in).is_confirmed


def test_a_lost_answer_loses_no_sign_in(
    new_client: NewClient, project: OwnProject, phone: Phone, http: httpx.Client
) -> None:
    """If the answer is lost, the same confirmed answer is read again, byte for byte."""
    answers: list[bytes] = []

    def forward(connection: Any, *, deliver: bool) -> None:
        request = broken.received[-1]
        found = http.post(request.line.split()[1], json=request.body)
        answers.append(found.content)
        if deliver:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(found.content) + found.content)

    with scripted_server() as broken:
        client = new_client(broken.base_url, project_id=project.id)
        broken.replies = [lambda connection: forward(connection, deliver=True)]
        sign_in = client.create_session()
        decide(phone, sign_in)
        answers.clear()
        broken.replies = [
            lambda connection: forward(connection, deliver=False),
            lambda connection: forward(connection, deliver=True),
        ]
        result = client.wait_for_user(sign_in, timeout=PATIENCE)
    assert result.user.messenger_id == phone.messenger_id
    assert len(answers) == 2
    assert answers[0] == answers[1]


def test_refusals_are_told_apart(
    service: Service, http: httpx.Client, new_client: NewClient, project: OwnProject
) -> None:
    """A wrong key, an unknown project, a project without public access and a paused one have different codes."""
    with pytest.raises(AuthenticationFailed) as caught:
        new_client(secret_key="sk_" + "a" * 49).create_session()
    assert caught.value.code == "invalid_secret_key"
    with pytest.raises(NotFound) as missing:
        new_client(project_id="proj_" + "0" * 22).create_session()
    assert missing.value.code == "project_not_found"
    developer = new_client(access_token=service.access_token)
    developer.update_project(project.id, public_access=False)
    with pytest.raises(AuthenticationFailed) as private:
        new_client(project_id=project.id).create_session()
    assert private.value.code == "public_access_disabled"
    developer.update_project(project.id, is_active=False)
    with pytest.raises(InvalidRequest) as paused:
        new_client(secret_key=project.secret_key).create_session()
    assert paused.value.code == "project_paused"


async def waiting_calls(http: httpx.Client) -> float:
    metrics = (await asyncio.to_thread(http.get, "/metrics")).text
    return float(metrics.partition("\ntaproof_waiting_calls ")[2].partition("\n")[0])


async def test_many_wait_at_once(service: Service, http: httpx.Client, project: OwnProject) -> None:
    """One AsyncClient serves many users at the same time, and waiting calls do not block others."""
    # The timeout is shorter than the time for which a call is held.
    async with AsyncClient(service.base_url, project_id=project.id, timeout=15) as client:
        sign_ins = [await client.create_session() for _ in range(120)]
        waiting = [asyncio.create_task(client.wait_for_user(each, timeout=PATIENCE)) for each in sign_ins]
        async with asyncio.timeout(PATIENCE):
            while await waiting_calls(http) < len(waiting):  # noqa: ASYNC110 — only the service knows.
                await asyncio.sleep(0.05)
        last = await client.create_session()
        waiting_for_last = asyncio.create_task(client.wait_for_user(last, timeout=PATIENCE))
        phone = make_phone(http)
        await asyncio.to_thread(decide, phone, last)
        result = await waiting_for_last
        assert result.user is not None
        assert result.user.messenger_id == phone.messenger_id
        assert not any(each.done() for each in waiting)
        for each in waiting:
            each.cancel()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)
        assert (await client.verify_session(sign_ins[0])).status == "pending"
