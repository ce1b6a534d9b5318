"""The users of projects: a list per project, and the export of one user's data (contract.md, Developer endpoints).

The export contains what `erasure.py` erases: both find the rows with the same conditions.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

import structlog

from taproof.core.accounts import Developer
from taproof.core.clock import DAY, Clock, iso8601
from taproof.core.counts import ProjectUser
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.errors import DecryptionFailed
from taproof.core.model import PageCursor
from taproof.core.roles import Role
from taproof.service.erasure import BATCH, Erasure, checked_messenger_id
from taproof.service.paging import read_cursor, write_cursor
from taproof.service.project_access import reading_project
from taproof.service.webhooks import answer_associated_data
from taproof.storage.protocol import Storage
from taproof.storage.protocol.erasure import Row

EXPORTED: Final = {
    "sessions": "sessions",
    "webhook_events": "deliveries",
    "webhook_attempts": "delivery_attempts",
    "phone_requests": "phone_requests",
    "prompts": "prompts",
    "user_days": "days",
    "blocks": "blocks",
}
"""The tables with data about a user, and their names in an export."""
_UNKNOWN: Final = dict.fromkeys(
    ("confirmed_at", "messenger_id", "messenger_name", "messenger_username", "encrypted_phone")
)
_UNREADABLE: Final = "It was altered, or its master key is missing."
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class UserPage:
    """One page of users. `next_cursor` requests the next page; None on the last page."""

    users: list[ProjectUser]
    next_cursor: str | None


class Users:
    """Lists the users of a project, and exports one user's data."""

    def __init__(self, storage: Storage, encryptor: Encryptor, clock: Clock, erasure: Erasure) -> None:
        """Find the sessions of an export with `erasure`."""
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._erasure = erasure

    async def list_users(self, developer: Developer, project_id: str, *, limit: int, cursor: str | None) -> UserPage:
        """Return a page of at most `limit` users of a project, the latest sign-in first.

        Raises:
            InvalidRequest: the project id or the cursor is malformed.
            ProjectNotFound: this developer has no such project.
        """
        async with reading_project(self._storage, developer, project_id):
            return await self.list_users_of(project_id, limit=limit, cursor=cursor)

    async def list_users_of(self, project_id: str, *, limit: int, cursor: str | None) -> UserPage:
        """Return a page of at most `limit` users of any project, for the operator.

        Raises:
            InvalidRequest: the cursor is malformed.
        """
        before = None if cursor is None else _read_cursor(cursor)
        found = await self._storage.users.list_users(project_id, before, limit + 1)
        page = found[:limit]
        last = page[-1] if len(found) > limit else None
        return UserPage(page, None if last is None else write_cursor(last.last_at, f"user_{last.messenger_id}"))

    async def read_user(self, developer: Developer, project_id: str, messenger_id: str) -> ProjectUser | None:
        """Return one user of a project; None if the account has not signed in to it, or was erased.

        Raises:
            InvalidRequest: an id is malformed.
            ProjectNotFound: this developer has no such project.
        """
        checked_messenger_id(messenger_id)
        async with reading_project(self._storage, developer, project_id):
            return await self._storage.users.read_user(project_id, messenger_id)

    async def export_user(self, developer: Developer, messenger_id: str) -> dict[str, Any]:
        """Return all data about an account that `Erasure.erase_user` would erase, as JSON values.

        Raises:
            InvalidRequest: `messenger_id` is not a messenger account's id.
            InsufficientRole: the developer is only a viewer of their projects.
        """
        checked_messenger_id(messenger_id)
        while True:
            await self._erasure.require_writer(developer)
            roles = await self._roles(developer)
            exported = await self._export(messenger_id, developer.id)
            # A member who was removed meanwhile gets nothing of the project.
            if roles == await self._roles(developer):
                return exported

    async def _roles(self, developer: Developer) -> dict[str, Role | None]:
        return {project.id: project.role for project in await self._storage.projects.list_projects(developer.id)}

    async def export_everywhere(self, messenger_id: str) -> dict[str, Any]:
        """Return all data about an account that `Erasure.erase_everywhere` would erase, as JSON values.

        Raises:
            InvalidRequest: `messenger_id` is not a messenger account's id.
        """
        return await self._export(checked_messenger_id(messenger_id), None)

    async def _export(self, messenger_id: str, developer_id: str | None) -> dict[str, Any]:
        exported: dict[str, Any] = {"messenger_id": messenger_id, "exported_at": iso8601(self._clock())}
        exported |= {name: [] for table, name in EXPORTED.items() if table != "blocks" or developer_id is None}
        keys = await self._erasure.find_sessions(messenger_id, developer_id)
        seen: set[tuple[int, bytes]] = set(keys)
        parts = [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
        for part in parts:
            for table, rows in (await self._storage.erasure.export_sessions(messenger_id, part)).items():
                exported[EXPORTED[table]] += [self._shown(table, row) for row in rows]
        for table, rows in (await self._storage.erasure.export_person(messenger_id, developer_id)).items():
            # Requests and prompts of these sessions are in the export already.
            others = [row for row in rows if "token_hash" not in row or (row["day"], row["token_hash"]) not in seen]
            exported[EXPORTED[table]] += [self._shown(table, row) for row in others]
        return exported

    def _shown(self, table: str, row: Row) -> dict[str, Any]:
        """Return a row as JSON values: decrypted, without hashes and secrets."""
        shown = {column: _shown_value(column, value) for column, value in row.items() if not _is_secret(column, value)}
        if table == "sessions":
            if row["status"] == "pending":
                # Nobody has signed in yet: see `storage.rows.session_from`.
                row, shown = row | _UNKNOWN, shown | _UNKNOWN
                del shown["encrypted_phone"]
            shown["messenger_phone"] = self._decrypted(row["encrypted_phone"], associated_data_of("phone", row["id"]))
        elif table == "webhook_events":
            body = self._decrypted(row["encrypted_body"], associated_data_of("event_body", row["id"]))
            shown["body"] = None if body is None else json.loads(body)
            if isinstance(shown["body"], dict):
                shown["body"].pop("session_token", None)
        elif table == "webhook_attempts":
            bound = answer_associated_data(row["event_id"], row["number"])
            shown["answer"] = self._decrypted(row["encrypted_answer"], bound)
        return shown

    def _decrypted(self, encrypted: bytes | None, associated_data: str) -> str | None:
        """Return the plaintext; None if there is none, or if it cannot be decrypted."""
        if not encrypted:
            return None
        try:
            return self._encryptor.decrypt(encrypted, associated_data)
        except DecryptionFailed:
            # One bad value must not make the whole export fail.
            _log.error("export_unreadable", value=associated_data.split(":", 1)[0], advice=_UNREADABLE)
            return None


def _read_cursor(cursor: str) -> PageCursor:
    position = read_cursor(cursor, "user")
    return position._replace(id=position.id.removeprefix("user_"))


def _is_secret(column: str, value: object) -> bool:
    return isinstance(value, bytes) or column.startswith("encrypted_") or column.endswith(("_hash", "code_challenge"))


def _shown_value(column: str, value: Any) -> Any:
    if value is None:
        return None
    if column == "day":
        return iso8601(value * DAY)[:10]
    return iso8601(value) if column.endswith(("_at", "_until")) and value else value
