"""Describes the fields of public resources, and walks the descriptions."""

import types
import typing
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin

UNSET: Final[Any] = object()
"""Stands for no example or no default, because None can be one."""
FIRST_RELEASE: Final = "0.1.0"


@dataclass(frozen=True, slots=True)
class Option:
    """How the command line offers a setting. A boolean needs this only to differ from `--name/--no-name`.

    Attributes:
        help: the sentence in `--help`; "": that of the field.
        flag: the name of the option; "": that of the field. A list is repeated, so its option is in the singular.
        metavar: stands for the value in `--help`.
        often: whether `--help` shows the option; `--help-all` shows all.
        from_file: the option names a file with the value. Its name ends with `-file`.
    """

    help: str = ""
    _: KW_ONLY
    flag: str = ""
    metavar: str | None = None
    often: bool = False
    from_file: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """The check box of a boolean setting in the console.

    Attributes:
        section: the section of the form that shows it; "": the form places it itself.
        label: the name beside the box.
        hint: the explanation below.
    """

    section: str
    label: str
    hint: str


@dataclass(frozen=True, slots=True)
class Field:
    """The description of a field for callers.

    Attributes:
        text: the sentences of the API's description, in which null and true are those of JSON.
        example: a value, as in JSON.
        limits: what the JSON Schema of the field has in addition to that of its type. Only the use cases enforce it.
        default: the value of a new object, as in JSON; UNSET if the field is required or decided by the service.
        option: how the command line offers it.
        box: the check box in the console, if it is a boolean setting.
        since: the release that added it.
    """

    text: str = ""
    _: KW_ONLY
    example: Any = UNSET
    limits: Mapping[str, Any] | None = None
    default: Any = UNSET
    option: Option = Option()
    box: Box | None = None
    since: str = FIRST_RELEASE

    @property
    def sentences(self) -> str:
        """The text, and the release that added the field unless that is the first one."""
        return self.text if self.since == FIRST_RELEASE else f"{self.text} Since {self.since}.".lstrip()

    @property
    def pattern(self) -> str:
        """The regular expression in the limits of a text."""
        return str((self.limits or {})["pattern"])


TIME: Final = Field("UTC, with milliseconds.", example="2026-11-20T22:44:03.127Z")
NEXT_CURSOR: Final = Field("Send it as cursor to get the next page; null on the last page.")


class Described(NamedTuple):
    """The type of a field, and its description."""

    kind: Any
    field: Field


def described(definition: type, *settings: type) -> dict[str, Described]:
    """Return the fields of a dataclass or `TypedDict`, in order.

    Args:
        definition: the class.
        settings: where the fields are described, with their types, that have no description in `definition`. A
            setting of None is not sent, so it is never None in an answer.
    """
    elsewhere = {
        name: Described(required_kind(kind), field)
        for each in settings
        for name, (kind, field) in described(each).items()
    }
    found = {}
    for name, hint in typing.get_type_hints(definition, include_extras=True).items():
        kind, field = hint, None
        if get_origin(hint) is Annotated:
            kind, *told = get_args(hint)
            field = next(each for each in told if isinstance(each, Field))
        found[name] = elsewhere[name] if field is None and name in elsewhere else Described(kind, field or Field())
    return found


def stored_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of the API as they are stored: lists become tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def required_kind(kind: Any) -> Any:
    """Return a type without None."""
    if get_origin(kind) in {types.UnionType, typing.Union}:
        kind = next(each for each in get_args(kind) if each is not types.NoneType)
        return get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return kind
