"""Counts the changes to sessions in one transaction, and writes each counter once per transaction.

If one commit creates forty sessions, they all raise the same counter of their project and day. Raising it once by forty
takes a tenth of the time of forty separate updates.
"""

from typing import Final, Literal

import apsw

from taproof.storage.queries import counts as queries

Counted = Literal["requested", "opened", "confirmed", "used", "cancelled"]
COLUMNS: Final[tuple[Counted, ...]] = ("requested", "opened", "confirmed", "used", "cancelled")


class Counters:
    """The counts of the current transaction, by project and day."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], dict[Counted, int]] = {}

    def clear(self) -> None:
        """Reset all counts, at the beginning of a transaction."""
        self._counts.clear()

    def add(self, counted: Counted, project_id: str, day: int) -> None:
        """Count one session."""
        counts = self._counts.setdefault((project_id, day), {})
        counts[counted] = counts.get(counted, 0) + 1

    def write(self, connection: apsw.Connection) -> None:
        """Write the counts, in the transaction that changed the sessions."""
        for (project_id, day), counts in self._counts.items():
            connection.execute(queries.COUNT, (project_id, day, *(counts.get(column, 0) for column in COLUMNS)))
