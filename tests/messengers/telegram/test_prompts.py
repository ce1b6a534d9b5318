"""The messages about a session that a user sees."""

import re

import pytest

from taproof.core.clock import MINUTE, SECOND
from taproof.messengers.telegram.prompts import opened_reply, outcome_notice, outcome_reply
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.service.sessions.seen import SeenSession

ENGLISH = LANGUAGES["en"]
SESSION_TOKEN = "A" * 43
DECIDED_AT = 1_795_214_643_127


def opened(name: str, *, age: int = 0, language: str = "en") -> str:
    return opened_reply(LANGUAGES[language], SeenSession("opened", name, created_at=0), SESSION_TOKEN, age).text


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (-5 * SECOND, "just now"),
        (0, "just now"),
        (4_999, "just now"),
        (5 * SECOND, "5 seconds ago"),
        (25 * SECOND, "25 seconds ago"),
        (2 * MINUTE - 1, "119 seconds ago"),
        (2 * MINUTE, "2 minutes ago"),
        (10 * MINUTE, "10 minutes ago"),
    ],
)
def test_prompt_tells_the_age(age: int, words: str) -> None:
    """The prompt says how long ago the request was made, also when a clock runs behind."""
    assert f"Requested: {words}." in opened("Acme", age=age)


def test_buttons_have_equal_weight() -> None:
    """Confirm and Cancel are in one row, without decoration, and carry the token within 64 bytes."""
    reply = opened_reply(ENGLISH, SeenSession("opened", "Acme"), SESSION_TOKEN, 0)
    assert reply.buttons is not None
    [[confirm, cancel], [not_me]] = reply.buttons.inline_keyboard
    assert (confirm.text, cancel.text) == ("Confirm", "Cancel")
    assert (confirm.callback_data, cancel.callback_data) == (f"c:{SESSION_TOKEN}", f"x:{SESSION_TOKEN}")
    assert confirm.model_dump(exclude={"text", "callback_data"}) == cancel.model_dump(exclude={"text", "callback_data"})
    assert len(f"c:{SESSION_TOKEN}".encode()) <= 64
    assert (not_me.text, not_me.callback_data) == (ENGLISH.control.not_me_button, f"r:{SESSION_TOKEN}")


HOSTILE_NAMES = [
    "<b>Bank</b> & Co",
    "</code><a href='https://evil.example'>Bank</a>",
    "Acme\n\nRequested: just now.\nTap Confirm",
    "\u202eknaB",
    "شركة\u2067 Acme",
    "{cancel} {0} {project}",
    "👩\u200d👩\u200d👧 family",
    "Acme\u2069\u2069 trusted by Taproof",
    "t.me/evil_bot @evil /unblock",
    "A" * 100,
]


def test_no_name_breaks_out(subtests: pytest.Subtests) -> None:
    """Any project name stays inside its own `<code>` and its own isolate, on one line."""
    for name in HOSTILE_NAMES:
        for language in LANGUAGES:
            with subtests.test(language=language, name=name):
                plain = re.escape(LANGUAGES[language].prompt).replace(r"\{project\}", "(.*)")
                plain = plain.replace(r"\{context\}", "").replace(r"\{choose\}", "")
                pattern = plain.replace(r"\{age\}", re.escape(LANGUAGES[language].just_now))
                pattern = pattern.replace(r"\{cancel\}", re.escape(LANGUAGES[language].cancel_button))
                found = re.fullmatch(pattern, opened(name, language=language))
                assert found is not None
                assert re.fullmatch(r"<code>\u2068[^<>\n\u2066-\u2069\u202a-\u202e]+\u2069</code>", found[1])


def test_own_texts_stand_beside_the_services(subtests: pytest.Subtests) -> None:
    """A project's text is set apart like its name. Every sentence that protects the user stays unchanged."""
    texts = {
        "default": {"prompt_title": "t.me/evil <b>", "confirmed": "@evil & Co", "cancelled": "</code>", "expired": "&"},
        "ar": {"prompt_title": "منطقة الأعضاء", "confirmed": "شكرا"},
    }
    shown = {
        "opened": "<code>\u2068t.me/evil &lt;b&gt;\u2069</code>",
        "confirmed": "<code>\u2068@evil &amp; Co\u2069</code>",
        "cancelled": "<code>\u2068&lt;/code&gt;\u2069</code>",
        "expired": "<code>\u2068&amp;\u2069</code>",
    }
    arabic = {"opened": "<code>\u2068منطقة الأعضاء\u2069</code>", "confirmed": "<code>\u2068شكرا\u2069</code>"}
    for outcome in (*shown, "withdrawn", "mismatched", "returning"):
        for language, of_language in LANGUAGES.items():
            with subtests.test(outcome=outcome, language=language):
                usual, own = (
                    opened_reply(of_language, SeenSession(outcome, "Acme", 0, 1, texts=each), SESSION_TOKEN, 0)  # type: ignore[arg-type]
                    for each in ({}, texts)
                )
                text = {**shown, **(arabic if language == "ar" else {})}.get(outcome)
                advice = {"confirmed": of_language.confirmed_next, "expired": of_language.expired_next}.get(outcome)
                kept = usual.text.removesuffix(f"\n\n{advice}")
                expected = {"opened": f"{text}\n\n{kept}"}.get(outcome, f"{kept}\n\n{text}" if text else kept)
                assert own.text == expected
                assert own.buttons == usual.buttons


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("outcome", ["confirmed", "cancelled", "withdrawn"])
def test_decision_is_shown_with_its_time(language: str, outcome: str) -> None:
    """The outcome with its UTC time replaces the prompt; right-to-left text cannot reorder the time."""
    seen = SeenSession(outcome, "Acme", 0, DECIDED_AT, changed=True)  # type: ignore[arg-type]
    reply = outcome_reply(LANGUAGES[language], seen, SESSION_TOKEN)
    assert "\u20682026-11-20 22:44 UTC\u2069" in reply.text
    assert "Acme" in reply.text
    assert (reply.buttons is not None) is (outcome == "withdrawn")
    assert "2026-11-20 22:44 UTC" in outcome_notice(LANGUAGES[language], seen)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("outcome", ["confirmed", "returning"])
def test_back_button_opens_the_page(language: str, outcome: str) -> None:
    """The link has the project's name, which cannot reorder the text. Until the return, the user may still refuse."""
    link = "https://shop.example/#taproof_return=code"
    seen = SeenSession(outcome, "Ac\u202eme", 0, DECIDED_AT, return_link=link)  # type: ignore[arg-type]
    reply = outcome_reply(LANGUAGES[language], seen, SESSION_TOKEN)
    assert reply.buttons is not None
    [[button], *others] = reply.buttons.inline_keyboard
    assert (button.url, button.callback_data) == (link, None)
    refusals = [f"x:{SESSION_TOKEN}", f"r:{SESSION_TOKEN}"]
    assert [each.callback_data for row in others for each in row] == (refusals if outcome == "returning" else [])
    assert "Acme" in button.text
    assert "\u202e" not in button.text
    assert "code" not in repr(seen)
    assert len(outcome_notice(LANGUAGES[language], seen)) <= 200


@pytest.mark.parametrize("language", LANGUAGES)
def test_foreign_request_names_no_project(language: str) -> None:
    """A user who does not own a request learns nothing about it."""
    seen = SeenSession("foreign", "Secret project")
    texts = LANGUAGES[language]
    assert opened_reply(texts, seen, SESSION_TOKEN, 0).text == outcome_notice(texts, seen) == texts.foreign
    assert opened_reply(texts, seen, SESSION_TOKEN, 0).buttons is None
