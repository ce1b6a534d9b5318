"""Reads JSON strictly: it accepts what the service writes and refuses text that parsers read in different ways.

The SDK for Node follows the same rules (sdk/js/src/server/strict_json.js); sdk/vectors tests both.
"""

import json
import re
from typing import Any, Final, TypeGuard

_MOST_BRACKETS: Final = 500
"""Maximum number of "{" and "[": far more than any event needs, and few enough that no parser runs out of stack."""
_PHONE: Final = re.compile(r"\+[1-9][0-9]{4,14}")


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in `data`.

    Raises:
        ValueError, RecursionError: `data` is not strict UTF-8, not JSON, not an object, or nested too deeply; a field
            is repeated; or a number is NaN, infinite or too long. The messages may contain `data`.
    """
    if data.count(b"{") + data.count(b"[") > _MOST_BRACKETS:
        raise ValueError("The JSON has too many objects and lists.")
    value = json.loads(data.decode(), object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    if not isinstance(value, dict):
        raise ValueError("The JSON is not an object.")  # noqa: TRY004 — the data is wrong, not the call.
    return value


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether the value is a string without lone surrogates, which could not be stored or hashed."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_phone(value: Any) -> TypeGuard[str]:
    """Return whether the value is a phone number as the service writes it: "+" and 5 to 15 digits, the first not 0."""
    return isinstance(value, str) and _PHONE.fullmatch(value) is not None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("A field is repeated.")
    return fields


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are not JSON.")
