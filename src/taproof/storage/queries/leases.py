"""Leases, with which the processes on one store elect a leader."""

from typing import Final

from taproof.core.leases import Lease
from taproof.storage.queries.database import Queries

HOLD_LEASE: Final = """
INSERT INTO leases (name, holder, held_until) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
  WHERE leases.holder = excluded.holder OR leases.held_until <= $4
RETURNING name"""
RELEASE_LEASE: Final = "DELETE FROM leases WHERE name = $1 AND holder = $2"
LIST_LEASES: Final = "SELECT name, holder, held_until FROM leases ORDER BY name"


class LeaseQueries(Queries):
    """Leases, with which the processes on one store elect a leader."""

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        """Take or renew the lease `name` for `holder`; False while another process holds it and it has not expired."""
        return bool(await self._database.add(HOLD_LEASE, name, holder, until, now))

    async def release_lease(self, name: str, holder: str) -> None:
        """Release a lease, so that another process can take it. Do nothing if `holder` does not hold it."""
        await self._database.change(RELEASE_LEASE, name, holder)

    async def list_leases(self) -> list[Lease]:
        """Return all leases, also expired ones, ordered by name."""
        return [Lease(*row) for row in await self._database.read(LIST_LEASES)]
