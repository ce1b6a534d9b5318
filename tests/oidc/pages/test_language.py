"""A page's language is the one that the application requests, else the browser's, else English."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.oidc.pages.language import choose_language
from taproof.oidc.pages.texts.catalog import LANGUAGES

CASES: list[tuple[str | None, str | None, str]] = [
    (None, None, "en"),
    ("", "", "en"),
    ("fr-CA fr en", None, "en"),
    ("fr pt-BR ru", None, "pt"),
    ("UZ", "ru", "uz"),
    ("uz-Cyrl-UZ", None, "uz"),
    ("de", "fa-IR", "fa"),
    (None, "de-AT,de;q=0.9,tr;q=0.8,en;q=0.7", "tr"),
    (None, "en;q=0.5, ru;q=0.9", "ru"),
    (None, "ru;q=0.5,uk;q=0.5", "ru"),
    (None, "ru;q=0, uk;q=0.001", "uk"),
    (None, "es ; Q=0.2 , id\t;q=1.000", "id"),
    (None, "*", "en"),
    (None, "*;q=0.9, ar;q=0.1", "ar"),
    # Not language tags or weights: ignored.
    (None, "ru;q=2,uk;q=-1,es;q=nan,pt;q=0.1234,tr", "tr"),
    (None, "ru;q,uk;level=1,tr;q=0.1", "tr"),
    (None, "ru_RU,uk\u00a0,\u0440\u0443,es", "es"),
    ("../ru ru\0 'ru'", "id", "id"),
    # What is beyond the first 1,000 characters is not read.
    ("x " * 500 + "ru", "de," * 400 + "uk", "en"),
]


@pytest.mark.parametrize(("ui_locales", "accept_language", "language"), CASES)
def test_choice(ui_locales: str | None, accept_language: str | None, language: str) -> None:
    """The first supported language wins, by its language subtag alone; for browsers, the highest quality wins."""
    assert choose_language(ui_locales, accept_language) == language


@given(st.text(), st.text(alphabet=st.sampled_from("deru-;=q., 01\t*"), max_size=2_000))
def test_hostile_input(ui_locales: str, accept_language: str) -> None:
    """Every input gets a language that exists."""
    assert choose_language(ui_locales, accept_language) in LANGUAGES
