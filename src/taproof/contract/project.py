"""Projects: the units that users sign in to."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal, TypedDict, get_args

from taproof.contract.fields import TIME, Box, Field, Option
from taproof.contract.member import Role

ProjectEvent = Literal["auth.confirmed", "auth.cancelled", "auth.expired", "auth.reported"]
"""A webhook event that a project can choose."""
SameDevice = Literal["off", "offer", "require"]
"""A project's policy: no return code, a button only, or no proof without the code."""
TurnOffReason = Literal["gone", "failing"]
"""The reason for turning off a webhook: a 410 Gone response, or five days in which every attempt failed."""

NAME_LIMIT: Final = 100
"""The maximum number of characters in a name."""
WEBHOOK_URL_LIMIT: Final = 2048
LOGO_URL_LIMIT: Final = 500
ORIGINS_LIMIT: Final = 20
"""The maximum number of origins per project."""
ORIGIN_LENGTH: Final = 300
"""The maximum number of characters in an origin. A host name has at most 253."""
RETURN_URLS_LIMIT: Final = 10
"""The maximum number of entries in a project's return_urls."""
ENTRY_LENGTH: Final = 300
"""The maximum number of characters in such an entry, so that all fit into a request and into the console's form."""
OVERLAP_LIMIT: Final = 168
"""The maximum overlap of a rotation, in hours."""
LANGUAGES: Final = ("ar", "en", "es", "fa", "id", "pt", "ru", "tr", "uk", "uz")
"""The languages of the bot and of the hosted pages."""
DEFAULT: Final = "default"
"""Stands for every language that has no text of its own."""
TEXT_LIMITS: Final[Mapping[str, int]] = {
    "prompt_title": 100,
    "button_label": 40,
    "confirmed": 160,
    "cancelled": 160,
    "expired": 160,
}
"""The keys, each with the maximum number of characters. Together, the texts of all languages fit into a request."""

_PRINTED: Final = r"[^\u0000-\u001f\u007f-\u009f\u2028\u2029]"
"""Any character except control characters and line breaks, as an ECMA-262 regular expression."""
NAME: Final = {"minLength": 1, "maxLength": NAME_LIMIT, "pattern": rf"^{_PRINTED}*\S{_PRINTED}*$"}
_PATH: Final = r'([/?][!"$-\[\]-~]*)?$'
_WEBHOOK_URL: Final = (
    r"^$|^(https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)|http://(localhost|127(\.[0-9]{1,3}){3}|\[::1\]))"
    rf"(:[0-9]{{1,5}})?{_PATH}"
)
_ORIGIN: Final = (
    r"^(https://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+)|http://(localhost|127(\.[0-9]{1,3}){3}|\[::1\]))(:[0-9]{1,5})?$"
)
_LOGO_URL: Final = (
    r"^$|^(https://[A-Za-z0-9._-]+\.[A-Za-z0-9_-]+|http://(localhost|127(\.[0-9]{1,3}){3}))(:[0-9]{1,5})?" + _PATH
)
_TEXTS: Final = {key: {"type": "string", "maxLength": limit} for key, limit in TEXT_LIMITS.items()}

PROJECT_ID: Final = Field(
    "The project's id.", example="proj_4KsdT0aQm2vXc81LpZwEyB", limits={"pattern": "^proj_[A-Za-z0-9]{16,40}$"}
)
_SECRET_KEY: Final = Field("Shown only once. Keep it on your server.", example="sk_" + "a1B2c3D" * 7)
_WEBHOOK_SECRET: Final = Field(
    "Verifies proofs and webhook signatures. Keep it on your server.",
    example="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Rk0vWq7n1c=",
)


class ProjectSettings(TypedDict, total=False):
    """The settings of a project. A field of None is not sent."""

    webhook_url: Annotated[
        str | None,
        Field(
            "The URL that receives the project's webhook_events: https:// with a host, in ASCII, without a "
            'user name, password or fragment, or "" for none. Events are posted to it exactly as it is spelled. In '
            "sandbox mode, http:// to a loopback address is also allowed.",
            example="https://example.com/hooks/taproof",
            limits={"maxLength": WEBHOOK_URL_LIMIT, "pattern": _WEBHOOK_URL},
            default="",
            option=Option('The https:// address that webhooks are sent to; "" for none.', metavar="URL", often=True),
        ),
    ]
    webhook_events: Annotated[
        Collection[str] | None,
        Field(
            "The events that are sent to webhook_url, at least one. A change applies to events that happen after it. "
            "The order and duplicates do not matter.",
            example=["auth.confirmed", "auth.cancelled"],
            limits={"items": {"type": "string", "enum": list(get_args(ProjectEvent))}, "minItems": 1},
            default=["auth.confirmed", "auth.cancelled"],
            option=Option(
                "An event to send there; repeat it for several. A new project: auth.confirmed and auth.cancelled.",
                flag="--webhook-event",
                metavar="EVENT",
                often=True,
            ),
        ),
    ]
    public_access: Annotated[
        bool | None,
        Field(
            "Whether browsers and apps can start sign-ins with only the project id. false: only servers can, with the "
            "secret key.",
            default=True,
            option=Option(
                "Whether browsers and apps can start sign-ins; with --no-public-access, only servers can.", often=True
            ),
            box=Box(
                "access",
                "Public access",
                "On: a web page or an app can start sign-ins with only the project id. Off: only your server can start "
                "them, with the secret key.",
            ),
        ),
    ]
    collect_phone: Annotated[
        bool | None,
        Field(
            "Whether users are asked for their phone number when they confirm. Only on the pro and business plans.",
            default=False,
            box=Box(
                "",
                "Collect phone numbers",
                "After they confirm, people are asked for their own number, and your application receives it.",
            ),
        ),
    ]
    phone_required: Annotated[
        bool | None,
        Field(
            "Whether users must share their phone number to sign in. Has no effect without collect_phone.",
            default=True,
            box=Box(
                "",
                "Required",
                "On: people who do not share their number are not signed in. Off: they can continue without sharing "
                "it.",
            ),
        ),
    ]
    show_context: Annotated[
        bool | None,
        Field(
            "Whether the messenger shows where a sign-in was started: the page's domain, the browser and the "
            "approximate location.",
            default=True,
            box=Box(
                "prompt",
                "Show where the sign-in was started",
                "The page's domain, the browser and operating system, and the approximate location if this service has "
                "a location database. Taproof stores this only until the user decides.",
            ),
        ),
    ]
    match_code: Annotated[
        Literal["off", "on"] | None,
        Field(
            "on: generate also returns a match_code, which your page must show. In the messenger, users choose it from "
            "three codes.",
            default="off",
            option=Option("Whether users choose a number that your page shows.", metavar="on|off"),
            box=Box(
                "security",
                "Match codes",
                "Your page shows a number. In the messenger, people choose it from three numbers instead of tapping "
                "Confirm. Turn this on only if your page shows the match code, as the sign-in button does. Otherwise, "
                "people can only guess, and two out of three sign-ins are cancelled.",
            ),
        ),
    ]
    allowed_origins: Annotated[
        Collection[str] | None,
        Field(
            "The origins of the pages that can start sign-ins: https://, host and optional port; http:// for loopback "
            "only. Empty: any page. Calls without an Origin header are not restricted.",
            example=["https://shop.example"],
            limits={
                "items": {"type": "string", "maxLength": ORIGIN_LENGTH, "pattern": _ORIGIN},
                "maxItems": ORIGINS_LIMIT,
            },
            default=[],
            option=Option(
                'The origin of a page that can start sign-ins; repeat it for several. "": any page.',
                flag="--allowed-origin",
                metavar="ORIGIN",
            ),
        ),
    ]
    same_device: Annotated[
        SameDevice | None,
        Field(
            "offer: after Confirm, the messenger has a button back to the page, if generate was called with a "
            "return_url. require: sign-ins give no proof without the return code of that button, and generate needs a "
            "code_challenge and a return_url. offer and require need an OpenID Connect client, or an entry of "
            "return_urls or, if it is empty, of allowed_origins, whose host has a dot.",
            default="off",
            option=Option("Whether users return to the page from the messenger.", metavar="off|offer|require"),
        ),
    ]
    return_urls: Annotated[
        Collection[str] | None,
        Field(
            "The URLs that a return_url can be, such as the page that ends your sign-ins, or the link that opens an "
            "app: https://, http:// for loopback only, and without a fragment. They match exactly, with the query "
            "string. Empty: every page of allowed_origins. Telegram opens only hosts with a dot.",
            example=["https://app.example/return"],
            limits={
                "items": {"type": "string", "maxLength": ENTRY_LENGTH, "pattern": _ORIGIN.removesuffix("$") + _PATH},
                "maxItems": RETURN_URLS_LIMIT,
            },
            default=[],
            option=Option(
                'A URL to which users can return, exactly; repeat it for several. "": any page of the allowed origins.',
                flag="--return-url",
                metavar="URL",
            ),
        ),
    ]
    logo_url: Annotated[
        str | None,
        Field(
            "The image that hosted pages show above their heading: https:// and a host name with a dot, or "
            '"" for none. In sandbox mode, http:// to a loopback address is also allowed. The browsers of users load '
            "it from there, without a Referer header.",
            example="https://shop.example/logo.png",
            limits={"maxLength": LOGO_URL_LIMIT, "pattern": _LOGO_URL},
            default="",
            option=Option('The https:// address of the image that hosted pages show; "" for none.', metavar="URL"),
        ),
    ]
    texts: Annotated[
        Mapping[str, Mapping[str, str]] | None,
        Field(
            "The project's own texts, by language; default is for every language without its own text. The keys: "
            "prompt_title (first line of the messenger's question, at most 100 characters), button_label (the button "
            "that opens the messenger, 40), confirmed, cancelled and expired (last line of these messages, 160). A "
            'change replaces all texts; {} removes them, and "" removes one. They replace no sentence that protects '
            "the user.",
            example={
                "default": {"prompt_title": "Acme members area"},
                "es": {"prompt_title": "Zona de socios de Acme"},
            },
            limits={
                "propertyNames": {"enum": [DEFAULT, *LANGUAGES]},
                "additionalProperties": {"type": "object", "properties": _TEXTS, "additionalProperties": False},
            },
            default={},
            option=Option(
                "A file with the project's own texts, as JSON; - is standard input. They replace all earlier texts.",
                metavar="FILE",
                from_file=True,
            ),
        ),
    ]
    bot_token: Annotated[
        str | None,
        Field(
            "The token of the project's own bot, from @BotFather. Sign-in links open that bot. The token is checked "
            'with the messenger, stored encrypted, and never shown. "": the service\'s own bot.',
            example="7000000001:AAGkBS3d0c7Vw1FhQ9pRz2XyTtUuWvJjKkL",
            limits={"maxLength": 117, "pattern": "^$|^[1-9][0-9]{0,15}:[A-Za-z0-9_-]{30,100}$"},
            default="",
            option=Option(
                "A file with the token of the project's own bot; - is standard input. An empty file: the service's "
                "bot.",
                metavar="FILE",
                from_file=True,
            ),
        ),
    ]


class ProjectUpdate(ProjectSettings, total=False):
    """The settings of a project that can change."""

    name: Annotated[
        str | None,
        Field("The name shown to users in the messenger, up to 100 characters.", example="Acme Shop", limits=NAME),
    ]
    is_active: Annotated[
        bool | None, Field("false: the project is paused, and no new sign-ins can start.", default=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTurnedOff:
    """A webhook that the service turned off."""

    url: Annotated[str, Field("The webhook's URL.", example="https://example.com/hooks/taproof")]
    reason: Annotated[
        str,
        Field(
            "gone: the receiver returned 410. failing: every attempt failed for five days.",
            limits={"enum": list(get_args(TurnOffReason))},
        ),
    ]
    at: Annotated[datetime, TIME]
    explanation: Annotated[str, Field("The reason, and the next step.", example="The receiver answered 410 Gone…")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project, with a preview of its secret key.

    `ProjectUpdate` describes the fields that can be set.
    """

    id: Annotated[str, PROJECT_ID]
    name: Annotated[str, Field("The name shown to users in the messenger.", example="Acme Shop")]
    role: Annotated[
        str,
        Field(
            "Your role in the project: owner, developer or viewer.",
            example="owner",
            limits={"enum": list(get_args(Role))},
        ),
    ]
    secret_key_preview: Annotated[
        str, Field("The start and end of the secret key, to recognise it.", example="sk_a1B2…Wx9z")
    ]
    webhook_url: Annotated[
        str,
        Field(
            '"" when there is none. A viewer gets scheme, host and port only.',
            example="https://example.com/hooks/taproof",
        ),
    ]
    webhook_events: tuple[str, ...]
    is_active: bool
    public_access: bool
    collect_phone: bool
    phone_required: bool
    show_context: bool
    match_code: str
    allowed_origins: tuple[str, ...]
    same_device: str
    return_urls: tuple[str, ...]
    texts: dict[str, dict[str, str]]
    logo_url: str
    created_at: Annotated[datetime, TIME]
    sessions_count: Annotated[int, Field("All sessions that were ever started.", example=1200)]
    confirmed_count: Annotated[int, Field("Sessions that were confirmed.", example=1050)]
    webhook_failing_since: Annotated[
        datetime | None,
        Field(
            "The time since which every delivery attempt has failed; null while the webhook works, or after "
            "a successful test.",
            example=None,
        ),
    ]
    webhook_turned_off: Annotated[
        WebhookTurnedOff | None,
        Field("Set when the service removes webhook_url; null once a webhook_url is set again.", example=None),
    ]
    bot_username: Annotated[
        str | None,
        Field("The username of the project's own bot, without @; null: the service's own bot.", example="shop_bot"),
    ]
    bot_broken_at: Annotated[
        datetime | None,
        Field(
            "The time since which the messenger has refused that bot's token. No sign-ins can start until "
            "bot_token is set again; the service's own bot does not take over.",
            example=None,
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedProject(Project):
    """A new project with its secrets. The secret key is shown only once.

    The secrets are omitted from `repr`.
    """

    secret_key: Annotated[str, _SECRET_KEY] = field(repr=False)
    webhook_secret: Annotated[str, _WEBHOOK_SECRET] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSecrets:
    """Both secrets of a project. The secret key is shown only once.

    They are omitted from `repr`.
    """

    secret_key: Annotated[str, _SECRET_KEY] = field(repr=False)
    webhook_secret: Annotated[str, _WEBHOOK_SECRET] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecret:
    """The webhook secret and, during a rotation, the next one.

    During a rotation, accept both. They are omitted from `repr`.
    """

    webhook_secret: Annotated[str, _WEBHOOK_SECRET] = field(repr=False)
    next_webhook_secret: Annotated[
        str | None,
        Field(
            "Signs webhooks together with the current secret until promoted_at, and signs proofs afterwards. "
            "null: no rotation is in progress.",
            example="whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDp7MwM2v2V1c=",
        ),
    ] = field(repr=False)
    promoted_at: Annotated[datetime | None, Field("The time at which the next secret replaces the current secret.")]


class WebhookRotation(TypedDict, total=False):
    """The rotation of a webhook secret."""

    overlap_hours: Annotated[
        int,
        Field(
            "Hours until the next secret replaces the current secret.",
            example=24,
            limits={"minimum": 1, "maximum": OVERLAP_LIMIT},
            default=24,
        ),
    ]
