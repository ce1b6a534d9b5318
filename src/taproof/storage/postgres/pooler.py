"""Recognises a pooler in front of the server by how its connections behave."""

from typing import Final, Literal

from taproof.storage.postgres.connection import connect, disconnect
from taproof.storage.postgres.connection_errors import explain_errors

Pooling = Literal["none", "session", "transaction"]
"""The time for which a pooler gives a client the same connection to the server; `none` without a pooler."""

_BACKEND: Final = "SELECT pg_backend_pid()"
# In transaction mode, a pooler takes an idle connection for each query. Taken from the top of a stack, both clients get
# the same. Taken in turn, whatever their number, at least one client gets two.
_ORDER: Final = (0, 1, 1, 0, 0, 1)


async def find_pooler(dsn: str) -> Pooling:
    """Return whether a pooler answers, and its mode.

    Raises:
        StoreUnavailable: the database cannot be reached; the sentence says what to check.
    """
    with explain_errors(dsn):
        first = await connect(dsn)
        try:
            # A pooler invents the process id that it reports at the start of a connection.
            if await first.fetchval(_BACKEND) == first.get_server_pid():
                return "none"
            second = await connect(dsn)
            try:
                found: tuple[set[int], set[int]] = (set(), set())
                for client in _ORDER:
                    found[client].add(await (first, second)[client].fetchval(_BACKEND))
            finally:
                await disconnect(second)
        finally:
            await disconnect(first)
    # Without a pooler, and in session mode, each open connection has one process of the server for itself.
    kept = len(found[0]) == len(found[1]) == 1 and found[0] != found[1]
    return "session" if kept else "transaction"
