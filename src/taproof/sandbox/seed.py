"""Prepares the store of a sandbox: a developer with a new access token, and a project for the demo."""

from dataclasses import dataclass
from typing import Final

from taproof.core.accounts import Actor, Developer
from taproof.core.errors import DeveloperExists
from taproof.core.model import Project, ProjectChanges
from taproof.service.developers import Developers
from taproof.service.projects import Projects

EMAIL: Final = "sandbox@localhost"
_PROJECT_NAME: Final = "Demo"
_TOKEN_NAME: Final = "sandbox"  # noqa: S105 — the label of a token, not a token.


@dataclass(frozen=True, slots=True)
class Seed:
    """The sandbox's developer, its project, and an access token in plaintext."""

    developer: Developer
    project: Project
    access_token: str


async def seed(developers: Developers, projects: Projects) -> Seed:
    """Find or create the developer and the project, and replace the access token from the last start."""
    try:
        developer = await developers.create_developer(EMAIL, "business")
    except DeveloperExists:
        developer = await developers.read_developer(EMAIL)
    itself = Actor(developer, "service")
    for token in await developers.list_access_tokens(developer.id):
        if token.name == _TOKEN_NAME:
            await developers.delete_access_token(itself, token.id)
    access_token = await developers.create_access_token(itself, _TOKEN_NAME)
    project = next((each for each in await projects.list_projects(developer) if each.name == _PROJECT_NAME), None)
    if project is None:
        project, _ = await projects.create_project(itself, ProjectChanges(name=_PROJECT_NAME))
    return Seed(developer, project, access_token.plaintext)
