"""Describe the webhooks in the OpenAPI document (contract.md, Webhooks).

`service/sessions/events.py` and `service/deliveries.py` build the bodies; `service/webhooks.py` builds the headers.
A test compares the requests that are sent with this description.
"""

from typing import Any, Final

from taproof.api.models import text_schema
from taproof.api.openapi.operation import text
from taproof.api.openapi.sign_in import PHONE, PROJECT_ID, SESSION_TOKEN, TIME
from taproof.contract.delivery import EVENT_ID, EventType
from taproof.contract.session import SESSION_ID
from taproof.service.webhooks import SEND_TIMEOUT

_EVENT_ID: Final = text_schema(
    EVENT_ID, description="The event's id, the same for every attempt. Process each id only once."
)
_TEST: Final[dict[str, Any]] = {
    "type": "boolean",
    "const": True,
    "description": "Only in a test event that you requested: its values are made up. Sign nobody in.",
}
_SESSION_ID: Final = text_schema(SESSION_ID, description="The id of the session, as in GET /api/v1/dev/sessions.")
_TOKEN_HASH: Final[dict[str, Any]] = text(
    "The SHA-256 of the session token in hex. The service stores no session tokens.",
    "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    pattern="^[0-9a-f]{64}$",
)
_SIGNED_IN: Final = {**SESSION_TOKEN, "description": "The session token that generate returned to your client."}


def _parameter(name: str, description: str, pattern: str, example: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": {"type": "string", "pattern": pattern},
        "example": example,
    }


_HEADERS: Final = [
    _parameter(
        "X-Service-Signature",
        "The hex HMAC-SHA256 of the body's bytes. The key is the whole webhook secret as bytes, including whsec_.",
        "^[0-9a-f]{64}$",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ),
    _parameter(
        "webhook-id",
        "The event's id, as in the body. Covered by webhook-signature (Standard Webhooks).",
        _EVENT_ID["pattern"],
        _EVENT_ID["examples"][0],
    ),
    _parameter(
        "webhook-timestamp",
        "The time of this attempt, in seconds since the epoch. Covered by webhook-signature (Standard Webhooks).",
        "^[0-9]+$",
        "1795214643",
    ),
    _parameter(
        "webhook-signature",
        "The signature of Standard Webhooks. The key is the part of the webhook secret after whsec_, base64-decoded. "
        "During a rotation there are two signatures, separated by a space.",
        "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$",
        "v1,n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=",
    ),
    _parameter("User-Agent", "Taproof and its version.", "^Taproof/", "Taproof/0.1.0"),
]
_ANSWERS: Final = {
    "2XX": {
        "description": f"The event is accepted. Answer within {SEND_TIMEOUT} seconds. The response body is only shown "
        "in the list of deliveries."
    },
    "3XX": {"description": "Not followed. The event is sent again later, unless it is a test."},
    "410": {"description": "The webhook is turned off, unless the event is a test."},
    "429": {"description": "Not accepted. Retry-After can lengthen the delay before the next attempt; also with 503."},
    "default": {"description": "Not accepted. The event is sent again later, unless it is a test."},
}


def _body(event: EventType, description: str, fields: dict[str, Any]) -> dict[str, Any]:
    properties = {"id": _EVENT_ID, "event": {"type": "string", "const": event}, "project_id": PROJECT_ID, **fields}
    if event != "webhook.test":
        properties["test"] = _TEST
    return {
        "type": "object",
        "description": f"{description} Newer releases may send more fields.",
        "properties": properties,
        "required": [name for name in properties if name not in {"messenger_phone", "test"}],
    }


def _webhook(name: str, summary: str, schema: str) -> dict[str, Any]:
    return {
        "post": {
            "tags": ["Webhook secret and deliveries"],
            "summary": summary,
            "description": f"{summary}. Check the signature over the exact bytes of the body before you use it. "
            "An event can arrive more than once, and events can arrive in any order.",
            "operationId": name,
            "security": [],
            "parameters": _HEADERS,
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
            },
            "responses": _ANSWERS,
        }
    }


WEBHOOK_SCHEMAS: Final[dict[str, Any]] = {
    "AuthConfirmedEvent": _body(
        "auth.confirmed",
        "A user tapped Confirm.",
        {
            "session_token": _SIGNED_IN,
            "messenger_id": text("The id of the user's messenger account. It never changes.", "123456789"),
            "messenger_name": text("The user's display name. It can contain anything: escape it.", "Ada Lovelace"),
            "messenger_username": {
                "type": ["string", "null"],
                "description": "null if the user has none.",
                "examples": ["ada"],
            },
            "messenger_phone": PHONE,
            "confirmed_at": TIME,
        },
    ),
    "AuthCancelledEvent": _body(
        "auth.cancelled", "A user tapped Cancel.", {"session_token": _SIGNED_IN, "cancelled_at": TIME}
    ),
    "AuthExpiredEvent": _body(
        "auth.expired",
        "A sign-in was not decided within ten minutes, or not finished within five minutes of Confirm. "
        "Sent only if the project has chosen it.",
        {"session_id": _SESSION_ID, "session_token_sha256": _TOKEN_HASH, "created_at": TIME, "expired_at": TIME},
    ),
    "AuthReportedEvent": _body(
        "auth.reported",
        "A user reported a sign-in as not theirs. Sent only if the project has chosen it.",
        {
            "session_id": _SESSION_ID,
            "session_token_sha256": _TOKEN_HASH,
            "messenger_id": {
                "type": ["string", "null"],
                "description": "The account that confirmed the sign-in and reports it; null if nobody confirmed it.",
                "examples": ["123456789"],
            },
            "was_used": {
                "type": "boolean",
                "description": "true: verify had returned the identity and the proof before the report.",
                "examples": [True],
            },
            "reported_at": TIME,
        },
    ),
    "WebhookTestEvent": _body("webhook.test", "You sent a test event.", {"created_at": TIME}),
    "WebhookEvent": {
        "description": "A webhook's body. Newer releases may send more types: ignore unknown ones.",
        "oneOf": [
            {"$ref": "#/components/schemas/AuthConfirmedEvent"},
            {"$ref": "#/components/schemas/AuthCancelledEvent"},
            {"$ref": "#/components/schemas/AuthExpiredEvent"},
            {"$ref": "#/components/schemas/AuthReportedEvent"},
            {"$ref": "#/components/schemas/WebhookTestEvent"},
        ],
    },
}
WEBHOOKS: Final[dict[EventType, Any]] = {
    "auth.confirmed": _webhook("receive_auth_confirmed", "A user tapped Confirm", "AuthConfirmedEvent"),
    "auth.cancelled": _webhook("receive_auth_cancelled", "A user tapped Cancel", "AuthCancelledEvent"),
    "auth.expired": _webhook("receive_auth_expired", "A sign-in expired", "AuthExpiredEvent"),
    "auth.reported": _webhook("receive_auth_reported", "A user reported a sign-in", "AuthReportedEvent"),
    "webhook.test": _webhook("receive_webhook_test", "You sent a test event", "WebhookTestEvent"),
}
"""Keyed by event type, which is also the value of `event` in the body."""
