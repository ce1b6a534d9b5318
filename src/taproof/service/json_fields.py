"""Convert the services' results to JSON values for the API and `--json`. Only the fields listed here are shown."""

from typing import Any, Final

from taproof.core.accounts import AccessToken, Developer, Member, MemberInvitation
from taproof.core.clock import iso8601
from taproof.core.counts import ProjectUser
from taproof.core.model import PROJECT_FLAGS, Project, TurnOffReason
from taproof.core.oidc.clients import OidcClient
from taproof.service.developers import CreatedAccessToken
from taproof.service.members import CreatedMemberInvitation
from taproof.service.projects import ProjectSecrets

_TURNED_OFF: Final[dict[TurnOffReason, str]] = {
    "gone": "The receiver responded with 410 Gone, so no more events are sent to it. To resume, set webhook_url again.",
    "failing": "Every attempt failed for five days, so no more events are sent to the receiver. Check it, then set"
    " webhook_url again.",
}


def time_or_none(instant: int | None) -> str | None:
    """Return a time in ms since the epoch as ISO 8601 text; None stays None."""
    return None if instant is None else iso8601(instant)


def account(developer: Developer) -> dict[str, Any]:
    """Return a developer account."""
    return {
        "id": developer.id,
        "email": developer.email,
        "created_at": iso8601(developer.created_at),
        "plan": developer.plan,
    }


def project(found: Project) -> dict[str, Any]:
    """Return a project without its secrets."""
    return {
        "id": found.id,
        "name": found.name,
        "secret_key_preview": found.secret_key_preview,
        "webhook_url": found.webhook_url,
        "webhook_events": list(found.webhook_events),
        **{flag: getattr(found, flag) for flag in PROJECT_FLAGS},
        "match_code": "on" if found.match_code else "off",
        "allowed_origins": list(found.allowed_origins),
        "same_device": found.same_device,
        "return_urls": list(found.return_urls),
        "texts": found.texts,
        "logo_url": found.logo_url,
        "created_at": iso8601(found.created_at),
        "sessions_count": found.sessions_count,
        "confirmed_count": found.confirmed_count,
        "webhook_failing_since": time_or_none(found.webhook_failing_since),
        "webhook_turned_off": _turned_off(found),
        "bot_username": found.bot_username,
        "bot_broken_at": time_or_none(found.bot_broken_at),
    }


def created_project(created: Project, secrets: ProjectSecrets) -> dict[str, Any]:
    """Return a new project with its secrets."""
    return {**project(created), "webhook_secret": secrets.webhook_secret, "secret_key": secrets.secret_key}


def client(found: OidcClient) -> dict[str, Any]:
    """Return an OpenID Connect client without its secret."""
    return {
        "client_id": found.id,
        "name": found.name,
        "redirect_uris": list(found.redirect_uris),
        "auth_method": found.auth_method,
        "signing_alg": found.signing_alg,
        "email": found.email,
        "id_token_lifetime": found.id_token_lifetime,
        "grant_types": list(found.grant_types),
        "client_secret_preview": found.secret_preview,
        "created_at": iso8601(found.created_at),
    }


def client_with_secret(found: OidcClient, secret: str | None) -> dict[str, Any]:
    """Return an OpenID Connect client and, if it has a new one, its secret."""
    return client(found) | ({} if secret is None else {"client_secret": secret})


def member(found: Member) -> dict[str, Any]:
    """Return a member of a project."""
    return {
        "developer_id": found.developer_id,
        "email": found.email,
        "role": found.role,
        "joined_at": iso8601(found.created_at),
        "invited_by": found.invited_by,
    }


def member_invitation(found: MemberInvitation) -> dict[str, Any]:
    """Return an invitation to a project without its link."""
    return {
        "id": found.id,
        "role": found.role,
        "invited_by": found.invited_by,
        "created_at": iso8601(found.created_at),
        "expires_at": iso8601(found.expires_at),
    }


def created_member_invitation(created: CreatedMemberInvitation) -> dict[str, Any]:
    """Return a new invitation to a project with its link."""
    return {**member_invitation(created.invitation), "link": created.link}


def user(found: ProjectUser) -> dict[str, Any]:
    """Return a user of a project."""
    return {
        "messenger_id": found.messenger_id,
        "messenger_name": found.messenger_name,
        "messenger_username": found.messenger_username or None,
        "first_sign_in_at": iso8601(found.first_at),
        "last_sign_in_at": iso8601(found.last_at),
        "sign_ins": found.sign_ins,
        "reports": found.reports,
    }


def access_token(found: AccessToken) -> dict[str, Any]:
    """Return an access token without its plaintext."""
    return {
        "id": found.id,
        "name": found.name,
        "preview": found.preview,
        "created_at": iso8601(found.created_at),
        "last_used_at": time_or_none(found.last_used_at),
        "expires_at": time_or_none(found.expires_at),
        "scopes": list(found.scopes),
        "created_with": found.parent_id,
    }


def created_access_token(created: CreatedAccessToken) -> dict[str, Any]:
    """Return a new access token with its plaintext."""
    return {**access_token(created.token), "access_token": created.plaintext}


def _turned_off(found: Project) -> dict[str, Any] | None:
    # Once the project has a new webhook URL, the old one no longer matters.
    if found.webhook_url or found.webhook_off_at is None or found.webhook_off_reason is None:
        return None
    return {
        "url": found.webhook_off_url or "",
        "reason": found.webhook_off_reason,
        "at": iso8601(found.webhook_off_at),
        "explanation": _TURNED_OFF[found.webhook_off_reason],
    }
