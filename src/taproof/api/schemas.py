"""The requests and responses of the developer API (contract.md, Developer endpoints).

Requests are strict: unknown fields, type conversions and null are refused. A default only makes a field optional;
`model_fields_set` says which fields were sent. The services apply the rules for names and URLs. The JSON Schema here
documents these rules as far as it can express them.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, WithJsonSchema

from taproof.api.models import StrictRequest, answer_model, described_as, list_model, request_model
from taproof.contract import project as contract
from taproof.contract.access_token import AccessToken, CreatedAccessToken, NewAccessToken
from taproof.contract.fields import described
from taproof.contract.session import SESSION_ID, Session
from taproof.core.accounts import Plan
from taproof.core.attempt_errors import SENTENCES, ShownError
from taproof.core.deliveries import ATTEMPTS_SHOWN, DeliveryState, EventType

Time = Annotated[
    str,
    WithJsonSchema({"type": "string", "format": "date-time"}),
    Field(description="UTC, with milliseconds.", examples=["2026-11-20T22:44:03.127Z"]),
]
ProjectId = Annotated[str, described_as(contract.PROJECT_ID)]
AccessTokenId = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": "^tok_[A-Za-z0-9]{1,40}$"}),
    Field(description="The access token's id.", examples=["tok_5Nc8RjXw1ZaQe07UbKyLvT"]),
]
DeliveryId = Annotated[
    str,
    WithJsonSchema({"type": "string", "pattern": "^evt_[A-Za-z0-9]{16,40}$"}),
    Field(description="The event's id.", examples=["evt_3Qm8ZsVd71LxKcTnYpRw0B"]),
]
SessionId = Annotated[str, described_as(SESSION_ID)]
CreateAccessToken: Final = request_model(
    "CreateAccessToken", "A new access token.", described(NewAccessToken), required=["name"]
)
AccessTokenAnswer: Final = answer_model("AccessTokenAnswer", AccessToken)
AccessTokenListAnswer: Final = list_model(
    "AccessTokenListAnswer", "All of a developer's access tokens, newest first.", "tokens", AccessTokenAnswer
)
CreatedAccessTokenAnswer: Final = answer_model("CreatedAccessTokenAnswer", CreatedAccessToken)
SessionAnswer: Final = answer_model("SessionAnswer", Session)
SessionPageAnswer: Final = list_model(
    "SessionPageAnswer", "A page of sessions, newest first.", "sessions", SessionAnswer, in_pages=True
)


class SendWebhookTest(StrictRequest):
    """A webhook test."""

    event: EventType = Field(
        default="webhook.test",
        description="The type of the event. Any other type than webhook.test has the fields of a real event with "
        "made-up values, and `test`: true. It is sent even if the project has not chosen it.",
        examples=["auth.confirmed"],
    )


class UsageAnswer(BaseModel):
    """How much of their plan a developer uses. A limit of null means no limit."""

    projects: int = Field(examples=[2])
    projects_limit: int | None = Field(examples=[3])
    sign_ins_this_month: int = Field(
        description="Confirmed sign-ins that were started in this calendar month (UTC). Each user counts once a day "
        "across all projects.",
        examples=[812],
    )
    sign_ins_limit: int | None = Field(examples=[1000])


class OwnAccountAnswer(BaseModel):
    """The account that an access token belongs to."""

    id: str = Field(examples=["dev_7Yh2kP0sVd93mQxAeRtU1c"])
    email: str = Field(examples=["ada@example.com"])
    created_at: Time
    plan: Plan = Field(examples=["free"])
    usage: UsageAnswer


class DeletedAnswer(BaseModel):
    """The object was deleted."""

    deleted: Literal[True]


class ErasedAnswer(BaseModel):
    """The user's data was erased."""

    erased: bool = Field(description="false: there was no data to erase.", examples=[True])


class AttemptAnswer(BaseModel):
    """One attempt to deliver an event."""

    number: int = Field(description="Counted from 1, across all resends.", examples=[1])
    started_at: Time
    duration_ms: int = Field(examples=[184])
    status: int | None = Field(
        description="The HTTP status of the receiver's response; null if there was no response.", examples=[503]
    )
    error: str | None = Field(
        description="The reason for the failure, and the next step; null if the receiver accepted the event.",
        examples=[SENTENCES["not_accepted"]],
    )
    error_code: ShownError | None = Field(
        description="The code of the error, from the table under Webhooks; null if a newer release recorded an error "
        "that this release does not know.",
        examples=["not_accepted"],
    )
    answer: str | None = Field(
        description="The beginning of the response body, at most 1 KiB; null if it is empty. A run of 43 or more "
        "characters from A-Z a-z 0-9 _ - could be a session token and is replaced by …, as is a run of 20 or "
        "more at the end of a truncated body.",
        examples=["Service Unavailable"],
    )


class DeliveryAnswer(BaseModel):
    """A webhook event and the attempts to deliver it, without the body that was sent."""

    id: DeliveryId
    event: EventType
    project_id: ProjectId
    session_id: str | None = Field(
        description="The session that the event is about; null for a test.",
        examples=["sess_7Wk2PdQ0Bv7TqLm29XcYdKpRfWz"],
    )
    status: DeliveryState = Field(
        description="due: waiting to be sent or sent again. delivered: the receiver accepted the event. failed: no "
        "attempts are left. ended: the webhook was removed or turned off first.",
    )
    created_at: Time
    next_attempt_at: Time | None = Field(description="null while the event is being sent, or if its status is not due.")
    sending: bool = Field(description="true while the event is being sent.", examples=[False])
    finished_at: Time | None = Field(description="null while the status is due.", examples=[None])
    interrupted_attempts: int = Field(
        description="Attempts that were interrupted when the sending process stopped. Some of them may have been sent.",
        examples=[0],
    )
    attempts: list[AttemptAnswer] = Field(description=f"The latest {ATTEMPTS_SHOWN} attempts, oldest first.")


class DeliveryPageAnswer(BaseModel):
    """A page of deliveries, newest event first."""

    deliveries: list[DeliveryAnswer]
    next_cursor: str | None = Field(description="Send it as cursor to get the next page; null on the last page.")


class DayAnswer(BaseModel):
    """The sessions that were started on one UTC day."""

    date: Annotated[str, WithJsonSchema({"type": "string", "format": "date"})] = Field(examples=["2026-11-20"])
    sessions: int
    opened: int
    confirmed: int
    cancelled: int
    expired: int
    unique_users: int = Field(description="Distinct users who confirmed.")
    reported: int = Field(description="Sessions that users reported as not theirs.")


class FunnelAnswer(BaseModel):
    """The number of sessions that reached each step; `confirmed` includes used sessions."""

    requested: int
    opened: int
    confirmed: int
    used: int
    cancelled: int
    expired: int
    reported: int = Field(
        description="Sessions that users reported as not theirs, before or after confirming. Each also counts towards "
        "the steps that it reached."
    )


class ProjectNameAnswer(BaseModel):
    """A project's id and name."""

    id: ProjectId
    name: str = Field(examples=["Acme Shop"])


class AnalyticsAnswer(BaseModel):
    """The sessions that were started in the window."""

    total_sessions: int
    confirmed_sessions: int
    unique_users: int = Field(description="Distinct users who confirmed in the window.")
    conversion_rate: float = Field(
        description="The percentage of sessions that were confirmed, to one decimal.", examples=[87.5]
    )
    daily: list[DayAnswer] = Field(description="Every UTC day of the window, ending today.")
    funnel: FunnelAnswer
    projects: list[ProjectNameAnswer] = Field(description="All of the developer's projects.")
