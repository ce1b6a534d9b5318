"""The steps of a session in plain language, for its developer (service-spec.md, States and transitions)."""

from dataclasses import dataclass
from typing import Final, Literal

from taproof.contract.session import SignInStatus
from taproof.core.session_state import visible_status
from taproof.core.sessions import Session

StepName = Literal["requested", "opened", "confirmed", "cancelled", "expired", "used", "reported"]

_AGAIN: Final = "To try again, start a new session."
_NEVER_OPENED: Final = (
    "The link was never opened. Check that your page shows the link, as a button on phones and as a QR code elsewhere, "
    f"and that the link opens the messenger. {_AGAIN}"
)
_NEVER_USED: Final = (
    "Confirmed, but never used: no client called verify after that. Check that your client keeps polling until the "
    "status is no longer pending. If your application takes the identity from the webhook, this is expected."
)
_REPORTED: Final = "The user reported this sign-in: it was not them."
"""The user tapped "This wasn't me"; see docs/how-to/for-your-users.md."""
_REPORTED_IN_TIME: Final = (
    f"{_REPORTED} Nobody was signed in. If several users report sign-ins, somebody may be sending them your sign-in "
    "links."
)
_REPORTED_TOO_LATE: Final = (
    f"{_REPORTED} The sign-in was already used: end the session that your application opened for it."
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a session. `at` is its time in ms; None if it has not happened, as `sentence` then says."""

    name: StepName
    at: int | None
    sentence: str


def timeline(session: Session, now: int) -> list[Step]:
    """Return the steps of a session at `now`, from the request to the end, or to the step it is waiting for.

    `session.prompt` says whether the user was asked for a match code or a phone number. If it is None, the sentences
    cover both cases.
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
        steps.append(Step("expired", session.expires_at, "The link expired after 10 minutes."))
    else:
        steps += [_confirmed(session), _used(session)]
    return steps


def _opened(session: Session, status: SignInStatus) -> Step:
    if session.opened_at is not None:
        return Step("opened", session.opened_at, "The link was opened in the messenger, and the bot asked the user.")
    if status == "pending":
        return Step("opened", None, "The link has not been opened yet.")
    return Step("opened", None, "The link was never opened.")


def _confirmed(session: Session) -> Step:
    if session.confirmed_at is None:
        asks_phone = session.prompt is not None and session.prompt.collect_phone
        more = ", or not shared their phone number yet" if asks_phone else ""
        # This does not tell whether they confirmed: until they return, only the hint of a poll does.
        more += ", or not returned to the browser yet" if _must_return(session) else ""
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
    """Return the step of a cancelled session. The store does not record how the user declined."""
    if session.withdrawn:
        return Step("cancelled", session.cancelled_at, "Your application cancelled the sign-in.")
    prompt = session.prompt
    phone = ", perhaps when asked for their phone number" if prompt is not None and prompt.collect_phone else ""
    number = (
        "" if prompt is not None and prompt.match_code is None else ", or chose a number that your page did not show"
    )
    return Step("cancelled", session.cancelled_at, f"The user tapped Cancel{phone}{number}.")


def _used(session: Session) -> Step:
    if session.used_at is not None:
        return Step("used", session.used_at, "Your application received the identity and the proof through verify.")
    if session.confirmed_at is not None:
        return Step("used", None, "Your application has not received the result.")
    return Step("used", None, "There is no result yet.")


def _reported(session: Session, reported_at: int) -> list[Step]:
    if session.confirmed_at is None:
        return [Step("reported", reported_at, "The user tapped “This wasn’t me”, which cancelled the session.")]
    if session.used_at is None:
        sentence = "The user tapped “This wasn’t me” before the sign-in was used. The sign-in ended."
        return [_confirmed(session), Step("reported", reported_at, sentence)]
    sentence = "The user tapped “This wasn’t me” after the sign-in was used."
    return [_confirmed(session), _used(session), Step("reported", reported_at, sentence)]


def outcome_sentence(session: Session, now: int) -> str:
    """Return the outcome of a session at `now` in plain language, with the next step if there is one."""
    if session.reported_at is not None:
        return _REPORTED_IN_TIME if session.used_at is None else _REPORTED_TOO_LATE
    status = visible_status(session.status, session.expires_at, now)
    match status:
        case "pending" if session.opened_at is None:
            return "Waiting for the user to open the link."
        case "pending":
            return f"Opened, waiting for the user’s decision. The user has {_unanswered(session)}."
        case "expired" if session.opened_at is None:
            return _NEVER_OPENED
        case "expired":
            after = "In the end" if _must_return(session) else "After 10 minutes"
            return f"Opened, but not answered. {after}, the user had {_unanswered(session)}. {_AGAIN}"
        case "cancelled":
            return f"Cancelled by {'your application' if session.withdrawn else 'the user'}. {_AGAIN}"
        case "used":
            return "Your application received the result."
        case "confirmed" if now < session.expires_at:
            # Until then a client keeps polling (service-spec.md, Limits).
            return "Confirmed, but not used yet. Waiting for your application to call verify."
        case "confirmed":
            return _NEVER_USED


def _unanswered(session: Session) -> str:
    """Return what the user of an opened, undecided session has not done, to follow "has" or "had"."""
    prompt = session.prompt
    if prompt is None:
        return "neither confirmed nor cancelled"
    done = (
        "tapped neither Confirm nor Cancel"
        if prompt.match_code is None
        else "neither chosen a number nor tapped Cancel"
    )
    phone = ", or not shared their phone number" if prompt.collect_phone else ""
    return f"{done}{phone}" + (", or not returned to the browser" if _must_return(session) else "")


def _must_return(session: Session) -> bool:
    return session.prompt is not None and session.prompt.return_required
