"""Turns what `core/` holds into the values of a statement, and rows back into it: the same for every driver."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Final

from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, Developer, Invitation
from taproof.core.deliveries import Attempt, Delivery, DeliveryRecord, DeliveryState, Event
from taproof.core.errors import InvalidAccessToken, SignedOut, TaproofError
from taproof.core.model import (
    PROJECT_FLAGS,
    ConsumedSession,
    EncryptedWebhookSecrets,
    MessengerIdentity,
    NewSession,
    PhoneRequest,
    Project,
    ProjectChanges,
    PromptDetails,
    Session,
    SessionKey,
    SignInProject,
)
from taproof.core.rights import read_scopes, scopes_text
from taproof.core.session_state import visible_status

Row = Sequence[Any]

_PROJECT_FIELDS: Final = [field.name for field in fields(Project)]
_FLAG_PLACES: Final = [_PROJECT_FIELDS.index(flag) for flag in PROJECT_FLAGS]
_ORIGINS_PLACE: Final = _PROJECT_FIELDS.index("allowed_origins")


def columns(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Return rows turned into columns, for a statement that takes one array for each."""
    return list(zip(*rows, strict=True))


def developer_values(developer: Developer) -> tuple[Any, ...]:
    """Return the values of `account_sql.CREATE_DEVELOPER`."""
    return (
        developer.id,
        developer.email,
        developer.email.lower(),
        developer.plan,
        developer.created_at,
        int(developer.is_owner),
        developer.messenger_id,
        developer.messenger_name,
    )


def developer_from(row: Row) -> Developer:
    """Return the developer of a row of `account_sql.READ_DEVELOPER` and its kin."""
    values = (*row[:4], bool(row[4]), *row[5:])
    return Developer(*values)


def token_values(token: AccessToken, token_hash: bytes) -> tuple[Any, ...]:
    """Return the values of `account_sql.CREATE_ACCESS_TOKEN`, but for the limit."""
    return (
        token.id,
        token.developer_id,
        token.name,
        token.preview,
        token_hash,
        token.created_at,
        token.expires_at,
        scopes_text(token.scopes),
        token.parent_id,
        token.sign_in,
    )


def token_from(row: Row) -> AccessToken:
    """Return the token that a row of `account_sql.LIST_ACCESS_TOKENS` holds, or begins with."""
    values = (*row[:7], read_scopes(row[7]), *row[8:10])
    return AccessToken(*values)


def token_and_developer_from(row: Row) -> tuple[AccessToken, Developer]:
    """Return what a row of `account_sql.READ_ACCESS_TOKEN` holds."""
    return token_from(row), developer_from(row[10:])


def invitation_values(invitation: Invitation, code_hash: bytes) -> tuple[Any, ...]:
    """Return the values of `account_sql.CREATE_INVITATION`."""
    return (
        invitation.id,
        code_hash,
        invitation.email,
        invitation.plan,
        int(invitation.is_owner),
        invitation.developer_id,
        invitation.invited_by,
        invitation.created_at,
        invitation.expires_at,
        invitation.inviter_id,
        invitation.sign_in,
    )


def invitation_from(row: Row) -> Invitation:
    """Return the invitation of a row of `account_sql.READ_INVITATION` and its kin."""
    values = (*row[:3], bool(row[3]), *row[4:])
    return Invitation(*values)


def console_session_values(session: ConsoleSession, token_hash: bytes) -> tuple[Any, ...]:
    """Return the values of `account_sql.CREATE_CONSOLE_SESSION`."""
    return (
        session.id,
        token_hash,
        session.developer_id,
        session.created_at,
        session.last_seen_at,
        session.access_token_id,
        session.address,
        session.user_agent,
        session.messenger_id,
        scopes_text(session.scopes),
        session.expires_at,
        session.sign_in,
    )


def console_session_from(row: Row) -> ConsoleSession:
    """Return the session that a row of `account_sql.LIST_CONSOLE_SESSIONS` holds, or begins with."""
    values = (*row[:8], read_scopes(row[8]), *row[9:11])
    return ConsoleSession(*values)


def session_and_developer_from(row: Row) -> tuple[ConsoleSession, Developer]:
    """Return what a row of `account_sql.READ_CONSOLE_SESSION` holds."""
    return console_session_from(row), developer_from(row[11:])


def access_ended(entry: AuditEntry) -> TaproofError:
    """Return the error for a change whose acting credential has ended: it is undone."""
    return SignedOut() if entry.via == "console" else InvalidAccessToken()


def entry_values(entry: AuditEntry) -> tuple[Any, ...]:
    """Return the values of `account_sql.ADD_AUDIT_ENTRY`."""
    return (
        entry.id,
        entry.developer_id,
        entry.created_at,
        entry.action,
        entry.actor,
        entry.via,
        entry.via_id,
        entry.address,
        entry.subject,
        entry.details,
    )


def project_values(project: Project, secret_key_hash: bytes) -> tuple[Any, ...]:
    """Return the values of `sql.CREATE_PROJECT`, but for the limit."""
    return (
        project.id,
        project.developer_id,
        project.name,
        secret_key_hash,
        project.secret_key_preview,
        project.encrypted_webhook_secret,
        project.webhook_url,
        project.created_at,
        " ".join(project.allowed_origins),
        *(int(getattr(project, flag)) for flag in PROJECT_FLAGS),
    )


def change_values(changes: ProjectChanges) -> tuple[Any, ...]:
    """Return the first values of `sql.UPDATE_PROJECT`."""
    origins = None if changes.allowed_origins is None else " ".join(changes.allowed_origins)
    flags = [getattr(changes, flag) for flag in PROJECT_FLAGS]
    return (changes.name, changes.webhook_url, origins, *(None if flag is None else int(flag) for flag in flags))


def identity_values(identity: MessengerIdentity) -> tuple[str, str, str]:
    """Return the values of an identity in `sql.CONFIRM_SESSION`."""
    return (identity.messenger_id, identity.messenger_name, identity.messenger_username)


def event_values(event: Event) -> tuple[Any, ...]:
    """Return the values of `delivery_sql.RECORD_EVENT`, but for the id of its session."""
    return (event.id, event.type, event.encrypted_body, event.created_at, event.project_id)


def project_from(row: Row) -> Project:
    """Return the project of a row of `READ_PROJECT`, or of `READ_PROJECT_BY_SECRET_KEY`, which ends after the flags.

    The columns are in the order of the model's fields.
    """
    values = list(row)
    for place in _FLAG_PLACES:
        values[place] = bool(values[place])
    if len(values) > _ORIGINS_PLACE:
        values[_ORIGINS_PLACE] = tuple(values[_ORIGINS_PLACE].split())
    return Project(*values)


def sign_in_project_from(row: Row) -> SignInProject:
    """Return what a row of `sql.READ_SIGN_IN_PROJECT` holds."""
    return SignInProject._make((*row[:2], *(bool(flag) for flag in row[2:6]), *row[6:]))


def consumed_from(row: Row) -> ConsumedSession:
    """Return what a row of `sql.REREAD_SESSION` holds."""
    return ConsumedSession(row[0], MessengerIdentity(*row[1:4]), row[4], EncryptedWebhookSecrets(*row[5:8]), *row[8:])


def session_from(row: Row, now: int | None = None) -> Session:
    """Return the session of a row of `sql.READ_SESSION` and its kin; with `now`, in the state that a reader sees."""
    identity = MessengerIdentity(*row[13:16]) if row[13] is not None else None
    status = row[5] if now is None else visible_status(row[5], row[7], now)
    prompt = None if len(row) <= 18 else PromptDetails._make((*row[18:22], bool(row[22]), bool(row[23])))
    values = (SessionKey(row[0], row[1]), *row[2:5], status, *row[6:13], identity, *row[16:18], prompt)
    return Session(*values)


def new_session_values(session: NewSession, *, public: bool) -> tuple[Any, ...]:
    """Return the values of `sql.CREATE_SESSION`."""
    return (
        *session.key,
        session.id,
        session.created_at,
        session.expires_at,
        session.code_challenge,
        session.bot_id,
        session.context,
        session.match_code,
        session.match_choices,
        session.project_id,
        int(public),
    )


def phone_request_values(request: PhoneRequest) -> tuple[Any, ...]:
    """Return the values of `user_sql.ASK_FOR_PHONE`."""
    return (
        *request.key,
        request.session_id,
        request.messenger_id,
        request.bot_id,
        request.encrypted_token,
        request.asked_at,
        request.expires_at,
    )


def phone_request_from(row: Row) -> PhoneRequest:
    """Return the request of a row of `user_sql.READ_PHONE_REQUEST` and its kin."""
    return PhoneRequest(SessionKey(row[0], row[1]), *row[2:])


def delivery_from(row: Row, leased_until: int) -> Delivery:
    """Return the delivery of a row of `delivery_sql.CLAIM_DELIVERY` and its kin."""
    event_id, event_type, project_id, encrypted_body, created_at, attempts, schedule_start, *rest = row
    event = Event(event_id, event_type, project_id, encrypted_body, created_at)
    developer_id, webhook_url, *secrets, failing_since = rest
    stage, fails = attempts - schedule_start, failing_since is not None
    encrypted = EncryptedWebhookSecrets(*secrets)
    return Delivery(event, developer_id, webhook_url, encrypted, attempts + 1, stage, leased_until, fails)


def finish_values(delivery: Delivery, attempt: Attempt, state: DeliveryState, due_at: int) -> tuple[Any, ...]:
    """Return the values of `delivery_sql.FINISH_ATTEMPT`."""
    finished_at = None if state == "due" else attempt.started_at + attempt.duration
    return (state, due_at, finished_at, delivery.event.id, delivery.leased_until)


def attempt_values(event_id: str, attempt: Attempt) -> tuple[Any, ...]:
    """Return the values of `delivery_sql.ADD_ATTEMPT`."""
    return (
        event_id,
        attempt.number,
        attempt.started_at,
        attempt.duration,
        attempt.status,
        attempt.error,
        attempt.encrypted_answer,
    )


def recorded_values(event: Event, attempt: Attempt, state: DeliveryState) -> tuple[Any, ...]:
    """Return the values of `delivery_sql.RECORD_DELIVERY`."""
    finished_at = attempt.started_at + attempt.duration
    return (event.id, event.type, event.encrypted_body, event.created_at, state, finished_at, event.project_id)


def delivery_record_from(row: Row, attempts: Iterable[Row]) -> DeliveryRecord:
    """Return the record of a row of `READ_DELIVERY` or its kin, with rows of `READ_ATTEMPTS`, latest first."""
    values = (*row, tuple(Attempt(*each) for each in attempts)[::-1])
    return DeliveryRecord(*values)
