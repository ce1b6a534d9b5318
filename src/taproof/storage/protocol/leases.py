"""The interface of `store.leases`."""

from typing import Protocol

from taproof.core.leases import Lease


class LeaseStorage(Protocol):
    """Leases, with which the processes on one store elect a leader."""

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        """Take or renew the lease `name` for `holder`; False while another process holds it and it has not expired."""

    async def release_lease(self, name: str, holder: str) -> None:
        """Release a lease, so that another process can take it. Do nothing if `holder` does not hold it."""

    async def list_leases(self) -> list[Lease]:
        """Return all leases, also expired ones, ordered by name."""
