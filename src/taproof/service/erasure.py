"""Forgetting one user: on a developer's request in their projects, on the operator's in all of them.

What goes: sessions with name and phone number, webhook events of these, what was asked for a phone number, and who it
was that confirmed on a day. Counts stay. A user who signs in again afterwards is a new one.
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
from taproof.storage.protocol import OpenedDay, OpenedPlace, Storage

BATCH: Final = 100
"""Sessions that go in one write: as in `housekeeping.py`."""
_LOOKED_AT: Final = 500
"""Sessions that one step of a walk looks at: on SQLite that holds the event loop for 1 to 2 ms."""
_DAYS: Final = 1_000
_MESSENGER_ID: Final = re.compile(r"[0-9]{1,20}")


class Erasure:
    """Erases what is kept of a user, in small steps. Each may be the last one before a kill: it is safe to repeat."""

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy
        # A walk takes its share of the processor for as long as it lasts: one at a time leaves the rest to others.
        self._turn = asyncio.Lock()

    async def erase_user(self, actor: Actor, messenger_id: str) -> bool:
        """Erase what this developer's projects keep of an account; False when that is nothing.

        The audit log tells that it was done, and not of whom: it is kept for long, and the few digits of an account's
        id could be found by trying out from any hash of them. The account's own blocks stay.

        Raises:
            InvalidRequest: not a messenger account's id.
        """
        entry = audit_entry(actor, "user.erased", self._clock(), self._entropy, subject=actor.developer.id)
        return bool(await self._erase(messenger_id, actor.developer.id, lambda _: None, entry))

    async def erase_everywhere(self, messenger_id: str, progress: Callable[[int], None]) -> int:
        """Erase what all projects keep of an account, and what it has blocked; return how many rows that were.

        `progress` is told the number so far, now and then.

        Raises:
            InvalidRequest: not a messenger account's id.
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
            # What somebody confirms while the walk goes on is found after it; what they open then is a new sign-in.
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
            entry = None  # One is enough.

    async def _erase_opened(
        self, messenger_id: str, developer_id: str | None, count: Callable[[int], None], entry: AuditEntry | None
    ) -> None:
        last: OpenedDay | None = None
        while days := await self._storage.erasure.list_opened_days(developer_id, last, _DAYS):
            last = days[-1]
            for day in days:
                place: OpenedPlace | None = None
                while True:
                    page = await self._storage.erasure.erase_opened(messenger_id, day, place, _LOOKED_AT, entry=entry)
                    count(page.erased)
                    entry = None if page.erased else entry
                    place = page.after
                    if place is None:
                        break


def checked_messenger_id(messenger_id: str) -> str:
    """Return an account's id.

    Raises:
        InvalidRequest: it is none.
    """
    if _MESSENGER_ID.fullmatch(messenger_id) is None:
        raise InvalidRequest("messenger_id must be a messenger account's id: digits only, at most 20.")
    return messenger_id
