"""Every language has all sentences of the pages, and they fit into their places."""

import dataclasses
import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from taproof.core.text_files import read_text_file
from taproof.messengers.texts import catalog as messenger_texts
from taproof.oidc.pages.texts.catalog import LANGUAGES, Texts

ENGLISH = files("taproof.oidc.pages.texts").joinpath("en.toml").read_text(encoding="utf-8")
ALIKE = {"direction", "waiting.minutes"}
"""The keys whose values may equal those of the English file."""


def sentences_of(table: dict[str, object], place: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from sentences_of(value, f"{place}{key}.")
        else:
            yield f"{place}{key}", str(value)


def test_languages_are_those_of_the_messengers() -> None:
    """The pages have the same languages as the bot."""
    assert set(LANGUAGES) == set(messenger_texts.LANGUAGES)
    assert {language for language, texts in LANGUAGES.items() if texts.direction == "rtl"} == {"ar", "fa"}


def test_the_button_is_named_as_the_bot_does() -> None:
    """The page tells the user to tap a button of the bot. If both are in the same language, its name is the same."""
    for language, texts in LANGUAGES.items():
        button = messenger_texts.LANGUAGES[language].back_button
        assert button in texts.returning.lead, language
        assert button in texts.returning.no_scripts, language


def test_each_sentence_of_each_language() -> None:
    """Each sentence is translated, and has no markup and no blanks around it."""
    english = dict(sentences_of(dataclasses.asdict(LANGUAGES["en"])))
    problems = []
    for language, texts in LANGUAGES.items():
        for key, sentence in sentences_of(dataclasses.asdict(texts)):
            if sentence.strip() != sentence or not sentence or set("<>&") & set(sentence):
                problems.append((language, key, "is blank, has blanks around it, or has markup"))
            if language != "en" and sentence == english[key] and key not in ALIKE:
                problems.append((language, key, "was left in English"))
    assert problems == []


def test_buttons_have_the_messengers_words() -> None:
    """Cancel has the same label on the pages as in the bot, and no two buttons of a page are alike."""
    for language, texts in LANGUAGES.items():
        assert texts.cancel_button == messenger_texts.LANGUAGES[language].cancel_button
        assert len({texts.cancel_button, texts.continue_button, texts.start_again_button, texts.back_button}) == 4


def test_a_mistake_in_a_file_is_refused() -> None:
    """The error names the file and the key; tests/messengers/texts has the other mistakes."""
    mistakes = {
        "xx.toml: direction must be one of: ltr, rtl.": ("'ltr'", "'up'"),
        "xx.toml: waiting.heading must have exactly these placeholders: {project}.": (
            "'Sign in to {project}'",
            "'Sign in to {project.name}'",
        ),
    }
    for expected, (there, instead) in mistakes.items():
        assert ENGLISH.count(there) == 1, there
        with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
            read_text_file(Texts, "xx.toml", ENGLISH.replace(there, instead))
