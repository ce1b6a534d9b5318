"""Projects on SQLite."""

import json
from collections.abc import Sequence

import apsw

from taproof.core.model import EncryptedWebhookSecrets, Project, SignInProject
from taproof.storage.queries import counts as count_queries
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import projects as queries
from taproof.storage.queries import users as user_queries
from taproof.storage.rows import project_from, sign_in_project_from
from taproof.storage.sqlite.counts import remove_user_days
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows


class SqliteProjects(queries.ProjectQueries[SqliteDatabase]):
    """See `storage.protocol.ProjectStorage`."""

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        found = self._database.rows(queries.READ_WEBHOOK_SECRETS, (project_id,))
        return EncryptedWebhookSecrets(*found[0]) if found else None

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        found = self._database.rows(queries.READ_PROJECT_BY_SECRET_KEY, (secret_key_hash,))
        return project_from(found[0]) if found else None

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        values = (developer_id, json.dumps(list(project_ids)))
        return await self._database.in_snapshot(
            lambda read: [project_from(row) for row in read(queries.READ_PROJECTS, values)]
        )

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

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        found = self._database.rows(queries.READ_SIGN_IN_PROJECT, (project_id,))
        return sign_in_project_from(found[0]) if found else None
