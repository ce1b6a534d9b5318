"""Check the sentences of a language, which are in a TOML file, against the dataclass that declares them.

A field of the dataclass is `str`; `Annotated[str, "project", …]`, whose placeholders must all occur; a `Literal`, whose
values are listed; or another dataclass, which is a table of the file.
"""

import dataclasses
import string
import tomllib
from typing import Any, Literal, TypeVar, get_args, get_origin

Section = TypeVar("Section")


def read_text_file(section: type[Section], file_name: str, content: str) -> Section:
    """Return the texts of one language file. An error's message names the file and the key.

    Raises:
        ValueError: the file is not TOML, a key is missing or unknown, a value is none of those listed, or a sentence
            has other placeholders than declared.
        TypeError: a value is not a string, or not a table.
    """
    try:
        table = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file_name} is not valid TOML: {error}.") from error
    texts: Section = _read_section(section, table, f"{file_name}: ")
    return texts


def _read_section(section: type[Any], table: dict[str, Any], key_path: str) -> Any:
    kinds = {field.name: field.type for field in dataclasses.fields(section)}
    for key in (*table, *kinds):
        if key not in kinds:
            raise ValueError(f"{key_path}{key} is not a known key.")
        if key not in table:
            raise ValueError(f"{key_path}{key} is missing.")
    return section(**{key: _read_value(kind, table[key], f"{key_path}{key}") for key, kind in kinds.items()})


def _read_value(kind: Any, value: object, key_path: str) -> Any:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise TypeError(f"{key_path} must be a table.")
        return _read_section(kind, value, f"{key_path}.")
    if not isinstance(value, str):
        raise TypeError(f"{key_path} must be a string.")
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ValueError(f"{key_path} must be one of: {', '.join(get_args(kind))}.")
        return value
    expected = set(get_args(kind)[1:])
    try:
        found = {name for _, name, _, _ in string.Formatter().parse(value) if name is not None}
    except ValueError as error:
        raise ValueError(f"{key_path} has a brace that is not closed or not opened.") from error
    if found != expected:
        must = ", ".join(f"{{{name}}}" for name in sorted(expected)) or "none"
        raise ValueError(f"{key_path} must have exactly these placeholders: {must}.")
    return value
