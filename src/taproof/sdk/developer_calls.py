"""The developer endpoints, `/api/v1/dev/*`: each once, under the name that its operation has in the API reference.

The clients carry their names, parameters and docstrings; `service` is given by the client.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, Literal, TypeVar
from urllib.parse import urlencode

from taproof.sdk.api_errors import UnexpectedAnswer
from taproof.sdk.exchange import ANSWER_LIMIT, Call, Request, Service
from taproof.sdk.reading import read
from taproof.sdk.results import (
    AccessToken,
    Account,
    Analytics,
    AuditEntry,
    CreatedAccessToken,
    CreatedProject,
    Delivery,
    Project,
    ProjectSecrets,
    Session,
    WebhookSecret,
)
from taproof.sdk.retries import ask

T = TypeVar("T")

_DELIVERIES_LIMIT: Final = 16 * ANSWER_LIMIT
"""Bytes of a page of deliveries: each tells of up to 50 attempts, and each of those quotes up to 1 KiB."""
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Erased:
    erased: bool


def read_account(service: Service) -> Call[Account]:
    """Return the account that the access token belongs to: a way to check that the token is valid."""
    return read(Account, (yield from _ask(service, "GET", "/me")))


def list_projects(service: Service) -> Call[list[Project]]:
    """Return all of your projects, oldest first."""
    return _list(Project, (yield from _ask(service, "GET", "/projects")), "projects")


def create_project(
    service: Service,
    name: str,
    *,
    webhook_url: str = "",
    public_access: bool = True,
    collect_phone: bool = False,
    phone_required: bool | None = None,
    show_context: bool | None = None,
    match_code: Literal["off", "on"] | None = None,
    allowed_origins: Collection[str] | None = None,
    bot_token: str | None = None,
) -> Call[CreatedProject]:
    """Create a project. Keep its `secret_key`: it is shown this once.

    What is None is not sent. Older services refuse whatever comes after `collect_phone`.

    Args:
        service: given by the client.
        name: what users see in the messenger, up to 100 characters.
        webhook_url: an https:// address that receives webhooks; "" for none.
        public_access: whether browsers may start sign-ins with nothing but the project's id.
        collect_phone: whether users are asked for their number; on the pro and business plans only.
        phone_required: whether nobody is signed in who does not give it; True unless given.
        show_context: whether the messenger shows where a sign-in was started; True unless given.
        match_code: "on" for a number that the page shows and the user must choose; "off" unless given.
        allowed_origins: the only sites whose pages may start sign-ins, such as "https://shop.example.com"; any unless
            given.
        bot_token: of a bot of the project's own, from @BotFather. It is not shown again.
    """
    body = {
        "name": name,
        "webhook_url": webhook_url,
        "public_access": public_access,
        "collect_phone": collect_phone,
        "phone_required": phone_required,
        "show_context": show_context,
        "match_code": match_code,
        "allowed_origins": _origins(allowed_origins),
        "bot_token": bot_token,
    }
    return read(CreatedProject, (yield from _ask(service, "POST", "/projects", _present(body))))


def read_project(service: Service, project_id: str) -> Call[Project]:
    """Return one project."""
    return read(Project, (yield from _ask(service, "GET", f"/projects/{_id(project_id)}")))


def update_project(
    service: Service,
    project_id: str,
    *,
    name: str | None = None,
    webhook_url: str | None = None,
    is_active: bool | None = None,
    public_access: bool | None = None,
    collect_phone: bool | None = None,
    phone_required: bool | None = None,
    show_context: bool | None = None,
    match_code: Literal["off", "on"] | None = None,
    allowed_origins: Collection[str] | None = None,
    bot_token: str | None = None,
) -> Call[Project]:
    """Change a project. What is left out stays as it is; what each one means, see `create_project`.

    A `webhook_url` of "" removes the webhook, a `bot_token` of "" the project's own bot, and `allowed_origins` of ()
    lets every site in again.
    """
    given = {
        "name": name,
        "webhook_url": webhook_url,
        "is_active": is_active,
        "public_access": public_access,
        "collect_phone": collect_phone,
        "phone_required": phone_required,
        "show_context": show_context,
        "match_code": match_code,
        "allowed_origins": _origins(allowed_origins),
        "bot_token": bot_token,
    }
    return read(Project, (yield from _ask(service, "PATCH", f"/projects/{_id(project_id)}", _present(given))))


def delete_project(service: Service, project_id: str) -> Call[None]:
    """Delete a project with its sessions and analytics. This cannot be undone."""
    yield from _ask(service, "DELETE", f"/projects/{_id(project_id)}")


def regenerate_secrets(service: Service, project_id: str) -> Call[ProjectSecrets]:
    """Replace the secret key and the webhook secret. The old ones stop working at once."""
    return read(ProjectSecrets, (yield from _ask(service, "POST", f"/projects/{_id(project_id)}/regenerate")))


def read_webhook_secret(service: Service, project_id: str) -> Call[WebhookSecret]:
    """Return the webhook secret, and during a rotation the next one."""
    return read(WebhookSecret, (yield from _ask(service, "GET", f"/projects/{_id(project_id)}/webhook-secret")))


def rotate_webhook_secret(service: Service, project_id: str, *, overlap_hours: int = 24) -> Call[WebhookSecret]:
    """Make the next webhook secret, which takes the place of the current one after so many hours."""
    path = f"/projects/{_id(project_id)}/webhook-secret/rotate"
    return read(WebhookSecret, (yield from _ask(service, "POST", path, {"overlap_hours": overlap_hours})))


def promote_webhook_secret(service: Service, project_id: str) -> Call[WebhookSecret]:
    """End a rotation now: the next webhook secret takes the place of the current one."""
    path = f"/projects/{_id(project_id)}/webhook-secret/promote"
    return read(WebhookSecret, (yield from _ask(service, "POST", path)))


def send_webhook_test(service: Service, project_id: str) -> Call[Delivery]:
    """Send an event of type webhook.test to the webhook URL, once, and return what came of it, within 10 seconds."""
    return read(Delivery, (yield from _ask(service, "POST", f"/projects/{_id(project_id)}/webhook-test")))


def read_delivery(service: Service, delivery_id: str) -> Call[Delivery]:
    """Return one webhook delivery with its latest attempts."""
    return read(Delivery, (yield from _ask(service, "GET", f"/deliveries/{_id(delivery_id)}")))


def resend_delivery(service: Service, delivery_id: str) -> Call[Delivery]:
    """Send an event again, now, and if need be with all retries, whatever became of it before."""
    return read(Delivery, (yield from _ask(service, "POST", f"/deliveries/{_id(delivery_id)}/resend")))


def read_session(service: Service, session_id: str) -> Call[Session]:
    """Return one session, as the list shows it."""
    return read(Session, (yield from _ask(service, "GET", f"/sessions/{_id(session_id)}")))


def erase_user(service: Service, messenger_id: str) -> Call[bool]:
    """Erase the sessions of a messenger account in your projects: its id, names and phone number, and their webhooks.

    This cannot be undone. Counts stay as they are. Returns whether there was anything to erase.
    """
    return read(_Erased, (yield from _ask(service, "DELETE", f"/users/{_id(messenger_id)}"))).erased


def read_analytics(
    service: Service, *, days: Literal[7, 30, 90] = 30, project_id: str | None = None
) -> Call[Analytics]:
    """Return what became of the sessions of the last UTC days, of one project or of all: totals, day by day, funnel."""
    path = _with_query("/analytics", {"days": days, "project_id": project_id})
    return read(Analytics, (yield from _ask(service, "GET", path)))


def list_access_tokens(service: Service) -> Call[list[AccessToken]]:
    """Return your access tokens, newest first."""
    return _list(AccessToken, (yield from _ask(service, "GET", "/tokens")), "tokens")


def create_access_token(
    service: Service,
    name: str,
    *,
    expires_at: datetime | None = None,
    scopes: Sequence[Literal["read", "write", "tokens"]] | None = None,
) -> Call[CreatedAccessToken]:
    """Create another access token for your account. Keep its `access_token`: it is shown this once.

    It never has more scopes than the client's token, and expires no later.

    Args:
        service: given by the client.
        name: what it is for.
        expires_at: from when on it is no longer valid, with its time zone; None: when the client's token expires.
        scopes: what it may do; None: what the client's token may do.
    """
    given = None if scopes is None else list(scopes)
    body = _present({"name": name, "expires_at": _written("expires_at", expires_at), "scopes": given})
    return read(CreatedAccessToken, (yield from _ask(service, "POST", "/tokens", body)))


def delete_access_token(service: Service, token_id: str, *, keep_created: bool = False) -> Call[None]:
    """Revoke an access token and all tokens that were created with it, at once and for good.

    It may be the one that the client has.

    Args:
        service: given by the client.
        token_id: `tok_…`.
        keep_created: leave the tokens that were created with it valid.
    """
    path = _with_query(f"/tokens/{_id(token_id)}", {"created": "keep" if keep_created else None})
    yield from _ask(service, "DELETE", path)


# ---- lists that come page by page


@dataclass(frozen=True, slots=True)
class Pages(Generic[T]):
    """A list of the service's; `page` reads one page of it."""

    service: Service
    path: str
    query: Mapping[str, Any]
    field: str
    result: type[T]
    answer_limit: int = ANSWER_LIMIT

    def page(self, cursor: str | None) -> Call[tuple[list[T], str | None]]:
        """Return a page's items, and the cursor of the next one, None after the last."""
        path = _with_query(self.path, {**self.query, "cursor": cursor})
        answer = yield from _ask(self.service, "GET", path, answer_limit=self.answer_limit)
        items, following = _list(self.result, answer, self.field), answer.get("next_cursor")
        # The same cursor again would never end.
        if not (following is None or isinstance(following, str)) or (cursor is not None and following == cursor):
            raise UnexpectedAnswer("The service's answer has no next_cursor that leads on.", status=200)
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
    """Go through sessions across your projects, newest first; pages are read as they are needed.

    Args:
        service: given by the client.
        project_id: one project only.
        status: sessions in this status only.
        since: those started at this time or later, with its time zone.
        until: those started before this time.
        messenger_id: those that this messenger account confirmed.
        page_size: how many one request reads, 1 to 200.
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
    """Go through a project's webhook deliveries, newest event first; pages are read as they are needed.

    Args:
        service: given by the client.
        project_id: the project.
        event: events of this type only, such as "auth.confirmed".
        status: deliveries in this status only, such as "failed".
        page_size: how many one request reads, 1 to 200.
    """
    query = {"event": event, "status": status, "limit": page_size}
    return Pages(service, f"/projects/{_id(project_id)}/deliveries", query, "deliveries", Delivery, _DELIVERIES_LIMIT)


def list_audit_entries(service: Service, *, page_size: int = 50) -> Pages[AuditEntry]:
    """Go through your audit log, newest entry first: who changed what, when, and from where."""
    return Pages(service, "/audit", {"limit": page_size}, "entries", AuditEntry)


# ---- what they share


def _ask(
    service: Service,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    answer_limit: int = ANSWER_LIMIT,
) -> Call[dict[str, Any]]:
    if service.access_token is None:
        raise ValueError("Give the client access_token (tap_…): the developer API needs it.")
    request = Request(
        method=method,
        path=f"/api/v1/dev{path}",
        bearer=service.access_token,
        body=body,
        repeatable=method == "GET",
        answer_limit=answer_limit,
    )
    return (yield from ask(service, request))


def _list(result: type[T], answer: Mapping[str, Any], field: str) -> list[T]:
    items = answer.get(field)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise UnexpectedAnswer(f"The service's answer has no list of {field}.", status=200)
    return [read(result, item) for item in items]


def _present(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _origins(given: Collection[str] | None) -> list[str] | None:
    if isinstance(given, str):
        raise TypeError('allowed_origins must be a list, such as ["https://shop.example.com"].')
    return None if given is None else list(given)


def _with_query(path: str, given: Mapping[str, Any]) -> str:
    query = urlencode(_present(given))
    return f"{path}?{query}" if query else path


def _id(value: str) -> str:
    # Part of a path: nothing in it may lead to another one.
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise ValueError("An id is letters, digits and _ only, such as proj_…, evt_…, sess_… or a messenger_id.")
    return value


def _written(name: str, moment: datetime | None) -> str | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"{name} must be a datetime with its time zone, such as datetime(2030, 1, 1, tzinfo=UTC).")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
