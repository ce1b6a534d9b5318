"""The audit log: who changed what, when, and from where. Each developer reads their own.

An entry is handed to the store together with the change, so that there is never one without the other.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from taproof.core.accounts import Actor, AuditAction, AuditEntry, Developer, Via
from taproof.core.clock import iso8601
from taproof.core.entropy import Entropy
from taproof.core.identifiers import ID_LENGTH, new_id
from taproof.core.model import PageCursor
from taproof.core.rights import AccessScope
from taproof.service.paging import read_cursor, write_cursor
from taproof.storage.protocol import Storage

_NAMES: Final[Mapping[Via, str]] = {"command_line": "command line", "service": "Taproof"}
"""Who did it where no developer did."""
_ABOUT_CREDENTIALS: Final = ("access_token.", "console.", "developer.", "invitation.")
"""How the actions begin that create or end credentials."""


DETAILS_LIMIT: Final = 1_500
"""Bytes of an entry's details at most, as JSON in ASCII: what a request brings may be ten times as long."""
_TEXT_LENGTHS: Final = (300, 100, 40)
"""Characters of one text in the details; the next length is tried when all of them together are too many. An id is
never shortened."""
_LIST_LENGTH: Final = 5
"""Items of a list in the details; behind them it says how many more there were."""
_MARKER_ID: Final = "aud_" + "0" * ID_LENGTH
"""The id of the entry that a log ends with whose older entries are erased. It is shown, and not stored as one."""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page; `next_cursor` asks for the one after it and is None on the last."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AuditLog:
    """Shows a developer their audit log. There is nothing here that changes it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def list_entries(self, developer: Developer, *, limit: int, cursor: str | None) -> AuditPage:
        """Return a page of at most `limit` entries, newest first.

        Raises:
            InvalidRequest: a malformed cursor.
        """
        before = None if cursor is None else read_cursor(cursor, "aud")
        found = await self._storage.audit.list_audit_entries(developer.id, before, limit + 1)
        if len(found) <= limit:
            found += await self._marker(developer, before)
        page = found[:limit]
        return AuditPage(page, write_cursor(page[-1].created_at, page[-1].id) if len(found) > limit else None)

    async def _marker(self, developer: Developer, before: PageCursor | None) -> list[AuditEntry]:
        """Return the entry that tells of the erasure of older ones, in their place, if it comes after `before`."""
        purge = await self._storage.audit.read_audit_purge(developer.id)
        if purge is None or (before is not None and before <= (purge.before - 1, _MARKER_ID)):
            return []
        details = {
            "entries_before": iso8601(purge.before),
            "entries": purge.entries,
            "purged_at": iso8601(purge.purged_at),
        }
        return [
            AuditEntry(
                id=_MARKER_ID,
                developer_id=developer.id,
                created_at=purge.before - 1,
                action="audit.purged",
                actor=_NAMES["service"],
                via="service",
                via_id="",
                address="",
                subject=developer.id,
                details=bounded_json(details),
            )
        ]


def audit_entry(
    actor: Actor,
    action: AuditAction,
    now: int,
    entropy: Entropy,
    *,
    subject: str,
    details: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Return an entry for the log of the developer who acts.

    Args:
        actor: who acts.
        action: what they do.
        now: in ms.
        entropy: returns random bytes.
        subject: the id of what is changed.
        details: what was set, as JSON knows it; never a secret, nor a text that may hold one. What is long is
            shortened: see `bounded_json`.

    Raises:
        InsufficientScope: the acting credential may not do this. Every change has an entry, so every change is held to
            the scopes here. A credential may always end itself, and a console session the token it was opened with.
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
    """Return an entry for what the service does by itself to something of a developer's; see `audit_entry`."""
    return AuditEntry(
        id=new_id("aud", entropy),
        developer_id=developer_id,
        created_at=now,
        action=action,
        actor=_NAMES["service"],
        via="service",
        via_id="",
        address="",
        subject=subject,
        details=bounded_json(details),
    )


def _scope_of(action: AuditAction) -> AccessScope:
    """Return the scope that an action needs: `tokens` for what creates or ends credentials, `write` for the rest."""
    return "tokens" if action.startswith(_ABOUT_CREDENTIALS) else "write"


def bounded_json(details: Mapping[str, object]) -> str:
    """Return details as JSON of at most `DETAILS_LIMIT` bytes: long texts are cut, and long lists end with a number."""
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


def url_origin(url: str) -> str:
    """Return scheme, host and port of a webhook URL: all that a log may say of it. "" stays "".

    Path and query are left out, since receivers put secrets of their own there.
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if url else ""
