"""Turns what the services return into what the developer API answers. What is not named here is not shown."""

from typing import Any, Final

from taproof.api import schemas
from taproof.core.accounts import AccessToken, Developer
from taproof.core.attempt_errors import SENTENCES, attempt_error
from taproof.core.clock import iso8601, iso_date
from taproof.core.deliveries import Attempt
from taproof.core.model import Project, Session, TurnOffReason
from taproof.service.analytics import Analytics
from taproof.service.deliveries import SeenDelivery
from taproof.service.developers import CreatedAccessToken
from taproof.service.plans import Usage
from taproof.service.projects import ProjectSecrets, Rotation

_TURNED_OFF: Final[dict[TurnOffReason, str]] = {
    "gone": "The receiver answered 410 Gone, so nothing is sent there any more. Set webhook_url again to go on.",
    "failing": "For five days every attempt failed, so nothing is sent there any more. Check the receiver, then set"
    " webhook_url again.",
}
_OF_A_NEWER_RELEASE: Final = (
    "No answer came, for a reason that only a newer release of this service knows. Look again when its update is done."
)


def account(developer: Developer) -> schemas.AccountAnswer:
    """Show a developer account."""
    return schemas.AccountAnswer(
        id=developer.id, email=developer.email, created_at=iso8601(developer.created_at), plan=developer.plan
    )


def own_account(developer: Developer, usage: Usage) -> schemas.OwnAccountAnswer:
    """Show a developer account to its own developer."""
    shown = schemas.UsageAnswer(
        projects=usage.projects,
        projects_limit=usage.projects_limit,
        sign_ins_this_month=usage.sign_ins_this_month,
        sign_ins_limit=usage.sign_ins_limit,
    )
    return schemas.OwnAccountAnswer(**account(developer).model_dump(), usage=shown)


def project(found: Project) -> schemas.ProjectAnswer:
    """Show a project without its secrets."""
    return schemas.ProjectAnswer(**_project_fields(found))


def created_project(created: Project, new: ProjectSecrets) -> schemas.CreatedProjectAnswer:
    """Show a new project with its secrets."""
    return schemas.CreatedProjectAnswer(
        **_project_fields(created), secret_key=new.secret_key, webhook_secret=new.webhook_secret
    )


def secrets(new: ProjectSecrets) -> schemas.SecretsAnswer:
    """Show the new secrets of a project."""
    return schemas.SecretsAnswer(secret_key=new.secret_key, webhook_secret=new.webhook_secret)


def rotation(found: Rotation) -> schemas.RotationAnswer:
    """Show the webhook secret, and during a rotation the next one."""
    return schemas.RotationAnswer(
        webhook_secret=found.webhook_secret,
        next_webhook_secret=found.next_webhook_secret,
        promoted_at=_time(found.promoted_at),
    )


def _turned_off(found: Project) -> schemas.WebhookTurnedOffAnswer | None:
    # Whoever has set a webhook URL again need not read about the one before.
    if found.webhook_url or found.webhook_off_at is None or found.webhook_off_reason is None:
        return None
    return schemas.WebhookTurnedOffAnswer(
        url=found.webhook_off_url or "",
        reason=found.webhook_off_reason,
        at=iso8601(found.webhook_off_at),
        explanation=_TURNED_OFF[found.webhook_off_reason],
    )


def _project_fields(found: Project) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "secret_key_preview": found.secret_key_preview,
        "webhook_url": found.webhook_url,
        "is_active": found.is_active,
        "public_access": found.public_access,
        "collect_phone": found.collect_phone,
        "phone_required": found.phone_required,
        "show_context": found.show_context,
        "match_code": "on" if found.match_code else "off",
        "allowed_origins": list(found.allowed_origins),
        "created_at": iso8601(found.created_at),
        "sessions_count": found.sessions_count,
        "confirmed_count": found.confirmed_count,
        "webhook_failing_since": _time(found.webhook_failing_since),
        "webhook_turned_off": _turned_off(found),
        "bot_username": found.bot_username,
        "bot_broken_at": _time(found.bot_broken_at),
    }


def session(found: Session) -> schemas.SessionAnswer:
    """Show a session: the nine fields of service-spec.md, when it was reported, and the phone number if any."""
    identity = found.identity
    phone = None if identity is None else identity.messenger_phone
    return schemas.SessionAnswer(
        id=found.id,
        project_id=found.project_id,
        project_name=found.project_name,
        messenger_id="" if identity is None else identity.messenger_id,
        messenger_name="" if identity is None else identity.messenger_name,
        messenger_username=None if identity is None else identity.messenger_username,
        **({} if phone is None else {"messenger_phone": phone}),
        status=found.status,
        created_at=iso8601(found.created_at),
        confirmed_at=_time(found.confirmed_at),
        reported_at=_time(found.reported_at),
    )


def delivery(found: SeenDelivery) -> schemas.DeliveryAnswer:
    """Show a delivery."""
    record = found.record
    waits = record.state == "due" and not found.sending
    return schemas.DeliveryAnswer(
        id=record.event_id,
        event=record.type,
        project_id=record.project_id,
        session_id=record.session_id,
        status=record.state,
        created_at=iso8601(record.created_at),
        next_attempt_at=iso8601(record.due_at) if waits else None,
        sending=found.sending,
        finished_at=_time(record.finished_at),
        interrupted_attempts=record.interrupted,
        attempts=[_attempt(*each) for each in zip(record.attempts, found.answers, strict=True)],
    )


def _attempt(found: Attempt, answer: str | None) -> schemas.AttemptAnswer:
    code = attempt_error(found.status, found.error)
    error = None if code is None else SENTENCES[code]
    if code is None and found.error is not None:
        error = _OF_A_NEWER_RELEASE
    return schemas.AttemptAnswer(
        number=found.number,
        started_at=iso8601(found.started_at),
        duration_ms=found.duration,
        status=found.status,
        error=error,
        error_code=code,
        answer=answer,
    )


def analytics(found: Analytics) -> schemas.AnalyticsAnswer:
    """Show analytics."""
    return schemas.AnalyticsAnswer(
        total_sessions=found.totals["requested"],
        confirmed_sessions=found.totals["confirmed"],
        unique_users=found.unique_users,
        conversion_rate=found.conversion_rate,
        daily=[
            schemas.DayAnswer(
                date=iso_date(day.day),
                sessions=day.counts["requested"],
                opened=day.counts["opened"],
                confirmed=day.counts["confirmed"],
                cancelled=day.counts["cancelled"],
                expired=day.counts["expired"],
                unique_users=day.unique_users,
                reported=day.counts["reported"],
            )
            for day in found.daily
        ],
        funnel=schemas.FunnelAnswer(**found.totals),
        projects=[schemas.ProjectNameAnswer(id=project_id, name=name) for project_id, name in found.projects],
    )


def access_token(found: AccessToken) -> schemas.AccessTokenAnswer:
    """Show an access token without its plaintext."""
    return schemas.AccessTokenAnswer(**_access_token_fields(found))


def created_access_token(created: CreatedAccessToken) -> schemas.CreatedAccessTokenAnswer:
    """Show a new access token with its plaintext."""
    return schemas.CreatedAccessTokenAnswer(**_access_token_fields(created.token), access_token=created.plaintext)


def _access_token_fields(found: AccessToken) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "preview": found.preview,
        "created_at": iso8601(found.created_at),
        "last_used_at": _time(found.last_used_at),
        "expires_at": _time(found.expires_at),
        "scopes": list(found.scopes),
        "created_with": found.parent_id,
    }


def _time(instant: int | None) -> str | None:
    return None if instant is None else iso8601(instant)
