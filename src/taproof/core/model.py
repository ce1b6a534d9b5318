"""What the service keeps, as frozen values. Times are integer milliseconds since the Unix epoch (UTC)."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal["pending", "confirmed", "cancelled", "expired", "used"]
"""A session's state (service-spec.md, States and transitions)."""

Plan = Literal["free", "pro", "business"]
EventType = Literal["auth.confirmed", "auth.cancelled"]


class SessionKey(NamedTuple):
    """Where a session is stored: the UTC day that its token carries, and the SHA-256 of the token."""

    day: int
    token_hash: bytes


@dataclass(frozen=True, slots=True)
class Identity:
    """Who confirmed: the messenger's own account data. `messenger_username` is "" when there is none."""

    messenger_id: str
    messenger_name: str
    messenger_username: str


@dataclass(frozen=True, slots=True)
class Session:
    """One authentication attempt, with the fields of its project that every reader of a session needs."""

    key: SessionKey
    id: str
    project_id: str
    project_name: str
    status: Status
    created_at: int
    expires_at: int
    opened_at: int | None = None
    opener_id: str | None = None
    confirmed_at: int | None = None
    cancelled_at: int | None = None
    used_at: int | None = None
    identity: Identity | None = None


class PolledSession(NamedTuple):
    """The least that answers a poll: read on the hottest path, so it is a tuple."""

    project_id: str
    public_access: bool
    status: Status
    expires_at: int


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be stored as pending."""

    key: SessionKey
    id: str
    project_id: str
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class ConsumedSession:
    """What the one reader that moved a session from confirmed to used gets, to build the answer and the proof."""

    project_id: str
    identity: Identity
    confirmed_at: int
    sealed_webhook_secret: bytes


@dataclass(frozen=True, slots=True)
class Developer:
    """An account that owns projects."""

    id: str
    email: str
    plan: Plan
    created_at: int


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A developer's Bearer token, without its plaintext: only the SHA-256 of it is stored."""

    id: str
    developer_id: str
    name: str
    preview: str
    created_at: int
    last_used_at: int | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """The unit that sessions are created under (service-spec.md, Project)."""

    id: str
    developer_id: str
    name: str
    secret_key_preview: str
    sealed_webhook_secret: bytes
    webhook_url: str
    is_active: bool
    public_access: bool
    collect_phone: bool
    created_at: int
    sessions_count: int = 0
    confirmed_count: int = 0


@dataclass(frozen=True, slots=True)
class ProjectChanges:
    """The fields of a PATCH; None leaves a field as it is."""

    name: str | None = None
    webhook_url: str | None = None
    is_active: bool | None = None
    public_access: bool | None = None
    collect_phone: bool | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A webhook event to be recorded in the transaction of the decision that causes it.

    `sealed_body` is the exact body that will be sent, encrypted: it holds the session token, of which nothing
    but a hash may lie in the store.
    """

    id: str
    type: EventType
    project_id: str
    sealed_body: bytes
    created_at: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """A claimed event with what is needed to send it. The claim is a lease that ends at `leased_until`."""

    event: Event
    webhook_url: str
    sealed_webhook_secret: bytes
    attempt: int
    leased_until: int


@dataclass(frozen=True, slots=True)
class DailyCounts:
    """What became of the sessions that were created on one UTC day, for one project."""

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


@dataclass(frozen=True, slots=True)
class DailyUsers:
    """Distinct users of one UTC day, over all projects of a developer.

    `unique_users` confirmed on that day; `latest_users` confirmed on that day and on no later one, so that the
    sum of `latest_users` from a day onwards is the number of distinct users since that day.
    """

    day: int
    unique_users: int
    latest_users: int


class PageCursor(NamedTuple):
    """Where a page of sessions, newest first, ended: the next one starts strictly after this session."""

    created_at: int
    session_id: str
