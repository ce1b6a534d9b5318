"""Builds the models of requests and answers from the definitions in `contract/`.

Requests are strict: unknown fields, type conversions and null are refused. The services apply the rules for names and
URLs; the JSON Schema documents these rules as far as it can express them.
"""

import dataclasses
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, WithJsonSchema, create_model
from pydantic import Field as JsonField

from taproof.contract.fields import NEXT_CURSOR, TIME, UNSET, Described, Field, described, required_kind

DATE_TIME: Final = WithJsonSchema({"type": "string", "format": "date-time"})
_DATE: Final = Annotated[str, WithJsonSchema({"type": "string", "format": "date"})]
Models = Mapping[Any, type[BaseModel]]
"""The models of dataclasses that are the values of fields."""


class StrictRequest(BaseModel):
    """A request body that refuses unknown fields and type conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DeletedAnswer(BaseModel):
    """The object was deleted."""

    deleted: Literal[True]


def answer_model(name: str, definition: type, *settings: type, models: Models | None = None) -> type[BaseModel]:
    """Return the model of an answer. The first line of the definition's docstring is its description.

    `settings` describe the fields that have no description in `definition`; `models` are of the dataclasses in them.
    """
    found: dict[str, Any] = {}
    for each in dataclasses.fields(definition):
        kind, field = described(definition, *settings)[each.name]
        value = _json_kind(required_kind(kind), models or {})
        if each.default is None:  # The field may be omitted.
            found[each.name] = (value, described_as(field, default_factory=str))
        elif required_kind(kind) == kind:
            found[each.name] = (value, described_as(field))
        else:  # The limits are not those of null.
            value = Annotated[value, JsonField(json_schema_extra=dict(field.limits or {}))]
            found[each.name] = (value | None, described_as(dataclasses.replace(field, limits=None)))
    return create_model(name, __doc__=(definition.__doc__ or "").partition("\n")[0], **found)


def list_model(name: str, doc: str, field: str, item: type[BaseModel], *, in_pages: bool = False) -> type[BaseModel]:
    """Return the model of an answer with objects in one field; a page of a list also has a cursor."""
    fields: dict[str, Any] = {field: (list[item], ...)}  # type: ignore[valid-type]  # Computed at run time.
    if in_pages:
        fields["next_cursor"] = (str | None, described_as(NEXT_CURSOR))
    return create_model(name, __doc__=doc, **fields)


def request_model(
    name: str, doc: str, fields: Mapping[str, Described], *, required: Collection[str] = (), is_new: bool = True
) -> type[StrictRequest]:
    """Return the model of a request body.

    The `required` fields must be sent. `is_new`: fields that are not sent have the defaults of a new object.
    """
    found: dict[str, Any] = {}
    for field_name, (kind, field) in fields.items():
        optional: dict[str, Any] = {"default_factory": lambda: None}
        if field_name in required:
            optional = {}
        elif is_new and isinstance(field.default, str | int):
            optional = {"default": field.default}
        # If the limits of a list describe its items, the services check them, with a better sentence.
        shown = list[str] if "items" in (field.limits or {}) else _json_kind(required_kind(kind), {})
        found[field_name] = (shown, described_as(field, **optional))
    return create_model(name, __base__=StrictRequest, __doc__=doc, **found)


def described_as(field: Field, **options: Any) -> Any:
    """Return the description of a field for pydantic."""
    example = field.default if field.example is UNSET else field.example
    return JsonField(
        description=field.sentences or None,
        examples=None if example is UNSET else [example],
        json_schema_extra=dict(field.limits or {}),
        **options,
    )


def text_schema(field: Field, **changes: Any) -> dict[str, Any]:
    """Return the JSON Schema of a text, for what pydantic does not describe."""
    schema = {"type": "string", **(field.limits or {}), "description": field.sentences, "examples": [field.example]}
    return schema | changes


Time = Annotated[str, DATE_TIME, described_as(TIME)]
"""A time in an answer."""


def _json_kind(kind: Any, models: Models) -> Any:
    """Return the type of a value in JSON."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {types.UnionType, typing.Union}:
        return _json_kind(required_kind(kind), models) | None
    if origin is Annotated or origin is Literal:
        return kind
    if origin in {tuple, Collection, Sequence}:
        return list[_json_kind(arguments[0], models)]  # type: ignore[misc]  # Computed at run time.
    if origin in {dict, Mapping}:
        return dict[str, Any]
    if kind is datetime:
        return Annotated[str, DATE_TIME]
    if kind is date:
        return _DATE
    return models[kind] if dataclasses.is_dataclass(kind) else kind
