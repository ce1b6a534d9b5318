"""The audit log page, which shows each entry in plain words."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import Access, Visitor
from taproof.console.account import browser_in_words
from taproof.console.rendering import PageRenderer
from taproof.contract.audit import AuditAction, Via
from taproof.core.accounts import AuditEntry
from taproof.service.audit import AuditLog
from taproof.service.developers import Developers
from taproof.service.projects import Projects

PAGE_SIZE: Final = 50
PHRASES: Final[Mapping[AuditAction, str]] = {
    "developer.created": "Created a developer account",
    "developer.invited": "Created an invitation",
    "developer.identity_bound": "Linked a messenger account",
    "developer.identity_unbound": "Unlinked a messenger account",
    "developer.shut_out": "Removed the access of a developer invited by a reported sign-in",
    "developer.removed": "Removed the developer's account",
    "invitation.revoked": "Revoked an invitation",
    "console.signed_in": "Signed in to the console",
    "console.signed_out": "Signed out of the console",
    "console.session_revoked": "Signed another browser out of the console",
    "console.signed_out_everywhere": "Signed out of the console everywhere",
    "access_token.created": "Created an access token",
    "access_token.revoked": "Revoked an access token",
    "project.created": "Created a project",
    "project.updated": "Changed a project's settings",
    "project.secrets_regenerated": "Replaced a project's secret key and webhook secret",
    "project.deleted": "Deleted a project",
    "member.invited": "Created an invitation to a project",
    "member.invitation_revoked": "Revoked an invitation to a project",
    "member.joined": "Joined a project",
    "member.role_changed": "Changed the role of a project's member",
    "member.removed": "Removed a member from a project",
    "client.created": "Created an OpenID Connect client",
    "client.updated": "Changed an OpenID Connect client",
    "client.secret_regenerated": "Replaced the secret of an OpenID Connect client",
    "client.deleted": "Deleted an OpenID Connect client",
    "client.grant_ended": "Signed a user out of an OpenID Connect client",
    "webhook_secret.rotated": "Started to rotate a project's webhook secret",
    "webhook_secret.promoted": "Finished rotating a project's webhook secret",
    "webhook_secret.revealed": "Viewed a project's webhook secret",
    "webhook.turned_off": "Turned off a project's webhook",
    "delivery.resent": "Sent a webhook again",
    "developer.plan_changed": "Changed the plan of the account",
    "signing_keys.replaced": "Replaced the keys that sign ID tokens",
    "user.erased": "Erased a user's data",
    "audit.purged": "Erased older entries of this log",
    "bot.set": "Set a project's own bot",
    "bot.removed": "Removed a project's own bot",
    "bot.broken": "Found that the messenger refuses the token of a project's bot",
}
_MEANS: Final[Mapping[Via, str]] = {
    "access_token": "Access token",
    "console": "Console",
    "login": "Login from a terminal",
    "invitation": "Invitation",
    "command_line": "Command line",
    "service": "Taproof itself",
}


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """An entry in words. `link` is the subject's page, or "" if there is none; `details` are labels with values."""

    entry: AuditEntry
    subject: str
    link: str
    details: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class AuditPages:
    """Shows the visitor's own audit log, and what all members did in a project."""

    access: Access
    pages: PageRenderer
    audit: AuditLog
    developers: Developers
    projects: Projects

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [Route("/console/audit", self.access.signed_in(self._show, across_projects=True), methods=["GET"])]

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        cursor = request.query_params.get("cursor")
        project_id = request.query_params.get("project_id") or None
        page = await self.audit.list_audit_entries(
            visitor.developer, limit=PAGE_SIZE, cursor=cursor, project_id=project_id
        )
        tokens = {token.id: token.name for token in await self.developers.list_access_tokens(visitor.developer.id)}
        projects = dict(await self.projects.name_projects(visitor.developer))
        context = {
            "entries": [_shown(entry, visitor, tokens, projects) for entry in page.entries],
            # A newer release on the same database can have written values that are missing here.
            "phrases": PHRASES,
            "means": _MEANS,
            "tokens": tokens,
            "next_cursor": page.next_cursor,
            "is_first": cursor is None,
            "project_id": project_id,
            "projects": projects,
            "project_name": projects.get(project_id or ""),
        }
        return await self.pages.render_choice(request, "audit.html", context, projects)


def _shown(entry: AuditEntry, visitor: Visitor, tokens: Mapping[str, str], projects: Mapping[str, str]) -> ShownEntry:
    subject, link = entry.subject, ""
    details = json.loads(entry.details)
    if subject in projects:
        subject, link = projects[subject], f"/console/projects/{subject}"
    elif subject in tokens:
        subject, link = tokens[subject], "/console/tokens"
    elif subject == visitor.developer.id:
        subject, link = visitor.developer.email, "/console/account"
    elif entry.action.startswith("console."):
        link = "/console/account"
    elif entry.action == "delivery.resent":
        link = f"/console/deliveries/{subject}"
    elif entry.action.startswith("client.") and (project_id := details.get("project_id")) in projects:
        link = f"/console/projects/{project_id}/clients"
    elif entry.action.startswith("member.") and entry.project_id in projects:
        link = f"/console/projects/{entry.project_id}/members"
        details = {"project": projects[entry.project_id], **details}
    elif entry.action == "developer.invited" and visitor.developer.is_owner:
        link = "/console/team"
    shown = [_detail(field, value) for field, value in details.items() if value is not None]
    return ShownEntry(entry, subject, link, shown)


def _detail(field: str, value: Any) -> tuple[str, str]:
    """Return a detail's label and value in plain words."""
    if field == "user_agent":
        return "browser", browser_in_words(str(value))
    return field.replace("_", " "), _in_words(value)


def _in_words(value: Any) -> str:
    if value in ("", []):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_in_words(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
