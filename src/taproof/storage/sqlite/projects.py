"""Projects on SQLite."""

import apsw

from taproof.storage.queries import counts as count_queries
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import projects as queries
from taproof.storage.queries import users as user_queries
from taproof.storage.sqlite.counts import remove_user_days
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows


class SqliteProjects(queries.ProjectQueries[SqliteDatabase]):
    """See `storage.protocol.ProjectStorage`."""

    async def purge_deleted_projects(self, limit: int) -> int:
        if not self._database.rows(queries.NEXT_DELETED_PROJECT, ()):
            return 0

        def write(connection: apsw.Connection) -> int:
            found = rows(connection, queries.NEXT_DELETED_PROJECT)
            if not found:
                return 0
            project_id, plan_id, creator_id = found[0]
            erased = len(rows(connection, queries.ERASE_SESSIONS.sqlite, (project_id, limit)))
            erased += len(rows(connection, queries.ERASE_EVENTS.sqlite, (project_id, limit)))
            erased += remove_user_days(connection, creator_id, project_id, plan_id, limit // 5 + 1)
            if erased == 0:
                connection.execute(count_queries.ERASE_DAILY_COUNTS, (project_id,))
                connection.execute(delivery_queries.FORGET_ENDPOINT, (project_id,))
                connection.execute(user_queries.ERASE_BLOCKS, (project_id,))
                connection.execute(queries.FORGET_DELETED_PROJECT, (project_id,))
                erased = 1
            return erased

        return await self._database.writer.run(write)
