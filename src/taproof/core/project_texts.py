"""The texts that a project sets for its users, by language: which are accepted, and which one applies.

They are shown beside the service's own sentences and replace none that protects the user. A text has no placeholders.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from taproof.contract.project import DEFAULT, LANGUAGES, TEXT_LIMITS
from taproof.core.errors import InvalidRequest
from taproof.core.names import text_problem

ProjectTexts = Mapping[str, Mapping[str, str]]
"""Texts by language, then by key."""

NO_TEXTS: Final[ProjectTexts] = {}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_-]{1,40}")


def read_texts(given: object) -> dict[str, dict[str, str]]:
    """Return a project's texts as they are stored: trimmed, and without those that are "".

    Raises:
        InvalidRequest: a language, a key or a text is not accepted; the sentence names the language and the key.
    """
    found: dict[str, dict[str, str]] = {}
    for language, texts in _entries(given, "texts"):
        if language != DEFAULT and language not in LANGUAGES:
            raise InvalidRequest(
                f"texts: {_named(language)} is not a language of this service. Use {DEFAULT} for all languages, or "
                f"one of: {', '.join(LANGUAGES)}."
            )
        kept = {
            key: text for key, value in _entries(texts, f"texts.{language}") if (text := _read(language, key, value))
        }
        if kept:
            found[language] = kept
    return found


def _entries(given: object, place: str) -> list[tuple[str, object]]:
    if not isinstance(given, Mapping):
        raise InvalidRequest(f'{place} must be an object, such as {{"default": {{"prompt_title": "Members area"}}}}.')
    return list(given.items())


def _read(language: str, key: str, value: object) -> str:
    place = f"texts.{language}"
    if key not in TEXT_LIMITS:
        raise InvalidRequest(f"{place}: {_named(key)} is not a text. Use: {', '.join(TEXT_LIMITS)}.")
    if not isinstance(value, str):
        raise InvalidRequest(f"{place}.{key} must be a string.")
    text = value.strip()
    if text and (problem := text_problem(text, TEXT_LIMITS[key])) is not None:
        raise InvalidRequest(f"{place}.{key} {problem}.")
    return text


def _named(name: str) -> str:
    """Return a caller's name for a sentence, which repeats only plain names."""
    return name if _PLAIN_NAME.fullmatch(name) else "one of the names"


def own_text(texts: ProjectTexts, language: str, key: str) -> str:
    """Return the project's text in a language, else its text for every language; "" if it has neither."""
    return texts.get(language, {}).get(key) or texts.get(DEFAULT, {}).get(key, "")


def dump_texts(texts: ProjectTexts) -> str:
    """Return texts in the form in which they are stored."""
    return json.dumps(texts, ensure_ascii=False, sort_keys=True)


def load_texts(stored: str) -> dict[str, dict[str, str]]:
    """Return texts from the form in which they are stored."""
    found: dict[str, Any] = json.loads(stored)
    return found


def changed_texts(before: ProjectTexts, now: ProjectTexts) -> list[str]:
    """Return the places of the texts that differ, such as `ru.prompt_title`."""
    old, new = _by_place(before), _by_place(now)
    return [place for place in sorted(old.keys() | new.keys()) if old.get(place) != new.get(place)]


def _by_place(texts: ProjectTexts) -> dict[str, str]:
    return {f"{language}.{key}": text for language, each in texts.items() for key, text in each.items()}
