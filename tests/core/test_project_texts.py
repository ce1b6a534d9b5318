"""A project's own texts: the accepted ones, and which one applies."""

from typing import Any

import pytest

from taproof.contract.project import LANGUAGES, TEXT_LIMITS
from taproof.core.errors import InvalidRequest
from taproof.core.project_texts import changed_texts, dump_texts, load_texts, own_text, read_texts
from taproof.messengers.texts import catalog

HIDDEN = "must not contain invisible or direction-changing characters."
BREAKS = "must not contain control characters or line breaks."
BRACES = "must not contain { or }, because texts have no placeholders."
REFUSED: list[tuple[Any, str]] = [
    ("text", "texts must be an object, such as"),
    ({"ru": "Вход"}, "texts.ru must be an object, such as"),
    ({"ru": {"confirmed": None}}, "texts.ru.confirmed must be a string."),
    ({"ru": {"confirmed": ["a"]}}, "texts.ru.confirmed must be a string."),
    ({"de": {}}, "texts: de is not a language of this service. Use default for all languages, or one of: ar, en,"),
    ({"pt-BR": {"confirmed": "Olá"}}, "texts: pt-BR is not a language"),
    ({"RU": {}}, "texts: RU is not a language"),
    ({"<b>": {}}, "texts: one of the names is not a language"),
    ({"x" * 1_000_000: {}}, "texts: one of the names is not a language"),
    ({"ru": {"prompt": "x"}}, "texts.ru: prompt is not a text. Use: prompt_title, button_label, confirmed,"),
    ({"ru": {"foreign\n": "x"}}, "texts.ru: one of the names is not a text."),
    ({"default": {"prompt_title": "x" * 101}}, "texts.default.prompt_title must have at most 100 characters."),
    ({"default": {"button_label": "x" * 41}}, "texts.default.button_label must have at most 40 characters."),
    ({"es": {"expired": "x" * 1_000_000}}, "texts.es.expired must have at most 160 characters."),
    ({"es": {"expired": "a\nb"}}, f"texts.es.expired {BREAKS}"),
    ({"es": {"expired": "a\0b"}}, f"texts.es.expired {BREAKS}"),
    ({"es": {"expired": "a\u2028b"}}, f"texts.es.expired {BREAKS}"),
    ({"es": {"expired": "\ud800"}}, f"texts.es.expired {BREAKS}"),
    ({"es": {"expired": "a\u202eb"}}, f"texts.es.expired {HIDDEN}"),
    ({"es": {"expired": "a\u2069b"}}, f"texts.es.expired {HIDDEN}"),
    ({"es": {"expired": "a\u200bb"}}, f"texts.es.expired {HIDDEN}"),
    ({"es": {"expired": "\u3164"}}, f"texts.es.expired {HIDDEN}"),
    ({"es": {"expired": "{project}"}}, f"texts.es.expired {BRACES}"),
    ({"es": {"expired": "{0.__class__}"}}, f"texts.es.expired {BRACES}"),
]


def test_what_is_refused(subtests: pytest.Subtests) -> None:
    """The sentence names the language and the key, and repeats no other input."""
    for given, sentence in REFUSED:
        with subtests.test(sentence=sentence), pytest.raises(InvalidRequest) as refusal:
            read_texts(given)
        assert refusal.value.sentence.startswith(sentence)
        assert len(refusal.value.sentence) < 200


def test_what_is_kept() -> None:
    """Scripts, emoji, joiners and markup stay as text; empty texts and languages are dropped.

    A stored copy is equal.
    """
    given = {
        "default": {"prompt_title": "  <b>Acme</b> & Co 👩\u200d💻 ", "confirmed": ""},
        "fa": {"confirmed": "می\u200cخواهم", "button_label": "\u00a0"},
        "ar": {},
        "ru": {"expired": " "},
    }
    kept = {"default": {"prompt_title": "<b>Acme</b> & Co 👩\u200d💻"}, "fa": {"confirmed": "می\u200cخواهم"}}
    assert read_texts(given) == kept
    assert load_texts(dump_texts(kept)) == kept
    longest = {
        language: {key: "ж" * limit for key, limit in TEXT_LIMITS.items()} for language in (*LANGUAGES, "default")
    }
    assert read_texts(longest) == longest
    assert len(dump_texts(longest).encode()) < 15_000, "all texts of two bytes a character fit into a request"


def test_which_text_applies() -> None:
    """The text of the user's language applies, else the project's default, else the service's own."""
    texts = {"default": {"confirmed": "Thanks", "expired": "Too late"}, "ru": {"confirmed": "Спасибо"}}
    expected = {("ru", "confirmed"): "Спасибо", ("es", "confirmed"): "Thanks", ("ru", "expired"): "Too late"}
    assert {place: own_text(texts, *place) for place in expected} == expected
    assert own_text(texts, "ru", "cancelled") == own_text({}, "ru", "confirmed") == ""
    assert changed_texts(texts, {"default": {"confirmed": "Thanks", "cancelled": "Bye"}}) == [
        "default.cancelled",
        "default.expired",
        "ru.confirmed",
    ]


def test_languages_are_those_of_the_bot() -> None:
    """A text in a language that the bot does not speak would never be shown."""
    assert list(LANGUAGES) == sorted(catalog.LANGUAGES)
    assert [code for code, texts in catalog.LANGUAGES.items() if texts.language != code] == []
