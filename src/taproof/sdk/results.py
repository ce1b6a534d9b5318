"""The results of the developer API, as frozen values. Every time is an aware datetime in UTC.

A status, an event or an action is a plain string, because newer services may have more of them.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of an account's plan. A limit of None means that there is no limit.

    `sign_ins_this_month` counts the sign-ins started in this UTC month and confirmed; a user counts once a day.
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
class WebhookTurnedOff:
    """A webhook that the service turned off: its URL, the reason ("gone" or "failing"), the time, and what to do."""

    url: str
    reason: str
    at: datetime
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project. For its settings see `create_project`.

    Attributes:
        secret_key_preview: enough of the secret key to recognise it.
        is_active: False while the project is paused and starts no new sign-ins.
        sessions_count, confirmed_count: the numbers of sign-ins ever started and ever confirmed.
        webhook_failing_since: the time since which all attempts have failed; None while the webhook works.
        webhook_turned_off: the reason if the service has emptied `webhook_url`; None otherwise.
        allowed_origins: the only sites whose pages may start sign-ins; () for any.
        bot_username: the username of the project's own bot; None if it uses the service's bot.
        bot_broken_at: the time since which its own bot does not work, as after a revoked token; None while it works.
    """

    id: str
    name: str
    secret_key_preview: str
    webhook_url: str
    is_active: bool
    public_access: bool
    collect_phone: bool
    created_at: datetime
    sessions_count: int
    confirmed_count: int
    webhook_failing_since: datetime | None
    webhook_turned_off: WebhookTurnedOff | None
    phone_required: bool
    show_context: bool
    match_code: str
    allowed_origins: tuple[str, ...]
    bot_username: str | None
    bot_broken_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedProject(Project):
    """A new project with its secrets, which are left out of `repr`. The secret key is shown only once."""

    secret_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSecrets:
    """The new secrets of a project, left out of `repr`. The secret key is shown only once."""

    secret_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecret:
    """The secret that signs proofs and webhooks. The secrets are left out of `repr`.

    During a rotation, accept `next_webhook_secret` too. It replaces the current secret at `promoted_at`. Otherwise both
    are None.
    """

    webhook_secret: str = field(repr=False)
    next_webhook_secret: str | None = field(repr=False)
    promoted_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sign-in, as the service stores it, without its token.

    `messenger_id` and `messenger_name` are "" and `messenger_username` is None until the user confirms. After that,
    `messenger_username` is "" if the user has none. `messenger_phone`, such as "+4915123456789", is None unless it was
    collected, and left out of `repr`. `reported_at` is the time when the user tapped "This wasn't me"; None otherwise.
    """

    id: str
    project_id: str
    project_name: str
    messenger_id: str
    messenger_name: str
    messenger_username: str | None
    status: Literal["pending", "confirmed", "cancelled", "expired", "used"]
    created_at: datetime
    confirmed_at: datetime | None
    messenger_phone: str | None = field(default=None, repr=False)
    reported_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """One attempt to deliver a webhook.

    Attributes:
        number: counts from 1, over all resends.
        status: the HTTP status of the receiver's answer; None if there was none.
        error: the reason why the receiver did not accept the event, and what to do; None if it did.
        error_code: the same reason for programs.
        answer: the start of the receiver's answer.
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
        event: "auth.confirmed", "auth.cancelled" or "webhook.test".
        session_id: the session of the event; None for a test.
        status: "due", "delivered", "failed" or "ended".
        next_attempt_at: the time of the next attempt; None unless the event is due.
        sending: whether it is being sent now.
        finished_at: the time of its end; None while it is due.
        interrupted_attempts: the number of attempts that the end of a process interrupted.
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
    """The number of sign-ins in the window that reached each step. `reported`: the user tapped "This wasn't me"."""

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
    """The figures of the sign-ins started in the window.

    `conversion_rate` is the percentage of confirmed sign-ins. `daily` has every UTC day of the window, today last.
    """

    total_sessions: int
    confirmed_sessions: int
    unique_users: int
    conversion_rate: float
    daily: tuple[AnalyticsDay, ...]
    funnel: AnalyticsFunnel
    projects: tuple[ProjectName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """An access token, without its plaintext.

    Attributes:
        id: `tok_…`.
        preview: its first and last characters.
        last_used_at: the time of its last use, to the minute; None if it was never used.
        expires_at: the time of expiry; None if it is valid until it is revoked.
        scopes: its rights: "read", "write", "tokens".
        created_with: the id of the access token that created it; None if it was created otherwise.
    """

    id: str
    name: str
    preview: str
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    scopes: tuple[str, ...]
    created_with: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedAccessToken(AccessToken):
    """A new access token. `access_token` is its plaintext, which is shown only once and left out of `repr`."""

    access_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An entry of the audit log.

    Attributes:
        id: `aud_…`.
        action: such as "project.updated".
        actor: an e-mail address, "command line" or "Taproof".
        via: the way of the action, such as "access_token".
        via_id: the id of that access token or console session; "" for others.
        address: the IP address of the caller, or "".
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
