"""The calls to the developer endpoints, `/api/v1/dev/*`, named after their operations in the API reference.

The clients have methods with the same names, parameters and docstrings, except for `service`, which the client passes.
`oidc_client_calls.py` has the calls for OpenID Connect clients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, Literal, TypeVar, Unpack
from urllib.parse import urlencode

from taproof.contract.access_token import AccessScope, AccessToken, CreatedAccessToken
from taproof.contract.account import Account
from taproof.contract.analytics import Analytics
from taproof.contract.audit import AuditEntry
from taproof.contract.delivery import Delivery
from taproof.contract.project import (
    CreatedProject,
    Project,
    ProjectSecrets,
    ProjectSettings,
    ProjectUpdate,
    WebhookSecret,
)
from taproof.contract.session import Session
from taproof.sdk.api_errors import UnexpectedAnswer
from taproof.sdk.developer_api import ask_developer_api, given_only, path_id, read_list, read_one, sent_settings
from taproof.sdk.exchange import ANSWER_LIMIT, Call, Service

T = TypeVar("T")

_PROJECTS_LIMIT: Final = 64 * ANSWER_LIMIT
"""Maximum size of the list of projects, in bytes: there can be 2,000, each with lists of URLs and texts."""
_DELIVERIES_LIMIT: Final = 16 * ANSWER_LIMIT
"""Maximum size of a page of deliveries, in bytes: each has up to 50 attempts, and each attempt quotes up to 1 KiB."""


def read_account(service: Service) -> Call[Account]:
    """Return the account that the access token belongs to. Use this also to check whether the token works."""
    return read_one(service, Account, "GET", "/me")


def list_projects(service: Service) -> Call[list[Project]]:
    """Return all of your projects, oldest first."""
    answer = yield from ask_developer_api(service, "GET", "/projects", answer_limit=_PROJECTS_LIMIT)
    return read_list(Project, answer, "projects")


def create_project(service: Service, name: str, **settings: Unpack[ProjectSettings]) -> Call[CreatedProject]:
    """Create a project. Store its `secret_key`: it is shown only once.

    Settings that are omitted or None have their defaults.

    Args:
        name: the name that users see in the messenger, up to 100 characters.
        settings: see `ProjectSettings`.
    """
    body = {"name": name, **sent_settings(ProjectSettings, settings)}
    return read_one(service, CreatedProject, "POST", "/projects", body)


def read_project(service: Service, project_id: str) -> Call[Project]:
    """Return one project."""
    return read_one(service, Project, "GET", f"/projects/{path_id(project_id)}")


def update_project(service: Service, project_id: str, **settings: Unpack[ProjectUpdate]) -> Call[Project]:
    """Change a project. Settings that are omitted or None are not changed.

    A `webhook_url` of "" removes the webhook, a `bot_token` of "" removes the project's own bot, and `allowed_origins`
    of () allows all sites again.

    Args:
        project_id: the project.
        settings: see `ProjectUpdate`.
    """
    return read_one(
        service, Project, "PATCH", f"/projects/{path_id(project_id)}", sent_settings(ProjectUpdate, settings)
    )


def delete_project(service: Service, project_id: str) -> Call[None]:
    """Delete a project with its sessions and analytics. This cannot be undone."""
    yield from ask_developer_api(service, "DELETE", f"/projects/{path_id(project_id)}")


def regenerate_secrets(service: Service, project_id: str) -> Call[ProjectSecrets]:
    """Replace the secret key and the webhook secret. The old ones stop working immediately."""
    return read_one(service, ProjectSecrets, "POST", f"/projects/{path_id(project_id)}/regenerate")


def read_webhook_secret(service: Service, project_id: str) -> Call[WebhookSecret]:
    """Return the webhook secret, and the next one during a rotation."""
    return read_one(service, WebhookSecret, "GET", f"/projects/{path_id(project_id)}/webhook-secret")


def rotate_webhook_secret(service: Service, project_id: str, *, overlap_hours: int = 24) -> Call[WebhookSecret]:
    """Create the next webhook secret, which replaces the current one after `overlap_hours`."""
    path = f"/projects/{path_id(project_id)}/webhook-secret/rotate"
    return read_one(service, WebhookSecret, "POST", path, {"overlap_hours": overlap_hours})


def promote_webhook_secret(service: Service, project_id: str) -> Call[WebhookSecret]:
    """End a rotation now: the next webhook secret replaces the current one."""
    return read_one(service, WebhookSecret, "POST", f"/projects/{path_id(project_id)}/webhook-secret/promote")


def send_webhook_test(service: Service, project_id: str, *, event: str = "webhook.test") -> Call[Delivery]:
    """Send one test event to the webhook URL, and return the result within 10 seconds.

    Args:
        project_id: the project.
        event: the type of the event. Any other type than "webhook.test" has made-up values, and `test` is true.
    """
    return read_one(service, Delivery, "POST", f"/projects/{path_id(project_id)}/webhook-test", {"event": event})


def read_delivery(service: Service, delivery_id: str) -> Call[Delivery]:
    """Return one webhook delivery with its latest attempts."""
    return read_one(service, Delivery, "GET", f"/deliveries/{path_id(delivery_id)}")


def resend_delivery(service: Service, delivery_id: str) -> Call[Delivery]:
    """Send an event again immediately, whatever its status. Failed attempts are retried as for a new event."""
    return read_one(service, Delivery, "POST", f"/deliveries/{path_id(delivery_id)}/resend")


def read_session(service: Service, session_id: str) -> Call[Session]:
    """Return one session."""
    return read_one(service, Session, "GET", f"/sessions/{path_id(session_id)}")


def read_analytics(
    service: Service, *, days: Literal[7, 30, 90] = 30, project_id: str | None = None
) -> Call[Analytics]:
    """Return analytics for the last `days` UTC days, for one project or all: totals, daily numbers and the funnel."""
    path = _with_query("/analytics", {"days": days, "project_id": project_id})
    return read_one(service, Analytics, "GET", path)


def list_access_tokens(service: Service) -> Call[list[AccessToken]]:
    """Return your access tokens, newest first."""
    return read_list(AccessToken, (yield from ask_developer_api(service, "GET", "/tokens")), "tokens")


def create_access_token(
    service: Service,
    name: str,
    *,
    expires_at: datetime | None = None,
    scopes: Sequence[AccessScope] | None = None,
) -> Call[CreatedAccessToken]:
    """Create another access token for your account. Store its `access_token`: it is shown only once.

    The new token cannot have more scopes than the client's token or expire later.

    Args:
        name: a name that describes its purpose.
        expires_at: the time of expiry, with a time zone; by default, the same as the client's token.
        scopes: what the token can do; by default, the same as the client's token.
    """
    given = None if scopes is None else list(scopes)
    body = given_only({"name": name, "expires_at": _written("expires_at", expires_at), "scopes": given})
    return read_one(service, CreatedAccessToken, "POST", "/tokens", body)


def delete_access_token(service: Service, token_id: str, *, keep_created: bool = False) -> Call[None]:
    """Revoke an access token and all tokens created with it, immediately and permanently.

    This can be the client's own token.

    Args:
        token_id: `tok_…`.
        keep_created: do not revoke the tokens created with it.
    """
    path = _with_query(f"/tokens/{path_id(token_id)}", {"created": "keep" if keep_created else None})
    yield from ask_developer_api(service, "DELETE", path)


# ---- paginated lists


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A paginated list; `page` reads one page."""

    service: Service
    path: str
    query: Mapping[str, Any]
    field: str
    result: type[T]
    answer_limit: int = ANSWER_LIMIT

    def page(self, cursor: str | None) -> Call[tuple[list[T], str | None]]:
        """Return a page's items and the next page's cursor; the cursor is None for the last page."""
        path = _with_query(self.path, {**self.query, "cursor": cursor})
        answer = yield from ask_developer_api(self.service, "GET", path, answer_limit=self.answer_limit)
        items, following = read_list(self.result, answer, self.field), answer.get("next_cursor")
        # With a repeated cursor, the iteration would never end.
        if not (following is None or isinstance(following, str)) or (cursor is not None and following == cursor):
            raise UnexpectedAnswer("The service's response has no valid next_cursor.", status=200)
        return items, following


def list_sessions(
    service: Service,
    *,
    project_id: str | None = None,
    status: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    messenger_id: str | None = None,
    page_size: int = 50,
) -> Pages[Session]:
    """Iterate over the sessions of your projects, newest first; pages are read as needed.

    Args:
        project_id: only sessions of this project.
        status: only sessions with this status.
        since: only sessions started at this time or later; a datetime with a time zone.
        until: only sessions started before this time; a datetime with a time zone.
        messenger_id: only sessions that this messenger account confirmed.
        page_size: number of items per request, 1 to 200.
    """
    query = {
        "project_id": project_id,
        "status": status,
        "since": _written("since", since),
        "until": _written("until", until),
        "messenger_id": messenger_id,
        "limit": page_size,
    }
    return Pages(service, "/sessions", query, "sessions", Session)


def list_deliveries(
    service: Service,
    project_id: str,
    *,
    event: str | None = None,
    status: str | None = None,
    page_size: int = 20,
) -> Pages[Delivery]:
    """Iterate over a project's webhook deliveries, newest event first; pages are read as needed.

    Args:
        project_id: the project.
        event: only events of this type, such as "auth.confirmed".
        status: only deliveries with this status, such as "failed".
        page_size: number of items per request, 1 to 200.
    """
    query = {"event": event, "status": status, "limit": page_size}
    return Pages(
        service, f"/projects/{path_id(project_id)}/deliveries", query, "deliveries", Delivery, _DELIVERIES_LIMIT
    )


def list_audit_entries(service: Service, project_id: str | None = None, *, page_size: int = 50) -> Pages[AuditEntry]:
    """Iterate over your audit log, newest entry first. With `project_id`, over what all developers did in a project."""
    given = given_only({"project_id": project_id})
    return Pages(service, "/audit", {**given, "limit": page_size}, "entries", AuditEntry)


# ---- arguments


def _with_query(path: str, given: Mapping[str, Any]) -> str:
    query = urlencode(given_only(given))
    return f"{path}?{query}" if query else path


def _written(name: str, moment: datetime | None) -> str | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"{name} must be a datetime with a time zone, such as datetime(2030, 1, 1, tzinfo=UTC).")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
