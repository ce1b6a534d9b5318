"""Every language says everything about reports and blocks."""

import dataclasses
import re
import string

import pytest

from taproof.messengers.telegram.control_texts import ControlTexts
from taproof.messengers.telegram.texts import LANGUAGES
from taproof.messengers.telegram.user_control_replies import commands_help

EN = LANGUAGES["en"].control
FIELDS = [field.name for field in dataclasses.fields(ControlTexts)]
IN_POP_UPS = ("reported_notice", "blocked_notice", "unblocked_notice", "gone")


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("field", FIELDS)
def test_sentence_is_complete(language: str, field: str) -> None:
    """Each sentence of each language is there, has English's placeholders, and is safe in HTML and in `format`."""
    sentence = getattr(LANGUAGES[language].control, field)
    assert sentence.strip() == sentence != ""
    assert placeholders(sentence) == placeholders(getattr(EN, field))
    assert not set("<>&") & set(sentence)
    assert len(sentence) < 1000
    if field in IN_POP_UPS:
        assert len(sentence) <= 200


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_differ_between_languages(language: str) -> None:
    """No sentence of a language was left in English."""
    if language != "en":
        assert not [name for name in FIELDS if getattr(LANGUAGES[language].control, name) == getattr(EN, name)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_fit_and_cannot_be_taken_for_each_other(language: str) -> None:
    """Of all buttons that this bot shows in a language no two are alike, and each fits."""
    texts = LANGUAGES[language]
    labels = [texts.confirm_button, texts.cancel_button, texts.control.not_me_button, texts.control.unblock_button]
    assert len({label.casefold() for label in labels}) == len(labels)
    assert max(map(len, labels)) <= 30


@pytest.mark.parametrize("language", LANGUAGES)
def test_who_has_nothing_to_block_is_told_where_blocks_are(language: str) -> None:
    """They may have blocked it all. The command stands where clients make it a link, in right-to-left text as one."""
    sentence = LANGUAGES[language].control.nothing_to_block
    isolated = "\u2066/unblock\u2069" in sentence
    assert isolated == (language in {"ar", "fa"})
    assert isolated or re.search(r" /unblock\b", sentence)


@pytest.mark.parametrize("language", LANGUAGES)
def test_commands_can_be_listed_and_tapped(language: str) -> None:
    """A command's description has at most 256 characters, and in the help each stands where clients make it a link."""
    control = LANGUAGES[language].control
    assert max(map(len, (control.sessions_command, control.block_command, control.unblock_command))) <= 256
    assert [line.split()[0] for line in commands_help(control).splitlines()] == ["/sessions", "/block", "/unblock"]
