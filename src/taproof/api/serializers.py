"""Turn what the services return into the answers of the developer API. What is not named is not shown."""

from taproof.api import project_fields, schemas
from taproof.core.accounts import AccessToken, Developer
from taproof.core.attempt_errors import attempt_error, attempt_sentence
from taproof.core.clock import iso8601, iso_date
from taproof.core.deliveries import Attempt
from taproof.core.model import Project, Session
from taproof.service import serializers
from taproof.service.analytics import Analytics
from taproof.service.deliveries import SeenDelivery
from taproof.service.developers import CreatedAccessToken
from taproof.service.plans import Usage
from taproof.service.projects import ProjectSecrets, Rotation
from taproof.service.serializers import time_or_none


def account(developer: Developer) -> schemas.AccountAnswer:
    """Return a developer account."""
    return schemas.AccountAnswer(**serializers.account(developer))


def own_account(developer: Developer, usage: Usage) -> schemas.OwnAccountAnswer:
    """Return a developer account to its own developer."""
    shown = schemas.UsageAnswer(
        projects=usage.projects,
        projects_limit=usage.projects_limit,
        sign_ins_this_month=usage.sign_ins_this_month,
        sign_ins_limit=usage.sign_ins_limit,
    )
    return schemas.OwnAccountAnswer(**serializers.account(developer), usage=shown)


def project(found: Project) -> project_fields.ProjectAnswer:
    """Return a project without its secrets."""
    return project_fields.ProjectAnswer(**serializers.project(found))


def created_project(created: Project, new: ProjectSecrets) -> project_fields.CreatedProjectAnswer:
    """Return a new project with its secrets."""
    return project_fields.CreatedProjectAnswer(**serializers.created_project(created, new))


def secrets(new: ProjectSecrets) -> project_fields.SecretsAnswer:
    """Return the new secrets of a project."""
    return project_fields.SecretsAnswer(secret_key=new.secret_key, webhook_secret=new.webhook_secret)


def rotation(found: Rotation) -> project_fields.RotationAnswer:
    """Return the webhook secret, and during a rotation the next one."""
    return project_fields.RotationAnswer(
        webhook_secret=found.webhook_secret,
        next_webhook_secret=found.next_webhook_secret,
        promoted_at=time_or_none(found.promoted_at),
    )


def session(found: Session) -> schemas.SessionAnswer:
    """Return a session: the nine fields of service-spec.md, when it was reported, and the phone number if any."""
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
        confirmed_at=time_or_none(found.confirmed_at),
        reported_at=time_or_none(found.reported_at),
    )


def delivery(found: SeenDelivery) -> schemas.DeliveryAnswer:
    """Return a delivery."""
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
        finished_at=time_or_none(record.finished_at),
        interrupted_attempts=record.interrupted,
        attempts=[_attempt(*each) for each in zip(record.attempts, found.answers, strict=True)],
    )


def _attempt(found: Attempt, answer: str | None) -> schemas.AttemptAnswer:
    return schemas.AttemptAnswer(
        number=found.number,
        started_at=iso8601(found.started_at),
        duration_ms=found.duration,
        status=found.status,
        error=attempt_sentence(found.status, found.error),
        error_code=attempt_error(found.status, found.error),
        answer=answer,
    )


def analytics(found: Analytics) -> schemas.AnalyticsAnswer:
    """Return analytics."""
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
    """Return an access token without its plaintext."""
    return schemas.AccessTokenAnswer(**serializers.access_token(found))


def created_access_token(created: CreatedAccessToken) -> schemas.CreatedAccessTokenAnswer:
    """Return a new access token with its plaintext."""
    return schemas.CreatedAccessTokenAnswer(**serializers.created_access_token(created))
