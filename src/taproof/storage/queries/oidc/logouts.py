"""The clients to notify that a user is signed out. `queries/oidc/grants.py` records them."""

from collections.abc import Collection
from typing import Final

from taproof.core.oidc.grants import Logout, LogoutFailure
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.transaction import Transaction

# `$2` contains the ids of clients to pass over. The index has the client, so that passing over many rows is quick.
FIND_DUE_LOGOUTS: Final = """
SELECT sid FROM oidc_logouts WHERE due_at <= $1 AND CAST($2 AS TEXT) NOT LIKE '%' || client_id || '%'
ORDER BY due_at LIMIT $3"""
# A lease moves `due_at`, so that the search for due rows does not find it again.
CLAIM_LOGOUT: Final = """
UPDATE oidc_logouts SET due_at = $1 WHERE sid = $2 AND due_at <= $3
RETURNING sid, client_id, project_id, messenger_id, attempts + 1, due_at, COALESCE(
  (SELECT c.backchannel_logout_uri FROM oidc_clients c WHERE c.id = oidc_logouts.client_id), ''), COALESCE(
  (SELECT p.developer_id FROM projects p WHERE p.id = oidc_logouts.project_id), '')"""
FORGET_LOGOUT: Final = "DELETE FROM oidc_logouts WHERE sid = $1 AND due_at = $2 RETURNING sid"
RETRY_LOGOUT: Final = """
UPDATE oidc_logouts SET due_at = $1, attempts = attempts + 1, failed_at = $2, failure = $3
WHERE sid = $4 AND due_at = $5 RETURNING sid"""
READ_LOGOUT_FAILURE: Final = """
SELECT failed_at, failure, due_at IS NOT NULL FROM oidc_logouts
WHERE project_id = $1 AND client_id = $2 AND failed_at IS NOT NULL ORDER BY failed_at DESC LIMIT 1"""
PURGE_LOGOUTS: Final = Purge("oidc_logouts", "sid", "created_at <= $1")


class LogoutQueries(Queries):
    """The logouts to notify clients of."""

    async def claim_logouts(
        self, now: int, leased_until: int, limit: int, passed_over: Collection[str] = ()
    ) -> list[Logout]:
        """Lease at most `limit` due logouts until `leased_until` (ms), the ones due first.

        Those of the clients with the ids `passed_over` are left for a later call.
        """
        ids = " ".join(sorted(passed_over))
        # A write waits for the disk, so start one only if there is a row to claim.
        if not await self._database.read(FIND_DUE_LOGOUTS, now, ids, 1):
            return []

        async def claim(transaction: Transaction) -> list[Logout]:
            found = await transaction.lock(FIND_DUE_LOGOUTS, now, ids, limit, mode="FOR UPDATE SKIP LOCKED")
            claimed = [row for (sid,) in found for row in await transaction.fetch(CLAIM_LOGOUT, leased_until, sid, now)]
            return [Logout(*row) for row in claimed]

        return await self._database.in_transaction(claim)

    async def finish_logout(self, logout: Logout) -> bool:
        """Erase a logout that its client was notified of. Return False if its lease has expired."""
        return bool(await self._database.change(FORGET_LOGOUT, logout.sid, logout.leased_until))

    async def retry_logout(self, logout: Logout, due_at: int | None, failure: str, now: int) -> bool:
        """Record a failed attempt at `now`, and when the next one is due (ms); None after the last attempt.

        Return False if the lease has lapsed.
        """
        values = (due_at, now, failure, logout.sid, logout.leased_until)
        return bool(await self._database.change(RETRY_LOGOUT, *values))

    async def read_logout_failure(self, project_id: str, client_id: str) -> LogoutFailure | None:
        """Return the last failed attempt to notify a client; None if there is none, or if it was notified since."""
        found = await self._database.read(READ_LOGOUT_FAILURE, project_id, client_id)
        return LogoutFailure(found[0][0], found[0][1], bool(found[0][2])) if found else None

    async def purge_logouts(self, before: int, limit: int) -> int:
        """Erase at most `limit` logouts that were recorded at or before `before` (ms)."""
        return await self._database.purge(PURGE_LOGOUTS, before, limit)
