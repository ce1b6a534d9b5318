"""JSON read so that no two readers can take one text differently: what the service writes passes, doubts do not.

The SDK for Node reads by the same rules (sdk/js/src/server/strict_json.js); sdk/vectors holds both to them.
"""

import json
import re
from typing import Any, Final, TypeGuard

_MOST_BRACKETS: Final = 500
"""Of "{" and "[" together: far more than any event needs, and few enough that no parser runs out of stack."""
_PHONE: Final = re.compile(r"\+[1-9][0-9]{4,14}")


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object that `data` holds.

    Raises:
        ValueError, RecursionError: it is not strict UTF-8 or not JSON, a field comes twice, a number is NaN, infinite
            or of endless digits, it is nested deep, or it is no object. Their messages may hold `data`.
    """
    if data.count(b"{") + data.count(b"[") > _MOST_BRACKETS:
        raise ValueError("The JSON has too many objects and lists.")
    value = json.loads(data.decode(), object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    if not isinstance(value, dict):
        raise ValueError("The JSON is not an object.")  # noqa: TRY004 — what came is wrong, not how this was called.
    return value


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether it is a string of whole characters: half a surrogate pair could not be stored or hashed later."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_phone(value: Any) -> TypeGuard[str]:
    """Return whether it is a phone number as the service writes one: "+" and 5 to 15 digits, the first no 0 (E.164)."""
    return isinstance(value, str) and _PHONE.fullmatch(value) is not None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("A field comes twice.")
    return fields


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are not JSON.")
