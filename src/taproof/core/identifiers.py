"""The format of every identifier, token and key (contract.md, Identifiers and secrets)."""

import base64
import binascii
import functools
import hashlib
import re
import zlib
from typing import Final

from taproof.contract.client import CLIENT_ID
from taproof.contract.delivery import EVENT_ID
from taproof.contract.project import PROJECT_ID
from taproof.core.clock import day_number
from taproof.core.entropy import Entropy
from taproof.core.sessions import SessionKey

ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH: Final = 22
"""The number of characters after the prefix."""
KEY_LENGTH: Final = 43
"""The number of random characters in a key: 43 letters and digits hold 256 bits. A six-character checksum follows."""
CHECKSUM_LENGTH: Final = 6
PROJECT_ID_RULE: Final = "proj_ followed by 16 to 40 letters and digits"
"""What `is_project_id` requires, for error messages."""
_TIME_LENGTH: Final = 7
"""The number of characters for the time in milliseconds since the epoch. They suffice until the year 2081."""

# Base64 with two letters in place of `+` and `/`. These letters are twice as frequent, so a character still holds at
# least 5 bits. An even distribution over 62 characters would take 20 times as long, and every session needs an id.
_LETTERS: Final = bytes.maketrans(b"+/", b"Az")
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_SESSION_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_SESSION_ID: Final = re.compile(r"sess_([A-Za-z0-9]{7})[A-Za-z0-9]{20}")
_PROJECT_ID: Final = re.compile(PROJECT_ID.pattern)
_EVENT_ID: Final = re.compile(EVENT_ID.pattern)
_CLIENT_ID: Final = re.compile(CLIENT_ID.pattern)
_KEY: Final = re.compile(r"[A-Za-z0-9]{49}")


def _base62(value: int, length: int) -> str:
    digits = []
    for _ in range(length):
        value, digit = divmod(value, 62)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def letters_of(raw: bytes) -> str:
    """Return random bytes as letters and digits, of which each has at least 5 random bits."""
    return binascii.b2a_base64(raw, newline=False).translate(_LETTERS).decode()


def _time_text(now: int) -> str:
    return f"{_slow_digits(now // 62**2)}{ALPHABET[now // 62 % 62]}{ALPHABET[now % 62]}"


@functools.lru_cache(4)
def _slow_digits(high: int) -> str:
    """Return all but the last two digits of a time, cached because they change every four seconds."""
    return _base62(high, _TIME_LENGTH - 2)


def new_id(prefix: str, entropy: Entropy) -> str:
    """Return a new identifier such as `proj_4Ksd…`, with at least 110 random bits."""
    return f"{prefix}_{letters_of(entropy(18))[:ID_LENGTH]}"


def new_event_id(now: int, entropy: Entropy) -> str:
    """Return a new webhook event's id, `evt_…`: seven characters that sort by time, and at least 75 random bits.

    Consecutive ids are neighbours in the store, so one page write stores many of them.
    """
    return f"evt_{_time_text(now)}{letters_of(entropy(12))[: ID_LENGTH - _TIME_LENGTH]}"


def new_session_id(now: int, entropy: Entropy) -> str:
    """Return a new session's id, `sess_…`: seven characters of time and at least 100 random bits.

    Lookups use the time together with the project, so the id needs no index.
    """
    return f"sess_{_time_text(now)}{letters_of(entropy(15))}"


def session_created_at(session_id: str) -> int | None:
    """Return the time of creation (ms) that a session's id contains; None if `session_id` is malformed."""
    found = _SESSION_ID.fullmatch(session_id)
    if found is None:
        return None
    created_at = 0
    for character in found[1]:
        created_at = created_at * 62 + ALPHABET.index(character)
    return created_at


def is_project_id(value: str) -> bool:
    """Return whether `value` has the format of a project id."""
    return _PROJECT_ID.fullmatch(value) is not None


def is_event_id(value: str) -> bool:
    """Return whether `value` has the format of a webhook event's id."""
    return _EVENT_ID.fullmatch(value) is not None


def is_client_id(value: str) -> bool:
    """Return whether `value` has the format of an OpenID Connect client's id."""
    return _CLIENT_ID.fullmatch(value) is not None


def new_session_token(now: int, entropy: Entropy) -> str:
    """Return a new session token: the base64url of 32 bytes without padding.

    The first two are the UTC day of creation.
    """
    raw = day_number(now).to_bytes(2) + entropy(30)
    return binascii.b2a_base64(raw, newline=False).translate(_URL_SAFE, b"=").decode()


def session_key(session_token: str) -> SessionKey | None:
    """Return the storage key of the session with this token; None if the token is malformed.

    The last character's two unused bits must be zero. Otherwise several tokens would identify the same session.
    """
    if _SESSION_TOKEN.fullmatch(session_token) is None or session_token[-1] not in _LAST_CHARACTERS:
        return None
    return SessionKey(_day(session_token[:4]), hashlib.sha256(session_token.encode()).digest())


@functools.lru_cache(1024)
def _day(head: str) -> int:
    """Return the day in the first four characters of a token, cached because most current tokens share it."""
    return int.from_bytes(base64.urlsafe_b64decode(head)[:2])


_LAST_CHARACTERS: Final = frozenset("AEIMQUYcgkosw048")


def new_key(prefix: str, entropy: Entropy) -> str:
    """Return a new key, such as a secret key (`sk`) or an access token (`tap`): letters and digits, and a CRC-32.

    With this checksum, a secret scanner can tell a key from other text without calling the service.
    """
    body = _base62(int.from_bytes(entropy(32)), KEY_LENGTH)
    return f"{prefix}_{body}{checksum_of(prefix, body)}"


def is_key(value: str, prefix: str) -> bool:
    """Return whether `value` is a well-formed key of this kind with a correct checksum."""
    kind, _, rest = value.partition("_")
    if kind != prefix or _KEY.fullmatch(rest) is None:
        return False
    return rest[KEY_LENGTH:] == checksum_of(prefix, rest[:KEY_LENGTH])


def checksum_of(prefix: str, body: str) -> str:
    """Return the CRC-32 of a key, in six letters and digits."""
    return _base62(zlib.crc32(f"{prefix}_{body}".encode()), CHECKSUM_LENGTH)


def key_hash(key: str) -> bytes:
    """Return the SHA-256 that identifies a key in the store. A key has 256 random bits, so no salt is needed."""
    return hashlib.sha256(key.encode()).digest()


def key_preview(key: str) -> str:
    """Return the part of a key that may be shown again, such as `sk_a1B2…Wx9z`."""
    prefix, _, rest = key.partition("_")
    return f"{prefix}_{rest[:4]}…{rest[-4:]}"


def random_base64url(entropy: Entropy) -> str:
    """Return 32 random bytes in base64url without padding: 43 characters, for secrets that need no other form."""
    return base64.urlsafe_b64encode(entropy(32)).rstrip(b"=").decode()


def new_webhook_secret(entropy: Entropy) -> str:
    """Return a webhook secret: `whsec_` and the base64 of 32 random bytes (the Standard Webhooks format)."""
    return f"whsec_{base64.b64encode(entropy(32)).decode()}"
