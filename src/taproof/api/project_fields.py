"""The settings of a project that say how its sign-ins go, as the developer API takes and gives them."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, WithJsonSchema

from taproof.core.origins import ORIGIN_LENGTH, ORIGINS_LIMIT

_ORIGIN: Final = (
    r"^(https://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+)|http://(localhost|127(\.[0-9]{1,3}){3}|\[::1\]))(:[0-9]{1,5})?$"
)

CollectPhone = Annotated[
    bool,
    Field(
        description="Whether people are asked for their phone number when they confirm. On the pro and business plans "
        "only.",
        examples=[False],
    ),
]
PhoneRequired = Annotated[
    bool,
    Field(
        description="false: who does not want to give their phone number is signed in without. Of no effect without "
        "collect_phone.",
        examples=[True],
    ),
]
ShowContext = Annotated[
    bool,
    Field(
        description="Whether the messenger shows where a sign-in was started: the page's domain, the browser, the "
        "place.",
        examples=[True],
    ),
]
MatchCode = Annotated[
    Literal["off", "on"],
    Field(
        description="on: generate also returns a match_code, which your page must show; people pick it out of three in "
        "the messenger.",
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
        description="The origins of the pages that may start sign-ins: https://, host and perhaps port; http:// for "
        "loopback only. Empty: any page. Calls that send no Origin header are not held to it.",
        examples=[["https://shop.example"]],
    ),
]


def stored(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request as the services take them."""
    if "match_code" in fields:
        fields["match_code"] = fields["match_code"] == "on"
    if "allowed_origins" in fields:
        fields["allowed_origins"] = tuple(fields["allowed_origins"])
    return fields
