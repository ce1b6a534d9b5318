"""Every language says everything."""

import dataclasses
import operator
import string

import pytest

from taproof.messengers.telegram.context_texts import ContextTexts
from taproof.messengers.telegram.phone_texts import PhoneTexts
from taproof.messengers.telegram.texts import LANGUAGES, Texts, texts_for

FIELDS = [field.name for field in dataclasses.fields(Texts) if field.type is str]
FIELDS += [f"context.{field.name}" for field in dataclasses.fields(ContextTexts)]
FIELDS += [f"phone.{field.name}" for field in dataclasses.fields(PhoneTexts)]
IN_POP_UPS = (
    "confirmed_notice",
    "cancelled_notice",
    "mismatched_notice",
    "expired_notice",
    "phone.notice",
    "phone.over",
    "foreign",
    "stale_button",
    "unknown",
)


def sentence_of(language: str, field: str) -> str:
    sentence = operator.attrgetter(field)(LANGUAGES[language])
    assert isinstance(sentence, str)
    return sentence


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("field", FIELDS)
def test_sentence_is_complete(language: str, field: str) -> None:
    """Each sentence of each language is there, has English's placeholders, and is safe in HTML and in `format`."""
    sentence = sentence_of(language, field)
    assert sentence.strip() == sentence != ""
    assert placeholders(sentence) == placeholders(sentence_of("en", field))
    assert not set("<>&") & set(sentence)
    assert len(sentence) < 1000


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_differ_between_languages(language: str) -> None:
    """No sentence of a language was left in English."""
    if language != "en":
        assert not [name for name in FIELDS if sentence_of(language, name) == sentence_of("en", name)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_buttons_fit_and_differ(language: str) -> None:
    """The labels fit a button (64 characters) and cannot be taken for each other."""
    texts = LANGUAGES[language]
    labels = [texts.confirm_button, texts.cancel_button, texts.phone.share_button, texts.phone.without_button]
    labels.append(texts.control.not_me_button)
    assert len({label.casefold() for label in labels}) == len(labels)
    assert max(map(len, labels)) <= 64


@pytest.mark.parametrize("language", LANGUAGES)
def test_pop_ups_fit(language: str) -> None:
    """A pop-up holds 200 characters; a longer one is refused by the Bot API and would never be seen."""
    for name in IN_POP_UPS:
        assert len(sentence_of(language, name).format(when="\u20682026-11-20 22:44 UTC\u2069")) <= 200


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("en", "en"),
        ("pt-br", "pt"),
        ("pt-BR", "pt"),
        ("PT", "pt"),
        ("zh-hans", "en"),
        ("uzb", "en"),
        ("", "en"),
        (None, "en"),
        ("\ud800", "en"),
    ],
)
def test_language_is_chosen_by_its_first_part(code: str | None, language: str) -> None:
    """`language_code` is an IETF tag that a client may leave out; whatever is unknown gets English."""
    assert texts_for(code) is LANGUAGES[language]


def test_the_ten_languages_are_there() -> None:
    """English and the nine languages that the issue names."""
    assert set(LANGUAGES) == {"en", "ru", "uk", "es", "pt", "fa", "ar", "id", "tr", "uz"}
