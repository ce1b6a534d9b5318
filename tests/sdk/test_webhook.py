"""verify_webhook beyond sdk/vectors (test_vectors.py), which define the valid and the invalid webhooks."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from starlette.datastructures import Headers

from taproof import (
    WebhookError,
    WebhookEvent,
    WebhookSignatureInvalid,
    WebhookTooOld,
    verify_webhook,
)
from taproof.core.signature import signature_headers

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
PROJECT = "proj_0123456789abcdefABCDEF"
TOKEN = "T" * 42 + "A"
NOW = 1_795_214_643
CONFIRMED: dict[str, Any] = {
    "id": "evt_1",
    "event": "auth.confirmed",
    "project_id": PROJECT,
    "session_token": TOKEN,
    "messenger_id": "1001",
    "messenger_name": "Ada Lovelace",
    "messenger_username": "ada",
    "confirmed_at": "2026-11-20T22:44:03.127Z",
}
BODY = json.dumps(CONFIRMED).encode()


def signed(body: bytes = BODY, *secrets: str, event_id: str = "evt_1", at: float = NOW) -> dict[str, str]:
    return signature_headers(event_id, body, secrets or (SECRET,), int(at * 1000))


def service_signed(body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"X-Service-Signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def without(headers: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}


def verify(body: Any = BODY, headers: Any = None, secret: Any = SECRET, **options: Any) -> WebhookEvent:
    return verify_webhook(body, signed(body) if headers is None else headers, secret, **{"now": NOW, **options})


def test_a_confirmed_event_gives_the_identity() -> None:
    """The SDK verifies what core/signature.py signs, and returns every field (contract.md, Webhooks)."""
    assert verify() == WebhookEvent(
        id="evt_1",
        type="auth.confirmed",
        project_id=PROJECT,
        session_token=TOKEN,
        messenger_id="1001",
        messenger_name="Ada Lovelace",
        messenger_username="ada",
        occurred_at=datetime(2026, 11, 20, 22, 44, 3, 127000, UTC).timestamp(),
        signed_at=NOW,
        data=CONFIRMED,
    )


def test_the_machines_clock_is_the_default() -> None:
    """Without `now`, a fresh webhook is valid and a past one is not."""
    assert verify_webhook(BODY, signed(at=time.time()), SECRET).id == "evt_1"
    with pytest.raises(WebhookTooOld):
        verify_webhook(BODY, signed(at=time.time() - 400), SECRET)


def test_the_pypi_package_and_the_sdk_take_the_same() -> None:
    """The package standardwebhooks verifies the sender's headers, and verify_webhook the package's."""
    at = datetime.now(UTC)
    body = json.dumps(CONFIRMED | {"messenger_name": "Зоя 👩‍💻"}, ensure_ascii=False).encode()
    assert Webhook(SECRET).verify(body, signed(body, at=at.timestamp()))["messenger_name"] == "Зоя 👩‍💻"
    rotating = signed(body, OTHER_SECRET, SECRET, at=at.timestamp())
    assert Webhook(SECRET).verify(body, rotating) == Webhook(OTHER_SECRET).verify(body, rotating)
    made = {
        "Webhook-Id": "evt_1",
        "Webhook-Timestamp": str(int(at.timestamp())),
        "Webhook-Signature": Webhook(SECRET).sign("evt_1", at, body.decode()),
    }
    assert verify_webhook(body, made, SECRET).messenger_name == "Зоя 👩‍💻"


def spelled(name: str) -> st.SearchStrategy[str]:
    cases = st.lists(st.booleans(), min_size=len(name), max_size=len(name))
    return cases.map(lambda upper: "".join(c.upper() if up else c for c, up in zip(name, upper, strict=True)))


@given(st.data())
def test_headers_come_in_any_order_and_case(data: st.DataObject) -> None:
    """The case and order of header names do not matter, and other headers are ignored."""
    items = [*signed().items(), ("Content-Type", "application/json"), ("X-Other", "x")]
    shuffled = data.draw(st.permutations(items))
    assert verify(headers={data.draw(spelled(name)): value for name, value in shuffled}).id == "evt_1"


@pytest.mark.parametrize("secrets", [(SECRET,), (SECRET, OTHER_SECRET)])
def test_every_frameworks_headers_will_do(secrets: tuple[str, ...]) -> None:
    """The headers of Starlette, of http.server and a plain dict are accepted."""
    headers = signed(BODY, *secrets)
    message = Message()
    for name, value in headers.items():
        message[name] = value
    for each in (headers, Headers(headers), message):
        assert verify(headers=each).id == "evt_1"


@given(st.data(), st.booleans())
def test_any_change_fails(data: st.DataObject, only_service_signature: bool) -> None:  # noqa: FBT001
    """One changed, added or missing byte in the body, in a signed header or in the secret makes the webhook invalid."""
    headers = service_signed(BODY) if only_service_signature else without(signed(), "X-Service-Signature")
    what = data.draw(st.sampled_from(["body", "secret", *headers]))
    before = {"body": BODY.decode(), "secret": SECRET, **headers}[what]
    at = data.draw(st.integers(0, len(before) - 1))
    letter = data.draw(st.characters(max_codepoint=127 if what == "body" else 255))
    changes = [
        before[:at] + letter + before[at + 1 :],
        before[:at] + letter + before[at:],
        before[:at] + before[at + 1 :],
    ]
    # Blanks around a header's value are no part of it (RFC 9110, 5.5).
    after = data.draw(
        st.sampled_from(changes).filter(lambda text: (text.strip(" ") if what in headers else text) != before)
    )
    body = after.encode() if what == "body" else BODY
    secret = after if what == "secret" else SECRET
    with pytest.raises((WebhookError, ValueError) if what == "secret" else WebhookError):
        verify(body, headers | {what: after} if what in headers else headers, secret)


@pytest.mark.parametrize("changes", [{"webhook-id": "evt_\udcff"}, {"webhook-signature": "\udcff\ud800 é v1"}])
def test_headers_with_lone_surrogates(changes: dict[str, str]) -> None:
    """Servers decode invalid UTF-8 to lone surrogates, which cannot be encoded again."""
    with pytest.raises(WebhookSignatureInvalid):
        verify(headers=signed() | changes)


@given(st.binary(), st.dictionaries(st.sampled_from([*signed(), "X-Other"]), st.text()))
def test_whatever_comes_the_answer_is_a_webhook_error(body: bytes, headers: Mapping[str, str]) -> None:
    """No request makes the SDK raise anything other than WebhookError, so catching that is enough."""
    with pytest.raises(WebhookError):
        verify(body, headers)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_whatever_was_signed_the_answer_is_an_event_or_a_webhook_error(value: Any) -> None:
    """Even with a valid signature, an event has fields of its types, or WebhookError is raised."""
    for name in CONFIRMED:
        body = json.dumps(CONFIRMED | {name: value}).encode()
        try:
            event = verify(body, service_signed(body))
        except WebhookError:
            continue
        assert isinstance(event.id, str)
        assert isinstance(event.messenger_name, str | None)


@pytest.mark.parametrize("secret", [SECRET.encode(), None])
def test_a_secret_that_is_no_string_is_refused(secret: Any) -> None:
    """The vectors, which are JSON, cannot contain these values."""
    with pytest.raises(ValueError, match="secret"):
        verify(secret=secret)


@pytest.mark.parametrize("body", ["{}", None, {}, bytearray(BODY), memoryview(BODY)])
def test_a_body_that_was_decoded_is_the_applications_mistake(body: Any) -> None:
    """Only the received bytes can be checked, so another type is refused at the first request."""
    with pytest.raises(TypeError, match="bytes"):
        verify(body, signed())


@pytest.mark.parametrize(
    "headers",
    [None, [("webhook-id", "evt_1")], {"webhook-id": ["evt_1"]}, {"webhook-id": b"evt_1"}, {b"webhook-id": "evt_1"}],
)
def test_headers_that_are_no_strings_are_the_applications_mistake(headers: Any) -> None:
    """Lists of values and raw bytes are refused with a sentence, not taken for missing headers."""
    with pytest.raises(TypeError, match="header"):
        verify_webhook(BODY, headers, SECRET)


def test_the_session_token_stays_out_of_the_repr() -> None:
    """An event may be logged and kept in a set: its `repr` does not contain the session token."""
    event = verify()
    assert TOKEN not in repr(event)
    assert hash(event) == hash(verify())
