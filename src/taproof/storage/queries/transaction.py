"""What both databases do in one transaction is written on this."""

from typing import Any, Protocol

from taproof.core.accounts import AuditEntry


class Transaction(Protocol):
    """A transaction under way. With a text that has a NUL `fetch` and `lock` find nothing on PostgreSQL.

    A lock keeps other processes on PostgreSQL from changing what was found until the transaction ends. On SQLite nobody
    else writes meanwhile, so that nothing needs to be locked there.
    """

    async def fetch(self, statement: str, *values: Any) -> list[Any]:
        """Return the rows that a statement finds or changes."""

    async def lock(self, statement: str, *values: Any, mode: str = "FOR UPDATE") -> list[Any]:
        """Return the rows that a SELECT finds, locked in the order in which it finds them."""

    async def lock_developers(self) -> None:
        """Let nobody else add a developer or change one. Whoever reads them is not held up."""

    async def add(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement that stores text as it is: on PostgreSQL a NUL in it is an error."""

    async def add_entry(self, entry: AuditEntry | None) -> None:
        """Add an entry to the audit log, if there is one.

        Raises:
            InvalidAccessToken, SignedOut: the credential that acts has ended; the transaction is undone.
        """
