"""The audit log. Entries are added, and old entries are erased."""

from collections import Counter
from typing import Final

from taproof.core.accounts import AuditEntry, AuditPurge
from taproof.core.page_cursor import PageCursor
from taproof.storage.queries.database import Queries
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import page_start

# Entries older than the recorded purge are not listed, even if some are not erased yet.
_ENTRY: Final = """
SELECT e.id, e.developer_id, e.created_at, e.action, e.actor, e.via, e.via_id, e.address, e.subject, e.details,
  e.project_id
FROM audit_entries e"""
LIST_AUDIT_ENTRIES: Final = f"""{_ENTRY}
WHERE e.developer_id = $1 AND (e.created_at, e.id) < ($2, $3)
  AND e.created_at >= COALESCE((SELECT p.before FROM audit_purges p WHERE p.developer_id = $1), 0)
ORDER BY e.created_at DESC, e.id DESC LIMIT $4"""
LIST_AUDIT_ENTRIES_OF_PROJECT: Final = f"""{_ENTRY}
WHERE e.project_id = $1 AND e.project_id <> '' AND (e.created_at, e.id) < ($2, $3)
  AND e.created_at >= COALESCE((SELECT p.before FROM audit_purges p WHERE p.developer_id = e.developer_id), 0)
ORDER BY e.created_at DESC, e.id DESC LIMIT $4"""
READ_AUDIT_PURGE: Final = "SELECT before, entries, purged_at FROM audit_purges WHERE developer_id = $1"
FIND_OLD_ENTRIES: Final = """
SELECT developer_id, created_at, id FROM audit_entries WHERE created_at < $1 ORDER BY created_at LIMIT $2"""
# `before` only increases, even if the retention becomes longer: erased entries cannot be restored.
RECORD_AUDIT_PURGE: Final = """
INSERT INTO audit_purges (developer_id, before, entries, purged_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (developer_id) DO UPDATE SET entries = audit_purges.entries + excluded.entries,
  purged_at = excluded.purged_at,
  before = CASE WHEN excluded.before > audit_purges.before THEN excluded.before ELSE audit_purges.before END"""
ERASE_AUDIT_ENTRY: Final = "DELETE FROM audit_entries WHERE developer_id = $1 AND created_at = $2 AND id = $3"


class AuditQueries(Queries):
    """The audit log."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        """Add an entry for an action that changed nothing in the store, such as revealing a secret."""
        await self._database.in_transaction(lambda transaction: transaction.add_entry(entry))

    async def list_audit_entries(self, developer_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        """Return entries of a developer's audit log, newest first, strictly after `before`."""
        found = await self._database.read(LIST_AUDIT_ENTRIES, developer_id, *page_start(before), limit)
        return [AuditEntry(*row) for row in found]

    async def list_project_entries(self, project_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        """Return the entries of all developers about a project, newest first, strictly after `before`."""
        found = await self._database.read(LIST_AUDIT_ENTRIES_OF_PROJECT, project_id, *page_start(before), limit)
        return [AuditEntry(*row) for row in found]

    async def read_audit_purge(self, developer_id: str) -> AuditPurge | None:
        """Return the erased part of a developer's log; None if nothing was erased."""
        found = await self._database.read(READ_AUDIT_PURGE, developer_id)
        return AuditPurge(*found[0]) if found else None

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        """Erase at most `limit` entries made before `before` (ms); return their number. Record the erasure in each log.

        Once any entry of a log is erased, none of the log's entries made before `before` is listed.
        """

        async def purge(transaction: Transaction) -> int:
            found = await transaction.lock(FIND_OLD_ENTRIES, before, limit, mode="FOR UPDATE SKIP LOCKED")
            # Iterate in the order of developers, which is the lock order of `audit_purges`. Each statement sees the
            # rows that the previous one wrote.
            for developer_id, number in sorted(Counter(row[0] for row in found).items()):
                await transaction.add(RECORD_AUDIT_PURGE, developer_id, before, number, now)
            for key in found:
                await transaction.fetch(ERASE_AUDIT_ENTRY, *key)
            return len(found)

        # A write waits for the disk, so start one only if there are entries to erase.
        return (
            await self._database.in_transaction(purge) if await self._database.read(FIND_OLD_ENTRIES, before, 1) else 0
        )
