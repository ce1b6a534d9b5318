"""Names chosen by others: which ones are accepted, and how to show them so that they cannot imitate other text."""

import functools
import unicodedata
from typing import Final

from taproof.contract.project import NAME_LIMIT

_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Invisible characters that are letters, marks or symbols: fillers, the grapheme joiner, the empty Braille cell."""
_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "".join(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
"""Emoji and several scripts need these and the joiners, but only after a visible character."""
_KEPT: Final = frozenset(_JOINERS + _SELECTORS)
_FIRST_STRONG_ISOLATE: Final = "\u2068"
_POP_DIRECTIONAL_ISOLATE: Final = "\u2069"


def name_problem(name: str) -> str | None:
    """Return the problem with a trimmed project name, as the rest of a sentence; None if the name is accepted."""
    if not 1 <= len(name) <= NAME_LIMIT:
        return f"must have 1 to {NAME_LIMIT} characters"
    if _has_breaks(name):
        return "must not contain control characters or line breaks"
    if not visible_name(name):
        return "must contain a visible character"
    return None


def text_problem(text: str, limit: int) -> str | None:
    """Return the problem with a trimmed text for users, as the rest of a sentence; None if the text is accepted.

    A name may contain hidden characters, which `visible_name` removes. A text is new, so they are refused.
    """
    if len(text) > limit:
        return f"must have at most {limit} characters"
    if _has_breaks(text):
        return "must not contain control characters or line breaks"
    if "{" in text or "}" in text:
        return "must not contain { or }, because texts have no placeholders"
    if visible_name(text) != " ".join(text.split()):
        return "must not contain invisible or direction-changing characters"
    return None


def _has_breaks(text: str) -> bool:
    return any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in text)


@functools.lru_cache(8192)  # Lists show the same names repeatedly, and each character needs a lookup.
def visible_name(name: str) -> str:
    """Return `name` on one line without control, direction-changing and invisible characters.

    This removes the categories Cc, Cf (which includes every bidirectional control), Cs, Co and Cn, and invisible
    characters of other categories. Joiners and variation selectors are kept after a visible character.
    """
    kept = "".join(
        " " if character.isspace() else character
        for character in name
        if character.isspace()
        or character in _KEPT
        or (character not in _BLANK and unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn"})
    )
    words = (word.lstrip(_JOINERS + _SELECTORS).rstrip(_JOINERS) for word in kept.split())
    return " ".join(word for word in words if word)


def isolated_name(name: str) -> str:
    """Return the visible name inside Unicode isolates, so that its direction cannot reorder the text around it."""
    return f"{_FIRST_STRONG_ISOLATE}{visible_name(name)}{_POP_DIRECTIONAL_ISOLATE}"


def stored_text(text: str) -> str:
    """Return a messenger's text without NUL and lone surrogates, so that it can be stored and sent."""
    # Printable text, such as nearly every name and browser, contains neither.
    return text if text.isprintable() else "".join(c for c in text if c != "\0" and not "\ud800" <= c <= "\udfff")
