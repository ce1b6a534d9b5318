"""Converts the models of `core/` to statement values, and rows to models. All drivers share it.

A statement names its columns in the order of the model's fields. Flags are stored as 0 and 1.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from inspect import signature
from operator import attrgetter
from typing import Any, Final, TypeVar

from taproof.contract.delivery import DeliveryState
from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, Developer, Invitation, MemberInvitation
from taproof.core.deliveries import Attempt, Delivery, DeliveryRecord, Event
from taproof.core.errors import InvalidAccessToken, SignedOut, TaproofError
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import ClientChanges, OidcClient, SignInClient
from taproof.core.oidc.groups import NO_GROUPS, GroupRow, Groups, groups_from
from taproof.core.page_cursor import PageCursor
from taproof.core.project_texts import dump_texts, load_texts
from taproof.core.projects import PROJECT_FLAGS, EncryptedWebhookSecrets, Project, ProjectChanges
from taproof.core.prompts import PhoneRequest
from taproof.core.rights import read_scopes, scopes_text
from taproof.core.session_state import visible_status
from taproof.core.sessions import (
    ConsumedSession,
    ExpiredSession,
    NewSession,
    PromptDetails,
    ReturningUser,
    Session,
    SessionKey,
)

Row = Sequence[Any]
Values = tuple[Any, ...]
Model = TypeVar("Model")

_NEWEST: Final = PageCursor(2**62, "")


def page_start(before: PageCursor | None) -> PageCursor:
    """Return the position below which a newest-first page begins.

    PostgreSQL cannot store a NUL. All characters in ids sort after both NUL and the character that replaces it.
    """
    return _NEWEST if before is None else before._replace(id=before.id.replace("\0", "\1"))


def columns(rows: Iterable[Row]) -> list[Values]:
    """Return the columns of rows, for a statement that takes one array for each column."""
    return list(zip(*rows, strict=True))


def access_ended(entry: AuditEntry) -> TaproofError:
    """Return the error for a change whose acting credential has ended. The change is rolled back."""
    return SignedOut() if entry.via == "console" else InvalidAccessToken()


# ---- models from rows


def _reader(model: Callable[..., Model], **conversions: Callable[[Any], Any]) -> Callable[[Row], Model]:
    """Return a function that creates a model from a row that begins with the model's fields, in order.

    Trailing fields with defaults may be missing. `conversions` convert the values of fields; others are taken as they
    are.
    """
    fields = list(signature(model).parameters)
    converted = [(fields.index(name), convert) for name, convert in conversions.items()]

    def read(row: Row) -> Model:
        values = list(row[: len(fields)])
        for index, convert in converted:
            if index < len(values):
                values[index] = convert(values[index])
        return model(*values)

    return read


developer_from = _reader(Developer, is_owner=bool)
invitation_from = _reader(Invitation, is_owner=bool)
token_from = _reader(AccessToken, scopes=read_scopes)
console_session_from = _reader(ConsoleSession, scopes=read_scopes)
project_from = _reader(
    Project,
    **dict.fromkeys(PROJECT_FLAGS, bool),
    allowed_origins=lambda text: tuple(text.split()),
    webhook_events=lambda text: tuple(text.split()),
    return_urls=lambda text: tuple(text.split()),
    texts=load_texts,
)


def _groups_from_text(text: str | None) -> Groups:
    """Return the groups in a text with a line for each row, as `queries/oidc/clients.py` reads them."""
    if text is None:
        return NO_GROUPS
    rows = (line.split(" ", 2) for line in text.split("\n"))
    return groups_from(GroupRow(messenger_id, name, flag == "1") for flag, messenger_id, name in rows)


client_from = _reader(
    OidcClient,
    redirect_uris=lambda text: tuple(json.loads(text)),
    grant_types=lambda text: tuple(text.split()),
    groups=_groups_from_text,
    post_logout_redirect_uris=lambda text: tuple(json.loads(text)),
)


def _with_developer(
    model: Callable[..., Model], read: Callable[[Row], Model]
) -> Callable[[Row], tuple[Model, Developer]]:
    """Return a function that creates a model from the beginning of a row, and its developer from the rest."""
    width = len(signature(model).parameters)
    return lambda row: (read(row), developer_from(row[width:]))


token_and_developer_from = _with_developer(AccessToken, token_from)
session_and_developer_from = _with_developer(ConsoleSession, console_session_from)


def sign_in_client_from(row: Row) -> SignInClient:
    """Return the client and its project's data, from a row of `READ_CLIENT`."""
    *client, developer_id, project_name, is_active, public_access, same_device, texts, logo_url = row
    *client, version, secret_hash, devices_since = client
    return SignInClient(
        client=client_from(client),
        secret_hash=secret_hash,
        devices_since=devices_since,
        developer_id=developer_id,
        project_name=project_name,
        is_active=bool(is_active),
        public_access=bool(public_access),
        same_device=same_device,
        texts=load_texts(texts),
        logo_url=logo_url,
        version=version,
    )


def session_from(row: Row, now: int | None = None) -> Session:
    """Return the session of a row of `SESSION_COLUMNS`; with `now`, in the state that a reader sees at that time.

    Only `READ_SESSION` also returns the prompt's columns. While a session is pending, nobody has signed in, although it
    may already hold the identity of the user who has to return to the browser.
    """
    day, token_hash, session_id, project_id, project_name, status, created_at, expires_at, *rest = row
    opened_at, opener_id, confirmed_at, cancelled_at, used_at, *rest = rest
    messenger_id, name, username, phone, reported_at, withdrawn, *of_prompt = rest
    is_returning = status == "pending" and confirmed_at is not None
    has_identity = messenger_id is not None and not is_returning
    identity = MessengerIdentity(messenger_id, name, username) if has_identity else None
    prompt = None
    if of_prompt:
        bot_id, context, code, choices, collect_phone, phone_required, return_url, *rest = of_prompt
        return_required, texts, is_blocked = rest
        prompt = PromptDetails(
            bot_id=bot_id,
            context=context,
            match_code=code,
            match_choices=choices,
            collect_phone=bool(collect_phone),
            phone_required=bool(phone_required),
            return_url=return_url,
            return_required=bool(return_required),
            texts=texts,
            is_returning=is_returning,
            is_blocked=bool(is_blocked),
        )
    return Session(
        key=SessionKey(day, token_hash),
        id=session_id,
        project_id=project_id,
        project_name=project_name,
        status=status if now is None else visible_status(status, expires_at, now),
        created_at=created_at,
        expires_at=expires_at,
        opened_at=opened_at,
        opener_id=opener_id,
        confirmed_at=None if is_returning else confirmed_at,
        cancelled_at=cancelled_at,
        used_at=used_at,
        identity=identity,
        encrypted_phone=None if is_returning else phone,
        reported_at=reported_at,
        withdrawn=bool(withdrawn),
        prompt=prompt,
    )


def expired_session_from(row: Row) -> ExpiredSession:
    """Return the session of a row of `EXPIRE_SESSIONS`."""
    day, token_hash, *rest = row
    return ExpiredSession(SessionKey(day, token_hash), *rest)


def consumed_from(row: Row) -> ConsumedSession:
    """Return the consumed session of a row of `CONSUME_SESSION` or `REREAD_SESSION`."""
    project_id, messenger_id, name, username, confirmed_at, secret, next_secret, next_at, *rest = row
    secrets = EncryptedWebhookSecrets(secret, next_secret, next_at)
    return ConsumedSession(project_id, MessengerIdentity(messenger_id, name, username), confirmed_at, secrets, *rest)


def returning_user_from(row: Row) -> ReturningUser:
    """Return the user of a row of `READ_RETURNING_USER`."""
    session_id, messenger_id, name, username, *rest = row
    return ReturningUser(session_id, MessengerIdentity(messenger_id, name, username), *rest)


def phone_request_from(row: Row) -> PhoneRequest:
    """Return the request of a row of `READ_PHONE_REQUEST` or a similar statement."""
    day, token_hash, *rest = row
    return PhoneRequest(SessionKey(day, token_hash), *rest)


def delivery_from(row: Row, leased_until: int) -> Delivery:
    """Return the delivery of a row of `CLAIM_DELIVERY` or a similar statement."""
    event_id, event_type, project_id, encrypted_body, created_at, attempts, schedule_start, *rest = row
    event = Event(event_id, event_type, project_id, encrypted_body, created_at)
    developer_id, webhook_url, *secrets, failing_since = rest
    return Delivery(
        event=event,
        developer_id=developer_id,
        webhook_url=webhook_url,
        webhook_secrets=EncryptedWebhookSecrets(*secrets),
        attempt=attempts + 1,
        stage=attempts - schedule_start,
        leased_until=leased_until,
        endpoint_fails=failing_since is not None,
    )


def with_attempts(record: DeliveryRecord, latest_first: Iterable[Row]) -> DeliveryRecord:
    """Return a delivery with its attempts, given as rows of `READ_ATTEMPTS`."""
    return replace(record, attempts=tuple(Attempt(*row) for row in latest_first)[::-1])


# ---- values of statements, from models


def _fields(names: str) -> Callable[[Any], Values]:
    """Return a function that returns these fields of a model."""
    return attrgetter(*names.split())


entry_values = _fields("id developer_id created_at action actor via via_id address subject details project_id")
"""The values of `ADD_AUDIT_ENTRY`."""
identity_values = _fields("messenger_id messenger_name messenger_username")
"""The values of an identity in `CONFIRM_SESSION`."""
event_values = _fields("id type encrypted_body created_at project_id")
"""The values of `RECORD_EVENT`, without the id of its session."""
_developer_rest = _fields("plan created_at is_owner messenger_id messenger_name")
_token_rest = _fields("created_at expires_at")
_invitation_rest = _fields("email plan is_owner developer_id invited_by created_at expires_at inviter_id sign_in")
_member_invitation_rest = _fields("role created_at expires_at invited_by inviter_id access_token_id sign_in")
_console_session_rest = _fields("developer_id created_at last_seen_at access_token_id address user_agent messenger_id")
_project_rest = _fields("secret_key_preview encrypted_webhook_secret webhook_url created_at " + " ".join(PROJECT_FLAGS))
_client_settings = _fields("auth_method signing_alg email id_token_lifetime")
_change_flags = _fields(" ".join(PROJECT_FLAGS))
_new_session = _fields(
    "id created_at expires_at code_challenge bot_id context match_code match_choices return_url project_id"
)
_phone_request = _fields("session_id messenger_id bot_id encrypted_token asked_at expires_at")
_attempt = _fields("number started_at duration status error encrypted_answer")


def developer_values(developer: Developer) -> Values:
    """Return the values of `CREATE_DEVELOPER`."""
    return (developer.id, developer.email, developer.email.lower(), *_developer_rest(developer))


def token_values(token: AccessToken, token_hash: bytes) -> Values:
    """Return the values of `CREATE_ACCESS_TOKEN`, without the limit."""
    named = (token.id, token.developer_id, token.name, token.preview)
    return (*named, token_hash, *_token_rest(token), scopes_text(token.scopes), token.parent_id, token.sign_in)


def invitation_values(invitation: Invitation, code_hash: bytes) -> Values:
    """Return the values of `CREATE_INVITATION`."""
    return (invitation.id, code_hash, *_invitation_rest(invitation))


def member_invitation_values(invitation: MemberInvitation, code_hash: bytes) -> Values:
    """Return the values of `CREATE_MEMBER_INVITATION`, without the limit."""
    return (invitation.id, invitation.project_id, code_hash, *_member_invitation_rest(invitation))


def console_session_values(session: ConsoleSession, token_hash: bytes) -> Values:
    """Return the values of `CREATE_CONSOLE_SESSION`."""
    rights = (scopes_text(session.scopes), session.expires_at, session.sign_in)
    return (session.id, token_hash, *_console_session_rest(session), *rights)


def project_values(project: Project, secret_key_hash: bytes) -> Values:
    """Return the values of `CREATE_PROJECT`, without the limit."""
    named = (project.id, project.developer_id, project.name)
    lists = map(" ".join, (project.allowed_origins, project.webhook_events, project.return_urls))
    own = (dump_texts(project.texts), project.logo_url)
    return (*named, secret_key_hash, *_project_rest(project), *lists, project.same_device, *own)


def change_values(changes: ProjectChanges) -> Values:
    """Return the first values of `UPDATE_PROJECT`."""
    lists = (changes.allowed_origins, changes.webhook_events, changes.return_urls)
    joined = (None if each is None else " ".join(each) for each in lists)
    own = (None if changes.texts is None else dump_texts(changes.texts), changes.logo_url)
    return (changes.name, changes.webhook_url, *_change_flags(changes), *joined, changes.same_device, *own)


def client_values(client: OidcClient) -> Values:
    """Return the values of `CREATE_CLIENT`, without the secret's hash and the limit."""
    named = (client.id, client.project_id, client.name, json.dumps(client.redirect_uris), *_client_settings(client))
    logout = (json.dumps(client.post_logout_redirect_uris), client.backchannel_logout_uri)
    return (*named, " ".join(client.grant_types), client.secret_preview, client.created_at, *logout)


def client_change_values(changes: ClientChanges) -> Values:
    """Return the first values of `UPDATE_CLIENT`."""
    uris = None if changes.redirect_uris is None else json.dumps(changes.redirect_uris)
    grants = None if changes.grant_types is None else " ".join(changes.grant_types)
    ends = changes.post_logout_redirect_uris
    logout = (None if ends is None else json.dumps(ends), changes.backchannel_logout_uri)
    return (changes.name, uris, *_client_settings(changes), grants, *logout)


def new_session_values(session: NewSession, *, public: bool) -> Values:
    """Return the values of `CREATE_SESSION`."""
    return (*session.key, *_new_session(session), public)


def phone_request_values(request: PhoneRequest) -> Values:
    """Return the values of `ASK_FOR_PHONE`."""
    return (*request.key, *_phone_request(request))


def finish_values(delivery: Delivery, attempt: Attempt, state: DeliveryState, due_at: int) -> Values:
    """Return the values of `FINISH_ATTEMPT`."""
    finished_at = None if state == "due" else attempt.started_at + attempt.duration
    return (state, due_at, finished_at, delivery.event.id, delivery.leased_until)


def attempt_values(event_id: str, attempt: Attempt) -> Values:
    """Return the values of `ADD_ATTEMPT`."""
    return (event_id, *_attempt(attempt))


def recorded_values(event: Event, attempt: Attempt, state: DeliveryState) -> Values:
    """Return the values of `RECORD_DELIVERY`."""
    finished_at = attempt.started_at + attempt.duration
    return (event.id, event.type, event.encrypted_body, event.created_at, state, finished_at, event.project_id)
