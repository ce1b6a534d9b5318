"""The state of the oracle of `test_session_life.py`, and its counters."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from taproof.contract.project import SameDevice
from taproof.contract.session import SignInStatus
from taproof.core.code_challenge import REREAD_WINDOW
from taproof.core.identifiers import session_key
from taproof.core.projects import Project
from taproof.core.session_state import IllegalTransition, SessionEvent, State, next_expiry, next_status, visible_status
from taproof.core.sessions import Hint, Session, SessionKey


@dataclass
class ModelProject:
    """The oracle's state of a project."""

    project: Project
    webhook_secret: str
    is_active: bool = True
    public_access: bool = True
    webhook_url: str = ""
    same_device: SameDevice = "off"
    exists: bool = True
    created: int = 0
    generation: int = 0
    """The number of times its secrets were replaced: earlier proofs are not repeated."""


@dataclass
class ModelSession:
    """The oracle's state of a session."""

    token: str
    owner: ModelProject
    expires_at: int
    status: State = "pending"
    opener: str | None = None
    bound: bool = False
    """Whether it was created with a code challenge, so that its result may be read again for a while."""
    required: bool = False
    """Whether it was created under the policy "require": nobody gets its proof without the return code."""
    code: str = ""
    """The latest return code."""
    used_at: int | None = None
    used_generation: int = 0
    reported: bool = False
    withdrawn: bool = False
    event_due: bool = False
    """Whether the webhook event of its decision is still due; the machine sends none."""

    @property
    def hint(self) -> Hint:
        """The hint while it is pending."""
        if self.status == "returning":
            return "return"
        return "waiting" if self.opener is None else "opened"

    @property
    def key(self) -> SessionKey:
        key = session_key(self.token)
        assert key is not None
        return key

    def after(self, event: SessionEvent, now: int) -> bool:
        """Apply the event as the table says; return whether the state allows it."""
        try:
            self.status = next_status(self.status, event, self.expires_at, now)
        except IllegalTransition:
            return False
        self.expires_at = next_expiry(event, self.expires_at, now)
        return True

    def withdrawn_at(self, now: int) -> bool:
        """Apply a cancellation by the application, which sends no event; return whether it had an effect."""
        changed = self.owner.exists and self.after("withdraw", now)
        self.withdrawn |= changed
        return changed

    def confirmed_by(self, user: str, now: int) -> bool:
        """Apply the owner's Confirm; return whether it had an effect."""
        event: SessionEvent = "await_return" if self.required else "confirm"
        return self.owner.exists and self.opener == user and self.after(event, now)

    def read_by(self, now: int) -> bool:
        """Apply a read; return whether this reader gets the proof."""
        if not self.after("consume", now):
            return False
        self.used_at, self.used_generation = now, self.owner.generation
        return True

    def reported_by(self, user: str, now: int) -> bool:
        """Apply a report, which counts once; return whether it had an effect."""
        if self.reported or not self.owner.exists or self.opener != user or not self.after("report", now):
            return False
        self.reported = True
        self.event_due = self.status == "cancelled" and self.owner.webhook_url != ""
        return True

    def returned_by(self, code: str | None, now: int) -> bool:
        """Apply a return with the return code; return whether it had an effect."""
        if not self.owner.exists or code is None or code != self.code or not self.after("return", now):
            return False
        self.event_due = self.owner.webhook_url != ""
        return True

    def hides_from(self, code: str | None) -> bool:
        """Return whether the identity is hidden from a reader with this return code."""
        return self.required and code != self.code

    def may_be_reread(self, now: int) -> bool:
        is_recent = self.used_at is not None and self.used_at > now - REREAD_WINDOW
        return self.bound and is_recent and not self.reported and self.used_generation == self.owner.generation

    def seen(self, now: int) -> SignInStatus:
        return visible_status(self.status, self.expires_at, now)


def recount(sessions: list[Session]) -> list[tuple[Any, ...]]:
    """Return the expected `read_daily_counts` of the existing sessions, without `latest_users`."""
    by_day: dict[tuple[str, int], list[Session]] = defaultdict(list)
    for session in sessions:
        by_day[session.project_id, session.key.day].append(session)
    return [
        (
            *project_and_day,
            len(each),
            sum(session.opened_at is not None for session in each),
            sum(session.confirmed_at is not None for session in each),
            sum(session.used_at is not None for session in each),
            sum(session.cancelled_at is not None for session in each),
            sum(session.status == "expired" for session in each),
            len({session.identity.messenger_id for session in each if session.identity is not None}),
            sum(session.reported_at is not None for session in each),
        )
        for project_and_day, each in by_day.items()
    ]
