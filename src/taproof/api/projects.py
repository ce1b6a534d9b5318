"""The developer endpoints of projects and their secrets (service-spec.md, Developer endpoints).

`developer.py` authenticates each request and registers the routes.
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Annotated, Any, Final

from fastapi import Request, Response

from taproof.api.models import DeletedAnswer, answer_model, list_model, request_model
from taproof.api.parameters import Caller, ProjectId, Writer, json_body
from taproof.contract.fields import described
from taproof.contract.project import (
    CreatedProject,
    Project,
    ProjectSecrets,
    ProjectSettings,
    ProjectUpdate,
    WebhookRotation,
    WebhookSecret,
    WebhookTurnedOff,
)
from taproof.core.accounts import Developer
from taproof.core.projects import project_changes
from taproof.http.download import Download, joined
from taproof.http.limits.rates import RateLimits
from taproof.service import json_fields
from taproof.service.bots import Bots
from taproof.service.projects import Projects, Rotation

TAG: Final = "Projects"
WEBHOOKS_TAG: Final = "Webhook secret and deliveries"
_CHANGES: Final = described(ProjectUpdate)
CreateProject: Final = request_model(
    "CreateProject",
    "A new project.",
    {"name": _CHANGES["name"], **described(ProjectSettings)},
    required=["name"],
)
UpdateProject: Final = request_model(
    "UpdateProject", "Changes to a project. Omitted fields keep their values.", _CHANGES, is_new=False
)
RotateWebhookSecret: Final = request_model(
    "RotateWebhookSecret", "The rotation of a webhook secret.", described(WebhookRotation)
)
_MODELS: Final = {WebhookTurnedOff: answer_model("WebhookTurnedOffAnswer", WebhookTurnedOff)}
ProjectAnswer: Final = answer_model("ProjectAnswer", Project, ProjectUpdate, models=_MODELS)
ProjectListAnswer: Final = list_model(
    "ProjectListAnswer", "All of a developer's projects, oldest first.", "projects", ProjectAnswer
)
CreatedProjectAnswer: Final = answer_model("CreatedProjectAnswer", CreatedProject, ProjectUpdate, models=_MODELS)
SecretsAnswer: Final = answer_model("SecretsAnswer", ProjectSecrets)
RotationAnswer: Final = answer_model("RotationAnswer", WebhookSecret)
ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class ProjectEndpoints:
    """The endpoints, one method each. `across_projects` limits calls that read all projects of a developer."""

    def __init__(
        self,
        projects: Projects,
        bots: Bots,
        limits: RateLimits,
        across_projects: Callable[[Developer], AbstractAsyncContextManager[None]],
    ) -> None:
        self._projects = projects
        self._bots = bots
        self._limits = limits
        self._across_projects = across_projects

    async def list_projects(self, request: Request, caller: Caller) -> Response:
        """Return all of your projects, oldest first."""
        pieces = joined(self._project_list(caller))
        async with self._across_projects(caller):
            first = await anext(pieces)
        return Download(first, self._in_turns(caller, pieces), request.state.authenticate, nullcontext())

    async def _in_turns(self, caller: Developer, pieces: AsyncGenerator[str, None]) -> AsyncGenerator[str, None]:
        """Read each further piece in the developer's turn, but do not keep the turn while it is sent."""
        async with aclosing(pieces):
            while True:
                async with self._limits.developers.turn(caller.id):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece

    async def _project_list(self, caller: Developer) -> AsyncGenerator[str, None]:
        """Yield the list project by project: with 2,000 projects, it has megabytes."""
        separator = '{"projects":['
        async for each in self._projects.walk_projects(caller):
            yield separator + ENCODE(json_fields.project(each))
            separator = ","
        yield "]}" if separator == "," else '{"projects":[]}'

    async def create_project(
        self, writer: Writer, body: Annotated[dict[str, Any], json_body(CreateProject)]
    ) -> dict[str, Any]:
        """Create a project. Keep its secret_key: it is shown only once."""
        bot_token, bot = body.pop("bot_token"), None
        wanted = project_changes(body)
        if bot_token:
            self._projects.check_new(writer, wanted)  # Ask the messenger only if everything else is valid.
            bot = await self._bots.check_token(writer, bot_token)
        project, secrets = await self._projects.create_project(writer, wanted, bot=bot)
        return json_fields.created_project(project, secrets)

    async def read_project(self, caller: Caller, project_id: ProjectId) -> dict[str, Any]:
        """Return one project."""
        return json_fields.project(await self._projects.read_project(caller, project_id))

    async def update_project(
        self,
        writer: Writer,
        project_id: ProjectId,
        body: Annotated[dict[str, Any], json_body(UpdateProject)],
    ) -> dict[str, Any]:
        """Change a project. Omitted fields keep their values."""
        bot_token, bot = body.pop("bot_token", None), None
        changes = project_changes(body)
        if bot_token is not None:
            # Ask the messenger only if everything else is valid.
            await self._projects.check_changes(writer, project_id, changes)
            bot = await self._bots.check_change(writer, project_id, bot_token)
        return json_fields.project(await self._projects.update_project(writer, project_id, changes, bot=bot))

    async def delete_project(self, writer: Writer, project_id: ProjectId) -> DeletedAnswer:
        """Delete a project with its sessions and analytics. This cannot be undone."""
        await self._projects.delete_project(writer, project_id)
        return DeletedAnswer(deleted=True)

    async def regenerate_secrets(self, writer: Writer, project_id: ProjectId) -> dict[str, Any]:
        """Replace the secret key and the webhook secret. The old ones stop working immediately. Takes no body."""
        return json_fields.shown(ProjectSecrets, await self._projects.regenerate_secrets(writer, project_id))

    async def read_webhook_secret(self, writer: Writer, project_id: ProjectId) -> dict[str, Any]:
        """Return the webhook secret, which verifies proofs and webhooks. During a rotation, also return the next one.

        This call requires the scope write, because the secret can sign proofs.
        """
        return json_fields.shown(WebhookSecret, await self._projects.read_webhook_secret(writer, project_id))

    async def rotate_webhook_secret(
        self,
        writer: Writer,
        project_id: ProjectId,
        body: Annotated[dict[str, Any], json_body(RotateWebhookSecret, may_be_empty=True)],
    ) -> dict[str, Any]:
        """Create the next webhook secret. It replaces the current one after an overlap: see Webhooks.

        The secret key does not change. The body is optional.
        """
        return json_fields.shown(WebhookSecret, await self._projects.rotate_webhook_secret(writer, project_id, **body))

    async def promote_webhook_secret(self, writer: Writer, project_id: ProjectId) -> dict[str, Any]:
        """End a rotation now: the next webhook secret replaces the current one. Takes no body."""
        promoted = await self._projects.promote_webhook_secret(writer, project_id)
        return json_fields.shown(WebhookSecret, Rotation(promoted, None, None))

    @classmethod
    def add_routes(cls, add: Callable[..., None]) -> None:
        """Register every endpoint at its path with `add`, as `developer.py` does."""
        projects, project = "/projects", "/projects/{project_id}"
        secret = f"{project}/webhook-secret"
        add(TAG, "GET", projects, cls.list_projects, ProjectListAnswer)
        add(TAG, "POST", projects, cls.create_project, CreatedProjectAnswer)
        add(TAG, "GET", project, cls.read_project, ProjectAnswer)
        add(TAG, "PATCH", project, cls.update_project, ProjectAnswer)
        add(TAG, "DELETE", project, cls.delete_project)
        add(TAG, "POST", f"{project}/regenerate", cls.regenerate_secrets, SecretsAnswer)
        add(WEBHOOKS_TAG, "GET", secret, cls.read_webhook_secret, RotationAnswer)
        add(WEBHOOKS_TAG, "POST", f"{secret}/rotate", cls.rotate_webhook_secret, RotationAnswer)
        add(WEBHOOKS_TAG, "POST", f"{secret}/promote", cls.promote_webhook_secret, RotationAnswer)
