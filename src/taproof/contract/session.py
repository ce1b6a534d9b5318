"""Sign-in sessions, as developers see those of their projects."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal, get_args

from taproof.contract.fields import TIME, Field
from taproof.contract.project import PROJECT_ID

SignInStatus = Literal["pending", "confirmed", "cancelled", "expired", "used"]
"""A session's state (service-spec.md, States and transitions)."""

SESSION_ID: Final = Field(
    "The session's id.", example="sess_7Wk2PdQ0Bv7TqLm29XcYdKpRfWz", limits={"pattern": "^sess_[A-Za-z0-9]{27}$"}
)
PHONE: Final = Field(
    "In E.164 format. Omitted unless the project collects phone numbers and the user shared theirs.",
    example="+4915123456789",
    limits={"pattern": r"^\+[1-9][0-9]{4,14}$"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sign-in session, without its session token, which is not stored.

    The phone number is omitted from `repr`.
    """

    id: Annotated[str, SESSION_ID]
    project_id: Annotated[str, PROJECT_ID]
    project_name: Annotated[str, Field(example="Acme Shop")]
    messenger_id: Annotated[str, Field('"" until the user confirms.', example="123456789")]
    messenger_name: Annotated[str, Field('"" until the user confirms.', example="Ada Lovelace")]
    messenger_username: Annotated[
        str | None, Field('null until the user confirms; after that, "" if the user has none.', example="ada")
    ]
    messenger_phone: Annotated[str | None, PHONE] = field(default=None, repr=False)
    status: Annotated[str, Field(example="used", limits={"enum": list(get_args(SignInStatus))})]
    created_at: Annotated[datetime, TIME]
    confirmed_at: Annotated[datetime | None, Field("null until the user confirms.")]
    reported_at: Annotated[
        datetime | None, Field('The time at which the user tapped "This wasn\'t me"; null if they have not.')
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessengerUser:
    """The user who tapped Confirm.

    The phone number is omitted from `repr`.
    """

    messenger_id: Annotated[str, Field(example="123456789")]
    messenger_name: Annotated[str, Field(example="Ada Lovelace")]
    messenger_username: Annotated[
        str | None,
        Field('null if the user has none; the proof and GET /dev/sessions have "" instead.', example="ada"),
    ]
    messenger_phone: Annotated[str | None, PHONE] = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedSession(MessengerUser):
    """The only response with identity and proof. Only the holder of the code_verifier gets it again, for 60 seconds.

    Later calls return used.

    The phone number and the proof are omitted from `repr`.
    """

    status: Literal["confirmed"]
    confirmed_at: Annotated[datetime, TIME]
    proof: Annotated[
        str,
        Field(
            "A JWT, HS256, valid for 5 minutes. Check it on your server with the webhook secret.",
            example="eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.…",
        ),
    ] = field(repr=False)
