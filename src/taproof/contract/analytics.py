"""Analytics: the counts of the sessions that were started in a window of UTC days."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated

from taproof.contract.fields import Field
from taproof.contract.project import PROJECT_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsDay:
    """The sessions that were started on one UTC day."""

    date: Annotated[date, Field(example="2026-11-20")]
    sessions: int
    opened: int
    confirmed: int
    cancelled: int
    expired: int
    unique_users: Annotated[int, Field("Distinct users who confirmed.")]
    reported: Annotated[int, Field("Sessions that users reported as not theirs.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsFunnel:
    """The number of sessions that reached each step; `confirmed` includes used sessions."""

    requested: int
    opened: int
    confirmed: int
    used: int
    cancelled: int
    expired: int
    reported: Annotated[
        int,
        Field(
            "Sessions that users reported as not theirs, before or after confirming. Each also counts towards the "
            "steps that it reached."
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectName:
    """A project's id and name."""

    id: Annotated[str, PROJECT_ID]
    name: Annotated[str, Field(example="Acme Shop")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analytics:
    """The sessions that were started in the window."""

    total_sessions: int
    confirmed_sessions: int
    unique_users: Annotated[int, Field("Distinct users who confirmed in the window.")]
    conversion_rate: Annotated[
        float, Field("The percentage of sessions that were confirmed, to one decimal.", example=87.5)
    ]
    daily: Annotated[tuple[AnalyticsDay, ...], Field("Every UTC day of the window, ending today.")]
    funnel: AnalyticsFunnel
    projects: Annotated[tuple[ProjectName, ...], Field("All of the developer's projects.")]
