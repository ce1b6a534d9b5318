"""Projects on SQLite."""

import json
from collections.abc import Sequence
from typing import Literal

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.errors import BotTaken
from taproof.core.model import BotChange, EncryptedWebhookSecrets, NamedProject, Project, ProjectChanges, SignInProject
from taproof.storage.account_protocol import NO_LIMIT
from taproof.storage.delivery_protocol import ENDED_AT_ONCE
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import sessions as session_queries
from taproof.storage.queries import users as user_queries
from taproof.storage.rows import change_values, project_from, project_values, sign_in_project_from
from taproof.storage.sqlite import user_counts
from taproof.storage.sqlite.access import add_entry
from taproof.storage.sqlite.bots import is_taken, write_bot
from taproof.storage.sqlite.deliveries import SqliteDeliveries, begin_ending
from taproof.storage.sqlite.group_commit import rows


class SqliteProjects(SqliteDeliveries):
    """The part of the store that knows projects. See `storage.project_protocol.ProjectStorage`."""

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
            if not rows(connection, session_queries.CREATE_PROJECT, values):
                return False
            add_entry(connection, entry)
            write_bot(connection, (project.developer_id, project.id), bot)
            return True

        created: bool | Literal["taken"] = await self._writer.run(write)
        if created == "taken":
            raise BotTaken
        return created

    async def read_project(self, project_id: str) -> Project | None:
        found = self._read(session_queries.READ_PROJECT, (project_id,))
        return project_from(found[0]) if found else None

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        found = self._read(session_queries.READ_WEBHOOK_SECRETS, (project_id,))
        return EncryptedWebhookSecrets(*found[0]) if found else None

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        found = self._read(session_queries.READ_PROJECT_BY_SECRET_KEY, (secret_key_hash,))
        return project_from(found[0]) if found else None

    async def list_projects(self, developer_id: str) -> list[Project]:
        return await self._look_up(
            lambda read: [project_from(row) for row in read(session_queries.LIST_PROJECTS, (developer_id,))]
        )

    async def count_projects(self, developer_id: str) -> int:
        return int(self._read(session_queries.COUNT_PROJECTS, (developer_id,))[0][0])

    async def name_projects(self, developer_id: str) -> list[NamedProject]:
        return [NamedProject(*row) for row in self._read(session_queries.NAME_PROJECTS, (developer_id,))]

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        values = (developer_id, json.dumps(list(project_ids)))
        return await self._look_up(
            lambda read: [project_from(row) for row in read(session_queries.READ_PROJECTS, values)]
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
            if not rows(connection, session_queries.UPDATE_PROJECT, (*change_values(changes), *owned)):
                return None
            if changes.webhook_url is not None:
                connection.execute(delivery_queries.FORGET_ENDPOINT, (project_id,))
            if changes.webhook_url == "":
                begin_ending(connection, project_id, now)
            if changes != ProjectChanges():
                add_entry(connection, entry)
            write_bot(connection, owned, bot)
            return project_from(rows(connection, session_queries.READ_PROJECT, (project_id,))[0])

        project: Project | Literal["later", "taken"] | None = await self._writer.run(write)
        while project == "later":
            await self._end_more(delivery_queries.FIND_ENDED_WEBHOOK, owned, ENDED_AT_ONCE)
            project = await self._writer.run(write)
        if project == "taken":
            raise BotTaken
        return project

    async def replace_project_secrets(
        self,
        developer_id: str,
        project_id: str,
        secret_key_hash: bytes,
        secret_key_preview: str,
        encrypted_webhook_secret: bytes,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        values = (secret_key_hash, secret_key_preview, encrypted_webhook_secret, developer_id, project_id)
        return bool(await self._write(session_queries.REPLACE_PROJECT_SECRETS, values, entry))

    async def rotate_webhook_secret(
        self,
        developer_id: str,
        project_id: str,
        encrypted_next_secret: bytes,
        now: int,
        next_at: int,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        values = (encrypted_next_secret, next_at, developer_id, project_id, now)
        return bool(await self._write(session_queries.ROTATE_WEBHOOK_SECRET, values, entry))

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        return bool(await self._write(session_queries.PROMOTE_WEBHOOK_SECRET, (developer_id, project_id, now), entry))

    async def delete_project(self, developer_id: str, project_id: str, *, entry: AuditEntry | None = None) -> bool:
        def write(connection: apsw.Connection) -> bool:
            if not rows(connection, session_queries.DELETE_PROJECT, (developer_id, project_id)):
                return False
            connection.execute(session_queries.REMEMBER_DELETED_PROJECT, (project_id, developer_id))
            add_entry(connection, entry)
            return True

        return bool(await self._writer.run(write))

    async def purge_deleted_projects(self, limit: int) -> int:
        if not self._read(session_queries.NEXT_DELETED_PROJECT, ()):
            return 0

        def write(connection: apsw.Connection) -> int:
            found = rows(connection, session_queries.NEXT_DELETED_PROJECT)
            if not found:
                return 0
            project_id, developer_id = found[0]
            erased = len(rows(connection, session_queries.ERASE_SESSIONS, (project_id, limit)))
            erased += len(rows(connection, session_queries.ERASE_EVENTS, (project_id, limit)))
            erased += user_counts.erase_users(connection, developer_id, project_id, limit // 5 + 1)
            if erased == 0:
                connection.execute(session_queries.ERASE_DAILY_COUNTS, (project_id,))
                connection.execute(delivery_queries.FORGET_ENDPOINT, (project_id,))
                connection.execute(user_queries.ERASE_BLOCKS, (project_id,))
                connection.execute(session_queries.FORGET_DELETED_PROJECT, (project_id,))
                erased = 1
            return erased

        return int(await self._writer.run(write))

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        found = self._read(session_queries.READ_SIGN_IN_PROJECT, (project_id,))
        return sign_in_project_from(found[0]) if found else None
