"""The results of the developer API, as frozen dataclasses. Every time is an aware datetime in UTC.

Statuses, events and actions are plain strings, because a newer service may add more.
"""

from dataclasses import dataclass
from datetime import date


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
