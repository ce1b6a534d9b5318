"""The users of a project, in pages. `user_export.py` exports the data of one user."""

from dataclasses import dataclass

from taproof.core.accounts import Developer
from taproof.core.counts import ProjectUser
from taproof.core.page_cursor import PageCursor
from taproof.service.erasure import checked_messenger_id
from taproof.service.paging import read_cursor, write_cursor
from taproof.service.project_access import reading_project
from taproof.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class UserPage:
    """One page of users. `next_cursor` requests the next page; None on the last page."""

    users: list[ProjectUser]
    next_cursor: str | None


class Users:
    """Lists the users of a project."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def list_users(self, developer: Developer, project_id: str, *, limit: int, cursor: str | None) -> UserPage:
        """Return a page of at most `limit` users of a project, the latest sign-in first.

        Raises:
            InvalidRequest: the project id or the cursor is malformed.
            ProjectNotFound: this developer has no such project.
        """
        async with reading_project(self._storage, developer, project_id):
            before = None if cursor is None else _read_cursor(cursor)
            found = await self._storage.users.list_users(project_id, before, limit + 1)
        page = found[:limit]
        last = page[-1] if len(found) > limit else None
        return UserPage(page, None if last is None else write_cursor(last.last_at, f"user_{last.messenger_id}"))

    async def read_user(self, developer: Developer, project_id: str, messenger_id: str) -> ProjectUser | None:
        """Return one user of a project; None if the account has not signed in to it, or was erased.

        Raises:
            InvalidRequest: an id is malformed.
            ProjectNotFound: this developer has no such project.
        """
        checked_messenger_id(messenger_id)
        async with reading_project(self._storage, developer, project_id):
            return await self._storage.users.read_user(project_id, messenger_id)


def _read_cursor(cursor: str) -> PageCursor:
    position = read_cursor(cursor, "user")
    return position._replace(id=position.id.removeprefix("user_"))
