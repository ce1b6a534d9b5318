"""Reads the parameters of a Bot API call (https://core.telegram.org/bots/api#making-requests).

The parameters are in the query string, a form (URL-encoded or multipart) or JSON. Like the Bot API, this module first
converts all of them to strings, including numbers and objects. Every method then reads only strings.
"""

import email.message
import email.parser
import email.policy
import json
import re
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request

BODY_LIMIT: Final = 1024 * 1024
"""Maximum size of a call's body, in bytes. No method here accepts files."""
FIELD_LIMIT: Final = 100

Answer = tuple[Any, str | None]
"""The result of a call, and the description of the few successful calls that have one."""
_LEADING_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")


class ApiError(Exception):
    """The refusal of a call. `error_code` is also the HTTP status; `retry_after` is in seconds."""

    def __init__(self, error_code: int, description: str, retry_after: int | None = None) -> None:
        self.error_code = error_code
        self.description = description
        self.retry_after = retry_after
        super().__init__(description)

    def answer(self) -> dict[str, Any]:
        """Return the body of the answer."""
        body: dict[str, Any] = {"ok": False, "error_code": self.error_code, "description": self.description}
        if self.retry_after is not None:
            body["parameters"] = {"retry_after": self.retry_after}
        return body


def bad_request(description: str) -> ApiError:
    """Return a refusal with code 400, whose description begins with "Bad Request: " as the Bot API's do."""
    return ApiError(400, f"Bad Request: {description}")


def too_many_requests(retry_after: int) -> ApiError:
    """Return the refusal of a call that exceeds a flood limit. `retry_after` is in seconds."""
    return ApiError(429, f"Too Many Requests: retry after {retry_after}", retry_after)


class Parameters:
    """The parameters of one call. As in the Bot API, an empty parameter counts as missing."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        """Return a string, "" if it is missing."""
        return self._values.get(name, "")

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer, parsed as leniently as in the Bot API: its leading digits, or 0 without any."""
        value = self.text(name).strip()
        if not value:
            return default
        found = _LEADING_INTEGER.match(value)
        return int(found[0]) if found else 0

    def boolean(self, name: str) -> bool:
        """Return whether a flag is set."""
        return self.text(name).strip().lower() in {"true", "yes", "1"}


def read_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or contains half of a surrogate pair, which UTF-8 cannot encode.
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def required_field(item: dict[str, Any], name: str, kind: str, types: Any = str) -> str:
    """Return a field of one of these types as a string. The refusals call the item a `kind`, as the real server does.

    Raises:
        ApiError: the field is missing, or has another type.
    """
    value = item.get(name)
    if value is None:
        raise bad_request(f"can't parse {kind}: Can't find field \"{name}\"")
    if isinstance(value, bool) or not isinstance(value, types):
        raise bad_request(f'can\'t parse {kind}: Field "{name}" must be of type String')
    return str(value)


async def read_body(request: Request) -> bytes:
    """Return the body of a call.

    Raises:
        ApiError: the body is larger than `BODY_LIMIT`.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise ApiError(413, "Request Entity Too Large")
    return bytes(body)


def read_parameters(request: Request, body: bytes) -> Parameters:
    """Return the parameters of a call from its query string and its body. The body takes precedence.

    Raises:
        ApiError: the query string or the body is malformed.
    """
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    try:
        values = _form(request.scope["query_string"])
        if media_type == "application/json":
            values |= _json(body)
        elif media_type == "multipart/form-data":
            values |= _multipart(content_type, body)
        elif media_type == "application/x-www-form-urlencoded":
            values |= _form(body)
    except UnicodeError:
        raise bad_request("strings must be encoded in UTF-8") from None
    return Parameters(values)


def _form(encoded: bytes) -> dict[str, str]:
    if encoded.count(b"&") >= FIELD_LIMIT:
        raise bad_request("too many parameters")
    return dict(parse_qsl(encoded.decode("ascii"), errors="strict"))


def _json(body: bytes) -> dict[str, str]:
    text = body.decode()
    if not text.strip():
        return {}
    try:
        value = read_json(text)
    except UnicodeError:
        raise
    except ValueError:
        raise bad_request("can't parse JSON object") from None
    if not isinstance(value, dict):
        raise bad_request("object expected as JSON body")
    return {name: _as_text(item) for name, item in value.items() if item is not None}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _multipart(content_type: str, body: bytes) -> dict[str, str]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    if not parts.is_multipart():
        raise bad_request("can't parse multipart body")
    values = {}
    for part in parts.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(content, bytes) and part.get_filename() is None:
            values[name] = content.decode()
    return values
