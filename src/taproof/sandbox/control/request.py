"""Reads the requests of the control API, and refuses an invalid one with a sentence that gives the reason."""

import dataclasses
import json
import re
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse

from taproof.sandbox.control.errors import (
    BotNotFound,
    DeeplinkInvalid,
    InvalidSandboxRequest,
    SandboxBodyTooLarge,
    UserNotFound,
)
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.bots import PHONE_PATH, SandboxBot, SandboxBots
from taproof.sandbox.telegram.html import clean_text
from taproof.sandbox.telegram.people import People, Person, SandboxContact
from taproof.sandbox.telegram.reply_markup import CALLBACK_DATA_LIMIT
from taproof.sandbox.telegram.request import read_json

BODY_LIMIT: Final = 16_384
HIGHEST_ID: Final = 2**52 - 1
"""The highest user id. According to the Bot API, an id has at most 52 significant bits."""
LONGEST_WAIT: Final = 30.0
_PAYLOAD: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
LINK_LIMIT: Final = 2_048
NAME_LIMIT: Final = 64
_VCARD_LIMIT: Final = 2_048
_PHONE: Final = re.compile(r"\+?[0-9]{5,15}")
_USERNAME: Final = re.compile(r"[A-Za-z0-9_]{1,32}")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?")
_CONTACT_FIELDS: Final = [field.name for field in dataclasses.fields(SandboxContact)]
PERSON_FIELDS: Final = [field.name for field in dataclasses.fields(Person)]
"""The fields that describe a simulated user."""


async def read_object(request: Request, *allowed: str) -> dict[str, Any]:
    """Return the JSON object of the body; refuse one that is too large, or has a field that is not allowed."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # This also keeps web pages of other origins out: a browser sends this type only after a preflight, which fails.
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
    for name in fields:
        if name not in allowed:
            known = f"The fields are: {', '.join(allowed)}." if allowed else "Send {}."
            raise InvalidSandboxRequest(f"Unknown field {json.dumps(name[:50])}. {known}")
    return fields


def text_field(fields: dict[str, Any], name: str, limit: int) -> str:
    """Return a string, or refuse the request if it is missing or empty."""
    value = optional_text(fields, name, limit)
    if value is None:
        raise InvalidSandboxRequest(f"{name} must be a string of 1 to {limit} characters.")
    return value


def optional_text(fields: dict[str, Any], name: str, limit: int) -> str | None:
    """Return a string without surrounding white space, None if it is missing or empty."""
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > limit:
        raise InvalidSandboxRequest(f"{name} must be a string of at most {limit} characters.")
    return clean_text(value).strip() or None


def integer_field(fields: dict[str, Any], name: str, lowest: int, highest: int) -> int | None:
    """Return an integer, None if it is missing."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise InvalidSandboxRequest(f"{name} must be an integer from {lowest} to {highest}.")
    return value


def read_person(fields: dict[str, Any], free_id: int) -> Person:
    """Return the person that a body describes. Without an id, the person gets `free_id`."""
    user_id = integer_field(fields, "id", 1, HIGHEST_ID)
    username = optional_text(fields, "username", 33)
    return Person(
        id=free_id if user_id is None else user_id,
        first_name=text_field(fields, "first_name", NAME_LIMIT),
        last_name=optional_text(fields, "last_name", NAME_LIMIT),
        username=_matching("username", username and username.removeprefix("@"), _USERNAME, "ada_lovelace"),
        phone=_matching("phone", optional_text(fields, "phone", 20), _PHONE, "+12025550101"),
        language_code=_matching("language_code", optional_text(fields, "language_code", 35), _LANGUAGE, "en"),
    )


def read_deeplink(deeplink: str, bots: SandboxBots, own_hosts: OwnHosts) -> tuple[SandboxBot, str]:
    """Return the bot and the start parameter of a deeplink in any of its forms.

    The forms are `<base>/sandbox/phone?start=…` for the first bot, `<base>/sandbox/phone/<bot>?start=…` for any bot,
    `https://t.me/<bot>?start=…` and `tg://resolve?domain=<bot>&start=…`
    (https://core.telegram.org/bots/features#deep-linking).
    """
    try:
        parts = urlsplit(deeplink)
        query = parse_qs(parts.query, max_num_fields=20)
    except ValueError:
        raise DeeplinkInvalid from None
    if parts.scheme in {"http", "https"} and parts.netloc.lower() == "t.me":
        username = parts.path.strip("/")
    elif parts.scheme == "tg" and parts.netloc == "resolve":
        username = (query.get("domain") or [""])[0]
    elif parts.scheme not in {"http", "https"} or not f"{parts.path}/".startswith(f"{PHONE_PATH}/"):
        raise DeeplinkInvalid
    elif not own_hosts.include_authority(parts.netloc):
        raise DeeplinkInvalid(
            "This deeplink belongs to another sandbox. Use one that this service's generate call returned."
        )
    else:
        username = parts.path.removeprefix(PHONE_PATH).removeprefix("/") or bots.first.username
    bot = bots.find(username)
    if bot is None:
        raise DeeplinkInvalid("This deeplink names an unknown bot. GET /sandbox/bots lists the bots.")
    payloads = query.get("start", [])
    if len(payloads) != 1 or _PAYLOAD.fullmatch(payloads[0]) is None:
        raise DeeplinkInvalid
    return bot, payloads[0]


def find_person(request: Request, people: People) -> Person:
    """Return the simulated user that the path names."""
    user_id = request.path_params["user_id"]
    # Sixteen digits at most: Python refuses to parse very long numbers.
    person = people.get(int(user_id)) if user_id.isdecimal() and len(user_id) <= 16 else None
    if person is None:
        raise UserNotFound
    return person


def read_bot(fields: dict[str, Any], bots: SandboxBots) -> SandboxBot:
    """Return the bot that the field `bot` names, or the first bot if the field is missing."""
    return find_bot(bots, optional_text(fields, "bot", 33))


def find_bot(bots: SandboxBots, username: str | None) -> SandboxBot:
    """Return a bot by its username, with or without the `@`, or the first bot for no username."""
    bot = bots.find(username.removeprefix("@")) if username else bots.first
    if bot is None:
        raise BotNotFound
    return bot


def read_data(fields: dict[str, Any]) -> str | None:
    """Return the callback data that a modified app sends, None if the body names a button instead."""
    if fields.get("data") is None:
        return None
    if fields.get("button") is not None:
        raise InvalidSandboxRequest("Send either button, or data, which sends the callback data of a modified app.")
    data = fields["data"]
    if not isinstance(data, str) or not 1 <= len(data.encode()) <= CALLBACK_DATA_LIMIT:
        raise InvalidSandboxRequest(f"data must be a string of 1 to {CALLBACK_DATA_LIMIT} bytes.")
    return data


def read_share(fields: dict[str, Any], sender: Person, people: People) -> tuple[SandboxContact, Person | None]:
    """Return the contact that a person shares, and the visible sender of a forward, None if there is none.

    With `hide_sender`, a forward does not show its sender; real apps let every user do this. `contact` is "own", the id
    of a simulated user, or the fields of any contact.
    """
    forwarded_from = _person_field(fields, "forwarded_from", people)
    hides = fields.get("hide_sender") or False
    if not isinstance(hides, bool) or (hides and forwarded_from is None):
        raise InvalidSandboxRequest("hide_sender must be true or false, and true only together with forwarded_from.")
    said = None if hides else forwarded_from
    contact = fields.get("contact")
    if contact == "own":
        return SandboxContact.of(sender), said
    if isinstance(contact, int):
        person = _person_field(fields, "contact", people)
        return SandboxContact.of(person or sender), said
    if not isinstance(contact, dict):
        raise InvalidSandboxRequest(
            'contact must be "own", the id of a simulated user, or an object with phone_number and first_name.'
        )
    for name in contact:
        if name not in _CONTACT_FIELDS:
            raise InvalidSandboxRequest(f"The fields of a contact are: {', '.join(_CONTACT_FIELDS)}.")
    shared = SandboxContact(
        phone_number=_matching("phone_number", text_field(contact, "phone_number", 20), _PHONE, "12025550101") or "",
        first_name=text_field(contact, "first_name", NAME_LIMIT),
        last_name=optional_text(contact, "last_name", NAME_LIMIT),
        user_id=integer_field(contact, "user_id", 1, HIGHEST_ID),
        vcard=optional_text(contact, "vcard", _VCARD_LIMIT),
    )
    is_own_number = shared.phone_number.lstrip("+") == sender.number.lstrip("+")
    if shared.user_id == sender.id and not is_own_number and forwarded_from is None:
        # Not even a modified app can do this: it sends the number, and the messenger adds the owner's id.
        raise InvalidSandboxRequest(
            "The messenger derives user_id from the number, so the sender's own id is possible only with the sender's "
            "own number. To share an old number of the sender, forward it: set forwarded_from."
        )
    return shared, said


def number_parameter(request: Request, name: str, highest: float) -> float:
    """Return a number from the query string, 0 if it is missing."""
    value = request.query_params.get(name, "0")
    if _NUMBER.fullmatch(value) is None or float(value) > highest:
        raise InvalidSandboxRequest(f"{name} must be a number from 0 to {highest:g}.")
    return float(value)


def wait_field(fields: dict[str, Any]) -> float:
    """Return the number of seconds to wait for the bot, 0 if the field is missing."""
    wait = fields.get("wait")
    if wait is None:
        return 0
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= LONGEST_WAIT:
        raise InvalidSandboxRequest(f"wait must be a number from 0 to {LONGEST_WAIT:g}.")
    return wait


def json_response(content: dict[str, Any]) -> JSONResponse:
    """Return a successful response that is not cached."""
    return JSONResponse(content, headers={"Cache-Control": "no-store"})


def _person_field(fields: dict[str, Any], name: str, people: People) -> Person | None:
    user_id = integer_field(fields, name, 1, HIGHEST_ID)
    if user_id is None:
        return None
    if user_id not in people:
        raise InvalidSandboxRequest(f"{name} must be the id of a simulated user. GET /sandbox/users lists them.")
    return people[user_id]


def _matching(name: str, value: str | None, pattern: re.Pattern[str], example: str) -> str | None:
    if value is not None and pattern.fullmatch(value) is None:
        raise InvalidSandboxRequest(f"{name} must look like {example}.")
    return value
