"""The statements that erase or export one user's data. For the lock order on PostgreSQL, see `postgres/__init__.py`."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from taproof.core.clock import DAY
from taproof.core.model import SessionKey, Status
from taproof.core.roles import roles_with
from taproof.storage.export.format import TABLES
from taproof.storage.protocol.erasure import DescribeErased, ErasedPage, OpenedCursor, OpenedDay, OpenedPage, Row, Rows
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
FIND_PERSONS: Final = """
SELECT x.creator_id FROM (SELECT creator_id FROM projects UNION SELECT creator_id FROM deleted_projects) x
WHERE EXISTS (SELECT 1 FROM user_days u WHERE u.developer_id = x.creator_id AND u.messenger_id = $1)"""
FIND_PERSON: Final = f"{FIND_PERSONS} LIMIT 1"
# Each of these conditions is part of the statement that erases the rows, and of the one that exports them.
_SESSION: Final = "FROM sessions WHERE day = $1 AND token_hash = $2 AND (opener_id = $3 OR messenger_id = $3)"
_EVENTS_OF_SESSION: Final = """FROM webhook_events
WHERE project_id = $1 AND state IN ('due', 'delivered', 'failed', 'ended')
  AND type IN ('auth.confirmed', 'auth.cancelled', 'auth.expired', 'auth.reported') AND session_id = $2
  AND created_at IN ($3, $4, $5, $6)"""
_PHONE_REQUEST: Final = "FROM phone_requests WHERE day = $1 AND token_hash = $2"
_PROMPT: Final = "FROM prompts WHERE day = $1 AND token_hash = $2"
_SESSION_EVENTS_AT: Final = "project_id, id, confirmed_at, cancelled_at, expires_at, reported_at"
"""The values of a session that find its events."""
ERASE_SESSION: Final = f"DELETE {_SESSION} RETURNING {_SESSION_EVENTS_AT}"
ERASE_EVENTS_OF_SESSION: Final = f"DELETE {_EVENTS_OF_SESSION}"
ERASE_PHONE_REQUEST: Final = f"DELETE {_PHONE_REQUEST}"
ERASE_PROMPT: Final = f"DELETE {_PROMPT}"
_FORGOTTEN: Final = """messenger_name = NULL, messenger_username = NULL, first_at = NULL, last_at = NULL,
  sign_ins = NULL"""
_PERSON: Final = "developer_id = $2 AND messenger_id = $3"
_PERSON_IN_PROJECTS: Final = f"""{_PERSON} AND (
  project_id IN (SELECT m.project_id FROM project_members m WHERE m.developer_id = $4 AND m.role IN ({_WRITERS}))
  OR (developer_id = $4 AND NOT EXISTS (SELECT 1 FROM projects p WHERE p.id = user_days.project_id)))"""
"""The user in these projects of one creator, and in deleted projects that the developer created."""
RENAME_PERSON: Final = f"""
UPDATE user_days SET messenger_id = $1, {_FORGOTTEN}
WHERE {_PERSON} RETURNING day, project_id"""
FIND_CREATORS: Final = f"""
SELECT x.creator_id FROM (
  SELECT p.creator_id FROM project_members m JOIN projects p ON p.id = m.project_id
  WHERE m.developer_id = $1 AND m.role IN ({_WRITERS})
  UNION SELECT d.id FROM developers d WHERE d.id = $1) AS x
WHERE EXISTS (SELECT 1 FROM user_days u WHERE u.developer_id = x.creator_id AND u.messenger_id = $2)
ORDER BY x.creator_id"""
"""Finds the creators of the projects whose data a developer may change and which the user used, and the developer."""
RENAME_PERSON_IN_PROJECTS: Final = f"""
UPDATE user_days SET messenger_id = $1, {_FORGOTTEN}
WHERE {_PERSON_IN_PROJECTS} RETURNING day, project_id"""
READ_DAYS_LEFT: Final = "SELECT DISTINCT day FROM user_days WHERE developer_id = $1 AND messenger_id = $2"
_PHONE_REQUESTS_OF_USER: Final = "FROM phone_requests WHERE messenger_id = $1"
_PROMPTS_OF_USER: Final = "FROM prompts WHERE messenger_id = $1"
ERASE_PHONE_REQUESTS_OF_USER: Final = f"DELETE {_PHONE_REQUESTS_OF_USER} RETURNING day"
# In the order in which the other statements lock prompts.
HOLD_PROMPTS_OF_USER: Final = "SELECT day FROM prompts WHERE messenger_id = $1 ORDER BY day, token_hash"
ERASE_PROMPTS_OF_USER: Final = f"DELETE {_PROMPTS_OF_USER} RETURNING day"
ERASE_BLOCKS_OF_USER: Final = """
DELETE FROM blocks WHERE messenger_id = $1 AND project_id IN (
  SELECT project_id FROM blocks WHERE messenger_id = $1 LIMIT $2) RETURNING project_id"""


# ---- the export of what the statements above erase


def _columns_of(table: str) -> str:
    return ", ".join(column.name for column in TABLES[table])


EXPORT_SESSION: Final = f"SELECT {_columns_of('sessions')} {_SESSION}"
EXPORT_EVENTS_OF_SESSION: Final = f"SELECT id {_EVENTS_OF_SESSION}"
EXPORT_EVENT: Final = f"SELECT {_columns_of('webhook_events')} FROM webhook_events WHERE id = $1"
EXPORT_ATTEMPTS: Final = f"SELECT {_columns_of('webhook_attempts')} FROM webhook_attempts WHERE event_id = $1"
EXPORT_PHONE_REQUEST: Final = f"SELECT {_columns_of('phone_requests')} {_PHONE_REQUEST}"
EXPORT_PROMPT: Final = f"SELECT {_columns_of('prompts')} {_PROMPT}"
# `$1` is the replacement in the statements that erase these rows.
_USER_DAYS: Final = f"SELECT {_columns_of('user_days')} FROM user_days WHERE messenger_id <> $1 AND"
EXPORT_PERSON: Final = f"{_USER_DAYS} {_PERSON}"
EXPORT_PERSON_IN_PROJECTS: Final = f"{_USER_DAYS} {_PERSON_IN_PROJECTS}"
EXPORT_PHONE_REQUESTS_OF_USER: Final = f"SELECT {_columns_of('phone_requests')} {_PHONE_REQUESTS_OF_USER}"
EXPORT_PROMPTS_OF_USER: Final = f"SELECT {_columns_of('prompts')} {_PROMPTS_OF_USER}"
EXPORT_BLOCKS_OF_USER: Final = f"SELECT {_columns_of('blocks')} FROM blocks WHERE messenger_id = $1"
_ALL: Final = 2**31 - 1


class ErasureQueries(Queries[AnyDatabase]):
    """See `storage.protocol.ErasureStorage`."""

    async def erase_user(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        *,
        describe: DescribeErased = lambda _: (),
    ) -> int:
        async def erase(transaction: Transaction) -> int:
            if developer_id is not None:
                await transaction.lock(FIND_WRITABLE, developer_id)
            projects = await self._erase_sign_ins(transaction, messenger_id, developer_id, limit) or (
                await _forget_person(transaction, messenger_id, developer_id, replacement)
            )
            await _add_entries(transaction, projects, describe)
            if projects or developer_id is not None:
                return len(projects)
            return await _erase_rest(transaction, messenger_id, limit)

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
        describe: DescribeErased = lambda _: (),
    ) -> ErasedPage:
        async def erase(transaction: Transaction) -> ErasedPage:
            keys, following = await _find_opened(transaction, messenger_id, of, after, limit, developer_id)
            projects = await self._erase_sessions(transaction, keys, messenger_id)
            await _add_entries(transaction, projects, describe)
            return ErasedPage(len(projects), following)

        return await self._database.in_transaction(erase)

    async def list_sign_ins(self, messenger_id: str, developer_id: str | None) -> list[SessionKey]:
        if developer_id is None:
            found = await self._database.look_up(FIND_SIGN_INS, messenger_id, _ALL)
        else:
            found = await self._database.look_up(FIND_SIGN_INS_OF_DEVELOPER, messenger_id, developer_id, _ALL)
        return [SessionKey(*row) for row in found]

    async def list_opened(
        self,
        messenger_id: str,
        of: OpenedDay,
        after: OpenedCursor | None,
        limit: int,
        *,
        developer_id: str | None = None,
    ) -> OpenedPage:
        async def find(transaction: Transaction) -> OpenedPage:
            keys, following = await _find_opened(transaction, messenger_id, of, after, limit, developer_id)
            return OpenedPage([SessionKey(*key) for key in keys], following)

        return await self._database.in_transaction(find)

    async def export_sessions(self, messenger_id: str, keys: Sequence[SessionKey]) -> Rows:
        async def export(transaction: Transaction) -> Rows:
            rows: Rows = {}
            for key in keys:
                _add(rows, "sessions", await transaction.fetch(EXPORT_SESSION, *key, messenger_id))
            sessions = rows.get("sessions", [])
            for event_id in await self._find_events(transaction, sessions):
                _add(rows, "webhook_events", await transaction.fetch(EXPORT_EVENT, event_id))
                _add(rows, "webhook_attempts", await transaction.fetch(EXPORT_ATTEMPTS, event_id))
            for session in sessions:
                key = SessionKey(session["day"], session["token_hash"])
                _add(rows, "phone_requests", await transaction.fetch(EXPORT_PHONE_REQUEST, *key))
                _add(rows, "prompts", await transaction.fetch(EXPORT_PROMPT, *key))
            return rows

        return await self._database.in_transaction(export)

    async def _find_events(self, transaction: Transaction, sessions: Sequence[Row]) -> list[str]:
        """Return the ids of the events of these sessions."""
        found: list[str] = []
        for session in sessions:
            values = event_position(session)
            found += [row[0] for row in await transaction.fetch(EXPORT_EVENTS_OF_SESSION, *values)]
        return found

    async def export_person(self, messenger_id: str, developer_id: str | None) -> Rows:
        async def export(transaction: Transaction) -> Rows:
            rows: Rows = {}
            if developer_id is not None:
                for (each,) in await transaction.fetch(FIND_CREATORS, developer_id, messenger_id):
                    values = ("", each, messenger_id, developer_id)
                    _add(rows, "user_days", await transaction.fetch(EXPORT_PERSON_IN_PROJECTS, *values))
                return rows
            for (each,) in await transaction.fetch(FIND_PERSONS, messenger_id):
                _add(rows, "user_days", await transaction.fetch(EXPORT_PERSON, "", each, messenger_id))
            _add(rows, "phone_requests", await transaction.fetch(EXPORT_PHONE_REQUESTS_OF_USER, messenger_id))
            _add(rows, "prompts", await transaction.fetch(EXPORT_PROMPTS_OF_USER, messenger_id))
            _add(rows, "blocks", await transaction.fetch(EXPORT_BLOCKS_OF_USER, messenger_id))
            return rows

        return await self._database.in_transaction(export)

    async def _erase_sessions(
        self, transaction: Transaction, keys: Iterable[tuple[int, bytes]], messenger_id: str
    ) -> list[str]:
        """Erase the sessions that still belong to the account, with their events, phone requests and prompts.

        Return the project of each erased session.
        """
        projects: list[str] = []
        for key in keys:
            for session in await transaction.fetch(ERASE_SESSION, *key, messenger_id):
                await transaction.fetch(ERASE_EVENTS_OF_SESSION, *session)
                await transaction.fetch(ERASE_PHONE_REQUEST, *key)
                await transaction.fetch(ERASE_PROMPT, *key)
                projects.append(session[0])
        return projects

    async def _erase_sign_ins(
        self, transaction: Transaction, messenger_id: str, developer_id: str | None, limit: int
    ) -> list[str]:
        while True:
            if developer_id is None:
                found = await transaction.fetch(FIND_SIGN_INS, messenger_id, limit)
            else:
                found = await transaction.fetch(FIND_SIGN_INS_OF_DEVELOPER, messenger_id, developer_id, limit)
            # The erasure is complete only when nothing is found: another node may have erased the found sessions
            # meanwhile.
            projects = await self._erase_sessions(transaction, [tuple(row) for row in found], messenger_id)
            if projects or not found:
                return projects


async def _find_opened(  # noqa: PLR0917 — the values of `erase_opened`, in its order.
    transaction: Transaction,
    messenger_id: str,
    of: OpenedDay,
    after: OpenedCursor | None,
    limit: int,
    developer_id: str | None,
) -> tuple[list[tuple[int, bytes]], OpenedCursor | None]:
    """Check the next `limit` sessions; return the keys of the account's, and the start of the next page."""
    keys: list[tuple[int, bytes]] = []
    if developer_id is not None and not await require_role(transaction, developer_id, of.project_id, "write"):
        return keys, None
    await transaction.read_in_order()
    left = limit
    for start in _opened_starts(of, after):
        values = (of.day, of.project_id, start.status, of.day * DAY, start.created_at, start.session_id, left)
        found = await transaction.fetch(LIST_OPENED, *values)
        keys += [(day, token_hash) for day, token_hash, _, _, opener_id in found if opener_id == messenger_id]
        left -= len(found)
        if left == 0:
            _, _, created_at, session_id, _ = found[-1]
            return keys, OpenedCursor(start.status, created_at, session_id)
    return keys, None


def event_position(session: Row) -> tuple[Any, ...]:
    """Return the values of a session that find its events, in the order of the statements."""
    return tuple(session[column] for column in _SESSION_EVENTS_AT.split(", "))


def _add(rows: Rows, table: str, found: Iterable[Sequence[Any]]) -> None:
    """Add rows that have all columns of a table."""
    names = [column.name for column in TABLES[table]]
    known = rows.setdefault(table, [])
    known += [dict(zip(names, row, strict=True)) for row in found]


async def _add_entries(transaction: Transaction, projects: list[str], describe: DescribeErased) -> None:
    """Add the audit entries of an erasure in these projects, if it erased anything."""
    for entry in describe(sorted(set(projects))) if projects else ():
        await transaction.add_entry(entry)


async def _forget_person(
    transaction: Transaction, messenger_id: str, developer_id: str | None, replacement: str
) -> list[str]:
    """Rename the user in the counts, on all days together, so that they still count as one person.

    Return the project of each changed row.
    """
    projects: list[str] = []
    if developer_id is None:
        for (each,) in await transaction.fetch(FIND_PERSON, messenger_id):
            await transaction.lock_user(each, messenger_id)
            projects += [row[1] for row in await transaction.fetch(RENAME_PERSON, replacement, each, messenger_id)]
        return projects
    for (each,) in await transaction.fetch(FIND_CREATORS, developer_id, messenger_id):
        await transaction.lock_user(each, messenger_id)
        values = (replacement, each, messenger_id, developer_id)
        found = await transaction.fetch(RENAME_PERSON_IN_PROJECTS, *values)
        projects += [row[1] for row in found]
        left = {row[0] for row in await transaction.fetch(READ_DAYS_LEFT, each, messenger_id)}
        await _count_second_person(transaction, each, {row[0] for row in found}, left)
    return projects


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
