"""The results of the developer API, as frozen dataclasses. Every time is an aware datetime in UTC.

Statuses, events and actions are plain strings, because a newer service may add more.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal


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
class WebhookTurnedOff:
    """A webhook that the service turned off: its URL, the reason ("gone" or "failing"), the time, and what to do."""

    url: str
    reason: str
    at: datetime
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project. For its settings, see `create_project`.

    Attributes:
        role: your role in the project: "owner", "developer" or "viewer".
        secret_key_preview: the start and end of the secret key, to recognise it.
        is_active: False while the project is paused and no new sign-ins can start.
        sessions_count, confirmed_count: the total number of sign-ins started and confirmed.
        webhook_failing_since: the time since which all attempts have failed; None while the webhook works.
        webhook_turned_off: why the service cleared `webhook_url`; None if it did not.
        allowed_origins: the only sites whose pages can start sign-ins; () for any site.
        same_device: whether a sign-in must end in the browser in which it began: "off", "offer" or "require".
        return_urls: the only URLs allowed as `return_url`; if there are none, every page of `allowed_origins`.
        texts: the project's own texts, by language, then by key.
        logo_url: the image that hosted pages show; "" for none.
        webhook_events: the events that are sent to `webhook_url`.
        bot_username: the username of the project's own bot; None if it uses the service's bot.
        bot_broken_at: the time when the project's own bot stopped working, such as after its token was revoked; None
            while it works.
    """

    id: str
    name: str
    role: str
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
    same_device: str
    return_urls: tuple[str, ...]
    texts: dict[str, dict[str, str]]
    logo_url: str
    webhook_events: tuple[str, ...]
    bot_username: str | None
    bot_broken_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedProject(Project):
    """A new project with its secrets, which are omitted from `repr`. The secret key is shown only once."""

    secret_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSecrets:
    """A project's new secrets, which are omitted from `repr`. The secret key is shown only once."""

    secret_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a project.

    Attributes:
        role: "owner", "developer" or "viewer".
        invited_by: the e-mail address of the inviter; "" for the project's creator.
    """

    developer_id: str
    email: str
    role: str
    joined_at: datetime
    invited_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUser:
    """A user who signed in to a project.

    Attributes:
        messenger_name: the name at the last sign-in. `messenger_username` is also of that time.
        messenger_username: None if the user has none.
        sign_ins: how often the user confirmed a sign-in.
        reports: how many of the stored sign-ins the user reported as not theirs.
    """

    messenger_id: str
    messenger_name: str
    messenger_username: str | None
    first_sign_in_at: datetime
    last_sign_in_at: datetime
    sign_ins: int
    reports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberInvitation:
    """An open invitation to a project. `role` is that of the new member."""

    id: str
    role: str
    invited_by: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedMemberInvitation(MemberInvitation):
    """A new invitation. The first developer who uses `link` becomes a member; it is omitted from `repr`."""

    link: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcClient:
    """An OpenID Connect client of a project. For its settings, see `create_client`.

    Attributes:
        client_id: `oidc_…`.
        id_token_lifetime: the lifetime of ID tokens in seconds.
        client_secret_preview: the start and end of the secret, to recognise it; None if the client has no secret.
    """

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    auth_method: str
    signing_alg: str
    email: str
    id_token_lifetime: int
    grant_types: tuple[str, ...]
    client_secret_preview: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOidcClient(OidcClient):
    """A client that was created or changed.

    `client_secret` is its new secret, which is shown only once and omitted from `repr`. It is None if the client has no
    secret, or keeps the one it has.
    """

    client_secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecret:
    """The secret that signs proofs and webhooks. The secrets are omitted from `repr`.

    During a rotation, also accept `next_webhook_secret`, which replaces the current secret at `promoted_at`. When no
    rotation is in progress, both are None.
    """

    webhook_secret: str = field(repr=False)
    next_webhook_secret: str | None = field(repr=False)
    promoted_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sign-in, as the service stores it, without its token.

    `messenger_id` and `messenger_name` are "" and `messenger_username` is None until the user confirms. After that,
    `messenger_username` is "" if the user has none. `messenger_phone`, such as "+4915123456789", is None unless it was
    collected; it is omitted from `repr`. `reported_at` is the time when the user tapped "This wasn't me", or None.
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
class AccessToken:
    """An access token, without its plaintext.

    Attributes:
        id: `tok_…`.
        preview: its first and last characters.
        last_used_at: the time of its last use, to the minute; None if it was never used.
        expires_at: the time of expiry; None if the token is valid until it is revoked.
        scopes: what the token can do: "read", "write", "tokens".
        created_with: the id of the access token that created this one; None if it was created in another way.
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
    """A new access token. `access_token` is its plaintext, which is shown only once and omitted from `repr`."""

    access_token: str = field(repr=False)


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
