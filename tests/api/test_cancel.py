"""Cancellation by the application over HTTP: by its client with the verifier, or by its server with the secret key."""

import asyncio
import secrets
from typing import Any

import httpx
import pytest
from tests.api import test_code_challenge
from tests.api.conftest import assert_error
from tests.api.test_code_challenge import USER, Client
from tests.waiting import until

from taproof.core.identity import MessengerIdentity
from taproof.core.session_state import SESSION_LIFETIME

client = test_code_challenge.client
ADA = MessengerIdentity(USER, "Ada", "ada")


async def start(client: Client, *, bound: bool = True) -> str:
    created = await client.call("generate", **({"code_challenge": client.challenge} if bound else {}))
    token: str = created.json()["session_token"]
    return token


async def cancel(client: Client, token: str, **fields: Any) -> httpx.Response:
    return await client.call("cancel", session_token=token, **{"code_verifier": client.verifier, **fields})


@pytest.mark.parametrize("bound", [True, False])
async def test_a_pending_session_is_cancelled(client: Client, *, bound: bool) -> None:
    """After a cancellation, later calls, verify, the list, the counters and the bot agree; no event is sent."""
    token = await start(client, bound=bound or client.public)
    await client.api.signin.open_session(token, USER)
    answer = await cancel(client, token)
    assert (answer.status_code, answer.content) == (200, b'{"status": "cancelled"}')
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers.get("access-control-allow-origin") == ("*" if client.public else None)
    assert (await cancel(client, token)).json() == {"status": "cancelled"}
    seen = await client.call("verify", session_token=token, code_verifier=client.verifier)
    assert seen.json() == {"status": "cancelled"}
    assert (await client.api.signin.confirm_session(token, ADA)).outcome == "withdrawn"
    value = client.api.metrics.registry.get_sample_value
    assert value("taproof_decisions_total", {"outcome": "withdrawn"}) == 1
    assert value("taproof_decisions_total", {"outcome": "cancelled"}) == 0


async def test_a_session_that_is_not_pending_stays_as_it_is(client: Client) -> None:
    """The answer is the status. A confirmed session can still be read once."""
    tokens = {each: await start(client) for each in ("confirmed", "used", "cancelled", "expired")}
    for token in [token for status, token in tokens.items() if status != "expired"]:
        await client.api.signin.open_session(token, USER)
    for status in ("confirmed", "used"):
        await client.api.signin.confirm_session(tokens[status], ADA)
    await client.call("verify", session_token=tokens["used"], code_verifier=client.verifier)
    await client.api.signin.cancel_session(tokens["cancelled"], USER)
    client.api.clock.now += SESSION_LIFETIME
    assert {each: (await cancel(client, token)).json() for each, token in tokens.items()} == {
        each: {"status": each} for each in tokens
    }
    read = await client.call("verify", session_token=tokens["confirmed"], code_verifier=client.verifier)
    assert read.json()["messenger_id"] == USER


async def test_the_public_form_needs_the_verifier(client: Client) -> None:
    """The public form needs the verifier, so that the link alone cancels nothing.

    With the secret key, no verifier is needed.
    """
    token, unbound = await start(client), await start(client, bound=False)
    if client.public:
        assert_error(await cancel(client, unbound), 400, "code_challenge_required")
        assert_error(await client.call("cancel", session_token=token), 400, "code_verifier_missing")
        assert_error(await cancel(client, token, code_verifier="short"), 400, "invalid_request")
        assert_error(await cancel(client, token, code_verifier=secrets.token_urlsafe(32)), 404, "session_not_found")
    for each in (unbound, token):
        seen = await client.call("verify", session_token=each, code_verifier=client.verifier)
        assert seen.json() == {"status": "pending"}
    if not client.public:
        assert (await client.call("cancel", session_token=token)).json() == {"status": "cancelled"}


async def test_bad_calls_change_nothing(client: Client) -> None:
    """Malformed and foreign sessions are refused as in verify; only POST is allowed."""
    token = await start(client)
    assert_error(await client.call("cancel", code_verifier=client.verifier), 400, "invalid_request")
    assert_error(await cancel(client, "x"), 400, "invalid_request")
    assert_error(await cancel(client, token[:-3] + "AAA"), 404, "session_not_found")
    _, other = await client.api.sign_up("grace@example.com")
    foreign = await client.api.post("/projects", other, {"name": "Bank"})
    mine, client.project = client.project, foreign
    assert_error(await cancel(client, token), 404, "session_not_found")
    client.project = mine
    path = "/api/v1/cancel/public" if client.public else "/api/v1/cancel"
    assert_error(await client.http.get(path), 405, "method_not_allowed")
    seen = await client.call("verify", session_token=token, code_verifier=client.verifier)
    assert seen.json() == {"status": "pending"}


async def test_it_ends_the_waits(client: Client) -> None:
    """Another tab that waits for the session is answered immediately."""
    token = await start(client)
    wait = asyncio.create_task(
        client.call(
            "verify", session_token=token, code_verifier=client.verifier, wait=30, hints=True, seen_hint="waiting"
        )
    )
    await until(lambda: client.api.signin.waiting.count == 1)
    await cancel(client, token)
    assert (await asyncio.wait_for(wait, 20)).json() == {"status": "cancelled"}
