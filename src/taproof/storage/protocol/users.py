"""The interface of `store.users`."""

from typing import Final, Protocol

from taproof.core.counts import ProjectUser
from taproof.core.model import NamedProject, PageCursor, PhoneRequest, SessionKey

PROJECTS_OF_USER: Final = 200
"""The maximum number of projects searched for an account's sign-ins. The cost of a list depends only on this number."""


class UserStorage(Protocol):
    """The users of projects, requests for their phone numbers, and the projects that they have blocked."""

    async def list_users(self, project_id: str, before: PageCursor | None, limit: int) -> list[ProjectUser]:
        """Return the users who signed in to a project, the latest first. A position has `last_at` and the account."""

    async def read_user(self, project_id: str, messenger_id: str) -> ProjectUser | None:
        """Return a user of a project; None if the account has not signed in to it, or was erased."""

    async def ask_for_phone(self, request: PhoneRequest) -> None:
        """Record that a user was asked for their contact. Repeating the call is safe.

        Without the session, which an erasure may have deleted meanwhile, nothing is recorded.
        The stored `asked_at` is later than that of any other request of this bot to this user.
        """

    async def read_phone_request(self, key: SessionKey) -> PhoneRequest | None:
        """Return the request for a contact that belongs to this session; None if there is none."""

    async def find_phone_request(self, messenger_id: str, bot_id: int) -> PhoneRequest | None:
        """Return the latest request of this bot to this user, which is the one that a contact answers.

        Its session may be decided or expired: a contact that is sent twice gets the same response twice.
        """

    async def purge_phone_requests(self, expired_before: int, limit: int) -> int:
        """Erase at most `limit` requests that expired at or before `expired_before`; return their number."""

    async def block_project(self, messenger_id: str, project_id: str, now: int) -> bool:
        """Block a project for an account; False if it is already blocked, or if the project does not exist."""

    async def unblock_project(self, messenger_id: str, project_id: str) -> bool:
        """Remove a block; False if there is none."""

    async def is_blocked(self, messenger_id: str, project_id: str) -> bool:
        """Return whether an account has blocked a project."""

    async def list_blocks(self, messenger_id: str, limit: int, *, project_id: str | None = None) -> list[NamedProject]:
        """Return the projects that an account has blocked, most recent first; with `project_id`, only that project."""
