"""Projects on SQLite."""

import json
from collections.abc import Sequence
from typing import Literal

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.errors import BotTaken
from taproof.core.model import BotChange, EncryptedWebhookSecrets, Project, ProjectChanges, SignInProject
from taproof.storage.protocol import ENDED_AT_ONCE, NO_LIMIT
from taproof.storage.queries import counts as count_queries
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import projects as queries
from taproof.storage.queries import users as user_queries
from taproof.storage.rows import change_values, project_from, project_values, sign_in_project_from
from taproof.storage.sqlite.bots import is_taken, write_bot
from taproof.storage.sqlite.counts import erase_users
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.deliveries import begin_ending, end_more
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.transaction import add_entry


class SqliteProjects(queries.ProjectQueries[SqliteDatabase]):
    """See `storage.protocol.ProjectStorage`."""

    async def create_project(
        self,
        project: Project,
        secret_key_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        entry: AuditEntry | None = None,
        bot: BotChange | None = None,
    ) -> bool:
        values = (*project_values(project, secret_key_hash), limit)

        def write(connection: apsw.Connection) -> bool | Literal["taken"]:
            if is_taken(connection, project.id, bot):
                return "taken"
            if not rows(connection, queries.CREATE_PROJECT, values):
                return False
            add_entry(connection, entry)
            write_bot(connection, (project.developer_id, project.id), bot)
            return True

        created = await self._database.writer.run(write)
        if created == "taken":
            raise BotTaken
        return created

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

    async def update_project(
        self,
        developer_id: str,
        project_id: str,
        changes: ProjectChanges,
        now: int,
        *,
        entry: AuditEntry | None = None,
        bot: BotChange | None = None,
    ) -> Project | None:
        owned = (developer_id, project_id)

        def write(connection: apsw.Connection) -> Project | Literal["later", "taken"] | None:
            if changes.webhook_url and rows(connection, delivery_queries.FIND_ENDED_WEBHOOK, owned):
                return "later"
            if is_taken(connection, project_id, bot):
                return "taken"
            if not rows(connection, queries.UPDATE_PROJECT, (*change_values(changes), *owned)):
                return None
            if changes.webhook_url is not None:
                connection.execute(delivery_queries.FORGET_ENDPOINT, (project_id,))
            if changes.webhook_url == "":
                begin_ending(connection, project_id, now)
            if changes != ProjectChanges():
                add_entry(connection, entry)
            write_bot(connection, owned, bot)
            return project_from(rows(connection, queries.READ_PROJECT, (project_id,))[0])

        project = await self._database.writer.run(write)
        while project == "later":
            await end_more(self._database, delivery_queries.FIND_ENDED_WEBHOOK, owned, ENDED_AT_ONCE)
            project = await self._database.writer.run(write)
        if project == "taken":
            raise BotTaken
        return project

    async def purge_deleted_projects(self, limit: int) -> int:
        if not self._database.rows(queries.NEXT_DELETED_PROJECT, ()):
            return 0

        def write(connection: apsw.Connection) -> int:
            found = rows(connection, queries.NEXT_DELETED_PROJECT)
            if not found:
                return 0
            project_id, developer_id = found[0]
            erased = len(rows(connection, queries.ERASE_SESSIONS, (project_id, limit)))
            erased += len(rows(connection, queries.ERASE_EVENTS, (project_id, limit)))
            erased += erase_users(connection, developer_id, project_id, limit // 5 + 1)
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
