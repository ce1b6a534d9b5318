"""Projects and their settings, as frozen values. Times are integer milliseconds since the Unix epoch (UTC)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, NamedTuple

from taproof.contract.account import Plan
from taproof.contract.fields import UNSET, described, stored_settings
from taproof.contract.member import Role
from taproof.contract.project import ProjectEvent, ProjectUpdate, SameDevice, TurnOffReason
from taproof.core.project_texts import ProjectTexts

SERVICE_DEVELOPER: Final = "dev_console"
"""The owner of the projects through which developers sign in to the service. No developer's id is as short."""


class EncryptedWebhookSecrets(NamedTuple):
    """A project's encrypted webhook secrets. During a rotation there are two, until `next_at` (ms).

    `core.proof.signing_secrets` returns the ones that sign at a given time.
    """

    current: bytes
    next: bytes | None = None
    next_at: int | None = None


class SignInProject(NamedTuple):
    """The settings of a project that apply to a new session."""

    developer_id: str
    plan: Plan
    is_active: bool
    public_access: bool
    show_context: bool
    match_code: bool
    allowed_origins: str
    """Origins separated by spaces; "" allows any."""
    bot_id: int | None
    bot_username: str | None
    bot_broken_at: int | None
    requires_phone: bool = False
    same_device: SameDevice = "off"
    return_urls: str = ""
    """URLs separated by spaces."""


class NamedProject(NamedTuple):
    """A project's id and name. The developer chose `project_name`: show it only through `core.names`."""

    project_id: str
    project_name: str


@dataclass(frozen=True, slots=True)
class Project:
    """A project, to which sessions belong (service-spec.md, Project).

    `developer_id` is the owner whose plan and limits count. All members share the project: see `core.roles`.
    """

    id: str
    developer_id: str
    name: str
    secret_key_preview: str
    encrypted_webhook_secret: bytes
    webhook_url: str
    created_at: int
    is_active: bool
    public_access: bool
    collect_phone: bool
    phone_required: bool = True
    """True requires users to share their phone number. Ignored without `collect_phone`."""
    show_context: bool = True
    """True shows in the prompt where the request came from."""
    match_code: bool = False
    sessions_count: int = 0
    confirmed_count: int = 0
    encrypted_next_webhook_secret: bytes | None = None
    next_webhook_secret_at: int | None = None
    webhook_failing_since: int | None = None
    """The time (ms) of the first failed attempt since the last success; None while the webhook works."""
    webhook_off_at: int | None = None
    webhook_off_reason: TurnOffReason | None = None
    webhook_off_url: str | None = None
    """The URL of the webhook that was turned off. `webhook_url` is "" from then on."""
    allowed_origins: tuple[str, ...] = ()
    """The origins of the pages that may start sign-ins. An empty tuple allows any."""
    bot_id: int | None = None
    bot_username: str | None = None
    bot_broken_at: int | None = None
    """The time (ms) since which the messenger has refused the project bot's token."""
    webhook_events: tuple[ProjectEvent, ...] = ("auth.confirmed", "auth.cancelled")
    """The events that are sent to `webhook_url`."""
    same_device: SameDevice = "off"
    """The policy for ending a sign-in in the browser in which it began."""
    return_urls: tuple[str, ...] = ()
    """URLs to which a sign-in may return, besides the pages of `allowed_origins`."""
    texts: ProjectTexts = field(default_factory=dict)
    """The project's own texts for its users: see `core.project_texts`."""
    logo_url: str = ""
    """The image that hosted pages show; "" for none."""
    plan: Plan | None = field(default=None, compare=False)
    """The plan of the developer `developer_id`; None if the project was not read for a member."""
    role: Role | None = field(default=None, compare=False)
    """The role of the member for whom the project was read; None if it was not read for a member."""

    @property
    def webhook_secrets(self) -> EncryptedWebhookSecrets:
        """The current webhook secret and, during a rotation, the next one."""
        return EncryptedWebhookSecrets(
            self.encrypted_webhook_secret, self.encrypted_next_webhook_secret, self.next_webhook_secret_at
        )


@dataclass(frozen=True, slots=True)
class ProjectChanges:
    """The fields that a developer can set. None leaves a field unchanged, or at its default in a new project."""

    name: str | None = None
    webhook_url: str | None = None
    is_active: bool | None = None
    public_access: bool | None = None
    collect_phone: bool | None = None
    phone_required: bool | None = None
    show_context: bool | None = None
    match_code: bool | None = None
    allowed_origins: tuple[str, ...] | None = None
    webhook_events: tuple[ProjectEvent, ...] | None = None
    same_device: SameDevice | None = None
    return_urls: tuple[str, ...] | None = None
    texts: ProjectTexts | None = None
    logo_url: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the fields that are not None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def project_changes(settings: Mapping[str, Any]) -> ProjectChanges:
    """Return the changes to the given settings, whose values are those of the API."""
    values = stored_settings(settings)
    if "match_code" in values:
        values["match_code"] = values["match_code"] == "on"
    return ProjectChanges(**values)


PROJECT_DEFAULTS: Final = project_changes(
    {
        name: field.default
        for name, (_, field) in described(ProjectUpdate).items()
        if field.default is not UNSET and name != "bot_token"
    }
)
"""The default settings of a new project."""


PROJECT_FLAGS: Final = tuple(each.name for each in fields(ProjectChanges) if each.type == bool | None)
"""A project's boolean fields. Columns, forms and responses derive from this list."""
