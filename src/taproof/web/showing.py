"""Turns what the services return into what the developer API answers. What is not named here is not shown."""

from typing import Any

from taproof.core.clock import iso8601, iso_date
from taproof.core.model import AccessToken, Developer, Project, Session
from taproof.service.analytics import Analytics
from taproof.service.developers import CreatedAccessToken
from taproof.service.projects import ProjectSecrets
from taproof.web import schemas


def account(developer: Developer) -> schemas.AccountAnswer:
    """Show a developer account."""
    return schemas.AccountAnswer(
        id=developer.id, email=developer.email, created_at=iso8601(developer.created_at), plan=developer.plan
    )


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


def _project_fields(found: Project) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "secret_key_preview": found.secret_key_preview,
        "webhook_url": found.webhook_url,
        "is_active": found.is_active,
        "public_access": found.public_access,
        "collect_phone": found.collect_phone,
        "created_at": iso8601(found.created_at),
        "sessions_count": found.sessions_count,
        "confirmed_count": found.confirmed_count,
    }


def session(found: Session) -> schemas.SessionAnswer:
    """Show the nine fields of a session (service-spec.md, Session)."""
    identity = found.identity
    return schemas.SessionAnswer(
        id=found.id,
        project_id=found.project_id,
        project_name=found.project_name,
        messenger_id="" if identity is None else identity.messenger_id,
        messenger_name="" if identity is None else identity.messenger_name,
        messenger_username=None if identity is None else identity.messenger_username,
        status=found.status,
        created_at=iso8601(found.created_at),
        confirmed_at=_time(found.confirmed_at),
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
    }


def _time(instant: int | None) -> str | None:
    return None if instant is None else iso8601(instant)
