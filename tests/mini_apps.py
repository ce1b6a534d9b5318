"""Sign data of Mini Apps with a test key, as Telegram does with its own."""

import base64
import json
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC_KEY = KEY.public_key().public_bytes_raw()
BOT_ID = 7_000_000_001
USER = {"id": 1001, "first_name": "Ada", "last_name": "Lovelace", "username": "ada", "language_code": "en"}


def fields_at(auth_date: int, user: Any = None, **changes: str | None) -> dict[str, str]:
    """Return the fields of a Mini App that was opened at `auth_date` (s); a change to None removes a field."""
    fields: dict[str, str | None] = {
        "user": user if isinstance(user, str) else json.dumps(USER if user is None else user),
        "chat_instance": "8134722200314281151",
        "chat_type": "private",
        "auth_date": str(auth_date),
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def signed(fields: dict[str, str], bot_id: int = BOT_ID, key: Ed25519PrivateKey = KEY) -> str:
    """Return fields as a query string with their signature and a hash that is not checked."""
    text = "\n".join(f"{name}={fields[name]}" for name in sorted(fields))
    signature = base64.urlsafe_b64encode(key.sign(f"{bot_id}:WebAppData\n{text}".encode())).rstrip(b"=").decode()
    return encoded({**fields, "signature": signature, "hash": "0" * 64})


def encoded(fields: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())


def init_data(now: int, user_id: int = 1001, bot_id: int = BOT_ID, **changes: str | None) -> str:
    """Return the data of a Mini App that a user opened at `now` (ms)."""
    return signed(fields_at(now // 1_000, USER | {"id": user_id}, **changes), bot_id)
