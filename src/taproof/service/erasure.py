"""Erase one user: in a developer's projects on their request, in all projects on the operator's.

This erases sessions with name and phone number, their webhook events and their requests for a phone number. It also
erases the user's identity from the records of users per day. Counts stay. A user who signs in again afterwards counts
as a new user.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Final

from taproof.core.accounts import Actor, AuditEntry
from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import InvalidRequest
from taproof.core.identifiers import new_id
from taproof.service.audit import audit_entry
from taproof.storage.protocol import OpenedCursor, OpenedDay, Storage

BATCH: Final = 100
"""Sessions erased in one write, as in `housekeeping.py`."""
_LOOKED_AT: Final = 500
"""Sessions that one step of a walk reads: on SQLite it holds the event loop for 1 to 2 ms."""
_DAYS: Final = 1_000
_MESSENGER_ID: Final = re.compile(r"[0-9]{1,20}")


class Erasure:
    """Erases a user's data in small steps. After a kill between two steps, the erasure can safely be repeated."""

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy
        # A walk keeps the processor busy while it lasts: only one runs at a time, so that other work goes on.
        self._turn = asyncio.Lock()

    async def erase_user(self, actor: Actor, messenger_id: str) -> bool:
        """Erase the data that this developer's projects keep of an account; return False if there is none.

        The audit log records the erasure without the account's id, since the log is kept for long. A hash would not
        protect the id: it has so few digits that trying all of them finds it. The account's own blocks stay.

        Raises:
            InvalidRequest: `messenger_id` is not a messenger account's id.
        """
        entry = audit_entry(actor, "user.erased", self._clock(), self._entropy, subject=actor.developer.id)
        return bool(await self._erase(messenger_id, actor.developer.id, lambda _: None, entry))

    async def erase_everywhere(self, messenger_id: str, progress: Callable[[int], None]) -> int:
        """Erase an account's data in all projects, and its blocks; return the number of erased rows.

        `progress` is called after each step with the number so far.

        Raises:
            InvalidRequest: `messenger_id` is not a messenger account's id.
        """
        return await self._erase(messenger_id, None, progress, None)

    async def _erase(
        self, messenger_id: str, developer_id: str | None, progress: Callable[[int], None], entry: AuditEntry | None
    ) -> int:
        checked_messenger_id(messenger_id)
        erased = 0

        def count(rows: int) -> None:
            nonlocal erased
            erased += rows
            progress(erased)

        async with self._turn:
            # The last call finds sessions confirmed during the walk. A session opened during it is a new sign-in.
            await self._erase_confirmed(messenger_id, developer_id, count, entry)
            await self._erase_opened(messenger_id, developer_id, count, None if erased else entry)
            await self._erase_confirmed(messenger_id, developer_id, count, None if erased else entry)
        return erased

    async def _erase_confirmed(
        self, messenger_id: str, developer_id: str | None, count: Callable[[int], None], entry: AuditEntry | None
    ) -> None:
        while True:
            name = new_id("gone", self._entropy)
            rows = await self._storage.erasure.erase_user(messenger_id, developer_id, name, BATCH, entry=entry)
            count(rows)
            if rows == 0:
                return
            entry = None  # One audit entry is enough.

    async def _erase_opened(
        self, messenger_id: str, developer_id: str | None, count: Callable[[int], None], entry: AuditEntry | None
    ) -> None:
        last: OpenedDay | None = None
        while days := await self._storage.erasure.list_opened_days(developer_id, last, _DAYS):
            last = days[-1]
            for day in days:
                cursor: OpenedCursor | None = None
                while True:
                    page = await self._storage.erasure.erase_opened(messenger_id, day, cursor, _LOOKED_AT, entry=entry)
                    count(page.erased)
                    entry = None if page.erased else entry
                    cursor = page.after
                    if cursor is None:
                        break


def checked_messenger_id(messenger_id: str) -> str:
    """Return a messenger account's id unchanged.

    Raises:
        InvalidRequest: it is not an account's id.
    """
    if _MESSENGER_ID.fullmatch(messenger_id) is None:
        raise InvalidRequest("messenger_id must be a messenger account's id: digits only, at most 20.")
    return messenger_id
