"""OpenID Connect clients: the applications that sign a project's users in."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal, TypedDict, get_args

from taproof.contract.fields import TIME, Field, Option
from taproof.contract.project import NAME

AuthMethod = Literal["any", "basic", "post", "none"]
"""The way in which a client authenticates: with its secret, in the Authorization header ("basic"), in the body ("post")
or in either ("any"). "none" is a public client, which has no secret and must use PKCE (RFC 6749, section 2.1)."""
SigningAlg = Literal["RS256", "ES256"]
"""The algorithm that signs a client's ID tokens (RFC 7518)."""
EmailClaim = Literal["none", "synthetic"]
"""The e-mail address in ID tokens: "none", or "synthetic" for an address that receives no mail."""
GrantType = Literal["authorization_code", "device_code", "refresh_token"]
"""A way in which a client signs users in: in a browser that returns to it, or on a device without one (RFC 8628).
"refresh_token": it may keep them signed in, with the scope offline_access (RFC 6749, section 6)."""
MIN_LIFETIME: Final = 300
MAX_LIFETIME: Final = 86_400
"""The lifetime of an ID token, in seconds."""
REDIRECT_URI_LENGTH: Final = 2048
"""The maximum number of characters in a redirect URI."""
REDIRECT_URIS_LIMIT: Final = 20
"""The maximum number of redirect URIs of a client."""
GROUPS_LIMIT: Final = 50
"""The maximum number of groups of a client."""
GROUP_MEMBERS_LIMIT: Final = 500
"""The maximum number of messenger ids in all groups of a client together."""
GROUP_NAME: Final = "^[A-Za-z0-9]([A-Za-z0-9 ._:/@+-]{0,62}[A-Za-z0-9._:/@+-])?$"
"""The pattern of a group's name."""
_AFTER_HOST: Final = r"(:[0-9]{1,5})?([/?][!$-)+-;=?-\[\]_a-z~%@]*)?"
_REDIRECT_URI: Final = (
    rf"^(https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+){_AFTER_HOST}|http://(127\.0\.0\.1|\[::1\]|localhost){_AFTER_HOST}"
    r"|[a-z][a-z0-9-]*(\.[a-z0-9-]+)+:[!$-)+-;=?-\[\]_a-z~%@]*)$"
)
_LOGOUT_URI: Final = rf"^(https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+){_AFTER_HOST}|http://(127\.0\.0\.1|\[::1\]|localhost){_AFTER_HOST})?$"

CLIENT_ID: Final = Field(
    "The client's id.", example="oidc_6Fh2YzQw8sVb1KdTnXcR3L", limits={"pattern": "^oidc_[A-Za-z0-9]{16,40}$"}
)
_SECRET_EXAMPLE: Final = "ocs_" + "a1B2c3D" * 7


class ClientSettings(TypedDict, total=False):
    """The settings of a client that have defaults. A field of None is not sent."""

    auth_method: Annotated[
        AuthMethod | None,
        Field(
            "How the client sends its secret to the token endpoint: any (either way), basic (only in the Authorization "
            "header), post (only in the body), or none. A client without a secret, such as an app or a page, must use "
            "PKCE.",
            default="any",
            option=Option(
                "How the client sends its secret: any, basic, post, or none for a client without one. A new client: "
                "any.",
                metavar="METHOD",
                often=True,
            ),
        ),
    ]
    signing_alg: Annotated[
        SigningAlg | None,
        Field(
            "The algorithm that signs the client's ID tokens.",
            default="RS256",
            option=Option("How ID tokens are signed: RS256 or ES256. A new client: RS256.", metavar="ALG"),
        ),
    ]
    email: Annotated[
        EmailClaim | None,
        Field(
            "synthetic: ID tokens contain an e-mail address made from the user's id, with email_verified false. No "
            "message can be sent to it.",
            default="none",
            option=Option(
                "The e-mail address in ID tokens: none, or synthetic (made from the user's id). A new client: none.",
                metavar="EMAIL",
            ),
        ),
    ]
    id_token_lifetime: Annotated[
        int | None,
        Field(
            "The lifetime of ID tokens in seconds.",
            limits={"minimum": MIN_LIFETIME, "maximum": MAX_LIFETIME},
            default=3600,
            option=Option("The lifetime of ID tokens. A new client: 3600.", metavar="SECONDS"),
        ),
    ]
    grant_types: Annotated[
        Collection[GrantType] | None,
        Field(
            "How the client signs users in, at least one: authorization_code (in a browser), device_code (on a "
            "device that shows a code, RFC 8628). Beside these, refresh_token lets it keep users signed in, if it asks "
            "for the scope offline_access. Any other use is refused with unauthorized_client. Removing one ends the "
            "sign-ins that use it. The order and duplicates do not matter.",
            limits={"items": {"type": "string", "enum": list(get_args(GrantType))}, "minItems": 1},
            default=["authorization_code"],
            option=Option(
                "How the client signs users in: authorization_code, or device_code for devices that show a code. "
                "refresh_token: it may keep them signed in. Repeat the option for several. A new client: "
                "authorization_code.",
                flag="--grant-type",
                metavar="GRANT",
                often=True,
            ),
        ),
    ]
    groups: Annotated[
        Mapping[str, Collection[str]] | None,
        Field(
            "The groups of this application: names with the messenger ids of their members, at most "
            f"{GROUP_MEMBERS_LIMIT} ids in all. With the scope groups, ID tokens and userinfo contain the names of the "
            "user's groups in the claim groups. A change replaces all groups.",
            example={"admins": ["123456789"], "staff": ["123456789", "987654321"]},
            limits={
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
                "propertyNames": {"pattern": GROUP_NAME},
                "maxProperties": GROUPS_LIMIT,
            },
            default={},
            option=Option(
                'A file with the groups as JSON, such as {"admins": ["123456789"]}. It replaces all groups; {} removes '
                "them. Standard input: -.",
                flag="--groups-file",
                metavar="FILE",
                from_file=True,
            ),
        ),
    ]
    allowed_groups: Annotated[
        Collection[str] | None,
        Field(
            "The groups whose members may sign in. Everybody else gets access_denied. With an empty list, every user "
            "of the project may. Each must be a name in groups.",
            example=["staff"],
            limits={"items": {"type": "string", "pattern": GROUP_NAME}, "maxItems": GROUPS_LIMIT},
            default=[],
            option=Option(
                'Only members of this group may sign in. Repeat the option for several; "": every user of the project.',
                flag="--allowed-group",
                metavar="GROUP",
            ),
        ),
    ]
    post_logout_redirect_uris: Annotated[
        Collection[str] | None,
        Field(
            "The addresses to which the end_session_endpoint may send users after they signed out. A request must name "
            "one of them exactly, except for the port of a loopback address. The rules are those of redirect_uris. "
            "Empty: users stay on a page of Taproof.",
            example=["https://grafana.example/login"],
            limits={
                "items": {"type": "string", "maxLength": REDIRECT_URI_LENGTH, "pattern": _REDIRECT_URI},
                "maxItems": REDIRECT_URIS_LIMIT,
            },
            default=[],
            option=Option(
                'An address to which users can return after signing out. Repeat it for several; "": none.',
                flag="--logout-redirect-uri",
                metavar="URI",
            ),
        ),
    ]
    backchannel_logout_uri: Annotated[
        str | None,
        Field(
            "Taproof posts a logout token to this address when a user reports a sign-in, blocks the project, is erased "
            "or leaves the allowed groups, so that the application signs the user out (OpenID Connect Back-Channel "
            'Logout 1.0). https://; http:// for 127.0.0.1, [::1] and localhost only. "": none.',
            example="https://grafana.example/backchannel-logout",
            limits={"maxLength": REDIRECT_URI_LENGTH, "pattern": _LOGOUT_URI},
            default="",
            option=Option(
                'The back-channel logout URI, which is told to sign a user out. "": none.',
                flag="--logout-uri",
                metavar="URI",
            ),
        ),
    ]


GRANT_ID: Final = Field(
    "The grant's id, which is also the claim sid.",
    example="auth_3Kd9QwErTy7UiOpAsDfGhJ",
    limits={"pattern": "^auth_[A-Za-z0-9]{1,40}$"},
)


class ClientUpdate(ClientSettings, total=False):
    """The settings of a client that can change."""

    name: Annotated[
        str | None, Field("The name of the application, up to 100 characters.", example="Grafana", limits=NAME)
    ]
    redirect_uris: Annotated[
        Collection[str] | None,
        Field(
            "The addresses to which users can return. A sign-in must name one of them exactly, except for the "
            "port of a loopback address. https://; http:// for 127.0.0.1, [::1] and localhost only; or an app's own "
            "scheme that contains a dot.",
            example=["https://grafana.example/login/generic_oauth"],
            limits={
                "items": {"type": "string", "maxLength": REDIRECT_URI_LENGTH, "pattern": _REDIRECT_URI},
                "minItems": 1,
                "maxItems": REDIRECT_URIS_LIMIT,
            },
            option=Option(
                "An address to which users can return. Repeat the option for several.",
                flag="--redirect-uri",
                metavar="URI",
                often=True,
            ),
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcClient:
    """A client, with a preview of its secret.

    `ClientUpdate` describes the fields that can be set.
    """

    client_id: Annotated[str, CLIENT_ID]
    name: Annotated[str, Field("The name of the application.", example="Grafana")]
    redirect_uris: tuple[str, ...]
    auth_method: str
    signing_alg: str
    email: str
    id_token_lifetime: int
    grant_types: tuple[str, ...]
    groups: dict[str, list[str]]
    allowed_groups: tuple[str, ...]
    post_logout_redirect_uris: tuple[str, ...]
    backchannel_logout_uri: str
    client_secret_preview: Annotated[str | None, Field("null: the client has no secret.", example="ocs_a1B2…Wx9z")]
    created_at: Annotated[datetime, TIME]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOidcClient(OidcClient):
    """A client and, if it has a new one, its secret. The secret is shown only once.

    It is omitted from `repr`.
    """

    client_secret: Annotated[
        str | None,
        Field(
            "Shown only once. Omitted if the client has no secret, or keeps the one it has.", example=_SECRET_EXAMPLE
        ),
    ] = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    """A client's new secret, shown only once."""

    client_secret: Annotated[str, Field("Shown only once.", example=_SECRET_EXAMPLE)] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcGrant:
    """A user's sign-in to a client, which lasts until it ends or expires."""

    id: Annotated[str, GRANT_ID]
    messenger_id: Annotated[str, Field("The user's messenger id.", example="123456789")]
    messenger_name: Annotated[str, Field("The user's name at the sign-in.", example="Ada Lovelace")]
    messenger_username: Annotated[str | None, Field("null: the user had none.", example="ada")]
    scopes: Annotated[tuple[str, ...], Field(example=["openid", "profile", "offline_access"])]
    has_refresh_token: Annotated[
        bool, Field("false: the client has no refresh token, and is only told when the user must be signed out.")
    ]
    created_at: Annotated[datetime, TIME]
    refreshed_at: Annotated[datetime | None, Field("The last use of a refresh token; null: none was used.")]
    expires_at: Annotated[datetime, Field("The end of the grant, unless a refresh token is used before.")]
