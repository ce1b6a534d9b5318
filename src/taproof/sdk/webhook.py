"""Checking a webhook on the application's own server (service-spec.md, Events; Standard Webhooks 1.0)."""

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from taproof.sdk.strict_json import is_phone, is_text, read_object
from taproof.sdk.webhook_secrets import WRONG_SETTING, require_webhook_secrets

_LONGEST_BODY: Final = 65_536
"""Bytes: many times what any event needs."""
_STANDARD_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
_SERVICE_SIGNATURE: Final = "x-service-signature"
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_INSTANT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")
_INSTANTS: Final = {"auth.confirmed": "confirmed_at", "auth.cancelled": "cancelled_at", "webhook.test": "created_at"}
"""The events that are known here, and for each the field that says when it happened."""
_DECISIONS: Final = ("auth.confirmed", "auth.cancelled")


class WebhookError(Exception):
    """The request does not show that the service sent it: do nothing that it says. No message holds it or a secret."""


class WebhookMalformed(WebhookError):
    """It is not a Taproof webhook: a header is missing, or the body is not an event."""


class WebhookSignatureInvalid(WebhookError):
    """It was not signed with any of the secrets given: forged, altered, or signed before or after a rotation."""


class WebhookTooOld(WebhookError):
    """It was signed longer ago than the tolerance: an old request sent again, or a clock that is wrong."""


class WebhookFromFuture(WebhookError):
    """It was signed further in the future than the tolerance: one of the two servers' clocks is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """What a webhook that holds tells.

    Attributes:
        id: `evt_…`, the same on every attempt: take each only once.
        type: "auth.confirmed", "auth.cancelled" or "webhook.test"; or one of a newer service: answer 200, do nothing.
        project_id: the project that it is about.
        session_token: the sign-in that it is about; None for other events. Left out of `repr`: keep it out of logs.
        messenger_id: the user's account in the messenger, digits, to store the user under. As the next two, it is
            there for "auth.confirmed", and None otherwise.
        messenger_name: the display name that the user chose. Anybody may choose any: escape it, trust it in nothing.
        messenger_username: the user's handle, without "@"; None when there is none. It may pass to somebody else.
        messenger_phone: the user's phone number as the messenger knows it, such as "+4915123456789" (E.164); None
            unless the project collects it and the user gave it. Left out of `repr`.
        occurred_at: when the user decided, or when the test was made, in seconds since the epoch, to the millisecond;
            None for the events of a newer service.
        signed_at: when this attempt was signed, in seconds since the epoch; None when `X-Service-Signature` alone was
            there to check, which signs no time.
        data: the whole body, for what a newer service adds. Left out of `repr`.
    """

    id: str
    type: str
    project_id: str
    session_token: str | None = field(repr=False)
    messenger_id: str | None
    messenger_name: str | None
    messenger_username: str | None
    messenger_phone: str | None = field(default=None, repr=False)
    occurred_at: float | None
    signed_at: int | None
    data: dict[str, Any] = field(repr=False, hash=False)


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    tolerance: float = 300,
    *,
    now: float | None = None,
) -> WebhookEvent:
    """Check a webhook and return the event that it tells of. Nothing is asked of the service: the check is local.

    The three headers of Standard Webhooks decide when any of them is there: `webhook-id`, `webhook-timestamp` and
    `webhook-signature`. Without them `X-Service-Signature` decides. It signs no time, so whoever has seen one request
    could leave the three headers out and send it again for ever.

    Hence one thing stays with the caller: keep the ids of the events that were handled, for all servers together, and
    handle none twice. The service itself may send an event more than once, and events in any order.

    Args:
        body: the request's body, the bytes exactly as they came; not JSON that was parsed and written again.
        headers: the request's headers, in any case and any order, as every web framework has them.
        secret: the project's webhook secret, the whole `whsec_…` string. Several are tried in turn, for a rotation.
        tolerance: seconds that `webhook-timestamp` may lie in the past or in the future.
        now: the time in seconds since the epoch; the machine's clock unless given, as a test would.

    Raises:
        WebhookMalformed, WebhookSignatureInvalid, WebhookTooOld, WebhookFromFuture: each a WebhookError.
        ValueError, TypeError: `secret` is not a webhook secret; `body` is not bytes; `headers` is not a mapping of
            strings. Mistakes in the application, so not a WebhookError.
    """
    keys = [(each, _standard_key(each)) for each in require_webhook_secrets(secret)]
    if not isinstance(body, bytes):
        raise TypeError("Give the request's body as the bytes that came, before anything has parsed or decoded it.")
    given = _signature_headers(headers)
    if len(body) > _LONGEST_BODY:
        raise WebhookMalformed("The body is too long for an event of Taproof.")
    signed_at = None
    if any(name in given for name in _STANDARD_HEADERS):
        signed_at = _require_standard_signature(body, given, [key for _, key in keys])
        instant = time.time() if now is None else now  # noqa: TID251 — the SDK stands alone; `now` is for tests.
        # Written so that a tolerance of NaN refuses: every comparison with it is false.
        if not signed_at >= instant - tolerance:
            raise WebhookTooOld("The webhook was signed too long ago. If it is a new one, compare the servers' clocks.")
        if not signed_at <= instant + tolerance:
            raise WebhookFromFuture("The webhook was signed in the future. Compare the two servers' clocks.")
    elif _SERVICE_SIGNATURE in given:
        _require_service_signature(body, given[_SERVICE_SIGNATURE], [each for each, _ in keys])
    else:
        raise WebhookMalformed("The request is not signed: it has neither webhook-signature nor X-Service-Signature.")
    event = _event(_parsed(body), signed_at)
    if signed_at is not None and given["webhook-id"] != event.id:
        raise WebhookMalformed("The header webhook-id is not the id of the event in the body.")
    return event


def _standard_key(secret: str) -> bytes:
    """Return what Standard Webhooks uses as the key: the part after the prefix, base64-decoded."""
    encoded = secret.removeprefix("whsec_")
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise ValueError(WRONG_SETTING) from None
    # A second spelling of the same key would fit one kind of signature and not the other.
    if not key or base64.b64encode(key).decode() != encoded:
        raise ValueError(WRONG_SETTING)
    return key


def _signature_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that matter here, by their names in lower case."""
    items = getattr(headers, "items", None)
    if items is None:
        raise TypeError("Give the request's headers as a mapping of names to values.")
    found: dict[str, str] = {}
    for name, value in items():
        if not isinstance(name, str):
            raise TypeError("Give the names of the request's headers as strings.")
        lowered = name.lower()
        if lowered not in _STANDARD_HEADERS and lowered != _SERVICE_SIGNATURE:
            continue
        if not isinstance(value, str):
            raise TypeError(f"Give the value of the header {lowered} as one string.")
        # Two values: others on the way may have gone by the one, and this check by the other.
        if lowered in found:
            raise WebhookMalformed(f"The header {lowered} came twice.")
        found[lowered] = value
    return found


def _require_standard_signature(body: bytes, given: dict[str, str], keys: Sequence[bytes]) -> int:
    """Raise unless one of the signatures was made with one of the keys; return the time that was signed with it."""
    for name in _STANDARD_HEADERS:
        if not given.get(name):
            raise WebhookMalformed(
                f"The header {name} is missing. All three of {', '.join(_STANDARD_HEADERS)} are needed."
            )
    timestamp = given["webhook-timestamp"]
    if _TIMESTAMP.fullmatch(timestamp) is None:
        raise WebhookMalformed("The header webhook-timestamp must be whole seconds since the epoch.")
    signed = f"{given['webhook-id']}.{timestamp}.".encode(errors="replace") + body
    signatures = given["webhook-signature"].split(" ")
    for key in keys:
        expected = f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"
        for signature in signatures:
            if _same(signature, expected):
                return int(timestamp)
    raise WebhookSignatureInvalid(
        "No signature in webhook-signature fits a secret given. Check the bytes exactly as they came, and use the"
        " project's current webhook secret."
    )


def _require_service_signature(body: bytes, signature: str, secrets: Sequence[str]) -> None:
    for secret in secrets:
        if _same(signature, hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()):
            return
    raise WebhookSignatureInvalid(
        "X-Service-Signature fits no secret given. Check the bytes exactly as they came, and use the project's current"
        " webhook secret."
    )


def _same(given: str, expected: str) -> bool:
    """Compare in a time that does not tell how much of `given` is right."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        return read_object(body)
    except (ValueError, RecursionError):  # `from None`: the error holds the body.
        raise WebhookMalformed("The body is not the JSON object of an event.") from None


def _event(data: dict[str, Any], signed_at: int | None) -> WebhookEvent:
    """Return the event, each field of its exact type, or raise WebhookMalformed."""
    event_type = _text(data, "event")
    instant_field = _INSTANTS.get(event_type)
    confirmed = event_type == "auth.confirmed"
    if not confirmed or data.get("messenger_username", ...) is None:
        username = None
    else:
        username = _text(data, "messenger_username", may_be_empty=True) or None
    return WebhookEvent(
        id=_text(data, "id"),
        type=event_type,
        project_id=_text(data, "project_id"),
        session_token=_text(data, "session_token") if event_type in _DECISIONS else None,
        messenger_id=_text(data, "messenger_id") if confirmed else None,
        messenger_name=_text(data, "messenger_name", may_be_empty=True) if confirmed else None,
        messenger_username=username,
        messenger_phone=_phone(data) if confirmed else None,
        occurred_at=_instant(data, instant_field) if instant_field else None,
        signed_at=signed_at,
        data=data,
    )


def _text(data: dict[str, Any], name: str, *, may_be_empty: bool = False) -> str:
    value = data.get(name)
    if not is_text(value) or not (value or may_be_empty):
        raise WebhookMalformed(f"The body's field {name} must be there, as a string.")
    return value


def _phone(data: dict[str, Any]) -> str | None:
    value = data.get("messenger_phone", ...)
    if value is ...:
        return None
    if not is_phone(value):
        raise WebhookMalformed("The body's field messenger_phone must be a phone number like +4915123456789.")
    return value


def _instant(data: dict[str, Any], name: str) -> float:
    value = _text(data, name)
    if _INSTANT.fullmatch(value) is not None:
        try:
            return datetime.fromisoformat(value).timestamp()
        except ValueError:  # Such as a thirteenth month.
            pass
    raise WebhookMalformed(f"The body's field {name} must be a time like 2026-11-20T22:44:03.127Z.")
