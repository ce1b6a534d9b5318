"""The sentences that a developer reads about a session (service-spec.md, States and transitions)."""

from dataclasses import replace

import pytest

from taproof.core.clock import MINUTE, SECOND
from taproof.core.identity import MessengerIdentity
from taproof.core.session_state import SESSION_LIFETIME
from taproof.core.sessions import PromptDetails, Session, SessionKey
from taproof.core.timeline import Step, StepName, outcome_sentence, timeline

START = 1_795_214_643_127
EDGE = START + SESSION_LIFETIME
KEY = SessionKey(20_777, b"h" * 32)

PENDING = Session(KEY, "sess_1", "proj_1", "Shop", "pending", START, EDGE, prompt=PromptDetails())
OPENED = replace(PENDING, opened_at=START + 5 * SECOND, opener_id="1001")
CANCELLED = replace(OPENED, status="cancelled", cancelled_at=START + 9 * SECOND)
CONFIRMED = replace(
    OPENED, status="confirmed", confirmed_at=START + 9 * SECOND, identity=MessengerIdentity("1001", "Ada", "ada")
)
USED = replace(CONFIRMED, status="used", used_at=START + 11 * SECOND)

FIRST_STEP: tuple[StepName, int] = ("requested", START)
OPEN_STEP: tuple[StepName, int] = ("opened", START + 5_000)
CONFIRM_STEP: tuple[StepName, int] = ("confirmed", START + 9_000)
USE_STEP: tuple[StepName, int] = ("used", START + 11_000)
CASES: dict[str, tuple[Session, int, list[tuple[StepName, int | None]], str]] = {
    "asked for": (
        PENDING,
        EDGE - 1,
        [FIRST_STEP, ("opened", None), ("confirmed", None), ("used", None)],
        "Waiting for the user to open the link.",
    ),
    "opened": (
        OPENED,
        EDGE - 1,
        [FIRST_STEP, OPEN_STEP, ("confirmed", None), ("used", None)],
        "Opened, waiting for the user’s decision. The user has tapped neither Confirm nor Cancel.",
    ),
    "confirmed just now": (
        CONFIRMED,
        EDGE - 1,
        [FIRST_STEP, OPEN_STEP, CONFIRM_STEP, ("used", None)],
        "Confirmed, but not used yet. Waiting for your application",
    ),
    "never used": (
        CONFIRMED,
        EDGE,
        [FIRST_STEP, OPEN_STEP, CONFIRM_STEP, ("used", None)],
        "Confirmed, but never used: no client called verify after that. Check that your client keeps polling",
    ),
    "used": (
        USED,
        EDGE,
        [FIRST_STEP, OPEN_STEP, CONFIRM_STEP, USE_STEP],
        "Your application received the result.",
    ),
    "cancelled": (
        CANCELLED,
        EDGE,
        [FIRST_STEP, OPEN_STEP, ("cancelled", START + 9_000)],
        "Cancelled by the user. To try again, start a new session.",
    ),
    "cancelled by the application": (
        replace(CANCELLED, withdrawn=True),
        EDGE,
        [FIRST_STEP, OPEN_STEP, ("cancelled", START + 9_000)],
        "Cancelled by your application. To try again, start a new session.",
    ),
    "reported on the prompt": (
        replace(CANCELLED, reported_at=START + 9 * SECOND),
        EDGE,
        [FIRST_STEP, OPEN_STEP, ("reported", START + 9_000)],
        "The user reported this sign-in: it was not them. Nobody was signed in.",
    ),
    "reported before it was used": (
        replace(USED, used_at=None, reported_at=START + 10 * SECOND),
        EDGE,
        [FIRST_STEP, OPEN_STEP, CONFIRM_STEP, ("reported", START + 10_000)],
        "The user reported this sign-in: it was not them. Nobody was signed in.",
    ),
    "reported after it was used": (
        replace(USED, reported_at=EDGE + 5),
        EDGE + 9,
        [FIRST_STEP, OPEN_STEP, CONFIRM_STEP, USE_STEP, ("reported", EDGE + 5)],
        "The user reported this sign-in: it was not them. The sign-in was already used: end the session",
    ),
    "never opened": (
        PENDING,
        EDGE,
        [FIRST_STEP, ("opened", None), ("expired", EDGE)],
        "The link was never opened. Check that your page shows the link",
    ),
    "not answered": (
        OPENED,
        EDGE,
        [FIRST_STEP, OPEN_STEP, ("expired", EDGE)],
        "Opened, but not answered. After 10 minutes, the user had tapped neither Confirm nor Cancel.",
    ),
}


def test_each_course_of_a_session_has_its_steps(subtests: pytest.Subtests) -> None:
    """The steps are in order, each with its time or None, and a sentence tells the outcome or the next event.

    A step that did not happen does not read as if it had. Every sentence is whole.
    """
    for name, (session, now, steps, outcome) in CASES.items():
        with subtests.test(name):
            found = timeline(session, now)
            assert [(step.name, step.at) for step in found] == steps
            assert outcome_sentence(session, now).startswith(outcome)
            for step in found:
                assert step.sentence.endswith(".")
                says_no = " not " in step.sentence or "never" in step.sentence or " no " in step.sentence
                assert says_no == (step.at is None)


@pytest.mark.parametrize("written_down", [PENDING, OPENED])
def test_expiry_is_shown_from_its_instant_on(written_down: Session) -> None:
    """An expired session reads the same before and after housekeeping, from the instant of its expiry."""
    swept = replace(written_down, status="expired")
    for now in (EDGE, EDGE + MINUTE):
        assert timeline(written_down, now) == timeline(swept, now)
        assert outcome_sentence(written_down, now) == outcome_sentence(swept, now)
    assert timeline(written_down, EDGE - 1)[-1] == Step("used", None, "There is no result yet.")


CANCEL = "The user tapped Cancel"
MATCH = PromptDetails(match_code="42", match_choices="17 42 88")
PHONE = PromptDetails(collect_phone=True)
RETURN = PromptDetails(return_required=True)
BOTH = MATCH._replace(collect_phone=True)


def test_sentences_name_only_possible_taps() -> None:
    """With match codes there is no Confirm, and a wrong number cancels too. A phone number may not have been shared."""
    number = "chose a number that your page did not show"
    shared = replace(CONFIRMED, encrypted_phone=b"s")
    for session, prompt, said in (
        (CANCELLED, PromptDetails(), f"{CANCEL}."),
        (CANCELLED, MATCH, f"{CANCEL}, or {number}."),
        (CANCELLED, PHONE, f"{CANCEL}, perhaps when asked for their phone number."),
        (CANCELLED, BOTH, f"{CANCEL}, perhaps when asked for their phone number, or {number}."),
        (CANCELLED, None, f"{CANCEL}, or {number}."),
        (CONFIRMED, PromptDetails(), "The user tapped Confirm."),
        (CONFIRMED, PHONE, "The user tapped Confirm."),
        (CONFIRMED, MATCH, "The user chose the number that your page showed."),
        (shared, PHONE, "The user tapped Confirm, and shared their phone number."),
        (CONFIRMED, None, "The user confirmed."),
        (OPENED, MATCH, "The user has not confirmed yet."),
        (OPENED, PHONE, "The user has not confirmed yet, or not shared their phone number yet."),
        (OPENED, RETURN, "The user has not confirmed yet, or not returned to the browser yet."),
    ):
        assert timeline(replace(session, prompt=prompt), EDGE - 1)[2].sentence == said
    for prompt, said in (
        (PromptDetails(), "tapped neither Confirm nor Cancel."),
        (MATCH, "neither chosen a number nor tapped Cancel."),
        (PHONE, "tapped neither Confirm nor Cancel, or not shared their phone number."),
        (RETURN, "tapped neither Confirm nor Cancel, or not returned to the browser."),
        (None, "neither confirmed nor cancelled."),
    ):
        session = replace(OPENED, prompt=prompt)
        assert f"the user had {said}" in outcome_sentence(session, EDGE)
        assert said.removesuffix(".") in outcome_sentence(session, EDGE - 1)
