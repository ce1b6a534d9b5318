"""What the service asks of a store about users: what they said of sessions and projects. See `protocol.py`."""

from typing import Final, Protocol

from taproof.core.deliveries import Event
from taproof.core.model import NamedProject, PhoneRequest, Session, SessionKey, Status

PROJECTS_OF_USER: Final = 200
"""Projects of one account that its sign-ins are looked for in: what a list costs grows with them alone."""


class UserStorage(Protocol):
    """The part of the store that users act on, through a bot."""

    # ---- the phone number of a sign-in under way

    async def ask_for_phone(self, request: PhoneRequest) -> None:
        """Remember that a user is asked for their contact. Safe to repeat: only `asked_at` moves on.

        It becomes later than that of all else which this user was asked for by this bot.
        """

    async def read_phone_request(self, key: SessionKey) -> PhoneRequest | None:
        """Return whether, and of whom, a contact was asked for this session."""

    async def find_phone_request(self, messenger_id: str, bot_id: int) -> PhoneRequest | None:
        """Return what this user was asked for last by this bot: that is what a contact answers.

        Also when it was decided or has expired meanwhile, so that a contact that comes twice hears the same twice.
        """

    async def purge_phone_requests(self, expired_before: int, limit: int) -> int:
        """Erase at most `limit` requests whose time was over at `expired_before`; return how many."""

    # ---- what users report and block

    async def report_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Status | None:
        """Write down that its user says "This wasn't me", and count it; return the state that it has now.

        A pending session is cancelled, and `event` recorded if a webhook is set. A confirmed one is used, and nobody
        gets its proof; the body of its auth.confirmed is erased, so that it is not sent again, and it has ended if it
        was not delivered before; an attempt that is under way counts as interrupted. None, and nothing is changed, when
        `opener_id` did not open it, it has expired at `now`, was cancelled, or was reported before.
        """

    async def list_sign_ins(
        self, messenger_id: str, since: int, limit: int, now: int, *, project_id: str | None = None
    ) -> list[Session]:
        """Return what an account confirmed of the sessions since then, newest first; with `project_id` there only."""

    async def block_project(self, messenger_id: str, project_id: str, now: int) -> bool:
        """Let an account hear nothing of a project any more; False when it is blocked already, or there is none."""

    async def unblock_project(self, messenger_id: str, project_id: str) -> bool:
        """End a block; False when there is none."""

    async def is_blocked(self, messenger_id: str, project_id: str) -> bool:
        """Tell whether an account wants to hear nothing of a project."""

    async def list_blocks(self, messenger_id: str, limit: int, *, project_id: str | None = None) -> list[NamedProject]:
        """Return what an account has blocked, the latest first; with `project_id` that one only."""
