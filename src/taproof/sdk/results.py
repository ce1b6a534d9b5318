"""What the developer API answers with, as frozen values. Every time is an aware datetime in UTC.

A status, an event or an action is a plain string: newer services may have more of them.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How much of its plan an account has used. A limit of None: there is none.

    Attributes:
        projects: how many there are.
        projects_limit: how many there may be.
        sign_ins_this_month: those started in this UTC month, and confirmed; a user counts once a day.
        sign_ins_limit: how many of them there may be.
    """

    projects: int
    projects_limit: int | None
    sign_ins_this_month: int
    sign_ins_limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The developer account that the access token belongs to.

    Attributes:
        id: of the account.
        email: of the developer.
        plan: "free", "pro" or "business".
        created_at: when it was made.
        usage: how much of the plan is used; None from an older service.
    """

    id: str
    email: str
    plan: str
    created_at: datetime
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTurnedOff:
    """A webhook that the service has turned off: where it led, why ("gone" or "failing"), when, and what to do."""

    url: str
    reason: str
    at: datetime
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project. From an older service the last six are None.

    Attributes:
        id: `proj_…`.
        name: what users see in the messenger.
        secret_key_preview: enough of the secret key to recognise it.
        webhook_url: where webhooks go; "" for none.
        is_active: False while it is paused: it starts no new sign-ins.
        public_access: whether the public session endpoints answer for it.
        collect_phone: whether it asks for phone numbers.
        created_at: when it was made.
        sessions_count: sign-ins ever started.
        confirmed_count: sign-ins that were confirmed.
        webhook_failing_since: since when every attempt to deliver has failed; None while the webhook works.
        webhook_turned_off: why the service has emptied `webhook_url`; None when it has not.
        phone_required: with `collect_phone`, whether nobody is signed in who does not give their number.
        show_context: whether the messenger shows where a sign-in was started: site, browser, place.
        match_code: "on" when the user must choose in the messenger the number that the page shows; otherwise "off".
        allowed_origins: the only sites whose pages may start sign-ins, such as "https://shop.example.com"; () for any.
        bot_username: of the project's own bot; None when it uses the service's.
        bot_broken_at: since when its own bot does not work, as with a revoked token; None while it works.
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
    webhook_failing_since: datetime | None = None
    webhook_turned_off: WebhookTurnedOff | None = None
    phone_required: bool | None = None
    show_context: bool | None = None
    match_code: str | None = None
    allowed_origins: tuple[str, ...] | None = None
    bot_username: str | None = None
    bot_broken_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedProject(Project):
    """A new project with its secrets, which are left out of `repr`. The secret key is shown this once."""

    secret_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSecrets:
    """The new secrets of a project, left out of `repr`. The secret key is shown this once."""

    secret_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecret:
    """The secret that proofs and webhooks are checked with.

    Attributes:
        webhook_secret: the current one. Left out of `repr`, as the next.
        next_webhook_secret: during a rotation the one that follows: accept both. None otherwise.
        promoted_at: when the next one takes the place of the current one.
    """

    webhook_secret: str = field(repr=False)
    next_webhook_secret: str | None = field(default=None, repr=False)
    promoted_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sign-in, as the service keeps it. Its token is not kept.

    `messenger_id` and `messenger_name` are "" and `messenger_username` is None until the user confirms; from then on
    they stay, and `messenger_username` is "" when there is none. `messenger_phone`, such as "+4915123456789", is None
    unless it was collected, and left out of `repr`. `reported_at` is when the user said "This wasn't me"; None
    otherwise.
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
    reported_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """One attempt to deliver a webhook.

    Attributes:
        number: from 1 on, over all resends.
        started_at: when it began.
        duration_ms: how long it took.
        status: the HTTP status that the receiver answered with; None when no answer came.
        error: why it has not taken the event, and what to do; None when it has.
        error_code: the same for a program.
        answer: the beginning of what it answered.
    """

    number: int
    started_at: datetime
    duration_ms: int
    status: int | None
    error: str | None
    error_code: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A webhook event, and the attempts to deliver it.

    Attributes:
        id: the event's, `evt_…`.
        event: "auth.confirmed", "auth.cancelled" or "webhook.test".
        project_id: the project that it is about.
        session_id: the session that it is about; None for a test.
        status: "due", "delivered", "failed" or "ended".
        created_at: when it happened.
        next_attempt_at: when it is sent again; None unless it is due.
        sending: whether it is being sent just now.
        finished_at: None while it is due.
        interrupted_attempts: how often a process ended that had it in hand.
        attempts: the latest ones, the first one first.
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
    """What became of the sign-ins that were started on one UTC day; `reported` is None from an older service."""

    date: date
    sessions: int
    opened: int
    confirmed: int
    cancelled: int
    expired: int
    unique_users: int
    reported: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsFunnel:
    """How far the sign-ins of the window came.

    `reported`: of how many the user said "This wasn't me"; None from an older service.
    """

    requested: int
    opened: int
    confirmed: int
    used: int
    cancelled: int
    expired: int
    reported: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectName:
    """A project's id and name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Analytics:
    """The numbers of the sign-ins that were started in the window.

    `conversion_rate` is confirmed sign-ins in percent; `daily` has every UTC day of the window, today last.
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
        name: what it is for.
        preview: its beginning and its end.
        created_at: when it was created.
        last_used_at: when it was last used, to the minute; None when it never was.
        expires_at: from when on it is no longer valid; None when it is valid until it is revoked.
        scopes: what it may do: "read", "write", "tokens".
        created_with: the id of the access token that it was created with; None if it was created otherwise.
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
    """A new access token. `access_token` is its plaintext: shown this once, and left out of `repr`."""

    access_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An entry of the audit log.

    Attributes:
        id: `aud_…`.
        created_at: when it was done.
        action: what was done, such as "project.updated".
        actor: who did it: an e-mail address, "command line" or "Taproof".
        via: how, such as "access_token".
        via_id: the id of that access token or console session; "" for others.
        address: the IP address that the call came from, or "".
        subject: the id of what was changed.
        details: what was set; its fields depend on the action.
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
