"""Convert the services' results to JSON values for the API and `--json`. Only the fields listed here are shown."""

import dataclasses
import functools
import json
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any, Final, cast, get_origin

from taproof.contract import access_token as contract_token
from taproof.contract import analytics as contract_analytics
from taproof.contract import audit as contract_audit
from taproof.contract import client as contract_client
from taproof.contract import delivery as contract_delivery
from taproof.contract import member as contract_member
from taproof.contract import project as contract
from taproof.contract import session as contract_session
from taproof.contract import user as contract_user
from taproof.contract.account import DeveloperAccount
from taproof.contract.analytics import AnalyticsDay
from taproof.contract.fields import described, required_kind
from taproof.contract.project import TurnOffReason, WebhookTurnedOff
from taproof.core.accounts import AccessToken, AuditEntry, Developer, Member
from taproof.core.attempt_errors import attempt_error, attempt_sentence
from taproof.core.clock import iso8601, iso_date
from taproof.core.counts import ProjectUser
from taproof.core.deliveries import Attempt
from taproof.core.oidc.clients import OidcClient
from taproof.core.oidc.grants import OidcGrant
from taproof.core.projects import Project
from taproof.core.sessions import Session
from taproof.service.analytics import Analytics
from taproof.service.deliveries import SeenDelivery
from taproof.service.developers import CreatedAccessToken
from taproof.service.projects import ProjectSecrets

_TURNED_OFF: Final[dict[TurnOffReason, str]] = {
    "gone": "The receiver responded with 410 Gone, so no more events are sent to it. To resume, set webhook_url again.",
    "failing": "Every attempt failed for five days, so no more events are sent to the receiver. Check it, then set"
    " webhook_url again.",
}
_NOBODY: Final = {"messenger_id": "", "messenger_name": "", "messenger_username": None, "messenger_phone": None}
"""The user of a session that nobody has confirmed."""


def shown(definition: type, found: Any, **values: Any) -> dict[str, Any]:
    """Return the fields of a definition in `contract/`, as JSON values.

    Args:
        definition: the dataclass. Only its fields are shown. A field whose default is None is left out if it is None.
        found: has the values as attributes of the same names; times are in ms since the epoch.
        values: the values of fields that have no such attribute, or another value there; they are converted as well.
    """
    answer = {}
    for name, convert, may_be_omitted in _conversions(definition):
        value = values[name] if name in values else getattr(found, name)
        if not may_be_omitted or value is not None:
            answer[name] = convert(value)
    return answer


@functools.cache
def _conversions(definition: Hashable) -> list[tuple[str, Callable[[Any], Any], bool]]:
    """Return the function for each field that converts its value to JSON, and whether the field may be left out."""

    def conversion(kind: Any) -> Callable[[Any], Any]:
        if required_kind(kind) is datetime:
            return lambda value: None if value is None else iso8601(value)
        return list if get_origin(kind) is tuple else lambda value: value

    kinds = described(cast("type", definition))
    fields = dataclasses.fields(cast("Any", definition))
    return [(each.name, conversion(kinds[each.name].kind), each.default is None) for each in fields]


def account(developer: Developer) -> dict[str, Any]:
    """Return a developer's account."""
    return shown(DeveloperAccount, developer)


def audit_entry(found: AuditEntry) -> dict[str, Any]:
    """Return an entry of the audit log."""
    return shown(contract_audit.AuditEntry, found, details=json.loads(found.details))


def project(found: Project) -> dict[str, Any]:
    """Return a project as one of its members sees it, without its secrets."""
    return shown(
        contract.Project,
        found,
        match_code="on" if found.match_code else "off",
        webhook_turned_off=_turned_off(found),
    )


def created_project(created: Project, secrets: ProjectSecrets) -> dict[str, Any]:
    """Return a new project with its secrets."""
    return {**project(created), "webhook_secret": secrets.webhook_secret, "secret_key": secrets.secret_key}


def client(found: OidcClient, secret: str | None = None) -> dict[str, Any]:
    """Return an OpenID Connect client and, if it has a new one, its secret."""
    return shown(
        contract_client.ChangedOidcClient,
        found,
        client_id=found.id,
        client_secret_preview=found.secret_preview,
        client_secret=secret,
        groups={name: list(ids) for name, ids in found.groups.members.items()},
        allowed_groups=found.groups.allowed,
    )


def grant(found: OidcGrant) -> dict[str, Any]:
    """Return a grant of a client."""
    return shown(
        contract_client.OidcGrant,
        found,
        messenger_username=found.messenger_username or None,
        scopes=found.scopes.split(),
        has_refresh_token=found.refresh_hash is not None,
        expires_at=found.idle_expires_at,
    )


def member(found: Member) -> dict[str, Any]:
    """Return a member of a project."""
    return shown(contract_member.Member, found, joined_at=found.created_at)


def session(found: Session) -> dict[str, Any]:
    """Return a session with the user who confirmed it, if any."""
    user = _NOBODY if found.identity is None else dataclasses.asdict(found.identity)
    return shown(contract_session.Session, found, **user)


def delivery(found: SeenDelivery) -> dict[str, Any]:
    """Return a webhook event with its attempts."""
    record = found.record
    return shown(
        contract_delivery.Delivery,
        record,
        id=record.event_id,
        event=record.type,
        status=record.state,
        next_attempt_at=record.due_at if record.state == "due" and not found.sending else None,
        sending=found.sending,
        interrupted_attempts=record.interrupted,
        attempts=[_attempt(*each) for each in zip(record.attempts, found.answers, strict=True)],
    )


def _attempt(found: Attempt, answer: str | None) -> dict[str, Any]:
    error, code = attempt_sentence(found.status, found.error), attempt_error(found.status, found.error)
    values = {"duration_ms": found.duration, "error": error, "error_code": code, "answer": answer}
    return shown(contract_delivery.DeliveryAttempt, found, **values)


def user(found: ProjectUser) -> dict[str, Any]:
    """Return a user of a project."""
    return shown(
        contract_user.ProjectUser,
        found,
        messenger_username=found.messenger_username or None,
        first_sign_in_at=found.first_at,
        last_sign_in_at=found.last_at,
    )


def access_token(found: AccessToken) -> dict[str, Any]:
    """Return an access token without its plaintext."""
    return shown(contract_token.AccessToken, found, created_with=found.parent_id)


def created_access_token(created: CreatedAccessToken) -> dict[str, Any]:
    """Return a new access token with its plaintext."""
    return {**access_token(created.token), "access_token": created.plaintext}


def analytics(found: Analytics) -> dict[str, Any]:
    """Return the counts of a window of days."""
    return shown(
        contract_analytics.Analytics,
        found,
        total_sessions=found.totals["requested"],
        confirmed_sessions=found.totals["confirmed"],
        daily=[
            shown(AnalyticsDay, each, date=iso_date(each.day), sessions=each.counts["requested"], **each.counts)
            for each in found.daily
        ],
        funnel=found.totals,
        projects=[{"id": project_id, "name": name} for project_id, name in found.projects],
    )


def _turned_off(found: Project) -> dict[str, Any] | None:
    # Once the project has a new webhook URL, the old one no longer matters.
    if found.webhook_url or found.webhook_off_at is None or found.webhook_off_reason is None:
        return None
    return shown(
        WebhookTurnedOff,
        None,
        url=found.webhook_off_url or "",
        reason=found.webhook_off_reason,
        at=found.webhook_off_at,
        explanation=_TURNED_OFF[found.webhook_off_reason],
    )
