"""The audit log: who changed what, when, and from where.

Each developer reads their own log, and the entries of all developers about a project of which they are a member.

The store writes an entry and the change that it records in one transaction, so neither exists without the other.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from taproof.contract.access_token import AccessScope
from taproof.contract.audit import AuditAction, Via
from taproof.core.accounts import Actor, AuditEntry, Developer
from taproof.core.clock import iso8601
from taproof.core.entropy import Entropy
from taproof.core.identifiers import ID_LENGTH, is_project_id, new_id
from taproof.core.page_cursor import PageCursor
from taproof.core.roles import permits
from taproof.service.paging import read_cursor, write_cursor
from taproof.service.project_access import read_in_projects
from taproof.storage.protocol import Storage

_NAMES: Final[Mapping[Via, str]] = {"command_line": "command line", "service": "Taproof"}
"""The names of actors other than developers."""
_service_entry: Final = partial(AuditEntry, actor=_NAMES["service"], via="service", via_id="", address="")
_ABOUT_CREDENTIALS: Final = ("access_token.", "console.", "developer.", "invitation.", "member.")
"""The prefixes of the actions that create or end credentials and memberships."""
DETAILS_LIMIT: Final = 1_500
"""The maximum size of an entry's details, in bytes of ASCII JSON. A request may contain ten times as much."""
_TEXT_LENGTHS: Final = (300, 100, 40)
"""The maximum number of characters of one text in the details. If the details are still too long, the next length is
tried. Ids are never shortened."""
_LIST_LENGTH: Final = 5
"""The maximum number of items of a list in the details. The number of omitted items follows them."""
_MARKER_ID: Final = "aud_" + "0" * ID_LENGTH
"""The id of the last entry of a log whose older entries were erased. The entry is shown but not stored."""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of entries. `next_cursor` requests the next page; None on the last page."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditLog:
    """Shows developers their audit logs, without changing them."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def list_audit_entries(
        self, developer: Developer, *, limit: int, cursor: str | None, project_id: str | None = None
    ) -> AuditPage:
        """Return a page of at most `limit` entries, newest first: of this developer, or of everyone about a project.

        Only an owner of the project sees the addresses and credentials of others.

        Raises:
            InvalidRequest: the cursor or the project id is malformed.
            ProjectNotFound: the developer is no member of the project.
        """
        before = None if cursor is None else read_cursor(cursor, "aud")
        if project_id is not None:
            read = partial(self._list_project_entries, developer.id, project_id, before, limit + 1)
            return _page(await read_in_projects(self._storage, developer, project_id, lambda _: read()), limit)
        found = await self._storage.audit.list_audit_entries(developer.id, before, limit + 1)
        if len(found) <= limit:
            found += await self._marker(developer, before)
        return _page(found, limit)

    async def _list_project_entries(
        self, developer_id: str, project_id: str, before: PageCursor | None, limit: int
    ) -> list[AuditEntry]:
        found = await self._storage.audit.list_project_entries(project_id, before, limit)
        # Read the role last: someone who has just lost the role of an owner gets no addresses.
        if permits(await self._storage.members.read_role(developer_id, project_id), "traces"):
            return found
        return [each if each.developer_id == developer_id else replace(each, address="", via_id="") for each in found]

    async def _marker(self, developer: Developer, before: PageCursor | None) -> list[AuditEntry]:
        """Return the entry that stands for erased older ones, if it sorts after the page position `before`."""
        purge = await self._storage.audit.read_audit_purge(developer.id)
        if purge is None or (before is not None and before <= (purge.before - 1, _MARKER_ID)):
            return []
        details = {
            "entries_before": iso8601(purge.before),
            "entries": purge.entries,
            "purged_at": iso8601(purge.purged_at),
        }
        return [
            _service_entry(
                id=_MARKER_ID,
                developer_id=developer.id,
                created_at=purge.before - 1,
                action="audit.purged",
                subject=developer.id,
                details=bounded_json(details),
            )
        ]


def _page(found: list[AuditEntry], limit: int) -> AuditPage:
    page = found[:limit]
    return AuditPage(page, write_cursor(page[-1].created_at, page[-1].id) if len(found) > limit else None)


def audit_entry(
    actor: Actor,
    action: AuditAction,
    now: int,
    entropy: Entropy,
    *,
    subject: str,
    details: Mapping[str, object] | None = None,
    project_id: str | None = None,
) -> AuditEntry:
    """Return an entry for the log of the acting developer, at the time `now` (ms).

    Args:
        actor: the acting developer and credential.
        action: the action.
        now: the time in ms.
        entropy: returns random bytes.
        subject: the id of the changed object.
        details: the new values, as JSON values, without secrets and texts that may contain one. Long ones are cut.
        project_id: the changed project. Default: `subject`, if that is a project.

    Raises:
        InsufficientScope: the acting credential lacks the action's scope. Every change has an entry, so this checks
            the scope for every change. A credential may always end itself, and a console session may always end the
            token with which it was opened.
    """
    if subject not in {actor.via_id, actor.grant.access_token_id}:
        actor.grant.require(_scope_of(action))
    return AuditEntry(
        id=new_id("aud", entropy),
        developer_id=actor.developer.id,
        created_at=now,
        action=action,
        actor=_NAMES.get(actor.via, actor.developer.email),
        via=actor.via,
        via_id=actor.via_id,
        address=actor.address,
        subject=subject,
        details=bounded_json(details or {}),
        project_id=_project_of(subject) if project_id is None else project_id,
    )


def service_entry(
    developer_id: str,
    action: AuditAction,
    now: int,
    entropy: Entropy,
    *,
    subject: str,
    details: Mapping[str, object],
) -> AuditEntry:
    """Return an entry for an action of the service itself on a developer's data; see `audit_entry`."""
    return _service_entry(
        id=new_id("aud", entropy),
        developer_id=developer_id,
        created_at=now,
        action=action,
        subject=subject,
        details=bounded_json(details),
        project_id=_project_of(subject),
    )


def _project_of(subject: str) -> str:
    return subject if is_project_id(subject) else ""


def _scope_of(action: AuditAction) -> AccessScope:
    """Return the scope that an action needs: `tokens` to create or end credentials and memberships, else `write`."""
    return "tokens" if action.startswith(_ABOUT_CREDENTIALS) else "write"


def bounded_json(details: Mapping[str, object]) -> str:
    """Return details as JSON of at most `DETAILS_LIMIT` bytes, with long texts and long lists shortened."""
    for length in _TEXT_LENGTHS:
        text = json.dumps(_shortened(details, length))
        if len(text) <= DETAILS_LIMIT:
            return text
    return json.dumps({"fields": len(details)})


def _shortened(value: object, length: int) -> object:
    if isinstance(value, str):
        return value if len(value) <= length else f"{value[: length - 1]}…"
    if isinstance(value, Mapping):
        return {field: _shortened(each, length) for field, each in value.items()}
    if isinstance(value, (list, tuple)):
        kept = [_shortened(each, length) for each in value[:_LIST_LENGTH]]
        return [*kept, f"… {len(value) - _LIST_LENGTH} more"] if len(value) > _LIST_LENGTH else kept
    return value
