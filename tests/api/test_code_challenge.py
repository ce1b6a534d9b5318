"""code_challenge and code_verifier over HTTP (RFC 7636), on both pairs of session endpoints."""

import base64
import hashlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.api.conftest import Api, assert_error, client_of, session_router

from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity

USER = "1001"


@dataclass
class Client:
    """A client of one pair of endpoints, with a verifier of its own."""

    api: Api
    http: httpx.AsyncClient
    project: dict[str, Any]
    public: bool
    verifier: str

    @property
    def challenge(self) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()

    async def call(self, endpoint: str, **fields: Any) -> httpx.Response:
        path = f"/api/v1/{endpoint}{'/public' if self.public else ''}"
        headers = {} if self.public else {"Authorization": f"Bearer {self.project['secret_key']}"}
        response = await self.http.post(path, json={"project_id": self.project["id"], **fields}, headers=headers)
        self.api.documented.check("POST", path, response)
        return response

    async def confirmed(self) -> str:
        created = await self.call("generate", code_challenge=self.challenge, code_challenge_method="S256")
        assert created.status_code == 200, created.text
        token: str = created.json()["session_token"]
        await self.api.signin.open_session(token, USER)
        await self.api.signin.confirm_session(token, MessengerIdentity(USER, "Ada", "ada"))
        return token


@pytest.fixture(params=[True, False], ids=["public", "server-side"])
async def client(api: Api, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    _, token = await api.sign_up("ada@example.com")
    project = await api.post("/projects", token, {"name": "Shop"})
    async with client_of(session_router(api)) as http:
        yield Client(api, http, project, request.param, secrets.token_urlsafe(32))


async def test_the_holder_alone_reads_the_answer_and_the_same_one_again(client: Client) -> None:
    """Without a verifier, the answer is 400, and with a wrong one 404.

    The holder reads the same bytes for a minute, then `used`.
    """
    token = await client.confirmed()
    assert_error(await client.call("verify", session_token=token), 400, "code_verifier_missing")
    wrong = await client.call("verify", session_token=token, code_verifier=secrets.token_urlsafe(32))
    assert_error(wrong, 404, "session_not_found")
    first = await client.call("verify", session_token=token, code_verifier=client.verifier)
    assert first.json()["status"] == "confirmed"
    client.api.clock.now += MINUTE - 1
    again = await client.call("verify", session_token=token, code_verifier=client.verifier)
    assert (again.content, dict(again.headers)) == (first.content, dict(first.headers))
    client.api.clock.now += 1
    over = await client.call("verify", session_token=token, code_verifier=client.verifier)
    assert over.json() == {"status": "used"}


async def test_waiting_is_for_the_holder_too(client: Client) -> None:
    """A wait without the right verifier is refused immediately; with it, the answer arrives."""
    created = await client.call("generate", code_challenge=client.challenge)
    token = created.json()["session_token"]
    assert_error(await client.call("verify", session_token=token, wait=30), 400, "code_verifier_missing")
    guess = await client.call("verify", session_token=token, wait=30, code_verifier="A" * 43)
    assert_error(guess, 404, "session_not_found")
    answer = await client.call("verify", session_token=token, wait=0.01, code_verifier=client.verifier)
    assert answer.json() == {"status": "pending"}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"code_challenge": "short"}, "code_challenge"),
        ({"code_challenge": ""}, "code_challenge"),
        ({"code_challenge": 7}, "code_challenge"),
        ({"code_challenge": None}, "code_challenge"),
        ({"code_challenge": "A" * 43, "code_challenge_method": "plain"}, "code_challenge_method"),
        ({"code_challenge": "A" * 43, "code_challenge_method": 5}, "code_challenge_method"),
        ({"code_challenge_method": "S256"}, "code_challenge"),
        ({"return_url": 7}, "return_url"),
        ({"return_url": None}, "return_url"),
    ],
)
async def test_a_binding_that_cannot_be_had_starts_nothing(client: Client, fields: dict[str, Any], named: str) -> None:
    """An unusable code_challenge is 400 with the field's name. No session is created without the requested binding."""
    refused = await client.call("generate", **fields)
    assert_error(refused, 400, "invalid_request")
    assert named in refused.json()["error"]
    assert await client.api.storage.counts.read_daily_counts([client.project["id"]], 0) == []


@pytest.mark.parametrize("verifier", ["", "short", "A" * 129, "é" * 43, 7, False, ["A" * 43]])
async def test_a_verifier_that_is_none_is_named(client: Client, verifier: object) -> None:
    """A malformed verifier is 400 with the field's name, and the holder of the right one can still read the answer."""
    token = await client.confirmed()
    refused = await client.call("verify", session_token=token, code_verifier=verifier)
    assert_error(refused, 400, "invalid_request")
    assert "code_verifier" in refused.json()["error"]
    found = await client.call("verify", session_token=token, code_verifier=client.verifier)
    assert found.json()["status"] == "confirmed"


async def test_a_session_without_a_challenge_is_read_once_as_ever(client: Client) -> None:
    """Without a challenge, any verifier is ignored, whether valid, invalid or null."""
    token = (await client.call("generate")).json()["session_token"]
    await client.api.signin.open_session(token, USER)
    await client.api.signin.confirm_session(token, MessengerIdentity(USER, "Ada", "ada"))
    first = await client.call("verify", session_token=token, code_verifier=client.verifier)
    assert first.json()["status"] == "confirmed"
    odd: list[object] = [client.verifier, None, "", 7, "é", {}]
    for verifier in odd:
        again = await client.call("verify", session_token=token, code_verifier=verifier, wait=1)
        assert again.json() == {"status": "used"}
