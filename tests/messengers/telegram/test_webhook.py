"""Webhook delivery: only the messenger's updates are accepted, and those that fail are requested again."""

import asyncio
import json
from typing import Any

import pytest
from tests.messengers.telegram.conftest import Fault, Phone, ScriptedApi
from tests.signals import unheard

from taproof.core.errors import StoreUnavailable
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.connection import Reconnection
from taproof.messengers.telegram.updates import ALLOWED_UPDATES, UpdateIntake
from taproof.messengers.telegram.webhook import BODY_LIMIT, WebhookEndpoint, register_webhook

SECRET = "s3cret_-token"
HEADER = (b"x-telegram-bot-api-secret-token", SECRET.encode())


@pytest.fixture
def endpoint(intake: UpdateIntake) -> WebhookEndpoint:
    return WebhookEndpoint(intake.handle, lambda: [SECRET])


class Exchange:
    """One request to the endpoint, as an ASGI server makes it."""

    def __init__(
        self, *chunks: bytes, headers: tuple[tuple[bytes, bytes], ...] = (HEADER,), method: str = "POST"
    ) -> None:
        self.scope = {"type": "http", "method": method, "path": "/bot/webhook", "headers": list(headers)}
        self.chunks = list(chunks) or [b""]
        self.reads = 0
        self.sent: list[Any] = []

    async def receive(self) -> dict[str, Any]:
        self.reads += 1
        return {"type": "http.request", "body": self.chunks.pop(0), "more_body": bool(self.chunks)}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def to(self, endpoint: WebhookEndpoint) -> tuple[int, dict[str, Any], dict[bytes, bytes]]:
        await endpoint(self.scope, self.receive, self.send)
        start, body = self.sent
        fields = dict(start["headers"])
        assert fields[b"x-content-type-options"] == b"nosniff"
        assert fields[b"content-security-policy"] == b"default-src 'none'; frame-ancestors 'none'"
        return start["status"], json.loads(body["body"]), fields


async def test_update_is_handled(phone: Phone, endpoint: WebhookEndpoint, api: ScriptedApi) -> None:
    """A handled update is answered with 200, even if it arrives in pieces."""
    body = json.dumps(phone.message("/help")).encode()
    status, answer, _ = await Exchange(body[:10], body[10:]).to(endpoint)
    assert (status, answer) == (200, {})
    assert len(api.of("sendMessage")) == 1


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((HEADER[0], b""),),
        ((HEADER[0], b"wrong"),),
        ((HEADER[0], SECRET.encode() + b"x"),),
        ((HEADER[0], SECRET.upper().encode()),),
        ((HEADER[0], "s3crét".encode("latin-1")),),
        (HEADER, HEADER),
        ((b"authorization", SECRET.encode()),),
    ],
)
async def test_stranger_is_refused_unread(
    headers: tuple[tuple[bytes, bytes], ...], phone: Phone, endpoint: WebhookEndpoint
) -> None:
    """Without exactly the right secret, nothing is read or handled, and the answer is 401."""
    exchange = Exchange(json.dumps(phone.message("/help")).encode(), headers=headers)
    status, answer, given = await exchange.to(endpoint)
    assert (status, list(answer)) == (401, ["error"])
    assert given[b"x-error-code"] == b"invalid_webhook_secret"
    assert exchange.reads == 0
    assert phone.api.calls == []


async def test_each_secret_of_a_rotation_is_accepted(intake: UpdateIntake) -> None:
    """During a rotation, both secrets are accepted, and afterwards the old one is refused, without a restart.

    An update that cannot be read is answered 200: it could not be read the next time either.
    """
    secrets = ["new", SECRET]
    endpoint = WebhookEndpoint(intake.handle, lambda: secrets)
    new = (HEADER[0], b"new")
    for header in (HEADER, new):
        assert (await Exchange(b'{"update_id": "x"}', headers=(header,)).to(endpoint))[0] == 200
    secrets.remove(SECRET)
    assert (await Exchange(b'{"update_id": "x"}', headers=(new,)).to(endpoint))[0] == 200
    assert (await Exchange(b'{"update_id": "x"}').to(endpoint))[0] == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD", "OPTIONS"])
async def test_only_post(method: str, endpoint: WebhookEndpoint) -> None:
    """Updates come with POST; any other method gets 405."""
    status, answer, given = await Exchange(method=method).to(endpoint)
    assert (status, list(answer), given[b"allow"]) == (405, ["error"], b"POST")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"5", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"update_id": ' + b"9" * 5000]
)
async def test_body_that_is_no_json_object(body: bytes, endpoint: WebhookEndpoint) -> None:
    """A body that is not one JSON object is refused with 400."""
    status, answer, _ = await Exchange(body).to(endpoint)
    assert (status, list(answer)) == (400, ["error"])


async def test_body_over_the_limit(endpoint: WebhookEndpoint) -> None:
    """A body of more than 1 MiB is refused, by its announced length or once the limit is exceeded."""
    announced = Exchange(b"{}", headers=(HEADER, (b"content-length", str(BODY_LIMIT + 1).encode())))
    assert (await announced.to(endpoint))[0] == 413
    assert announced.reads == 0
    absurd = Exchange(b"{}", headers=(HEADER, (b"content-length", b"9" * 5000)))
    assert (await absurd.to(endpoint))[0] == 413
    streamed = Exchange(*[b" " * 300_000] * 10)
    assert (await streamed.to(endpoint))[0] == 413
    assert streamed.reads == 4


async def test_redelivery_after_a_failure_is_handled_at_once(
    phone: Phone, endpoint: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed update's claim is released, because the messenger repeats it before a lease could expire."""
    body = json.dumps(phone.message(f"/start {await phone.create_session()}")).encode()
    phone.api.fail("sendMessage", Fault(502, raw="<html>"))
    status, answer, given = await Exchange(body).to(endpoint)
    assert (status, list(answer)) == (503, ["error"])
    assert int(given[b"retry-after"]) > 0
    with monkeypatch.context() as away:
        away.setattr(phone.storage.sessions, "read_session", unavailable)
        assert (await Exchange(body).to(endpoint))[0] == 503
    assert (await Exchange(body).to(endpoint))[0] == 200
    assert len(phone.api.of("sendMessage")) == 2


async def unavailable(*_: Any) -> None:
    raise StoreUnavailable


@pytest.mark.parametrize("secret", ["", " ", "with space", "a" * 257, "é", "a\n"])
async def test_secret_is_mandatory(secret: str, bot: Bot, intake: UpdateIntake, api: ScriptedApi) -> None:
    """The webhook cannot run without a secret that the Bot API accepts."""
    with pytest.raises(ValueError, match="secret"):
        WebhookEndpoint(intake.handle, lambda: [SECRET, secret])
    with pytest.raises(ValueError, match="secret"):
        await register_webhook(bot, "https://example.org/bot/webhook", secret, Reconnection(unheard))
    assert api.calls == []


async def test_registration_is_tried_until_it_succeeds(bot: Bot, api: ScriptedApi) -> None:
    """The webhook is set with its secret and kinds of updates as soon as the API is available.

    Pending updates are kept.
    """
    api.fail("setWebhook", Fault(502, raw="<html>", times=2))
    api.fail("setWebhook", Fault(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"))
    async with asyncio.timeout(60):
        await register_webhook(bot, "https://example.org/bot/webhook", SECRET, Reconnection(unheard, 0.01))
    assert len(api.of("setWebhook")) == 4
    assert api.of("setWebhook")[-1] == {
        "url": "https://example.org/bot/webhook",
        "secret_token": SECRET,
        "allowed_updates": ALLOWED_UPDATES,
        "drop_pending_updates": False,
    }
