"""The models of the requests and answers about projects, from `contract/project.py`."""

from typing import Final

from taproof.api.models import answer_model, list_model, request_model
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
