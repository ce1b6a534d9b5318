"""The statements that erase one user's data. For the lock order on PostgreSQL, see `postgres/__init__.py`."""

from collections.abc import Iterable
from typing import Final

from taproof.core.accounts import AuditEntry
from taproof.core.clock import DAY
from taproof.core.model import Status
from taproof.core.roles import roles_with
from taproof.storage.protocol.erasure import ErasedPage, OpenedCursor, OpenedDay
from taproof.storage.queries.counts import COUNT_DEVELOPER_USERS
from taproof.storage.queries.database import AnyDatabase, Queries
from taproof.storage.queries.rights import require_role
from taproof.storage.queries.transaction import Transaction

OPENED: Final[tuple[Status, ...]] = ("pending", "expired", "cancelled")
"""The states of sessions that can be opened but not confirmed. Transitions lead only from the first to the others."""
_BEFORE_ALL: Final = OpenedDay("", -1)

FIND_SIGN_INS: Final = "SELECT day, token_hash FROM sessions WHERE messenger_id = $1 LIMIT $2"
_WRITERS: Final = ", ".join(f"'{role}'" for role in roles_with("write"))
FIND_WRITABLE: Final = f"""
SELECT project_id FROM project_members WHERE developer_id = $1 AND role IN ({_WRITERS}) ORDER BY project_id"""
"""Finds the projects whose data a developer may change. The lock keeps these memberships unchanged."""
FIND_SIGN_INS_OF_DEVELOPER: Final = f"""
SELECT day, token_hash FROM sessions WHERE messenger_id = $1 AND project_id IN (
  SELECT project_id FROM project_members WHERE developer_id = $2 AND role IN ({_WRITERS})) LIMIT $3"""
LIST_OPENED_DAYS: Final = """
SELECT project_id, day FROM daily_counts
WHERE (project_id, day) > ($1, $2) AND day >= $3 AND opened > confirmed ORDER BY project_id, day LIMIT $4"""
LIST_OPENED_DAYS_OF_DEVELOPER: Final = f"""
SELECT c.project_id, c.day FROM project_members m JOIN daily_counts c ON c.project_id = m.project_id
WHERE m.developer_id = $1 AND m.role IN ({_WRITERS}) AND (c.project_id, c.day) > ($2, $3) AND c.day >= $4
  AND c.opened > c.confirmed
ORDER BY c.project_id, c.day LIMIT $5"""
OLDEST_DAY: Final = "SELECT MIN(day) FROM sessions"
LIST_OPENED: Final = """
SELECT day, token_hash, created_at, id, opener_id FROM sessions
WHERE day = $1 AND project_id = $2 AND status = $3 AND created_at >= $4 AND (created_at, id) < ($5, $6)
ORDER BY created_at DESC, id DESC LIMIT $7"""
# A developer without projects has no rows in `user_days` either, except for a while after deleting a project.
FIND_PERSON: Final = """
SELECT x.creator_id FROM (SELECT creator_id FROM projects UNION SELECT creator_id FROM deleted_projects) x
WHERE EXISTS (SELECT 1 FROM user_days u WHERE u.developer_id = x.creator_id AND u.messenger_id = $1) LIMIT 1"""
ERASE_SESSION: Final = """
DELETE FROM sessions WHERE day = $1 AND token_hash = $2 AND (opener_id = $3 OR messenger_id = $3)
RETURNING project_id, id, confirmed_at, cancelled_at, expires_at, reported_at"""
ERASE_EVENTS_OF_SESSION: Final = """
DELETE FROM webhook_events
WHERE project_id = $1 AND state IN ('due', 'delivered', 'failed', 'ended')
  AND type IN ('auth.confirmed', 'auth.cancelled', 'auth.expired', 'auth.reported') AND session_id = $2
  AND created_at IN ($3, $4, $5, $6)"""
ERASE_PHONE_REQUEST: Final = "DELETE FROM phone_requests WHERE day = $1 AND token_hash = $2"
ERASE_PROMPT: Final = "DELETE FROM prompts WHERE day = $1 AND token_hash = $2"
RENAME_PERSON: Final = """
UPDATE user_days SET messenger_id = $1 WHERE developer_id = $2 AND messenger_id = $3 RETURNING day"""
FIND_CREATORS: Final = f"""
SELECT x.creator_id FROM (
  SELECT p.creator_id FROM project_members m JOIN projects p ON p.id = m.project_id
  WHERE m.developer_id = $1 AND m.role IN ({_WRITERS})
  UNION SELECT d.id FROM developers d WHERE d.id = $1) AS x
WHERE EXISTS (SELECT 1 FROM user_days u WHERE u.developer_id = x.creator_id AND u.messenger_id = $2)
ORDER BY x.creator_id"""
"""Finds the creators of the projects whose data a developer may change and which the user used, and the developer."""
RENAME_PERSON_IN_PROJECTS: Final = f"""
UPDATE user_days SET messenger_id = $1 WHERE developer_id = $2 AND messenger_id = $3 AND (
  project_id IN (SELECT m.project_id FROM project_members m WHERE m.developer_id = $4 AND m.role IN ({_WRITERS}))
  OR NOT EXISTS (SELECT 1 FROM projects p WHERE p.id = user_days.project_id)) RETURNING day"""
"""Renames a user in these projects of one creator, and in deleted projects."""
READ_DAYS_LEFT: Final = "SELECT DISTINCT day FROM user_days WHERE developer_id = $1 AND messenger_id = $2"
ERASE_PHONE_REQUESTS_OF_USER: Final = "DELETE FROM phone_requests WHERE messenger_id = $1 RETURNING day"
# In the order in which the other statements lock prompts.
HOLD_PROMPTS_OF_USER: Final = "SELECT day FROM prompts WHERE messenger_id = $1 ORDER BY day, token_hash"
ERASE_PROMPTS_OF_USER: Final = "DELETE FROM prompts WHERE messenger_id = $1 RETURNING day"
ERASE_BLOCKS_OF_USER: Final = """
DELETE FROM blocks WHERE messenger_id = $1 AND project_id IN (
  SELECT project_id FROM blocks WHERE messenger_id = $1 LIMIT $2) RETURNING project_id"""


class ErasureQueries(Queries[AnyDatabase]):
    """See `storage.protocol.ErasureStorage`."""

    async def erase_user(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> int:
        async def erase(transaction: Transaction) -> int:
            if developer_id is not None:
                await transaction.lock(FIND_WRITABLE, developer_id, mode="FOR SHARE")
            erased = (
                await self._erase_sign_ins(transaction, messenger_id, developer_id, limit)
                or await _forget_person(transaction, messenger_id, developer_id, replacement)
                or (await _erase_rest(transaction, messenger_id, limit) if developer_id is None else 0)
            )
            if erased:
                await transaction.add_entry(entry)
            return erased

        return await self._database.in_transaction(erase)

    async def list_opened_days(self, developer_id: str | None, after: OpenedDay | None, limit: int) -> list[OpenedDay]:
        position = (*(after or _BEFORE_ALL), await self._oldest_day(), limit)
        if developer_id is None:
            found = await self._database.read(LIST_OPENED_DAYS, *position)
        else:
            found = await self._database.read(LIST_OPENED_DAYS_OF_DEVELOPER, developer_id, *position)
        return [OpenedDay(*row) for row in found]

    async def _oldest_day(self) -> int:
        ((oldest,),) = await self._database.read(OLDEST_DAY)
        return oldest or 0

    async def erase_opened(
        self,
        messenger_id: str,
        of: OpenedDay,
        after: OpenedCursor | None,
        limit: int,
        *,
        developer_id: str | None = None,
        entry: AuditEntry | None = None,
    ) -> ErasedPage:
        async def erase(transaction: Transaction) -> ErasedPage:
            if developer_id is not None and not await require_role(transaction, developer_id, of.project_id, "write"):
                return ErasedPage(0, None)
            await transaction.read_in_order()
            keys: list[tuple[int, bytes]] = []
            left = limit
            following: OpenedCursor | None = None
            for start in _opened_starts(of, after):
                values = (of.day, of.project_id, start.status, of.day * DAY, start.created_at, start.session_id, left)
                found = await transaction.fetch(LIST_OPENED, *values)
                keys += [(day, token_hash) for day, token_hash, _, _, opener_id in found if opener_id == messenger_id]
                left -= len(found)
                if left == 0:
                    _, _, created_at, session_id, _ = found[-1]
                    following = OpenedCursor(start.status, created_at, session_id)
                    break
            erased = await self._erase_sessions(transaction, keys, messenger_id)
            if erased:
                await transaction.add_entry(entry)
            return ErasedPage(erased, following)

        return await self._database.in_transaction(erase)

    async def _erase_sessions(
        self, transaction: Transaction, keys: Iterable[tuple[int, bytes]], messenger_id: str
    ) -> int:
        """Erase the sessions that still belong to the account, with their events, phone requests and prompts."""
        erased = 0
        for key in keys:
            for session in await transaction.fetch(ERASE_SESSION, *key, messenger_id):
                await transaction.fetch(ERASE_EVENTS_OF_SESSION, *session)
                await transaction.fetch(ERASE_PHONE_REQUEST, *key)
                await transaction.fetch(ERASE_PROMPT, *key)
                erased += 1
        return erased

    async def _erase_sign_ins(
        self, transaction: Transaction, messenger_id: str, developer_id: str | None, limit: int
    ) -> int:
        while True:
            if developer_id is None:
                found = await transaction.fetch(FIND_SIGN_INS, messenger_id, limit)
            else:
                found = await transaction.fetch(FIND_SIGN_INS_OF_DEVELOPER, messenger_id, developer_id, limit)
            # The erasure is complete only when nothing is found: another node may have erased the found sessions
            # meanwhile.
            erased = await self._erase_sessions(transaction, [tuple(row) for row in found], messenger_id)
            if erased or not found:
                return erased


async def _forget_person(
    transaction: Transaction, messenger_id: str, developer_id: str | None, replacement: str
) -> int:
    """Rename the user in the counts, on all days together, so that they still count as one person."""
    renamed = 0
    if developer_id is None:
        for (each,) in await transaction.fetch(FIND_PERSON, messenger_id):
            await transaction.lock_user(each, messenger_id)
            renamed += len(await transaction.fetch(RENAME_PERSON, replacement, each, messenger_id))
        return renamed
    for (each,) in await transaction.fetch(FIND_CREATORS, developer_id, messenger_id):
        await transaction.lock_user(each, messenger_id)
        values = (replacement, each, messenger_id, developer_id)
        found = await transaction.fetch(RENAME_PERSON_IN_PROJECTS, *values)
        renamed += len(found)
        left = {row[0] for row in await transaction.fetch(READ_DAYS_LEFT, each, messenger_id)}
        await _count_second_person(transaction, each, {row[0] for row in found}, left)
    return renamed


async def _count_second_person(transaction: Transaction, creator_id: str, renamed: set[int], left: set[int]) -> None:
    """Count a user as two people if some of their days were renamed and others, in projects of others, are left."""
    if not renamed or not left:
        return
    later_of_each = min(max(renamed), max(left))
    for day in sorted({*(renamed & left), later_of_each}):
        changes = (int(day in renamed and day in left), int(day == later_of_each))
        await transaction.add(COUNT_DEVELOPER_USERS, creator_id, day, *changes)


async def _erase_rest(transaction: Transaction, messenger_id: str, limit: int) -> int:
    requests = await transaction.fetch(ERASE_PHONE_REQUESTS_OF_USER, messenger_id)
    await transaction.lock(HOLD_PROMPTS_OF_USER, messenger_id)
    requests += await transaction.fetch(ERASE_PROMPTS_OF_USER, messenger_id)
    return len(requests) + len(await transaction.fetch(ERASE_BLOCKS_OF_USER, messenger_id, limit))


def _opened_starts(of: OpenedDay, after: OpenedCursor | None) -> list[OpenedCursor]:
    """Return the starting points of a day's walks, one for each status, strictly after `after`.

    The walks follow the order in which sessions change their status, so that no session is missed.
    """
    end = (of.day + 1) * DAY
    following = OPENED if after is None else OPENED[OPENED.index(after.status) + 1 :]
    starts = [OpenedCursor(status, end, "") for status in following]
    return starts if after is None else [after, *starts]
