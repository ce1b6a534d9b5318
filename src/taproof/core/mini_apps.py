"""The data with which Telegram opens a Mini App (`Telegram.WebApp.initData`): its form, its signature and its age.

Telegram signs the data with its own key. Anyone who knows the bot's id and Telegram's public key can check this
signature, and only Telegram can create it. The data also carries a `hash`, which is keyed with the bot's token. It is
not accepted in place of the signature, because anyone with a leaked token could then sign in as any user.

Source: https://core.telegram.org/bots/webapps#validating-data-for-third-party-use and #webappinitdata.
"""

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from taproof.core.clock import MINUTE, SECOND, day_number
from taproof.core.errors import InitDataExpired, InitDataInvalid
from taproof.core.identity import MessengerIdentity

PRODUCTION_KEY: Final = bytes.fromhex("e7bf03a2fa4602af4580703d88dda5bb59f32ed8b02a56c187fe7d34caed242d")
"""Telegram's public Ed25519 key of the production environment, from the page above."""
TEST_KEY: Final = bytes.fromhex("40055058a4ee38156a06562e52eece92a771bcd8346a8c4615cb7376eddf72ec")
"""Telegram's public key of its test environment. User ids there belong to other people, so only one key may be used."""
INIT_DATA_LIMIT: Final = 4_096
"""The maximum length of the data in characters. Telegram's is below 2,000, including a start parameter of 512."""
INIT_DATA_LIFETIME: Final = 5 * MINUTE
"""The time (ms) after `auth_date` for which the data can sign in."""
CLOCK_SKEW: Final = 30 * SECOND
"""How far (ms) `auth_date` may be ahead of this node's clock."""
_FIELD_LIMIT: Final = 32
_FIELD: Final = re.compile(r"([a-z][a-z0-9_]{0,63})=([!-%'-~]*)")
"""A name and an encoded value, in printable ASCII except "&"."""
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
"""A line feed in a value would look like the end of its field in the signed text."""
_SIGNATURE: Final = re.compile(r"[A-Za-z0-9_-]{86}")
_AUTH_DATE: Final = re.compile(r"[1-9][0-9]{8,9}")
_LAST_DAY: Final = 2**16 - 1
"""The last day that a session token can carry, in the year 2149."""
_PRIVATE_CHATS: Final = {None, "sender", "private"}
_LARGEST_ID: Final = 2**52 - 1
"""core.telegram.org/bots/api#user: an id has at most 52 significant bits."""
_NAME_LIMIT: Final = 256


@dataclass(frozen=True, slots=True)
class InitData:
    """Data that Telegram signed for one bot: the user who opened the Mini App, and when (`auth_date`, in ms)."""

    identity: MessengerIdentity
    auth_date: int
    session_token: str
    """The token of the session that the data creates. It derives from the signed text alone, so any spelling of the
    same data gives the same token, and the store accepts a token once. Its day is that of `auth_date`."""

    @property
    def expires_at(self) -> int:
        """The time (ms) from which the data cannot sign in."""
        return self.auth_date + INIT_DATA_LIFETIME


def read_init_data(text: str, bot_id: int, public_key: Ed25519PublicKey) -> InitData:
    """Return the content of the data if Telegram signed it for this bot.

    Raises:
        InitDataInvalid: the data is malformed, is not signed with this key or for this bot, or does not describe a
            person in a private chat. The sentence names the problem.
    """
    fields = _read_fields(text)
    signature = fields.pop("signature", "")
    fields.pop("hash", None)
    if _SIGNATURE.fullmatch(signature) is None:
        raise InitDataInvalid("init_data has no signature. Send Telegram.WebApp.initData unchanged, as one string.")
    signed = f"{bot_id}:WebAppData\n" + "\n".join(f"{name}={fields[name]}" for name in sorted(fields))
    try:
        public_key.verify(base64.urlsafe_b64decode(f"{signature}=="), signed.encode())
    except InvalidSignature:
        raise InitDataInvalid(
            "Telegram did not sign this init_data for this project's bot. Open the Mini App of that bot, and send "
            "Telegram.WebApp.initData unchanged."
        ) from None
    written = fields.get("auth_date", "")
    auth_date = int(written) * SECOND if _AUTH_DATE.fullmatch(written) is not None else 0
    if not 0 < day_number(auth_date) <= _LAST_DAY:
        raise InitDataInvalid("init_data has no valid auth_date.")
    if fields.get("chat_type") not in _PRIVATE_CHATS or "chat" in fields:
        raise InitDataInvalid("The Mini App was opened in a group or channel. Open it in the chat with the bot.")
    return InitData(_read_user(fields.get("user", "")), auth_date, _session_token(signed, auth_date))


def require_fresh(data: InitData, now: int) -> None:
    """Raise InitDataExpired if the data is too old at `now`, or from the future."""
    if not data.auth_date - CLOCK_SKEW <= now < data.expires_at:
        raise InitDataExpired


def _read_fields(text: str) -> dict[str, str]:
    """Return the decoded fields of a query string. Accept only one reading of each text."""
    if len(text) > INIT_DATA_LIMIT:
        raise InitDataInvalid(f"init_data is longer than {INIT_DATA_LIMIT} characters.")
    parts = text.split("&")
    fields: dict[str, str] = {}
    for part in parts[: _FIELD_LIMIT + 1]:
        found = _FIELD.fullmatch(part)
        value = None if found is None else _decoded(found[2])
        if found is None or value is None or found[1] in fields or len(fields) == _FIELD_LIMIT:
            raise InitDataInvalid
        fields[found[1]] = value
    return fields


def _decoded(value: str) -> str | None:
    """Return a percent-decoded value; None if it is malformed, is not UTF-8 or has control characters."""
    if _BROKEN_ESCAPE.search(value) is not None:
        return None
    try:
        decoded = unquote_to_bytes(value.replace("+", " ")).decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(decoded) is not None else decoded


def _read_user(text: str) -> MessengerIdentity:
    """Return the user of the JSON object WebAppUser (https://core.telegram.org/bots/webapps#webappuser)."""
    try:
        user = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        user = None
    if not isinstance(user, dict):
        raise InitDataInvalid("init_data has no valid user. It comes with Mini Apps that are opened from a chat.")
    user_id, first_name = user.get("id"), user.get("first_name")
    last_name, username = user.get("last_name", ""), user.get("username", "")
    is_person = type(user_id) is int and 0 < user_id <= _LARGEST_ID and user.get("is_bot", False) is False
    if not is_person or not first_name or not all(map(_is_name, (first_name, last_name, username))):
        raise InitDataInvalid("The user in init_data is not a person's account.")
    return MessengerIdentity(str(user_id), f"{first_name} {last_name}" if last_name else first_name, username)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _NAME_LIMIT


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("A field is repeated.")
    return fields


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _session_token(signed: str, auth_date: int) -> str:
    """Return the session token for signed data, in the form of `core.identifiers.new_session_token`."""
    digest = hashlib.sha256(b"taproof mini app\n" + signed.encode()).digest()
    return base64.urlsafe_b64encode(day_number(auth_date).to_bytes(2) + digest[:30]).rstrip(b"=").decode()
