"""The options of commands that create or change a resource, from its settings in `contract/`."""

import inspect
import json
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, get_origin

import typer

from taproof.cli.help import SELDOM
from taproof.contract.fields import Described, described, required_kind
from taproof.core.errors import InvalidRequest

_STANDARD: Final = "-"


def with_settings(definition: type, *others: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a function options in place of its parameter `**settings`.

    The options are the settings of the `TypedDict` `definition` that are not in `others`.
    """
    only = inspect.Parameter.KEYWORD_ONLY

    def give(work: Callable[..., Any]) -> Callable[..., Any]:
        *own, _ = inspect.signature(work).parameters.values()
        options = [
            inspect.Parameter(_parameter(name, each), only, default=None, annotation=_option(name, each))
            for name, each in described(definition).items()
            if name not in others
        ]
        work.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]  # `api_command` reads it.
        return work

    return give


def given_settings(definition: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings from the values of their options. A list of empty strings empties the setting."""
    given = {}
    for name, each in described(definition).items():
        value = values.get(_parameter(name, each))
        if isinstance(value, list):
            value = [item for item in value if item]
        elif value is not None and each.field.option.from_file:
            value = _read_text(value).strip() if required_kind(each.kind) is str else _read_json(value)
        given[name] = value
    return given


def _parameter(name: str, described_field: Described) -> str:
    return f"{name}_file" if described_field.field.option.from_file else name


def _option(name: str, described_field: Described) -> Any:
    kind, field = required_kind(described_field.kind), described_field.field
    option, limits = field.option, field.limits or {}
    flags = [option.flag] if option.flag else []
    shown: Any = int if kind is int else str
    if get_origin(kind) is Collection:
        shown = list[str]
    elif kind is bool:
        shown, flag = bool, name.replace("_", "-")
        flags = [f"--{flag}/--no-{flag}"]
    return Annotated[
        shown | None,
        typer.Option(
            *flags,
            metavar=option.metavar,
            show_default=False,
            min=limits.get("minimum"),
            max=limits.get("maximum"),
            help=option.help or field.sentences,
            rich_help_panel=None if option.often else SELDOM,
        ),
    ]


def _read_json(file: str) -> Any:
    try:
        return json.loads(_read_text(file))
    except ValueError as error:
        raise InvalidRequest(f"{file} is not JSON: {error}.") from None


def _read_text(file: str) -> str:
    try:
        return sys.stdin.read() if file == _STANDARD else Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be read: {error.strerror or error}.") from None
