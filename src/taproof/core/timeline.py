"""What happened to a session, step by step and in plain words, for the developer who looks at it.

Source: service-spec.md, States and transitions.
"""

from dataclasses import dataclass
from typing import Final, Literal

from taproof.core.model import Session, Status
from taproof.core.session_state import visible_status

StepName = Literal["requested", "opened", "confirmed", "cancelled", "expired", "read", "reported"]

_AGAIN: Final = "A new try needs a new session."
_NEVER_OPENED: Final = (
    "The link was never opened. Check that your page shows it, as a button on a phone or as a QR code elsewhere, and "
    f"that it opens the messenger. {_AGAIN}"
)
_NEVER_READ: Final = (
    "Confirmed, but never read: nobody has asked verify since. Check that your client goes on polling until the status "
    "is no longer pending. If your application takes the identity from the webhook, all is well."
)
_REPORTED: Final = "Reported by the user: it was not them."
"""The user tapped "This wasn't me"; see docs/how-to/for-your-users.md."""
_REPORTED_IN_TIME: Final = (
    f"{_REPORTED} Nobody was signed in. Reports of several users mean that somebody sends them your sign-in links."
)
_REPORTED_TOO_LATE: Final = (
    f"{_REPORTED} But the result was read before: end the session that your application opened for it."
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a session. `at` is when it happened, in ms; None: it has not, and `sentence` says so."""

    name: StepName
    at: int | None
    sentence: str


def timeline(session: Session, now: int) -> list[Step]:
    """Return the steps of a session as it stands at `now`, from the request to its end, or to what is still awaited.

    What the user was asked, a match code or a phone number, is in `session.prompt`. Where that is None the sentences
    leave open which it was.
    """
    status = visible_status(session.status, session.expires_at, now)
    steps = [
        Step("requested", session.created_at, "Your application started the sign-in and got its link."),
        _opened(session, status),
    ]
    if session.reported_at is not None:
        steps += _reported(session, session.reported_at)
    elif status == "cancelled":
        steps.append(_cancelled(session))
    elif status == "expired":
        steps.append(Step("expired", session.expires_at, "The 10 minutes were over, and the link stopped working."))
    else:
        steps += [_confirmed(session), _read(session)]
    return steps


def _opened(session: Session, status: Status) -> Step:
    if session.opened_at is not None:
        return Step("opened", session.opened_at, "The link was opened in the messenger, and the bot asked the user.")
    if status == "pending":
        return Step("opened", None, "The link has not been opened yet.")
    return Step("opened", None, "The link was never opened.")


def _confirmed(session: Session) -> Step:
    if session.confirmed_at is None:
        asks_phone = session.prompt is not None and session.prompt.collect_phone
        more = ", or not shared their phone number yet" if asks_phone else ""
        return Step("confirmed", None, f"The user has not confirmed yet{more}.")
    if session.prompt is None:
        done = "confirmed"
    elif session.prompt.match_code is None:
        done = "tapped Confirm"
    else:
        done = "chose the number that your page showed"
    phone = "" if session.encrypted_phone is None else ", and shared their phone number"
    return Step("confirmed", session.confirmed_at, f"The user {done}{phone}.")


def _cancelled(session: Session) -> Step:
    """Which of them it was is not kept: all are the user's way to say no, and declining the phone number is Cancel."""
    prompt = session.prompt
    phone = ", perhaps when asked for their phone number" if prompt is not None and prompt.collect_phone else ""
    number = (
        "" if prompt is not None and prompt.match_code is None else ", or chose a number that your page did not show"
    )
    return Step("cancelled", session.cancelled_at, f"The user tapped Cancel{phone}{number}.")


def _read(session: Session) -> Step:
    if session.used_at is not None:
        return Step("read", session.used_at, "The result was read through verify, with identity and proof.")
    if session.confirmed_at is not None:
        return Step("read", None, "The result has not been read.")
    return Step("read", None, "There is nothing to read yet.")


def _reported(session: Session, reported_at: int) -> list[Step]:
    if session.confirmed_at is None:
        return [Step("reported", reported_at, "The user said “This wasn’t me”, which cancelled the session.")]
    if session.used_at is None:
        sentence = "The user said “This wasn’t me”. Nobody had read the result, and nobody can any more."
        return [_confirmed(session), Step("reported", reported_at, sentence)]
    sentence = "The user said “This wasn’t me”, after the result had been read."
    return [_confirmed(session), _read(session), Step("reported", reported_at, sentence)]


def outcome_sentence(session: Session, now: int) -> str:
    """Return in plain words what became of a session by `now`, and what to do next where there is something to do."""
    if session.reported_at is not None:
        return _REPORTED_IN_TIME if session.used_at is None else _REPORTED_TOO_LATE
    status = visible_status(session.status, session.expires_at, now)
    match status:
        case "pending" if session.opened_at is None:
            return "Waiting for the user to open the link."
        case "pending":
            return f"Opened: waiting for the answer. So far the user {_unanswered(session)}."
        case "expired" if session.opened_at is None:
            return _NEVER_OPENED
        case "expired":
            until = "before the 10 minutes were over"
            return f"Opened, but not answered. The user {_unanswered(session)} {until}. {_AGAIN}"
        case "cancelled":
            return f"Cancelled by the user. {_AGAIN}"
        case "used":
            return "Confirmed and read."
        case "confirmed" if now < session.expires_at:
            # Until then a client goes on polling (service-spec.md, Limits).
            return "Confirmed, but not read yet. Waiting for your application to ask verify."
        case "confirmed":
            return _NEVER_READ


def _unanswered(session: Session) -> str:
    """Return what the user of a session that was opened and not decided has not done."""
    prompt = session.prompt
    if prompt is None:
        return "neither confirmed nor cancelled"
    done = (
        "tapped neither Confirm nor Cancel" if prompt.match_code is None else "neither chose a number nor tapped Cancel"
    )
    return f"{done}, or did not share their phone number" if prompt.collect_phone else done
