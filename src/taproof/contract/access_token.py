"""Access tokens, with which programs call the developer API."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal, TypedDict, get_args

from taproof.contract.fields import TIME, Field
from taproof.contract.project import NAME

AccessScope = Literal["read", "write", "tokens"]
"""One right of a credential. `read` reads everything but secrets, `write` changes projects and reads their secrets,
`tokens` creates and ends credentials."""
ACCESS_TOKEN_ID: Final = Field(
    "The access token's id.", example="tok_5Nc8RjXw1ZaQe07UbKyLvT", limits={"pattern": "^tok_[A-Za-z0-9]{1,40}$"}
)
_SCOPES: Final = {"items": {"type": "string", "enum": list(get_args(AccessScope))}}


class NewAccessToken(TypedDict, total=False):
    """A new access token."""

    name: Annotated[str, Field("The purpose of the token.", example="deploy script", limits=NAME)]
    expires_at: Annotated[
        str,
        Field(
            "The time at which the token expires (RFC 3339, in the future). It cannot be later than the expiry "
            "of the token that makes this request. Default: that token's expiry, if it has one.",
            example="2030-01-01T00:00:00Z",
            limits={"format": "date-time"},
        ),
    ]
    scopes: Annotated[
        Sequence[AccessScope],
        Field(
            "The scopes of the token. Default: the scopes of the token that makes this request.",
            example=["read", "write"],
            limits={"minItems": 1},
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """An access token, without its plaintext."""

    id: Annotated[str, ACCESS_TOKEN_ID]
    name: Annotated[str, Field(example="deploy script")]
    preview: Annotated[str, Field("Its first and last characters.", example="tap_a1B2…Wx9z")]
    created_at: Annotated[datetime, TIME]
    last_used_at: Annotated[datetime | None, Field("Accurate to one minute; null if the token was never used.")]
    expires_at: Annotated[datetime | None, Field("null: the token does not expire.")]
    scopes: Annotated[
        tuple[str, ...],
        Field(
            "read: read everything except secrets. write: change projects and read their secrets. tokens: create and "
            "revoke access tokens.",
            example=["read", "write", "tokens"],
            limits=_SCOPES,
        ),
    ]
    created_with: Annotated[
        str | None,
        Field(
            "The id of the access token that was used to create it; null if none was used.",
            example=ACCESS_TOKEN_ID.example,
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedAccessToken(AccessToken):
    """A new access token with its plaintext.

    The plaintext is omitted from `repr`.
    """

    access_token: Annotated[str, Field("Shown only once.", example="tap_" + "a1B2c3D" * 7)] = field(repr=False)
