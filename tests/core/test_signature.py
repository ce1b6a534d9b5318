"""Webhook signatures, checked with third-party code and by hand."""

import base64
import hashlib
import hmac
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_webhook_secret
from taproof.core.signature import signature_headers

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


@given(st.binary(max_size=200))
def test_the_service_signature_is_hex_hmac_of_the_raw_body_with_the_whole_secret(body: bytes) -> None:
    """The spec's signature is the hex HMAC-SHA256 of the raw body; the key is the whole string (contract.md)."""
    headers = signature_headers("evt_1", body, [SECRET], 0)
    assert headers["X-Service-Signature"] == hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()


def test_standard_webhooks_library_refuses_what_was_changed() -> None:
    """Body, id, time and secret are all covered by the signature."""
    now = time.time_ns() // 1_000_000
    body = b'{"event": "auth.confirmed"}'
    headers = signature_headers("evt_1", body, [SECRET], now)
    for secret, changed_body, changed in (
        (SECRET, b'{"event": "auth.cancelled"}', {}),
        (SECRET, body, {"webhook-id": "evt_2"}),
        (SECRET, body, {"webhook-timestamp": str(now // 1000 + 1)}),
        (new_webhook_secret(system_entropy), body, {}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(changed_body, headers | changed)


def test_the_headers_are_these_four() -> None:
    """The spec's own header and the three of the standard, with whole seconds (contract.md, Webhooks)."""
    headers = signature_headers("evt_1", b"{}", [SECRET], 1_795_214_643_999)
    assert set(headers) == {"X-Service-Signature", "webhook-id", "webhook-timestamp", "webhook-signature"}
    assert headers["webhook-timestamp"] == "1795214643"
    assert headers["webhook-id"] == "evt_1"
    assert headers["webhook-signature"].startswith("v1,")


def test_during_a_rotation_there_is_a_standard_signature_for_each_secret() -> None:
    """A receiver may know either secret.

    X-Service-Signature has room for one signature and keeps using the first secret.
    """
    body, now = b"{}", time.time_ns() // 1_000_000
    following = new_webhook_secret(system_entropy)
    headers = signature_headers("evt_1", body, [SECRET, following], now)
    assert headers["webhook-signature"].count("v1,") == 2
    assert Webhook(SECRET).verify(body, headers) == Webhook(following).verify(body, headers) == {}
    assert headers["X-Service-Signature"] == hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    with pytest.raises(WebhookVerificationError):
        Webhook(new_webhook_secret(system_entropy)).verify(body, headers)
