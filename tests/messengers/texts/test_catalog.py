"""Every language has all sentences, and a language file with a mistake is refused."""

import dataclasses
import re
import unicodedata
from collections.abc import Iterator
from importlib.resources import files

import pytest

from taproof.messengers.texts.catalog import FALLBACK, LANGUAGES, load_texts, texts_for

ENGLISH = files("taproof.messengers.texts").joinpath("en.toml").read_text(encoding="utf-8")
IN_POP_UPS = {
    "foreign",
    "stale_button",
    "renewed",
    "cannot_verify",
    "unknown",
    "phone.notice",
    "phone.over",
    "control.gone",
}
"""The texts in pop-ups, besides every `…_notice`."""
COMMANDS = {"control.sessions_command", "control.block_command", "control.unblock_command"}


def sentences_of(language: str) -> dict[str, str]:
    """Return the sentences of a language by their keys, such as `phone.prompt`."""

    def walk(table: dict[str, object], place: str) -> Iterator[tuple[str, str]]:
        for key, value in table.items():
            if isinstance(value, dict):
                yield from walk(value, f"{place}{key}.")
            else:
                assert isinstance(value, str)
                yield f"{place}{key}", value

    return dict(walk(dataclasses.asdict(LANGUAGES[language]), ""))


def problems_of(language: str, key: str, sentence: str) -> Iterator[str]:
    """Return the problems of a sentence in its place."""
    if sentence.strip() != sentence or not sentence:
        yield "is blank, or has blanks around it"
    if set("<>&") & set(sentence):
        yield "is not safe in HTML"
    if len(sentence) >= 1000:
        yield "is too long for a message"
    if (key.endswith("_notice") or key in IN_POP_UPS) and len(
        sentence.replace("{when}", "2026-11-20 22:44 UTC..")
    ) > 200:
        yield "is too long for a pop-up, which the Bot API refuses"
    if key in COMMANDS and len(sentence) > 256:
        yield "is too long for a command's description"
    if language != FALLBACK and sentence == sentences_of(FALLBACK)[key]:
        yield "was left in English"


def test_each_sentence_of_each_language() -> None:
    """Each sentence exists, is translated, is safe in HTML, and is short enough for its place."""
    checked = [
        (f"{language}: {key}", list(problems_of(language, key, sentence)))
        for language in LANGUAGES
        for key, sentence in sentences_of(language).items()
    ]
    assert len(checked) >= 570
    assert {place: problems for place, problems in checked if problems} == {}


def test_labels_fit_and_differ() -> None:
    """No two buttons in a language have the same label, and each label fits."""
    problems = []
    for language, texts in LANGUAGES.items():
        short = [texts.confirm_button, texts.cancel_button, texts.control.not_me_button, texts.control.unblock_button]
        labels = [*short, texts.phone.share_button, texts.phone.without_button]
        if len({label.casefold() for label in labels}) != len(labels):
            problems.append((language, "two are alike"))
        if max(map(len, short)) > 30 or max(map(len, labels)) > 64:
            problems.append((language, "one is too long"))
    assert problems == []


def test_nothing_to_block_names_the_unblock_command() -> None:
    """The sentence names /unblock, isolated in right-to-left text, so that clients make it a link."""
    problems = []
    for language, texts in LANGUAGES.items():
        sentence = texts.control.nothing_to_block
        is_right_to_left = any(unicodedata.bidirectional(each) in {"R", "AL"} for each in sentence)
        command = "\u2066/unblock\u2069" if is_right_to_left else r" /unblock\b"
        if re.search(command, sentence) is None:
            problems.append(language)
    assert problems == []


def test_language_is_chosen_by_its_first_part() -> None:
    """`language_code` is an IETF tag that a client may leave out; an unknown one gives English."""
    expected = {
        "en": "en",
        "pt-br": "pt",
        "pt-BR": "pt",
        "PT": "pt",
        "zh-hans": "en",
        "uzb": "en",
        "": "en",
        None: "en",
        "\ud800": "en",
    }
    assert {code: language for code, language in expected.items() if texts_for(code) is not LANGUAGES[language]} == {}


def test_each_file_is_a_language() -> None:
    """Each file is a language. The Bot API accepts commands only for languages with two letters."""
    names = {each.name for each in files("taproof.messengers.texts").iterdir() if each.name.endswith(".toml")}
    assert {f"{language}.toml" for language in LANGUAGES} == names
    assert len(names) >= 10
    assert next(iter(LANGUAGES)) == "en"
    assert [language for language in LANGUAGES if not re.fullmatch("[a-z]{2}", language)] == []


def test_a_mistake_in_a_file_is_refused() -> None:
    """The error names the file and the key, so that a translator finds the place."""
    mistakes = {
        "xx.toml: just_now is missing.": ("just_now = ", "# just_now = "),
        "xx.toml: phone.over is missing.": ("over = ", "# over = "),
        "xx.toml: context is missing.": ("[context]", "[control.context]"),
        "xx.toml: extra is not a known key.": ("confirm_button = ", "extra = ''\nconfirm_button = "),
        "xx.toml: phone.extra is not a known key.": ("[phone]", "[phone]\nextra = ''"),
        "xx.toml: just_now must be a string.": ("'just now'", "7"),
        "xx.toml: context must be a table.": ("[context]", "[[context]]"),
        "xx.toml: expired_notice must have exactly these placeholders: none.": (
            "expired_notice = '",
            "expired_notice = '{when}",
        ),
        "xx.toml: minutes_ago must have exactly these placeholders: {n}.": ("'{n} minutes ago'", "'{m} minutes ago'"),
        "xx.toml: seconds_ago must have exactly these placeholders: {n}.": ("'{n} seconds ago'", "'seconds ago'"),
        "xx.toml: context.browser_on must have exactly these placeholders: {browser}, {system}.": (
            "'{browser} on {system}'",
            "'{browser} on {}'",
        ),
        "xx.toml: just_now has a brace that is not closed or not opened.": ("'just now'", "'just {now'"),
        "xx.toml is not valid TOML": ("'just now'", "just now"),
    }
    assert load_texts("xx.toml", ENGLISH) == LANGUAGES["en"]
    answers = {}
    for expected, (there, instead) in mistakes.items():
        assert ENGLISH.count(there) == 1, there
        with pytest.raises((ValueError, TypeError)) as refusal:
            load_texts("xx.toml", ENGLISH.replace(there, instead))
        if not str(refusal.value).startswith(expected):
            answers[expected] = str(refusal.value)
    assert answers == {}
