"""Reads what callers of the control API send, and says in a sentence what is wrong with it."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request

from taproof.sandbox.bot_request import read_json
from taproof.sandbox.chats import Person
from taproof.sandbox.control_errors import DeeplinkInvalid, InvalidSandboxRequest, SandboxBodyTooLarge
from taproof.sandbox.html_text import clean_text
from taproof.sandbox.own_hosts import OwnHosts

BODY_LIMIT: Final = 16_384
PHONE_PATH: Final = "/sandbox/phone"
HIGHEST_ID: Final = 2**52 - 1
"""The Bot API promises that a user's id has at most 52 significant bits."""
LONGEST_WAIT: Final = 30.0
_PAYLOAD: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LINK_LIMIT: Final = 2_048
_NAME_LIMIT: Final = 64
_PERSON_FIELDS: Final = ("id", "first_name", "last_name", "username", "phone", "language_code")


async def read_object(request: Request, allowed: Iterable[str]) -> dict[str, Any]:
    """Return the JSON object of the body.

    Raises:
        InvalidSandboxRequest, SandboxBodyTooLarge: it is none, too large, or has a field that is not allowed.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # Also what keeps web pages of other origins out: a browser asks before it sends this type, and gets no consent.
    if content_type != "application/json":
        raise InvalidSandboxRequest("Send the body as JSON, with Content-Type: application/json.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise SandboxBodyTooLarge
    try:
        fields = read_json(body.decode())
    except ValueError:
        raise InvalidSandboxRequest("The body is not JSON in UTF-8.") from None
    if not isinstance(fields, dict):
        raise InvalidSandboxRequest("The body must be a JSON object.")
    allowed = tuple(allowed)
    for name in fields:
        if name not in allowed:
            known = f"The fields are: {', '.join(allowed)}." if allowed else "Send {}."
            raise InvalidSandboxRequest(f"There is no field {json.dumps(name[:50])} here. {known}")
    return fields


def text_field(fields: dict[str, Any], name: str, limit: int) -> str:
    """Return a string that must be there."""
    value = _optional_text(fields, name, limit)
    if value is None:
        raise InvalidSandboxRequest(f"{name} must be a string of 1 to {limit} characters.")
    return value


def integer_field(fields: dict[str, Any], name: str, lowest: int, highest: int) -> int | None:
    """Return an integer, None when it is not there."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise InvalidSandboxRequest(f"{name} must be an integer from {lowest} to {highest}.")
    return value


def read_person(fields: dict[str, Any], free_id: int) -> Person:
    """Return the person that a body describes; without an id it gets `free_id`."""
    user_id = integer_field(fields, "id", 1, HIGHEST_ID)
    username = _optional_text(fields, "username", 33)
    return Person(
        id=free_id if user_id is None else user_id,
        first_name=text_field(fields, "first_name", _NAME_LIMIT),
        last_name=_optional_text(fields, "last_name", _NAME_LIMIT),
        username=_matching("username", username and username.removeprefix("@"), "[A-Za-z0-9_]{1,32}", "ada_lovelace"),
        phone=_matching("phone", _optional_text(fields, "phone", 20), r"\+?[0-9]{5,15}", "+15550001001"),
        language_code=_matching(
            "language_code", _optional_text(fields, "language_code", 35), "[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*", "en"
        ),
    )


def person_fields() -> tuple[str, ...]:
    """Return the fields that describe a person."""
    return _PERSON_FIELDS


def read_payload(deeplink: str, bot_username: str, own_hosts: OwnHosts) -> str:
    """Return the start parameter of a deeplink in any of its three forms.

    They are `<base>/sandbox/phone?start=…`, `https://t.me/<bot>?start=…` and `tg://resolve?domain=<bot>&start=…`
    (https://core.telegram.org/bots/features#deep-linking).

    Raises:
        DeeplinkInvalid: it is none of these, or the parameter is not one that the messenger passes on.
    """
    try:
        parts = urlsplit(deeplink)
        query = parse_qs(parts.query, max_num_fields=20)
    except ValueError:
        raise DeeplinkInvalid from None
    name = None
    if parts.scheme in {"http", "https"} and parts.netloc.lower() == "t.me":
        name = parts.path.strip("/")
    elif parts.scheme == "tg" and parts.netloc == "resolve":
        name = (query.get("domain") or [""])[0]
    elif parts.scheme not in {"http", "https"} or parts.path != PHONE_PATH:
        raise DeeplinkInvalid
    elif not own_hosts.include_authority(parts.netloc):
        raise DeeplinkInvalid(
            "That deeplink leads to another sandbox. Use the one that this service's generate returned."
        )
    if name is not None and name.lower() != bot_username.lower():
        raise DeeplinkInvalid(f"That deeplink is for another bot. The bot here is @{bot_username}.")
    payloads = query.get("start", [])
    if len(payloads) != 1 or _PAYLOAD.fullmatch(payloads[0]) is None:
        raise DeeplinkInvalid
    return payloads[0]


def link_field(fields: dict[str, Any]) -> str:
    """Return the field `deeplink`."""
    return text_field(fields, "deeplink", _LINK_LIMIT)


def number_parameter(request: Request, name: str, highest: float) -> float:
    """Return a number from the query string, 0 when it is not there."""
    value = request.query_params.get(name, "0")
    if re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{1,6})?", value) is None or float(value) > highest:
        raise InvalidSandboxRequest(f"{name} must be a number from 0 to {highest:g}.")
    return float(value)


def _optional_text(fields: dict[str, Any], name: str, limit: int) -> str | None:
    """Return a string without white space around it; None when it is not there or empty."""
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > limit:
        raise InvalidSandboxRequest(f"{name} must be a string of at most {limit} characters.")
    return clean_text(value).strip() or None


def _matching(name: str, value: str | None, pattern: str, example: str) -> str | None:
    if value is not None and re.fullmatch(pattern, value) is None:
        raise InvalidSandboxRequest(f"{name} must look like {example}.")
    return value
