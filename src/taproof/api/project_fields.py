"""The fields of projects in the developer API, and the requests and responses that contain them.

The models follow the rules in `schemas.py`.
"""

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, Field, WithJsonSchema

from taproof.api.schemas import Name, ProjectId, StrictRequest, Time
from taproof.core.logo_url import LOGO_URL_LIMIT
from taproof.core.model import PROJECT_DEFAULTS, ProjectChanges, ProjectEvent, TurnOffReason
from taproof.core.origins import ORIGIN_LENGTH, ORIGINS_LIMIT
from taproof.core.project_texts import DEFAULT, LANGUAGES, TEXT_LIMITS
from taproof.core.return_url import ENTRY_LENGTH, RETURN_URLS_LIMIT
from taproof.core.roles import Role
from taproof.core.webhook_url import WEBHOOK_URL_LIMIT
from taproof.service.projects import OVERLAP_LIMIT

_WEBHOOK_URL: Final = (
    r"^$|^(https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)|http://(localhost|127(\.[0-9]{1,3}){3}|\[::1\]))"
    r'(:[0-9]{1,5})?([/?][!"$-\[\]-~]*)?$'
)
_ORIGIN: Final = (
    r"^(https://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+)|http://(localhost|127(\.[0-9]{1,3}){3}|\[::1\]))(:[0-9]{1,5})?$"
)
_RETURN_URL: Final = _ORIGIN.removesuffix("$") + r'([/?][!"$-\[\]-~]*)?$'

_LOGO_URL: Final = (
    r"^$|^(https://[A-Za-z0-9._-]+\.[A-Za-z0-9_-]+|http://(localhost|127(\.[0-9]{1,3}){3}))(:[0-9]{1,5})?"
    r'([/?][!"$-\[\]-~]*)?$'
)


def _default_events() -> list[str]:
    return list(PROJECT_DEFAULTS.webhook_events or ())


WebhookUrl = Annotated[
    str,
    WithJsonSchema({"type": "string", "maxLength": WEBHOOK_URL_LIMIT, "pattern": _WEBHOOK_URL}),
    Field(
        description="The URL that receives the project's webhook_events: https:// with a host, in ASCII, without a "
        'user name, password or fragment, or "" for none. Events are posted to it exactly as it is spelled. In sandbox '
        "mode, http:// to a loopback address is also allowed.",
        examples=["https://example.com/hooks/taproof"],
    ),
]
WebhookEvents = Annotated[
    list[str],
    WithJsonSchema(
        {"type": "array", "items": {"type": "string", "enum": list(get_args(ProjectEvent))}, "minItems": 1},
    ),
    Field(
        description="The events that are sent to webhook_url, at least one. A change applies to events that happen "
        "after it. The order and duplicates do not matter.",
        examples=[_default_events()],
    ),
]
PublicAccess = Annotated[bool, Field(description="true: the public session endpoints accept calls for this project.")]
CollectPhone = Annotated[
    bool,
    Field(
        description="true: users are asked for their phone number when they confirm. Only on the pro and business "
        "plans.",
        examples=[False],
    ),
]
PhoneRequired = Annotated[
    bool,
    Field(
        description="false: users can sign in without sharing their phone number. Has no effect without collect_phone.",
        examples=[True],
    ),
]
ShowContext = Annotated[
    bool,
    Field(
        description="true: the messenger shows where a sign-in was started: the page's domain, the browser and the "
        "approximate location.",
        examples=[True],
    ),
]
MatchCode = Annotated[
    Literal["off", "on"],
    Field(
        description="on: generate also returns a match_code, which your page must show. In the messenger, users choose "
        "it from three codes.",
        examples=["off"],
    ),
]
AllowedOrigins = Annotated[
    list[str],
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string", "maxLength": ORIGIN_LENGTH, "pattern": _ORIGIN},
            "maxItems": ORIGINS_LIMIT,
        }
    ),
    Field(
        description="The origins of the pages that can start sign-ins: https://, host and optional port; http:// for "
        "loopback only. Empty: any page. Calls without an Origin header are not restricted.",
        examples=[["https://shop.example"]],
    ),
]
SameDevice = Annotated[
    Literal["off", "offer", "require"],
    Field(
        description="offer: after Confirm, the messenger has a button back to the page, if generate was called with a "
        "return_url. require: sign-ins give no proof without the return code of that button, and generate needs a "
        "code_challenge and a return_url. offer and require need an OpenID Connect client, or an entry of return_urls "
        "or, if it is empty, of allowed_origins, whose host has a dot.",
        examples=["off"],
    ),
]
ReturnUrls = Annotated[
    list[str],
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string", "maxLength": ENTRY_LENGTH, "pattern": _RETURN_URL},
            "maxItems": RETURN_URLS_LIMIT,
        }
    ),
    Field(
        description="The URLs that a return_url can be, such as the page that ends your sign-ins, or the link that "
        "opens an app: https://, http:// for loopback only, and without a fragment. They match exactly, with the query "
        "string. Empty: every page of allowed_origins. Telegram opens only hosts with a dot.",
        examples=[["https://app.example/return"]],
    ),
]
Texts = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "propertyNames": {"enum": [DEFAULT, *LANGUAGES]},
            "additionalProperties": {
                "type": "object",
                "properties": {key: {"type": "string", "maxLength": limit} for key, limit in TEXT_LIMITS.items()},
                "additionalProperties": False,
            },
        }
    ),
    Field(
        description="The project's own texts, by language; default is for every language without its own text. The "
        "keys: prompt_title (first line of the messenger's question, at most 100 characters), button_label (the button "
        "that opens the messenger, 40), confirmed, cancelled and expired (last line of these messages, 160). A change "
        'replaces all texts; {} removes them, and "" removes one. They replace no sentence that protects the user.',
        examples=[{"default": {"prompt_title": "Acme members area"}, "es": {"prompt_title": "Zona de socios de Acme"}}],
    ),
]
LogoUrl = Annotated[
    str,
    WithJsonSchema({"type": "string", "maxLength": LOGO_URL_LIMIT, "pattern": _LOGO_URL}),
    Field(
        description="The image that hosted pages show above their heading: https:// and a host name with a dot, or "
        '"" for none. In sandbox mode, http:// to a loopback address is also allowed. The browsers of users load it '
        "from there, without a Referer header.",
        examples=["https://shop.example/logo.png"],
    ),
]
BotToken = Annotated[
    str,
    WithJsonSchema({"type": "string", "maxLength": 117, "pattern": "^$|^[1-9][0-9]{0,15}:[A-Za-z0-9_-]{30,100}$"}),
    Field(
        description="The token of the project's own bot, from @BotFather. Sign-in links open that bot. The token is "
        'checked with the messenger, stored encrypted, and never shown. "": the service\'s own bot.',
        examples=["7000000001:AAGkBS3d0c7Vw1FhQ9pRz2XyTtUuWvJjKkL"],
    ),
]


class _ProjectRequest(StrictRequest):
    def as_changes(self) -> ProjectChanges:
        """Return the fields that were sent, in the form that the services accept, without the bot token."""
        fields: dict[str, Any] = self.model_dump(exclude_unset=True, exclude={"bot_token"})
        if "match_code" in fields:
            fields["match_code"] = fields["match_code"] == "on"
        for name in ("allowed_origins", "webhook_events", "return_urls"):
            if name in fields:
                fields[name] = tuple(fields[name])
        return ProjectChanges(**fields)


class CreateProject(_ProjectRequest):
    """A new project."""

    name: Name = Field(
        description="The name shown to users in the messenger, up to 100 characters.", examples=["Acme Shop"]
    )
    webhook_url: WebhookUrl = ""
    webhook_events: WebhookEvents = Field(default_factory=_default_events)
    public_access: PublicAccess = True
    collect_phone: CollectPhone = False
    phone_required: PhoneRequired = True
    show_context: ShowContext = True
    match_code: MatchCode = "off"
    allowed_origins: AllowedOrigins = Field(default_factory=list)
    same_device: SameDevice = "off"
    return_urls: ReturnUrls = Field(default_factory=list)
    texts: Texts = Field(default_factory=dict)
    logo_url: LogoUrl = ""
    bot_token: BotToken = ""


class UpdateProject(_ProjectRequest):
    """Changes to a project. Omitted fields keep their values."""

    name: Name = Field(
        default_factory=str, description="The name shown to users in the messenger.", examples=["Acme Shop"]
    )
    webhook_url: WebhookUrl = Field(default_factory=str)
    webhook_events: WebhookEvents = Field(default_factory=list)
    is_active: bool = Field(
        default_factory=bool, description="false: the project is paused, and no new sign-ins can start."
    )
    public_access: PublicAccess = Field(default_factory=bool)
    collect_phone: CollectPhone = Field(default_factory=bool)
    phone_required: PhoneRequired = Field(default_factory=bool)
    show_context: ShowContext = Field(default_factory=bool)
    match_code: MatchCode = Field(default_factory=lambda: "off")
    allowed_origins: AllowedOrigins = Field(default_factory=list)
    same_device: SameDevice = Field(default_factory=lambda: "off")
    return_urls: ReturnUrls = Field(default_factory=list)
    texts: Texts = Field(default_factory=dict)
    logo_url: LogoUrl = Field(default_factory=str)
    bot_token: BotToken = Field(default_factory=str)

    def new_bot_token(self) -> str | None:
        """Return the bot token; None if it was not sent."""
        return self.bot_token if "bot_token" in self.model_fields_set else None


class RotateWebhookSecret(StrictRequest):
    """The rotation of a webhook secret."""

    overlap_hours: Annotated[int, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": OVERLAP_LIMIT})] = Field(
        default=24, description="Hours until the next secret replaces the current secret.", examples=[24]
    )


class WebhookTurnedOffAnswer(BaseModel):
    """A webhook that the service turned off."""

    url: str = Field(description="The webhook's URL.", examples=["https://example.com/hooks/taproof"])
    reason: TurnOffReason = Field(
        description="gone: the receiver returned 410. failing: every attempt failed for five days."
    )
    at: Time
    explanation: str = Field(description="The reason, and the next step.", examples=["The receiver answered 410 Gone…"])


class ProjectAnswer(BaseModel):
    """A project, with a preview of its secret key."""

    id: ProjectId
    name: str = Field(examples=["Acme Shop"])
    role: Role = Field(description="Your role in the project: owner, developer or viewer.", examples=["owner"])
    secret_key_preview: str = Field(examples=["sk_a1B2…Wx9z"])
    webhook_url: str = Field(
        description='"" when there is none. A viewer gets scheme, host and port only.',
        examples=["https://example.com/hooks/taproof"],
    )
    webhook_events: WebhookEvents
    is_active: bool = Field(description="false: the project is paused.", examples=[True])
    public_access: PublicAccess
    collect_phone: CollectPhone
    phone_required: PhoneRequired
    show_context: ShowContext
    match_code: MatchCode
    allowed_origins: AllowedOrigins
    same_device: SameDevice
    return_urls: ReturnUrls
    texts: Texts
    logo_url: LogoUrl
    created_at: Time
    sessions_count: int = Field(description="All sessions that were ever started.", examples=[1200])
    confirmed_count: int = Field(description="Sessions that were confirmed.", examples=[1050])
    webhook_failing_since: Time | None = Field(
        description="The time since which every delivery attempt has failed; null while the webhook works, or after "
        "a successful test.",
        examples=[None],
    )
    webhook_turned_off: WebhookTurnedOffAnswer | None = Field(
        description="Set when the service removes webhook_url; null once a webhook_url is set again.",
        examples=[None],
    )
    bot_username: str | None = Field(
        description="The username of the project's own bot, without @; null: the service's own bot.",
        examples=["shop_bot"],
    )
    bot_broken_at: Time | None = Field(
        description="The time since which the messenger has refused that bot's token. No sign-ins can start until "
        "bot_token is set again; the service's own bot does not take over.",
        examples=[None],
    )


class ProjectListAnswer(BaseModel):
    """All of a developer's projects, oldest first."""

    projects: list[ProjectAnswer]


class WebhookSecretAnswer(BaseModel):
    """The secret that signs proofs and webhooks."""

    webhook_secret: str = Field(
        description="Verifies proofs and webhook signatures. Keep it on your server.",
        examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Rk0vWq7n1c="],
    )


class RotationAnswer(WebhookSecretAnswer):
    """The webhook secret and, during a rotation, the next one."""

    next_webhook_secret: str | None = Field(
        description="Signs webhooks together with the current secret until promoted_at, and signs proofs afterwards. "
        "null: no rotation is in progress.",
        examples=["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDp7MwM2v2V1c="],
    )
    promoted_at: Time | None = Field(description="The time at which the next secret replaces the current secret.")


class SecretsAnswer(WebhookSecretAnswer):
    """Both secrets of a project. The secret key is shown only once."""

    secret_key: str = Field(description="Shown only once. Keep it on your server.", examples=["sk_" + "a1B2c3D" * 7])


class CreatedProjectAnswer(SecretsAnswer, ProjectAnswer):
    """A new project with its secrets. The secret key is shown only once."""
