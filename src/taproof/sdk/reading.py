"""Converts the service's JSON to frozen results: checks each field's declared type, and drops unknown fields."""

import json
import types
import typing
from collections.abc import Hashable, Mapping
from dataclasses import is_dataclass
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from taproof.sdk.api_errors import UnexpectedAnswer

T = TypeVar("T")


def json_object(body: bytes | None) -> dict[str, Any]:
    """Return the JSON object in `body`; {} for anything else."""
    try:
        found = json.loads(body or b"")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read(result: type[T], document: Mapping[str, Any]) -> T:
    """Return an instance of the dataclass `result`, with the fields of the same names from `document`.

    A missing field counts as null. For a field of the wrong type, UnexpectedAnswer names the field, but no value.
    """
    values = {}
    for name, kind in _types(cast("Hashable", result)).items():
        try:
            values[name] = _value(kind, document.get(name))
        except (TypeError, ValueError, OverflowError):
            raise UnexpectedAnswer(
                f"The service's response has no valid {name}. If the service is newer than this SDK, update taproof.",
                status=200,
            ) from None
    return result(**values)


@cache
def _types(result: Hashable) -> dict[str, Any]:
    """Return the type of each field; cached, because resolving annotations is slow."""
    return typing.get_type_hints(result)


def _value(kind: Any, value: Any) -> Any:
    """Return `value` as the type `kind`; raise ValueError if it has another type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        # The results use only unions with None.
        return None if value is None else _value(arguments[0], value)
    if origin is tuple:
        return tuple(_value(arguments[0], each) for each in _value(list, value))
    if is_dataclass(kind):
        return read(cast("type[Any]", kind), _value(dict, value))
    if kind is datetime:
        return _instant(_value(str, value))
    if kind is date:
        return date.fromisoformat(_value(str, value))
    if kind is float and type(value) is int:
        return float(value)
    # This uses `type`, because `isinstance` accepts a JSON true as an int.
    fits = value in arguments if origin is Literal else type(value) is (origin or kind)
    if not fits:
        raise ValueError("The value has another type.")
    return value


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("The time has no offset.")
    return moment.astimezone(UTC)
