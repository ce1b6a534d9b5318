"""The demo's backend: what a real application's server must do with a proof."""

import base64
import itertools
import re
from collections.abc import AsyncIterator, Callable

import httpx
import jwt
import pytest
from starlette.routing import Route

from taproof.core.errors import StoreUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.core.proof import sign_proof
from taproof.http.body import BODY_LIMIT
from taproof.sandbox.demo.server import SIGNED_IN_LIFETIME, SIGNED_IN_LIMIT, Demo

SECRET = "whsec_" + base64.b64encode(bytes(32)).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
PROJECT = "proj_0123456789abcdefABCDEF"
NOW = 1_760_000_000_000
ADA = {"messenger_id": "1001", "messenger_name": "Ada Lovelace", "messenger_username": "ada"}
LEADS_ON = {"location": "/demo/shop"}
JSON = {"Content-Type": "application/json"}


class World:
    """The demo with a clock, a secret and randomness that tests control."""

    def __init__(self) -> None:
        self.now = NOW
        self.secret: str | Exception = SECRET
        self._numbers = itertools.count()
        self.demo = Demo(PROJECT, self._read_secret, lambda: self.now, lambda n: next(self._numbers).to_bytes(n))

    async def _read_secret(self) -> str:
        if isinstance(self.secret, Exception):
            raise self.secret
        return self.secret

    def client(self, scheme: str = "http") -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.demo.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=f"{scheme}://demo.test")

    def proof(self, number: int = 0, project_id: str = PROJECT, secret: str = SECRET, username: str = "ada") -> str:
        identity = MessengerIdentity("1001", "Ada Lovelace", username)
        return sign_proof(identity, project_id, f"token-{number}", secret, self.now)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def browser(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with world.client() as client:
        yield client


async def is_signed_in(browser: httpx.AsyncClient) -> bool:
    """Return whether the shop's page says so."""
    page = (await browser.get("/demo/shop")).text
    assert ('data-signed-in="yes"' in page) is not ('data-signed-in="no"' in page)
    return 'data-signed-in="yes"' in page


async def test_a_proof_signs_in_and_the_cookie_keeps_it(world: World, browser: httpx.AsyncClient) -> None:
    """A good proof is exchanged for the application's own session, kept in a cookie that no script can read."""
    answer = await browser.post("/demo/session", json={"proof": world.proof()})
    assert (answer.status_code, answer.json()) == (200, ADA | LEADS_ON)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "path=/demo" in cookie
    assert "secure" not in cookie
    page = (await browser.get("/demo/shop")).text
    assert '<bdi id="who-name">Ada Lovelace</bdi>' in page
    assert '<bdi id="who-username">@ada</bdi>' in page


async def test_a_phone_number_is_told_only_if_there_is_one(world: World, browser: httpx.AsyncClient) -> None:
    """The answer has the phone number if the proof has one; otherwise the field is absent."""
    identity = MessengerIdentity("1001", "Ada Lovelace", "ada", "+12025550101")
    proof = sign_proof(identity, PROJECT, "token-0", SECRET, world.now)
    answer = await browser.post("/demo/session", json={"proof": proof})
    assert answer.json() == ADA | LEADS_ON | {"messenger_phone": "+12025550101"}
    assert (
        '<div id="who-phone"><dt>Phone number</dt><dd><bdi>+12025550101</bdi>' in (await browser.get("/demo/shop")).text
    )
    answer = await browser.post("/demo/session", json={"proof": world.proof(1, username="")})
    assert answer.json() == ADA | LEADS_ON | {"messenger_username": None}
    assert '<div id="who-phone" hidden>' in (await browser.get("/demo/shop")).text


async def test_over_https_the_cookie_stays_on_https(world: World) -> None:
    """The cookie is Secure if the page is on HTTPS."""
    async with world.client("https") as browser:
        answer = await browser.post("/demo/session", json={"proof": world.proof()})
    assert "secure" in answer.headers["set-cookie"].lower()


async def test_a_proof_is_taken_once(world: World, browser: httpx.AsyncClient) -> None:
    """A copied proof signs nobody in. The record of a used proof is dropped once the proof has expired."""
    proof = world.proof()
    assert (await browser.post("/demo/session", json={"proof": proof})).status_code == 200
    async with world.client() as thief:
        answer = await thief.post("/demo/session", json={"proof": proof})
        assert answer.status_code == 409
        assert "already been used" in answer.json()["error"]
        assert "set-cookie" not in answer.headers
        assert not await is_signed_in(thief)
    world.now += 300_000
    assert (await browser.post("/demo/session", json={"proof": proof})).status_code == 400
    await browser.post("/demo/session", json={"proof": world.proof(1)})
    assert list(world.demo.used) == ["token-1"]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda world: world.proof(secret=OTHER_SECRET), "signature"),
        (lambda world: world.proof(project_id="proj_otherotherotherother1"), "a different project"),
        (lambda world: world.proof()[:-4] + "AAAA", "signature"),
        (lambda _: jwt.encode({"project_id": PROJECT}, SECRET), "claim"),
        (lambda _: "garbage", "JWT"),
    ],
)
async def test_a_bad_proof_signs_nobody_in(
    world: World, browser: httpx.AsyncClient, make: Callable[[World], str], told: str
) -> None:
    """The answer contains the SDK's own sentence, and no session is created."""
    answer = await browser.post("/demo/session", json={"proof": make(world)})
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]
    assert told in answer.json()["error"]
    assert not world.demo.signed_in


async def test_the_secret_is_read_at_each_sign_in(world: World, browser: httpx.AsyncClient) -> None:
    """After a rotation proofs of the new secret work, and those of the old one do not."""
    world.secret = OTHER_SECRET
    assert (await browser.post("/demo/session", json={"proof": world.proof()})).status_code == 400
    answer = await browser.post("/demo/session", json={"proof": world.proof(secret=OTHER_SECRET)})
    assert answer.status_code == 200


async def test_sign_out(world: World, browser: httpx.AsyncClient) -> None:
    """Signing out ends the session on the server too: a copy of the cookie no longer works."""
    await browser.post("/demo/session", json={"proof": world.proof()})
    copied = browser.cookies["taproof_demo"]
    assert (await browser.delete("/demo/session")).status_code == 200
    assert "taproof_demo" not in browser.cookies
    browser.cookies.set("taproof_demo", copied)
    assert not await is_signed_in(browser)


async def test_a_sign_in_gets_a_new_cookie(world: World, browser: httpx.AsyncClient) -> None:
    """A sign-in replaces the id, and the old one no longer works, which prevents session fixation."""
    browser.cookies.set("taproof_demo", "planted", domain="demo.test", path="/demo")
    await browser.post("/demo/session", json={"proof": world.proof()})
    first = browser.cookies.get("taproof_demo", path="/demo")
    assert first != "planted"
    await browser.post("/demo/session", json={"proof": world.proof(1)})
    assert list(world.demo.signed_in) == [browser.cookies.get("taproof_demo", path="/demo")]
    assert first not in world.demo.signed_in


async def test_sign_ins_end_and_are_bounded(world: World) -> None:
    """A sign-in lasts an hour, and memory holds no more sign-ins than the limit."""
    for number in range(SIGNED_IN_LIMIT + 2):
        async with world.client() as browser:
            await browser.post("/demo/session", json={"proof": world.proof(number)})
            if number == 0:
                first = dict(browser.cookies)
    assert len(world.demo.signed_in) == SIGNED_IN_LIMIT
    async with world.client() as browser:
        browser.cookies.update(first)
        assert not await is_signed_in(browser)
    async with world.client() as browser:
        await browser.post("/demo/session", json={"proof": world.proof(-1 + 10**6)})
        world.now += SIGNED_IN_LIFETIME - 1
        assert await is_signed_in(browser)
        world.now += 1
        assert not await is_signed_in(browser)


async def test_the_pages(world: World, browser: httpx.AsyncClient) -> None:
    """The pages' policies allow nothing inline or foreign. Only the demo's own page may frame the shop."""
    for path, ancestors in (("/demo", "'none'"), ("/demo/shop", "'self'")):
        answer = await browser.get(path)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "{{" not in answer.text
        assert re.search(r"<style|<script>|\son\w+=|\sstyle=", answer.text) is None
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert f"frame-ancestors {ancestors};" in policy
        assert "unsafe" not in policy
    assert f'project-id="{PROJECT}" submit-url="/demo/session"' in (await browser.get("/demo/shop")).text
    assert not await is_signed_in(browser)
    await browser.post("/demo/session", json={"proof": world.proof()})
    assert await is_signed_in(browser)


async def test_a_name_cannot_break_out_of_the_page(world: World, browser: httpx.AsyncClient) -> None:
    """Text that a user chose stays text, also if it looks like one of the page's placeholders."""
    identity = MessengerIdentity("1001", "<b>{{project_id}}", '"><script>')
    proof = sign_proof(identity, PROJECT, "token-0", SECRET, world.now)
    await browser.post("/demo/session", json={"proof": proof})
    page = (await browser.get("/demo/shop")).text
    assert "&lt;b&gt;{{project_id}}" in page
    assert "@&quot;&gt;&lt;script&gt;" in page


async def test_no_answer_holds_the_secret(world: World, browser: httpx.AsyncClient) -> None:
    """The webhook secret is in no answer and in no file that the client loads."""
    files = [
        route.path for route in world.demo.app.routes if isinstance(route, Route) and "GET" in (route.methods or ())
    ]
    assert len(files) == 11
    answers = [await browser.get(path) for path in files]
    answers.append(await browser.post("/demo/session", json={"proof": world.proof()}))
    answers.append(await browser.get("/demo/shop"))
    answers.append(await browser.post("/demo/session", json={"proof": "x"}))
    assert [answer.status_code for answer in answers] == [200] * (len(files) + 2) + [400]
    assert all(SECRET not in f"{answer.headers}{answer.text}" for answer in answers)


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b'{"proof": "x"}', {"Content-Type": "text/plain"}, 400),
        (b'{"proof": "x"}', {}, 400),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b'{"proof": {}}', JSON, 400),
        (b'{"proof": "\\ud800"}', JSON, 400),
        (b" " * (BODY_LIMIT + 1), JSON, 413),
    ],
)
async def test_bad_bodies(browser: httpx.AsyncClient, content: bytes, headers: dict[str, str], status: int) -> None:
    """A body that is not a JSON object with the field is refused with one sentence, and does not reach the handler."""
    answer = await browser.post("/demo/session", content=content, headers=headers)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PUT", "/demo/session", 405), ("GET", "/demo/session", 405), ("POST", "/demo", 405), ("GET", "/demo/../x", 404)],
)
async def test_wrong_addresses_and_methods(browser: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    """Every error of the demo is one JSON field, including the router's own errors."""
    answer = await browser.request(method, path)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert ("allow" in answer.headers) is (status == 405)


@pytest.mark.parametrize(
    ("failure", "status", "told"),
    [(StoreUnavailable(), 503, "Try again"), (RuntimeError(f"{SECRET} is broken"), 500, "Internal error.")],
)
async def test_a_secret_that_cannot_be_read(
    world: World, browser: httpx.AsyncClient, failure: Exception, status: int, told: str
) -> None:
    """If the webhook secret cannot be read, the proof is not used up and the answer reveals no details."""
    world.secret = failure
    proof = world.proof()
    answer = await browser.post("/demo/session", json={"proof": proof})
    assert answer.status_code == status
    assert told in answer.json()["error"]
    assert SECRET not in answer.text
    world.secret = SECRET
    assert (await browser.post("/demo/session", json={"proof": proof})).status_code == 200
