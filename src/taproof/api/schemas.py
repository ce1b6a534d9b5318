"""The requests and responses of the developer API (contract.md, Developer endpoints).

Requests are strict: unknown fields, type conversions and null are refused. A default only makes a field optional;
`model_fields_set` says which fields were sent. The services apply the rules for names and URLs. The JSON Schema here
documents these rules as far as it can express them.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field, WithJsonSchema

from taproof.api.models import answer_model, described_as, list_model, request_model
from taproof.contract import project as contract
from taproof.contract.access_token import AccessToken, CreatedAccessToken, NewAccessToken
from taproof.contract.account import Account, Usage
from taproof.contract.analytics import Analytics, AnalyticsDay, AnalyticsFunnel, ProjectName
from taproof.contract.audit import AuditEntry
from taproof.contract.delivery import EVENT_ID, Delivery, DeliveryAttempt, WebhookTest
from taproof.contract.fields import described
from taproof.contract.session import SESSION_ID, Session

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
DeliveryId = Annotated[str, described_as(EVENT_ID)]
SessionId = Annotated[str, described_as(SESSION_ID)]
CreateAccessToken: Final = request_model(
    "CreateAccessToken", "A new access token.", described(NewAccessToken), required=["name"]
)
AccessTokenAnswer: Final = answer_model("AccessTokenAnswer", AccessToken)
AccessTokenListAnswer: Final = list_model(
    "AccessTokenListAnswer", "All of a developer's access tokens, newest first.", "tokens", AccessTokenAnswer
)
CreatedAccessTokenAnswer: Final = answer_model("CreatedAccessTokenAnswer", CreatedAccessToken)
OwnAccountAnswer: Final = answer_model("OwnAccountAnswer", Account, models={Usage: answer_model("UsageAnswer", Usage)})
AnalyticsAnswer: Final = answer_model(
    "AnalyticsAnswer",
    Analytics,
    models={
        AnalyticsDay: answer_model("DayAnswer", AnalyticsDay),
        AnalyticsFunnel: answer_model("FunnelAnswer", AnalyticsFunnel),
        ProjectName: answer_model("ProjectNameAnswer", ProjectName),
    },
)
AuditPageAnswer: Final = list_model(
    "AuditPageAnswer",
    "A page of the audit log, newest entry first.",
    "entries",
    answer_model("AuditEntryAnswer", AuditEntry),
    in_pages=True,
)
SendWebhookTest: Final = request_model("SendWebhookTest", "A webhook test.", described(WebhookTest))
DeliveryAnswer: Final = answer_model(
    "DeliveryAnswer", Delivery, models={DeliveryAttempt: answer_model("AttemptAnswer", DeliveryAttempt)}
)
DeliveryPageAnswer: Final = list_model(
    "DeliveryPageAnswer", "A page of deliveries, newest event first.", "deliveries", DeliveryAnswer, in_pages=True
)
SessionAnswer: Final = answer_model("SessionAnswer", Session)
SessionPageAnswer: Final = list_model(
    "SessionPageAnswer", "A page of sessions, newest first.", "sessions", SessionAnswer, in_pages=True
)


class DeletedAnswer(BaseModel):
    """The object was deleted."""

    deleted: Literal[True]


class ErasedAnswer(BaseModel):
    """The user's data was erased."""

    erased: bool = Field(description="false: there was no data to erase.", examples=[True])
