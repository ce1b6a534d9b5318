"""Projects on PostgreSQL."""

from collections.abc import Sequence
from typing import Final

import asyncpg

from taproof.core.projects import Project
from taproof.storage.postgres.database import PostgresDatabase, storable
from taproof.storage.queries import counts as count_queries
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import projects as queries
from taproof.storage.queries import users as user_queries
from taproof.storage.queries.oidc import grants as grant_queries
from taproof.storage.rows import project_from

READ_PROJECTS: Final = queries.READ_PROJECTS.replace("IN (SELECT value FROM json_each($2))", "= ANY ($2::TEXT[])")
_SETTLED: Final = "deleted_at < clock_timestamp() - INTERVAL '60 seconds'"
"""After this time, no statement that began before the deletion is still running, because each ends within seconds."""
ANY_DELETED_PROJECT: Final = f"SELECT 1 FROM deleted_projects WHERE is_erased = 0 OR {_SETTLED} LIMIT 1"
NEXT_DELETED_PROJECT: Final = f"""
SELECT id, developer_id, creator_id, {_SETTLED} FROM deleted_projects WHERE is_erased = 0 OR {_SETTLED}
ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"""
MARK_ERASED_PROJECT: Final = "UPDATE deleted_projects SET is_erased = 1 WHERE id = $1"
DAY_OF_PROJECT: Final = "SELECT day FROM sessions WHERE project_id = $1 LIMIT 1"
ERASE_SESSIONS: Final = """
WITH old AS MATERIALIZED
  (SELECT token_hash FROM sessions WHERE day = $1 AND project_id = $2 LIMIT $3 FOR UPDATE SKIP LOCKED)
DELETE FROM sessions s USING old WHERE s.day = $1 AND s.token_hash = old.token_hash RETURNING s.day"""
ERASE_PEOPLE: Final = "SELECT erase_people($1, $2, $3, $4)"


class PostgresProjects(queries.ProjectQueries):
    """See `storage.queries.projects.ProjectQueries`."""

    _database: PostgresDatabase

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        found = await self._database.read(READ_PROJECTS, developer_id, storable(project_ids))
        return [project_from(row) for row in found]

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase a part of the next deleted project.

        A row of deleted_projects is erased at the earliest a minute after the deletion of its project: see the schema.
        """
        if not await self._database.fetch(ANY_DELETED_PROJECT):
            return 0

        async def purge(connection: asyncpg.Connection) -> int:
            project = await connection.fetchrow(NEXT_DELETED_PROJECT)
            return 0 if project is None else await _erase_project(connection, project, limit)

        return await self._database.transact(purge)


async def _erase_project(connection: asyncpg.Connection, project: asyncpg.Record, limit: int) -> int:
    """Erase a part of a deleted project, in the transaction that locks its row."""
    project_id, plan_id, creator_id, is_settled = project
    erased = 0
    left = limit
    while left > 0 and (day := await connection.fetchval(DAY_OF_PROJECT, project_id)) is not None:
        # A session that another transaction has locked is skipped. This step is then not the last one.
        sessions = max(1, len(await connection.fetch(ERASE_SESSIONS, day, project_id, left)))
        erased += sessions
        left -= sessions
    erased += len(await connection.fetch(queries.ERASE_EVENTS.postgres, project_id, limit))
    erased += len(await connection.fetch(grant_queries.ERASE_GRANTS_OF_PROJECT.postgres, project_id, limit))
    erased += await connection.fetchval(ERASE_PEOPLE, creator_id, project_id, plan_id, limit // 5 + 1)
    if erased == 0:
        # Counts are not personal data. Counts that a late statement adds are erased together with the project's row.
        await connection.execute(count_queries.ERASE_DAILY_COUNTS, project_id)
        await connection.execute(delivery_queries.FORGET_ENDPOINT, project_id)
        await connection.execute(user_queries.ERASE_BLOCKS, project_id)
        await connection.execute(grant_queries.ERASE_LOGOUTS_OF_PROJECT, project_id)
        end = queries.FORGET_DELETED_PROJECT if is_settled else MARK_ERASED_PROJECT
        await connection.execute(end, project_id)
        erased = 1
    return erased
