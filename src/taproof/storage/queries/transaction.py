"""The transaction interface that both databases implement."""

from typing import Any, Protocol

from taproof.core.accounts import AuditEntry


class Transaction(Protocol):
    """A transaction in progress. On PostgreSQL, `fetch` and `lock` find no rows if a text value contains a NUL.

    On PostgreSQL, a lock prevents other processes from changing the found rows until the transaction ends. SQLite needs
    no locks, because no other writer runs during a transaction.
    """

    async def fetch(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows that a statement finds or changes."""

    async def lock(self, statement: str, *values: Any, mode: str = "FOR UPDATE") -> list[Any]:
        """Return the rows that a SELECT finds, and lock them in the order in which it finds them."""

    async def lock_developers(self) -> None:
        """Prevent other transactions from adding or changing developers. Reads are not blocked."""

    async def add(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement that stores text unchanged. On PostgreSQL, a NUL in a text is an error.

        Raises:
            BotTaken: on PostgreSQL, another node has just given the same bot to another project.
        """

    async def lock_user(self, owner_id: str, messenger_id: str) -> None:
        """Lock a user until the transaction ends.

        With the id of a developer, the lock protects the counts of the user's sign-ins to this developer's projects.
        With the id of a project, it protects the grants of the user there.
        """

    async def read_in_order(self) -> None:
        """Make the following reads use the order of an index, as far as needed, instead of sorting all rows."""

    async def end_deliveries(self, project_id: str, now: int, limit: int) -> int:
        """End at most `limit` due deliveries of a project without a webhook; return their number."""

    async def add_entry(self, entry: AuditEntry | None) -> None:
        """Add an entry to the audit log, if there is one.

        Raises:
            InvalidAccessToken, SignedOut: the acting credential has ended; the transaction is rolled back.
        """
