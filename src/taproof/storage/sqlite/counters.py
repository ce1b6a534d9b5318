"""Counts what happens to sessions in one transaction, and writes each counter once for all of it.

Forty sessions created by one commit raise one counter of their project and day: once by forty is a tenth of the work of
forty times by one.
"""

from typing import Final, Literal

import apsw

from taproof.storage.queries import counts as queries

Counted = Literal["requested", "opened", "confirmed", "used", "cancelled"]
COLUMNS: Final[tuple[Counted, ...]] = ("requested", "opened", "confirmed", "used", "cancelled")


class Counters:
    """What the transaction under way has counted, by project and day."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], dict[Counted, int]] = {}

    def clear(self) -> None:
        """Forget everything: a transaction begins, or was undone."""
        self._counts.clear()

    def add(self, counted: Counted, project_id: str, day: int) -> None:
        """Count one session."""
        counts = self._counts.setdefault((project_id, day), {})
        counts[counted] = counts.get(counted, 0) + 1

    def write(self, connection: apsw.Connection) -> None:
        """Raise the counters, in the transaction that changed the sessions."""
        for (project_id, day), counts in self._counts.items():
            connection.execute(queries.COUNT, (project_id, day, *(counts.get(column, 0) for column in COLUMNS)))
