"""Made-up fields for test events, in the form of real ones.

No user has the messenger account, and no session has the token. `test` is true in every event of a real type.
"""

import hashlib
from typing import Any, Final

from taproof.contract.delivery import EventType
from taproof.core.clock import iso8601
from taproof.core.entropy import Entropy
from taproof.core.identifiers import new_session_id, new_session_token
from taproof.core.session_state import SESSION_LIFETIME

EXAMPLE_MESSENGER_ID: Final = "9000000000000001"
"""Telegram's ids have at most 52 bits (https://core.telegram.org/bots/api#user). This one has 53."""


def example_fields(event_type: EventType, now: int, entropy: Entropy) -> dict[str, Any]:
    """Return the fields of a test event at `now` (ms), without those that every event has."""
    if event_type == "webhook.test":
        return {"created_at": iso8601(now)}
    session_token = new_session_token(now, entropy)
    with_token = {"session_token": session_token}
    with_hash = {
        "session_id": new_session_id(now - SESSION_LIFETIME, entropy),
        "session_token_sha256": hashlib.sha256(session_token.encode()).hexdigest(),
    }
    fields: dict[str, Any]
    match event_type:
        case "auth.confirmed":
            user = {
                "messenger_id": EXAMPLE_MESSENGER_ID,
                "messenger_name": "Ada Lovelace",
                "messenger_username": "ada",
            }
            fields = {**with_token, **user, "confirmed_at": iso8601(now)}
        case "auth.cancelled":
            fields = {**with_token, "cancelled_at": iso8601(now)}
        case "auth.expired":
            fields = {**with_hash, "created_at": iso8601(now - SESSION_LIFETIME), "expired_at": iso8601(now)}
        case "auth.reported":
            known = {"messenger_id": EXAMPLE_MESSENGER_ID, "was_used": True}
            fields = {**with_hash, **known, "reported_at": iso8601(now)}
    return {**fields, "test": True}
