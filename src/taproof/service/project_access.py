"""Find the projects of a developer: those of which they are a member (`core/roles.py`).

A call that reads a project in several statements checks the membership before and after them. So a member who is
removed meanwhile, on any node, gets nothing that was stored after the removal.
"""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from taproof.core.accounts import Developer
from taproof.core.errors import InvalidRequest, ProjectNotFound
from taproof.core.identifiers import PROJECT_ID_RULE, is_project_id
from taproof.core.projects import Project
from taproof.core.roles import ROLES, ProjectAction, permits, require_action
from taproof.core.webhook_url import url_origin
from taproof.storage.protocol import Storage

Found = TypeVar("Found")


async def read_project_for(
    storage: Storage, developer: Developer, project_id: str, action: ProjectAction = "read"
) -> Project:
    """Return a project of which this developer is a member.

    Raises:
        InvalidRequest: the project id is malformed.
        ProjectNotFound: this developer has no such project.
        InsufficientRole: their role does not permit `action`. The store checks this again with each change.
    """
    if not is_project_id(project_id):
        raise InvalidRequest(f"The project id must be {PROJECT_ID_RULE}.")
    project = await storage.projects.read_member_project(developer.id, project_id)
    if project is None or project.role is None:
        raise ProjectNotFound
    require_action(project.role, action)
    return as_seen(project)


def as_seen(project: Project) -> Project:
    """Return a project as its member may see it: a viewer does not see the paths of webhook URLs."""
    if permits(project.role, "secrets"):
        return project
    off_url = None if project.webhook_off_url is None else url_origin(project.webhook_off_url)
    return dataclasses.replace(project, webhook_url=url_origin(project.webhook_url), webhook_off_url=off_url)


async def member_project_ids(storage: Storage, developer: Developer, project_id: str | None) -> list[str]:
    """Return the ids of all projects of a developer, or only `project_id` if it is one of them.

    Raises:
        InvalidRequest: the project id is malformed.
        ProjectNotFound: this developer has no such project.
    """
    if project_id is None:
        return [project.project_id for project in await storage.projects.name_projects(developer.id)]
    if not is_project_id(project_id):
        raise InvalidRequest(f"project_id must be a project's id: {PROJECT_ID_RULE}.")
    if await storage.members.read_role(developer.id, project_id) is None:
        raise ProjectNotFound
    return [project_id]


@contextlib.asynccontextmanager
async def reading_project(
    storage: Storage, developer: Developer, project_id: str, action: ProjectAction = "read"
) -> AsyncIterator[Project]:
    """Yield the project as `read_project_for` returns it, and check the role again at the end of the `with` block."""
    yield await read_project_for(storage, developer, project_id, action)
    await read_project_for(storage, developer, project_id, action)


async def read_in_projects(
    storage: Storage, developer: Developer, project_id: str | None, read: Callable[[list[str]], Awaitable[Found]]
) -> Found:
    """Return what `read` finds in all projects of a developer, or only in `project_id`.

    It reads again if the developer was removed from one of them meanwhile. It raises as `member_project_ids` does.
    """
    while True:
        project_ids = await member_project_ids(storage, developer, project_id)
        found = await read(project_ids)
        if set(project_ids) <= set(await member_project_ids(storage, developer, project_id)):
            return found


async def require_writer(storage: Storage, developer: Developer) -> None:
    """Raise InsufficientRole for a developer who is only a viewer of their projects."""
    roles = await storage.members.read_roles(developer.id)
    if roles:
        require_action(min(roles, key=ROLES.index), "write")
