"""The statements that erase or export one user's data. For the lock order on PostgreSQL, see `postgres/__init__.py`."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from taproof.core.accounts import AuditEntry
from taproof.core.errors import ProjectNotFound
from taproof.core.roles import require_action, roles_with
from taproof.core.sessions import SessionKey
from taproof.storage.export.format import TABLES
from taproof.storage.queries.counts import COUNT_DEVELOPER_USERS
from taproof.storage.queries.database import Queries
from taproof.storage.queries.oidc.grants import erase_grants
from taproof.storage.queries.rights import FIND_ROLE, require_role
from taproof.storage.queries.transaction import Transaction

_WRITERS: Final = ", ".join(f"'{role}'" for role in roles_with("write"))
FIND_WRITABLE: Final = f"""
SELECT project_id FROM project_members WHERE developer_id = $1 AND role IN ({_WRITERS}) ORDER BY project_id"""
"""Finds the projects whose data a developer may change. The lock keeps these memberships unchanged."""
FIND_PROJECT: Final = """
SELECT project_id FROM sessions WHERE opener_id = $1 AND project_id > $2 ORDER BY project_id LIMIT 1"""
# The cost depends only on the developer's own projects, not on other projects in which the account signed in. With
# EXISTS, PostgreSQL would join, and read sessions of other projects or other users.
FIND_PROJECT_OF_DEVELOPER: Final = f"""
SELECT m.project_id FROM project_members m
WHERE m.developer_id = $1 AND m.project_id > $2 AND m.role IN ({_WRITERS})
  AND (SELECT 1 FROM sessions s WHERE s.opener_id = $3 AND s.project_id = m.project_id
    ORDER BY s.day, s.token_hash LIMIT 1) = 1
ORDER BY m.project_id LIMIT 1"""
FIND_SESSIONS: Final = """
SELECT day, token_hash FROM sessions WHERE opener_id = $1 AND project_id = $2 ORDER BY day, token_hash LIMIT $3"""
# A developer without projects has no rows in `user_days` either, except for a while after deleting a project.
FIND_PERSONS: Final = """
SELECT x.creator_id FROM (SELECT creator_id FROM projects UNION SELECT creator_id FROM deleted_projects) x
WHERE EXISTS (SELECT 1 FROM user_days u WHERE u.developer_id = x.creator_id AND u.messenger_id = $1)"""
FIND_PERSON: Final = f"{FIND_PERSONS} LIMIT 1"
# Each of these conditions is part of the statement that erases the rows, and of the one that exports them.
_SESSION: Final = "FROM sessions WHERE day = $1 AND token_hash = $2 AND opener_id = $3"
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
_GRANTS_OF_USER: Final = "FROM oidc_grants WHERE messenger_id = $1"
_GRANTS_IN_PROJECTS: Final = f"""{_GRANTS_OF_USER} AND project_id IN (
  SELECT m.project_id FROM project_members m WHERE m.developer_id = $2 AND m.role IN ({_WRITERS}))"""
FIND_GRANTS: Final = f"SELECT id {_GRANTS_OF_USER} ORDER BY id LIMIT $2"
FIND_GRANTS_IN_PROJECTS: Final = f"SELECT id {_GRANTS_IN_PROJECTS} ORDER BY id LIMIT $3"
ERASE_BLOCKS_OF_USER: Final = """
DELETE FROM blocks WHERE messenger_id = $1 AND project_id IN (
  SELECT project_id FROM blocks WHERE messenger_id = $1 LIMIT $2) RETURNING project_id"""
_GROUPS_OF_USER: Final = "FROM oidc_group_members WHERE messenger_id = $1"
_GROUPS_IN_PROJECTS: Final = f"""{_GROUPS_OF_USER} AND client_id IN (
  SELECT c.id FROM oidc_clients c JOIN project_members m ON m.project_id = c.project_id
  WHERE m.developer_id = $2 AND m.role IN ({_WRITERS}))"""
_OF_PROJECT: Final = "RETURNING (SELECT c.project_id FROM oidc_clients c WHERE c.id = client_id)"
_CLIENTS_WITH_USER: Final = "SELECT c.id FROM oidc_clients c WHERE c.id IN (SELECT client_id {}) ORDER BY c.id"
HOLD_CLIENTS: Final = _CLIENTS_WITH_USER.format(_GROUPS_OF_USER)
HOLD_CLIENTS_IN_PROJECTS: Final = _CLIENTS_WITH_USER.format(_GROUPS_IN_PROJECTS)
LEAVE_GROUPS: Final = f"DELETE {_GROUPS_OF_USER} {_OF_PROJECT}"
LEAVE_GROUPS_IN_PROJECTS: Final = f"DELETE {_GROUPS_IN_PROJECTS} {_OF_PROJECT}"


# ---- the export of what the statements above erase


def columns_of(table: str) -> str:
    """Return the columns of a table, for a SELECT."""
    return ", ".join(column.name for column in TABLES[table])


EXPORT_SESSIONS: Final = f"""
SELECT {columns_of("sessions")} FROM sessions
WHERE opener_id = $1 AND project_id = $2 AND (day, token_hash) > ($3, $4) ORDER BY day, token_hash LIMIT $5"""
IS_KEPT: Final = f"SELECT 1 {_SESSION}"
EXPORT_EVENTS_OF_SESSION: Final = f"SELECT id {_EVENTS_OF_SESSION}"
EXPORT_EVENT: Final = f"SELECT {columns_of('webhook_events')} FROM webhook_events WHERE id = $1"
EXPORT_ATTEMPTS: Final = f"SELECT {columns_of('webhook_attempts')} FROM webhook_attempts WHERE event_id = $1"
EXPORT_PHONE_REQUEST: Final = f"SELECT {columns_of('phone_requests')} {_PHONE_REQUEST}"
EXPORT_PROMPT: Final = f"SELECT {columns_of('prompts')} {_PROMPT}"
# `$1` is the replacement in the statements that erase these rows.
_USER_DAYS: Final = f"SELECT {columns_of('user_days')} FROM user_days WHERE messenger_id <> $1 AND"
EXPORT_PERSON: Final = f"""{_USER_DAYS} {_PERSON}
  AND (day, project_id) > ($4, $5) ORDER BY day, project_id LIMIT $6"""
EXPORT_PERSON_IN_PROJECTS: Final = f"""{_USER_DAYS} {_PERSON_IN_PROJECTS}
  AND (day, project_id) > ($5, $6) ORDER BY day, project_id LIMIT $7"""
_OF_NO_SESSION: Final = """r.messenger_id = $1 AND (r.day, r.token_hash) > ($2, $3) AND NOT EXISTS (
  SELECT 1 FROM sessions s WHERE s.day = r.day AND s.token_hash = r.token_hash AND s.opener_id = $1)
ORDER BY r.day, r.token_hash LIMIT $4"""
EXPORT_PHONE_REQUESTS_OF_USER: Final = f"""
SELECT {columns_of("phone_requests")} FROM phone_requests r WHERE {_OF_NO_SESSION}"""
EXPORT_PROMPTS_OF_USER: Final = f"SELECT {columns_of('prompts')} FROM prompts r WHERE {_OF_NO_SESSION}"
_GROUP_POSITION: Final = "ORDER BY client_id, group_name"
EXPORT_GROUPS: Final = f"SELECT client_id, group_name {_GROUPS_OF_USER} {_GROUP_POSITION}"
EXPORT_GROUPS_IN_PROJECTS: Final = f"SELECT client_id, group_name {_GROUPS_IN_PROJECTS} {_GROUP_POSITION}"
EXPORT_GRANTS: Final = f"""
SELECT {columns_of("oidc_grants")} {_GRANTS_OF_USER} AND id > $2 ORDER BY id LIMIT $3"""
EXPORT_GRANTS_IN_PROJECTS: Final = f"""
SELECT {columns_of("oidc_grants")} {_GRANTS_IN_PROJECTS} AND id > $3 ORDER BY id LIMIT $4"""
EXPORT_BLOCKS_OF_USER: Final = f"""
SELECT {columns_of("blocks")} FROM blocks WHERE messenger_id = $1 AND project_id > $2 ORDER BY project_id LIMIT $3"""


Row = dict[str, Any]
"""All columns of a row, as stored."""
Rows = dict[str, list[Row]]
"""Rows by table."""
DescribeErased = Callable[[Collection[str]], Iterable[AuditEntry]]
"""Returns the audit entries of a transaction that erased something in these projects. It can be called again, when the
transaction is repeated."""
UserTable = Literal["phone_requests", "prompts", "blocks"]
"""A table with rows about a user that belong to no session and to no developer."""
FIRST_KEY: Final = SessionKey(-1, b"")
"""A key below those of all sessions."""


class DaysCursor(NamedTuple):
    """A position in the list of the days on which a user signed in."""

    creator_id: str
    day: int
    project_id: str


FIRST_DAY: Final = DaysCursor("", -1, "")
"""A position before all days."""


class ErasureQueries(Queries):
    """Erases users' data, or exports the same data. Each call is bounded, so it blocks other calls only briefly.

    A session is erased with its phone number, its webhook events (due ones too) and its request for a phone number, in
    one transaction. Counts do not change. With `developer_id`, only the projects are searched whose data this developer
    may change; each call checks their role in its transaction.

    A user's sessions are those that the account opened, confirmed or not. They are found by an index, by project and
    then by key, so the cost of a call does not depend on other users, nor on the user's sessions in other projects.
    """

    _export_page = EXPORT_SESSIONS

    async def find_writable(self, developer_id: str) -> set[str]:
        """Return the projects whose data the developer may change."""
        return {row[0] for row in await self._database.look_up(FIND_WRITABLE, developer_id)}

    async def find_project(self, messenger_id: str, developer_id: str | None, after: str) -> str | None:
        """Return the first project after `after`, in the order of ids, with sessions of the account; None at the end.

        It may be a deleted project whose data is not erased yet, if there is no `developer_id`.
        """

        async def find(transaction: Transaction) -> str | None:
            await transaction.read_in_order()
            if developer_id is None:
                found = await transaction.fetch(FIND_PROJECT, messenger_id, after)
            else:
                found = await transaction.fetch(FIND_PROJECT_OF_DEVELOPER, developer_id, after, messenger_id)
            return found[0][0] if found else None

        return await self._database.in_lookup(find)

    async def erase_sessions(
        self,
        messenger_id: str,
        project_id: str,
        developer_id: str | None,
        limit: int,
        *,
        describe: DescribeErased,
    ) -> int:
        """Erase the first `limit` sessions of the account in a project; return their number (0: none is left).

        Raises:
            InsufficientRole: the developer's role does not permit it.
        """

        async def erase(transaction: Transaction) -> int:
            if developer_id is not None and not await require_role(transaction, developer_id, project_id, "write"):
                return 0
            await transaction.read_in_order()
            while found := await transaction.fetch(FIND_SESSIONS, messenger_id, project_id, limit):
                # Nothing is erased if another node has erased these sessions meanwhile. Others may be left.
                keys = [tuple(row) for row in found]
                if erased := await self._erase_sessions(transaction, keys, messenger_id):
                    await _add_entries(transaction, [project_id], describe)
                    return erased
            return 0

        return await self._database.in_transaction(erase)

    async def erase_person(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        now: int,
        *,
        describe: DescribeErased,
    ) -> int:
        """Erase what is stored about an account besides its sessions; return the number of rows (0: nothing is left).

        At most `limit` grants are erased in a call. Their clients are told that the user is signed out at `now` (ms).
        The record of a confirmation on a day is kept, with the user replaced by `replacement`, so that the counts of
        distinct users remain exact. `replacement` must be unique for each call. Without `developer_id`, the account's
        blocks are erased too, at most `limit` in a call, since they belong to the user and not to a developer.
        """

        async def erase(transaction: Transaction) -> int:
            if developer_id is not None:
                await transaction.lock(FIND_WRITABLE, developer_id)
            projects = await _forget_person(transaction, messenger_id, developer_id, replacement)
            projects += await _leave_groups(transaction, messenger_id, developer_id)
            statement = FIND_GRANTS if developer_id is None else FIND_GRANTS_IN_PROJECTS
            found = await transaction.lock(statement, messenger_id, *_given(developer_id), limit)
            projects += await erase_grants(transaction, found, now)
            await _add_entries(transaction, projects, describe)
            if projects or developer_id is not None:
                return len(projects)
            return await _erase_rest(transaction, messenger_id, limit)

        return await self._database.in_transaction(erase)

    async def export_sessions(
        self, messenger_id: str, project_id: str, developer_id: str | None, after: SessionKey, limit: int
    ) -> Rows:
        """Return the next `limit` sessions after `after` that `erase_sessions` would erase, with their rows.

        The sessions are in the order in which they would be erased, and the rows of a call belong together.

        Raises:
            ProjectNotFound: the developer is no member of the project.
            InsufficientRole: the developer's role does not permit it.
        """

        async def export(transaction: Transaction) -> Rows:
            if developer_id is not None:
                await _check_role(transaction, developer_id, project_id)
            await transaction.read_in_order()
            rows: Rows = {}
            found = await transaction.fetch(self._export_page, messenger_id, project_id, *after, limit)
            add_rows(rows, "sessions", found)
            await self._export_of_sessions(transaction, rows["sessions"], rows)
            return rows

        return await self._database.in_lookup(export)

    async def _export_of_sessions(self, transaction: Transaction, sessions: Sequence[Row], rows: Rows) -> None:
        """Add the rows that are erased with these sessions."""
        for session in sessions:
            for (event_id,) in await transaction.fetch(EXPORT_EVENTS_OF_SESSION, *event_position(session)):
                add_rows(rows, "webhook_events", await transaction.fetch(EXPORT_EVENT, event_id))
                add_rows(rows, "webhook_attempts", await transaction.fetch(EXPORT_ATTEMPTS, event_id))
            key = (session["day"], session["token_hash"])
            add_rows(rows, "phone_requests", await transaction.fetch(EXPORT_PHONE_REQUEST, *key))
            add_rows(rows, "prompts", await transaction.fetch(EXPORT_PROMPT, *key))

    async def is_kept(self, messenger_id: str, key: SessionKey) -> bool:
        """Return whether a session of the account still exists."""
        return bool(await self._database.read(IS_KEPT, *key, messenger_id))

    async def export_days(
        self, messenger_id: str, developer_id: str | None, after: DaysCursor, limit: int
    ) -> list[Row]:
        """Return the next `limit` rows of `user_days` that `erase_person` would rename."""

        async def export(transaction: Transaction) -> list[Row]:
            rows: Rows = {"user_days": []}
            if developer_id is None:
                statement, scope = EXPORT_PERSON, []
                creators = await transaction.fetch(FIND_PERSONS, messenger_id)
            else:
                statement, scope = EXPORT_PERSON_IN_PROJECTS, [developer_id]
                creators = await transaction.fetch(FIND_CREATORS, developer_id, messenger_id)
            for creator_id in sorted(row[0] for row in creators if row[0] >= after.creator_id):
                position = after[1:] if creator_id == after.creator_id else (-1, "")
                values = ("", creator_id, messenger_id, *scope, *position, limit - len(rows["user_days"]))
                add_rows(rows, "user_days", await transaction.fetch(statement, *values))
                if len(rows["user_days"]) == limit:
                    break
            return rows["user_days"]

        return await self._database.in_lookup(export)

    async def export_groups(self, messenger_id: str, developer_id: str | None) -> list[Row]:
        """Return the groups of clients that `erase_person` would make the account leave."""
        statement = EXPORT_GROUPS if developer_id is None else EXPORT_GROUPS_IN_PROJECTS
        found = await self._database.look_up(statement, messenger_id, *_given(developer_id))
        return [{"client_id": client_id, "group_name": name} for client_id, name in found]

    async def export_grants(self, messenger_id: str, developer_id: str | None, after: str, limit: int) -> list[Row]:
        """Return the next `limit` grants after the id `after` that `erase_person` would erase."""
        rows: Rows = {}
        statement = EXPORT_GRANTS if developer_id is None else EXPORT_GRANTS_IN_PROJECTS
        values = (messenger_id, *_given(developer_id), after, limit)
        add_rows(rows, "oidc_grants", await self._database.look_up(statement, *values))
        return rows["oidc_grants"]

    async def export_rest(self, messenger_id: str, table: UserTable, after: Row | None, limit: int) -> list[Row]:
        """Return the next `limit` other rows that `erase_person` would erase, strictly after the row `after`.

        Rows of sessions of the account are left out.
        """
        rows: Rows = {}
        if table == "blocks":
            after_id = "" if after is None else after["project_id"]
            add_rows(rows, table, await self._database.look_up(EXPORT_BLOCKS_OF_USER, messenger_id, after_id, limit))
        else:
            statement = EXPORT_PROMPTS_OF_USER if table == "prompts" else EXPORT_PHONE_REQUESTS_OF_USER
            key = (-1, b"") if after is None else (after["day"], after["token_hash"])
            add_rows(rows, table, await self._database.look_up(statement, messenger_id, *key, limit))
        return rows[table]

    async def _erase_sessions(
        self, transaction: Transaction, keys: Iterable[tuple[int, bytes]], messenger_id: str
    ) -> int:
        """Erase the sessions that still belong to the account, with their events, phone requests and prompts.

        Return the number of erased sessions.
        """
        erased = 0
        for key in keys:
            for session in await transaction.fetch(ERASE_SESSION, *key, messenger_id):
                await transaction.fetch(ERASE_EVENTS_OF_SESSION, *session)
                await transaction.fetch(ERASE_PHONE_REQUEST, *key)
                await transaction.fetch(ERASE_PROMPT, *key)
                erased += 1
        return erased


def _given(developer_id: str | None) -> tuple[str, ...]:
    return () if developer_id is None else (developer_id,)


async def _check_role(transaction: Transaction, developer_id: str, project_id: str) -> None:
    found = await transaction.fetch(FIND_ROLE, project_id, developer_id)
    if not found:
        raise ProjectNotFound
    require_action(found[0][0], "write")


def event_position(session: Row) -> tuple[Any, ...]:
    """Return the values of a session that find its events, in the order of the statements."""
    return tuple(session[column] for column in _SESSION_EVENTS_AT.split(", "))


def add_rows(rows: Rows, table: str, found: Iterable[Sequence[Any]]) -> None:
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
    """Count a user as two people if some of their days were renamed and others remain elsewhere."""
    if not renamed or not left:
        return
    later_of_each = min(max(renamed), max(left))
    for day in sorted({*(renamed & left), later_of_each}):
        changes = (int(day in renamed and day in left), int(day == later_of_each))
        await transaction.add(COUNT_DEVELOPER_USERS, creator_id, day, *changes)


async def _leave_groups(transaction: Transaction, messenger_id: str, developer_id: str | None) -> list[str]:
    """Remove the user from the groups of clients. Return the project of each membership.

    An edit of groups locks its client before it reads the groups. Without the same lock, it could write the user back.
    """
    hold, leave = HOLD_CLIENTS, LEAVE_GROUPS
    if developer_id is not None:
        hold, leave = HOLD_CLIENTS_IN_PROJECTS, LEAVE_GROUPS_IN_PROJECTS
    await transaction.lock(hold, messenger_id, *_given(developer_id))
    found = await transaction.fetch(leave, messenger_id, *_given(developer_id))
    return [row[0] for row in found if row[0] is not None]


async def _erase_rest(transaction: Transaction, messenger_id: str, limit: int) -> int:
    requests = await transaction.fetch(ERASE_PHONE_REQUESTS_OF_USER, messenger_id)
    await transaction.lock(HOLD_PROMPTS_OF_USER, messenger_id)
    requests += await transaction.fetch(ERASE_PROMPTS_OF_USER, messenger_id)
    return len(requests) + len(await transaction.fetch(ERASE_BLOCKS_OF_USER, messenger_id, limit))
