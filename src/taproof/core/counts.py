"""The counts of a project's sessions and users."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class DailyCounts:
    """Counts of one project's sessions that were created on one UTC day."""

    project_id: str
    day: int
    requested: int = 0
    opened: int = 0
    confirmed: int = 0
    used: int = 0
    cancelled: int = 0
    expired: int = 0
    unique_users: int = 0
    latest_users: int = 0
    reported: int = 0
    """The sessions of that day that were reported by their user."""


@dataclass(frozen=True, slots=True)
class DailyUsers:
    """Distinct users on one UTC day, over all of a developer's projects.

    `latest_users` counts those who confirmed on no later day. So its sum from a day on is the number of distinct users
    since that day.
    """

    day: int
    unique_users: int
    latest_users: int


class ProjectUser(NamedTuple):
    """A user who signed in to a project, with the name at the last Confirm. `reports` counts the reported sign-ins."""

    messenger_id: str
    messenger_name: str
    messenger_username: str
    first_at: int
    last_at: int
    sign_ins: int
    reports: int
