"""The part of a session that the bot may show to a user."""

from dataclasses import dataclass, field
from typing import Final, Literal

from taproof.contract.session import SignInStatus
from taproof.core.project_texts import ProjectTexts, load_texts
from taproof.core.request_context import NOTHING_KNOWN, RequestContext, load_context
from taproof.core.session_state import visible_status
from taproof.core.sessions import PromptDetails, Session

DecisionOutcome = Literal[
    "opened",
    "phone",
    "returning",
    "confirmed",
    "cancelled",
    "withdrawn",
    "mismatched",
    "reported",
    "blocked",
    "expired",
    "foreign",
    "unknown",
]
"""The state of a session for the user who opened or decided it.

"opened": it waits for this user's decision. "phone": they confirmed, and it waits for their phone number. "returning":
they confirmed, and it waits until they return to their browser. "confirmed" and "cancelled": it was decided, now or
earlier. "withdrawn": its application cancelled it. "mismatched": the user tapped a wrong match code, which cancelled
it. "reported": the user tapped "This wasn't me". "blocked": the user has blocked its project. "expired": it has
expired. "foreign": another account opened it first. "unknown": there is no such session, or this bot may not show it.
"""


@dataclass(frozen=True, slots=True)
class SeenSession:
    """A session as the bot may show it to a user. Times are in ms.

    `changed`: this call decided it. `project_name` is exactly what the developer typed: show it through
    `core.names.isolated_name` only. `choices`: the match codes that replace Confirm; empty if there are none.
    `context`: where the request came from. A stranger may control this text. `phone_asked`: the user was asked for
    their contact, so a keyboard for it may be showing. `was_used`: somebody may have received the result of the
    reported session, and the project must sign them out. `signed_out`: the project is the service's own, and the
    developer who reported the session was signed out there. `return_link`: the link back to the browser in which
    the sign-in began, with the return code. It is known only to the call that made the code. `has_link_back`: the
    session's messages have that link after Confirm, so nobody may forward them. `session_token`: the session that a
    contact belongs to; "" if the caller named the session. `texts`: the project's own texts.
    """

    outcome: DecisionOutcome
    project_name: str = ""
    created_at: int = 0
    decided_at: int | None = None
    changed: bool = False
    project_id: str = ""
    session_id: str = ""
    context: RequestContext = NOTHING_KNOWN
    choices: tuple[str, ...] = ()
    phone_required: bool = True
    phone_asked: bool = False
    was_used: bool = False
    signed_out: bool = False
    return_link: str | None = field(default=None, repr=False)
    has_link_back: bool = False
    session_token: str = field(default="", repr=False)
    texts: ProjectTexts = field(default_factory=dict)


UNKNOWN = SeenSession("unknown")
_OUTCOMES: Final[dict[SignInStatus, DecisionOutcome]] = {
    "pending": "opened",
    "confirmed": "confirmed",
    "used": "confirmed",
    "cancelled": "cancelled",
    "expired": "expired",
}
"""The outcome for the owner of a session, by the session's status."""


def seen_by(session: Session | None, user_id: str, now: int) -> SeenSession:
    """Return the part of a session that `user_id` may know."""
    if session is None:
        return UNKNOWN
    if session.opener_id is not None and session.opener_id != user_id:
        return SeenSession("foreign")
    status = visible_status(session.status, session.expires_at, now)
    if status == "pending" and session.opener_id is None:
        return seen_as("unknown", session)
    if status == "pending" and session.prompt is not None and session.prompt.is_returning:
        return seen_as("returning", session)
    return seen_as("withdrawn" if session.withdrawn else _OUTCOMES[status], session)


def seen_as(outcome: DecisionOutcome, session: Session) -> SeenSession:
    """Return a session with an outcome."""
    details = session.prompt or PromptDetails()
    return SeenSession(
        outcome=outcome,
        project_name=session.project_name,
        created_at=session.created_at,
        decided_at=session.confirmed_at if session.confirmed_at is not None else session.cancelled_at,
        project_id=session.project_id,
        session_id=session.id,
        context=load_context(details.context),
        choices=tuple((details.match_choices or "").split()),
        phone_required=details.phone_required,
        has_link_back=details.return_url is not None,
        texts=load_texts(details.texts),
    )
