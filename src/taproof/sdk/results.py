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
