"""Requests to the developer endpoints, and the results in their responses: shared by all of these calls."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeVar, get_origin

from taproof.contract.fields import described, required_kind
from taproof.sdk.api_errors import UnexpectedAnswer
from taproof.sdk.exchange import ANSWER_LIMIT, Call, Request, Service
from taproof.sdk.reading import read
from taproof.sdk.retries import ask

T = TypeVar("T")

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_ITEMS_LIMIT: Final = 10_000
"""The maximum number of items in a list: more than any service sends in one response."""


def ask_developer_api(
    service: Service,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    answer_limit: int = ANSWER_LIMIT,
) -> Call[dict[str, Any]]:
    """Call `/api/v1/dev` + path, and return the response's JSON."""
    if service.access_token is None:
        raise ValueError("Give the client access_token (tap_…): the developer API needs it.")
    request = Request(
        method=method,
        path=f"/api/v1/dev{path}",
        bearer=service.access_token,
        body=body,
        repeatable=method == "GET",
        answer_limit=answer_limit,
    )
    return (yield from ask(service, request))


def read_one(
    service: Service, result: type[T], method: str, path: str, body: Mapping[str, Any] | None = None
) -> Call[T]:
    """Call `/api/v1/dev` + path, and return the response as a `result`."""
    return read(result, (yield from ask_developer_api(service, method, path, body)))


def read_list(result: type[T], answer: Mapping[str, Any], field: str) -> list[T]:
    """Return the list in a field of a response."""
    items = answer.get(field)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise UnexpectedAnswer(f"The service's response has no list of {field}.", status=200)
    if len(items) > _ITEMS_LIMIT:
        raise UnexpectedAnswer(f"The service's response has too many {field}.", status=200)
    return [read(result, item) for item in items]


def given_only(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def sent_settings(definition: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not None, as JSON values. Refuse an unknown one, and a string instead of a list."""
    fields = described(definition)
    sent = given_only(settings)
    for name, value in sent.items():
        if name not in fields:
            raise TypeError(f"{name} is not a setting. The settings are {', '.join(fields)}.")
        kind, field = fields[name]
        if get_origin(required_kind(kind)) is Collection:
            if isinstance(value, str):
                raise TypeError(f"{name} must be a list, such as {json.dumps(field.example)}.")
            sent[name] = list(value)
    return sent


def path_id(value: str) -> str:
    """Return an id as a part of a path. It must not contain "/" or ".."."""
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise ValueError(
            "An id contains only letters, digits, _ and -, such as proj_…, oidc_…, sess_… or a messenger_id."
        )
    return value
