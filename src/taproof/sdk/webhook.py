"""Checks webhooks on the application's own server (service-spec.md, Events; Standard Webhooks 1.0)."""

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
"""In bytes: many times the size of any event."""
_STANDARD_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")
_SERVICE_SIGNATURE: Final = "x-service-signature"
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_INSTANT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")
_INSTANTS: Final = {
    "auth.confirmed": "confirmed_at",
    "auth.cancelled": "cancelled_at",
    "auth.expired": "expired_at",
    "auth.reported": "reported_at",
    "webhook.test": "created_at",
}
"""The known events, each with the name of its time field."""
_WITH_TOKEN: Final = ("auth.confirmed", "auth.cancelled")
_WITH_HASH: Final = ("auth.expired", "auth.reported")


class WebhookError(Exception):
    """The request may not come from the service: ignore it. No message contains the request or a secret."""


class WebhookMalformed(WebhookError):
    """The request is not a Taproof webhook: a header is missing, or the body is not an event."""


class WebhookSignatureInvalid(WebhookError):
    """The webhook was not signed with a given secret: it is forged, altered, or from before or after a rotation."""


class WebhookTooOld(WebhookError):
    """The webhook was signed longer ago than the tolerance: an old request was sent again, or a clock is wrong."""


class WebhookFromFuture(WebhookError):
    """The webhook was signed further in the future than the tolerance: one of the two servers' clocks is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """The event of a valid webhook.

    Attributes:
        id: `evt_…`, the same on every attempt: process each event only once.
        type: "auth.confirmed", "auth.cancelled", "auth.expired", "auth.reported" or "webhook.test". Answer 200 to any
            other type.
        project_id: the project of the event.
        is_test: True if the developer requested this event, and no user caused it: sign nobody in.
        session_token: the session token of the sign-in, for "auth.confirmed" and "auth.cancelled" only. Omitted from
            `repr`, to keep it out of logs.
        session_token_sha256: the SHA-256 of the session token in hex, for "auth.expired" and "auth.reported" only.
        messenger_id, messenger_name, messenger_username, messenger_phone: the user, as in `Identity`, for
            "auth.confirmed" only. The username is None if there is none. "auth.reported" has the id if the user had
            confirmed.
        was_used: for "auth.reported" only: whether the proof had been issued.
        occurred_at: the time of the event, in seconds since the epoch, to the millisecond; None for unknown events from
            a newer service.
        signed_at: the time when this attempt was signed, in seconds since the epoch; None if the request has only
            `X-Service-Signature`, which does not cover a time.
        data: the whole body, including fields that a newer service adds. Omitted from `repr`.
    """

    id: str
    type: str
    project_id: str
    is_test: bool = False
    session_token: str | None = field(repr=False)
    session_token_sha256: str | None = None
    messenger_id: str | None
    messenger_name: str | None
    messenger_username: str | None
    messenger_phone: str | None = field(default=None, repr=False)
    was_used: bool | None = None
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
    """Check a webhook and return its event. The check is local; no service is called.

    If the request has any of the Standard Webhooks headers, all three are checked: `webhook-id`, `webhook-timestamp`
    and `webhook-signature`. Otherwise `X-Service-Signature` is checked. That signature does not cover a time: an
    attacker who has seen one request can remove the three headers and send it again later.

    Therefore store the ids of processed events in storage that all of your servers share, and process no event twice.
    The service may also send an event more than once, and send events in any order.

    Args:
        body: the bytes of the request's body, exactly as received; not JSON that was parsed and serialized again.
        headers: the request's headers, in any case and any order, as any web framework provides them.
        secret: the project's webhook secret, the whole `whsec_…` string. During a rotation, pass several.
        tolerance: seconds that `webhook-timestamp` can be in the past or in the future.
        now: the time in seconds since the epoch, for tests; the machine's clock by default.

    Raises:
        WebhookMalformed, WebhookSignatureInvalid, WebhookTooOld, WebhookFromFuture: each a WebhookError.
        ValueError, TypeError: `secret` is not a webhook secret; `body` is not bytes; `headers` is not a mapping of
            strings. These are errors of the application, so they are not WebhookErrors.
    """
    keys = [(each, _standard_key(each)) for each in require_webhook_secrets(secret)]
    if not isinstance(body, bytes):
        raise TypeError("Pass the request's body as the received bytes, before anything parses or decodes it.")
    given = _signature_headers(headers)
    if len(body) > _LONGEST_BODY:
        raise WebhookMalformed("The body is too long for a Taproof event.")
    signed_at = None
    if any(name in given for name in _STANDARD_HEADERS):
        signed_at = _require_standard_signature(body, given, [key for _, key in keys])
        instant = time.time() if now is None else now  # noqa: TID251 — the SDK has no clock module.
        # Written so that a tolerance of NaN refuses the webhook: every comparison with NaN is false.
        if not signed_at >= instant - tolerance:
            raise WebhookTooOld("The webhook was signed too long ago. If it is a new one, compare the servers' clocks.")
        if not signed_at <= instant + tolerance:
            raise WebhookFromFuture("The webhook was signed in the future. Compare the two servers' clocks.")
    elif _SERVICE_SIGNATURE in given:
        _require_service_signature(body, given[_SERVICE_SIGNATURE], [each for each, _ in keys])
    else:
        raise WebhookMalformed("The request is not signed: it has neither webhook-signature nor X-Service-Signature.")
    try:
        data = read_object(body)
    except (ValueError, RecursionError):  # `from None`: the error contains the body.
        raise WebhookMalformed("The body is not an event as a JSON object.") from None
    event = _event(data, signed_at)
    if signed_at is not None and given["webhook-id"] != event.id:
        raise WebhookMalformed("The header webhook-id is not the id of the event in the body.")
    return event


def _standard_key(secret: str) -> bytes:
    """Return the key for Standard Webhooks: the part after the prefix, base64-decoded."""
    encoded = secret.removeprefix("whsec_")
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise ValueError(WRONG_SETTING) from None
    # A different encoding of the same key would match one kind of signature but not the other.
    if not key or base64.b64encode(key).decode() != encoded:
        raise ValueError(WRONG_SETTING)
    return key


def _signature_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the signature headers, keyed by lower-case name."""
    items = getattr(headers, "items", None)
    if items is None:
        raise TypeError("Pass the request's headers as a mapping of names to values.")
    found: dict[str, str] = {}
    for name, value in items():
        if not isinstance(name, str):
            raise TypeError("Pass the names of the request's headers as strings.")
        lowered = name.lower()
        if lowered not in _STANDARD_HEADERS and lowered != _SERVICE_SIGNATURE:
            continue
        if not isinstance(value, str):
            raise TypeError(f"Pass the value of the header {lowered} as one string.")
        # With two values, a proxy could use one and this check the other.
        if lowered in found:
            raise WebhookMalformed(f"The header {lowered} is repeated.")
        found[lowered] = value
    return found


def _require_standard_signature(body: bytes, given: dict[str, str], keys: Sequence[bytes]) -> int:
    """Return the signed time; raise unless one of the signatures was made with one of the keys."""
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
        "No signature in webhook-signature matches a given secret. Pass the body exactly as received, and use the"
        " project's current webhook secret."
    )


def _require_service_signature(body: bytes, signature: str, secrets: Sequence[str]) -> None:
    if not any(_same(signature, hmac.new(each.encode(), body, hashlib.sha256).hexdigest()) for each in secrets):
        raise WebhookSignatureInvalid(
            "X-Service-Signature matches no given secret. Pass the body exactly as received, and use the project's"
            " current webhook secret."
        )


def _same(given: str, expected: str) -> bool:
    """Compare in constant time, so that an attacker learns nothing about `expected`."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


def _event(data: dict[str, Any], signed_at: int | None) -> WebhookEvent:
    """Return the event; raise WebhookMalformed unless each field has its exact type."""
    event_type = _text(data, "event")
    instant_field = _INSTANTS.get(event_type)
    confirmed, reported = event_type == "auth.confirmed", event_type == "auth.reported"
    may_know_user = confirmed or (reported and data.get("messenger_id", ...) is not None)
    if not confirmed or data.get("messenger_username", ...) is None:
        username = None
    else:
        username = _text(data, "messenger_username", may_be_empty=True) or None
    return WebhookEvent(
        id=_text(data, "id"),
        type=event_type,
        project_id=_text(data, "project_id"),
        is_test=event_type == "webhook.test" or data.get("test") is True,
        session_token=_text(data, "session_token") if event_type in _WITH_TOKEN else None,
        session_token_sha256=_text(data, "session_token_sha256") if event_type in _WITH_HASH else None,
        messenger_id=_text(data, "messenger_id") if may_know_user else None,
        messenger_name=_text(data, "messenger_name", may_be_empty=True) if confirmed else None,
        messenger_username=username,
        messenger_phone=_phone(data) if confirmed else None,
        was_used=_flag(data, "was_used") if reported else None,
        occurred_at=_instant(data, instant_field) if instant_field else None,
        signed_at=signed_at,
        data=data,
    )


def _text(data: dict[str, Any], name: str, *, may_be_empty: bool = False) -> str:
    value = data.get(name)
    if not is_text(value) or not (value or may_be_empty):
        raise WebhookMalformed(f"The body's field {name} is required and must be a string.")
    return value


def _flag(data: dict[str, Any], name: str) -> bool:
    value = data.get(name)
    if not isinstance(value, bool):
        raise WebhookMalformed(f"The body's field {name} is required and must be true or false.")
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
        except ValueError:  # For example, month 13.
            pass
    raise WebhookMalformed(f"The body's field {name} must be a time like 2026-11-20T22:44:03.127Z.")
