"""The interface of `store.audit`."""

from typing import Protocol

from taproof.core.accounts import AuditEntry, AuditPurge
from taproof.core.model import PageCursor


class AuditStorage(Protocol):
    """The audit log."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        """Add an entry for an action that changed nothing in the store, such as revealing a secret."""

    async def list_audit_entries(self, developer_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        """Return entries of a developer's audit log, newest first, strictly after `before`."""

    async def list_project_entries(self, project_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        """Return the entries of all developers about a project, newest first, strictly after `before`."""

    async def read_audit_purge(self, developer_id: str) -> AuditPurge | None:
        """Return the erased part of a developer's log; None if nothing was erased."""

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        """Erase at most `limit` entries made before `before` (ms); return their number. Record the erasure in each log.

        Once any entry of a log is erased, none of the log's entries made before `before` is listed.
        """
