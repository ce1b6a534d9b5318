"""Erase one user's data: in a developer's projects at the developer's request, in all projects at the operator's.

This erases the user's sessions with name and phone number, webhook events and phone number requests. It erases what
OpenID Connect clients hold of the user, and tells those clients to sign the user out. It also erases the user's
identity in the records of users per day. Anonymous counts are kept. A user who signs in again later counts as a new
user.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from taproof.core.accounts import Actor, AuditEntry
from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import InvalidRequest
from taproof.core.identifiers import new_id
from taproof.core.identity import is_messenger_id
from taproof.service.audit import audit_entry
from taproof.service.project_access import require_writer
from taproof.storage.protocol import Storage

BATCH: Final = 100
"""The number of sessions erased in one write, as in `housekeeping.py`."""


class Erasure:
    """Erases a user's data in small steps, between which other calls run.

    An erasure that was interrupted can safely be repeated. Sessions that are opened during it may be left: they are new
    sign-ins.
    """

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy, *, batch: int = BATCH) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy
        self._batch = batch

    async def erase_user(self, actor: Actor, messenger_id: str) -> bool:
        """Erase an account's data where the developer's role in the project permits it; return False if there is none.

        The audit log has an entry for each project in which something was erased, without the account's id, since the
        log is kept for a long time. A hash would not protect the id, which is short enough to find by trying all ids.
        The blocks that the user set are kept.

        Raises:
            InvalidRequest: `messenger_id` is not a messenger account's id.
            InsufficientRole: the developer is only a viewer of their projects.
        """
        await require_writer(self._storage, actor.developer)
        # Call this first, because it checks the scope of the credential.
        entry = audit_entry(actor, "user.erased", self._clock(), self._entropy, subject=actor.developer.id)

        def of_project(project_id: str) -> AuditEntry:
            return replace(entry, id=new_id("aud", self._entropy), subject=project_id, project_id=project_id)

        entries = _Entries(of_project)
        return bool(await self._erase(messenger_id, actor.developer.id, lambda _: None, entries))

    async def erase_everywhere(self, messenger_id: str, progress: Callable[[int], None]) -> int:
        """Erase an account's data in all projects, and the user's blocks; return the number of erased rows.

        `progress` is called after each step with the number of rows erased so far. Raise InvalidRequest if
        `messenger_id` is not a messenger account's id.
        """
        return await self._erase(messenger_id, None, progress, _Entries(None))

    async def _erase(
        self, messenger_id: str, developer_id: str | None, progress: Callable[[int], None], entries: "_Entries"
    ) -> int:
        checked_messenger_id(messenger_id)
        erased = 0

        def count(rows: int) -> None:
            nonlocal erased
            erased += rows
            progress(erased)

        project_id = ""
        while found := await self._storage.erasure.find_project(messenger_id, developer_id, project_id):
            project_id = found
            while rows := await self._storage.erasure.erase_sessions(
                messenger_id, project_id, developer_id, self._batch, describe=entries.describe
            ):
                entries.keep()
                count(rows)
        while rows := await self._storage.erasure.erase_person(
            *(messenger_id, developer_id, new_id("gone", self._entropy), self._batch, self._clock()),
            describe=entries.describe,
        ):
            entries.keep()
            count(rows)
        return erased


class _Entries:
    """Makes the audit entries of one erasure, one for each project; none without `make`."""

    def __init__(self, make: Callable[[str], AuditEntry] | None) -> None:
        self._make = make
        self._kept: set[str] = set()
        self._described: set[str] = set()

    def describe(self, project_ids: Collection[str]) -> list[AuditEntry]:
        """Return the entries of the projects that have none yet."""
        self._described = set(project_ids) - self._kept
        return [] if self._make is None else [self._make(each) for each in sorted(self._described)]

    def keep(self) -> None:
        """Record that the transaction of the last entries was committed."""
        self._kept |= self._described


def checked_messenger_id(messenger_id: str) -> str:
    """Return a messenger account's id unchanged. Raise InvalidRequest if it is malformed."""
    if not is_messenger_id(messenger_id):
        raise InvalidRequest("messenger_id must be a messenger account's id: digits only, at most 20.")
    return messenger_id
