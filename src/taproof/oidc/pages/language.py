"""Choose the language of a page from what the application and the browser ask for.

Sources: OpenID Connect Core 1.0, section 3.1.2.1 (`ui_locales`); RFC 9110, section 12.5.4 (Accept-Language); RFC 5646.
"""

import re
from collections.abc import Iterator
from typing import Final

from taproof.oidc.pages.texts.catalog import LANGUAGES

DEFAULT: Final = "en"
_READ: Final = 1_000
"""The number of characters that are read of each list. Clients send fewer than 200, and others can send any number."""
_LANGUAGE: Final = re.compile(r"([a-z]{1,8})(?:-[a-z0-9-]*)?", re.IGNORECASE | re.ASCII)
_QUALITY: Final = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE | re.ASCII)


def choose_language(ui_locales: str | None, accept_language: str | None) -> str:
    """Return the code of the first language that has texts, by the application's wish, then by the browser's.

    Regions and scripts do not count: `pt-BR` and `pt-PT` have the same texts. What is not a language tag is ignored.
    """
    wanted = (ui_locales or "")[:_READ].split()
    for tag in (*wanted, *_by_quality((accept_language or "")[:_READ])):
        match = _LANGUAGE.fullmatch(tag)
        if match is not None and match[1].lower() in LANGUAGES:
            return match[1].lower()
    return DEFAULT


def _by_quality(accept_language: str) -> Iterator[str]:
    """Yield the acceptable tags, the best first; of those with the same quality, the first one listed."""
    weighted = []
    for part in accept_language.split(","):
        tag, parameter, weight = (each.strip(" \t") for each in part.partition(";"))
        match = _QUALITY.fullmatch(weight if parameter else "q=1")
        if match is not None and float(match[1]) > 0:
            weighted.append((float(match[1]), tag))
    yield from (tag for _, tag in sorted(weighted, key=lambda each: -each[0]))
