"""The developer's view of sessions: a paged list, newest first (contract.md, Developer endpoints)."""

from dataclasses import dataclass

from taproof.core.clock import Clock
from taproof.core.errors import InvalidRequest, ProjectNotFound
from taproof.core.identifiers import is_project_id
from taproof.core.model import Developer, Session, Status
from taproof.service.paging import read_cursor, write_cursor
from taproof.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class SessionPage:
    """One page; `next_cursor` asks for the one after it and is None on the last."""

    sessions: list[Session]
    next_cursor: str | None


class Sessions:
    """Lists the sessions of a developer's projects."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    async def list_sessions(
        self,
        developer: Developer,
        *,
        project_id: str | None,
        status: Status | None,
        limit: int,
        cursor: str | None,
    ) -> SessionPage:
        """Return a page of at most `limit` sessions.

        Raises:
            InvalidRequest: a malformed project id or cursor.
            ProjectNotFound: none of this developer's.
        """
        before = None if cursor is None else read_cursor(cursor, "sess")
        project_ids = await owned_project_ids(self._storage, developer, project_id)
        found = await self._storage.list_sessions(project_ids, status, before, limit + 1, self._clock())
        page = found[:limit]
        return SessionPage(page, write_cursor(page[-1].created_at, page[-1].id) if len(found) > limit else None)


async def owned_project_ids(storage: Storage, developer: Developer, project_id: str | None) -> list[str]:
    """Return the ids of all of a developer's projects, or just `project_id` when it is one of them.

    Raises:
        InvalidRequest: not the form of a project id.
        ProjectNotFound: none of this developer's.
    """
    if project_id is None:
        return [project.id for project in await storage.list_projects(developer.id)]
    if not is_project_id(project_id):
        raise InvalidRequest("project_id must be a project's id: proj_ followed by letters and digits.")
    project = await storage.read_project(project_id)
    if project is None or project.developer_id != developer.id:
        raise ProjectNotFound
    return [project_id]
