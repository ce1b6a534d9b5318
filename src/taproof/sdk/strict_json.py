"""Reads JSON strictly: it accepts what the service writes and refuses text that parsers read in different ways.

The SDK for Node reads by the same rules (sdk/js/src/server/strict_json.js); sdk/vectors holds both to them.
"""

import json
import re
from typing import Any, Final, TypeGuard

_MOST_BRACKETS: Final = 500
"""Most "{" and "[" together: far more than any event needs, and few enough that no parser runs out of stack."""
_PHONE: Final = re.compile(r"\+[1-9][0-9]{4,14}")


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in `data`.

    Raises:
        ValueError, RecursionError: it is not strict UTF-8, not JSON or not an object, a field is repeated, a number is
            NaN, infinite or too long, or it is nested too deeply. Their messages may contain `data`.
    """
    if data.count(b"{") + data.count(b"[") > _MOST_BRACKETS:
        raise ValueError("The JSON has too many objects and lists.")
    value = json.loads(data.decode(), object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    if not isinstance(value, dict):
        raise ValueError("The JSON is not an object.")  # noqa: TRY004 — the data is wrong, not the call.
    return value


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether it is a string without lone surrogates, which could not be stored or hashed."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_phone(value: Any) -> TypeGuard[str]:
    """Return whether it is a phone number in the service's form: "+" and 5 to 15 digits, the first not 0 (E.164)."""
    return isinstance(value, str) and _PHONE.fullmatch(value) is not None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("A field comes twice.")
    return fields


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are not JSON.")
