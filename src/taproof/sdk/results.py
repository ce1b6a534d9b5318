"""The results of the developer API, as frozen dataclasses. Every time is an aware datetime in UTC.

Statuses, events and actions are plain strings, because a newer service may add more.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of an account's plan. A limit of None means unlimited.

    `sign_ins_this_month` counts confirmed sign-ins that started in this UTC month; each user counts once a day.
    """

    projects: int
    projects_limit: int | None
    sign_ins_this_month: int
    sign_ins_limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The developer account of the access token. The plan is "free", "pro" or "business"."""

    id: str
    email: str
    plan: str
    created_at: datetime
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """One attempt to deliver a webhook.

    Attributes:
        number: the attempt's number, counted from 1 across all resends.
        status: the HTTP status of the receiver's response; None if there was no response.
        error: why the receiver did not accept the event, and what to do; None if it accepted the event.
        error_code: the same reason as a code for programs.
        answer: the start of the receiver's response; None if there was no response.
    """

    number: int
    started_at: datetime
    duration_ms: int
    status: int | None
    error: str | None
    error_code: str | None
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A webhook event, and the attempts to deliver it.

    Attributes:
        id: the id of the event, `evt_…`.
        event: "auth.confirmed", "auth.cancelled", "auth.expired", "auth.reported" or "webhook.test".
        session_id: the id of the event's session; None for a test.
        status: "due", "delivered", "failed" or "ended".
        next_attempt_at: the time of the next attempt; None unless the event is due.
        sending: whether the event is being sent now.
        finished_at: the time when the delivery finished; None while it is due.
        interrupted_attempts: the number of attempts that were interrupted because the process stopped.
        attempts: the latest attempts, oldest first.
    """

    id: str
    event: str
    project_id: str
    session_id: str | None
    status: str
    created_at: datetime
    next_attempt_at: datetime | None
    sending: bool
    finished_at: datetime | None
    interrupted_attempts: int
    attempts: tuple[DeliveryAttempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsDay:
    """The outcomes of the sign-ins started on one UTC day."""

    date: date
    sessions: int
    opened: int
    confirmed: int
    cancelled: int
    expired: int
    unique_users: int
    reported: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsFunnel:
    """The number of sign-ins in the period that reached each step. `reported`: the user tapped "This wasn't me"."""

    requested: int
    opened: int
    confirmed: int
    used: int
    cancelled: int
    expired: int
    reported: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectName:
    """A project's id and name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Analytics:
    """The figures for the sign-ins started in the period.

    `conversion_rate` is the percentage of confirmed sign-ins. `daily` has every UTC day of the period, today last.
    """

    total_sessions: int
    confirmed_sessions: int
    unique_users: int
    conversion_rate: float
    daily: tuple[AnalyticsDay, ...]
    funnel: AnalyticsFunnel
    projects: tuple[ProjectName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An entry of the audit log.

    Attributes:
        id: `aud_…`.
        action: such as "project.updated".
        actor: an e-mail address, "command line" or "Taproof".
        via: how the change was made, such as "access_token".
        via_id: the id of the access token or console session used; "" for others.
        address: the IP address of the caller; "" if unknown.
        subject: the id of the changed object.
        details: the values that were set; the fields depend on the action.
    """

    id: str
    created_at: datetime
    action: str
    actor: str
    via: str
    via_id: str
    address: str
    subject: str
    details: dict[str, Any] = field(hash=False)
