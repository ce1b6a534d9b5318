"""Projects on PostgreSQL."""

from collections.abc import Sequence
from typing import Final

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.model import BotChange, EncryptedWebhookSecrets, NamedProject, Project, ProjectChanges, SignInProject
from taproof.storage.account_protocol import NO_LIMIT
from taproof.storage.delivery_protocol import ENDED_AT_ONCE
from taproof.storage.postgres import delivery_sql, developer_sql, sql
from taproof.storage.postgres.batcher import Batcher
from taproof.storage.postgres.bots import hold_projects, write_bot
from taproof.storage.postgres.deliveries import PostgresDeliveries, begin_ending
from taproof.storage.postgres.developers import add_entry
from taproof.storage.postgres.plans import hold_plan
from taproof.storage.postgres.pool import PostgresPool, storable
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import sessions as session_queries
from taproof.storage.queries import users as user_queries
from taproof.storage.rows import change_values, project_from, project_values, sign_in_project_from

_READS: Final = 512


class _StillEnding(Exception):
    """Undoes the transaction of `update_project`."""


class PostgresProjects(PostgresDeliveries):
    """The part of the store that knows projects. See `storage.project_protocol.ProjectStorage`."""

    def __init__(self, pool: PostgresPool) -> None:
        super().__init__(pool)
        self._secrets = Batcher[str, EncryptedWebhookSecrets | None](self._read_secrets, limit=_READS)
        self._sign_in_projects = Batcher[str, SignInProject | None](self._read_sign_in_projects, limit=_READS)
        self._keys = Batcher[bytes, Project | None](self._read_by_keys, limit=_READS)

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

        async def create(connection: asyncpg.Connection) -> bool:
            await connection.execute(developer_sql.HOLD_DEVELOPER, project.developer_id)
            if not await connection.fetch(session_queries.CREATE_PROJECT, *values):
                return False
            await add_entry(connection, entry)
            await write_bot(connection, (project.developer_id, project.id), bot)
            return True

        return await self._pool.transact(create)

    async def read_project(self, project_id: str) -> Project | None:
        found = await self._pool.find(session_queries.READ_PROJECT, project_id)
        return project_from(found[0]) if found else None

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        return None if "\0" in project_id else await self._secrets.run(project_id)

    async def _read_secrets(self, project_ids: list[str]) -> list[EncryptedWebhookSecrets | None]:
        rows = await self._pool.fetch(sql.READ_WEBHOOK_SECRETS, project_ids)
        found = {row[0]: EncryptedWebhookSecrets(*row[1:]) for row in rows}
        return [found.get(each) for each in project_ids]

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        return await self._keys.run(secret_key_hash)

    async def _read_by_keys(self, hashes: list[bytes]) -> list[Project | None]:
        rows = await self._pool.fetch(sql.READ_PROJECTS_BY_SECRET_KEY, hashes)
        found = {row[-1]: project_from(row[:-1]) for row in rows}
        return [found.get(each) for each in hashes]

    async def list_projects(self, developer_id: str) -> list[Project]:
        return [project_from(row) for row in await self._pool.find(session_queries.LIST_PROJECTS, developer_id)]

    async def count_projects(self, developer_id: str) -> int:
        found = await self._pool.find(session_queries.COUNT_PROJECTS, developer_id)
        return int(found[0][0]) if found else 0

    async def name_projects(self, developer_id: str) -> list[NamedProject]:
        return [NamedProject(*row) for row in await self._pool.find(session_queries.NAME_PROJECTS, developer_id)]

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        found = await self._pool.find(sql.READ_PROJECTS, developer_id, storable(project_ids))
        return [project_from(row) for row in found]

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
        if "\0" in project_id:
            return None

        async def update(connection: asyncpg.Connection) -> Project | None:
            await hold_plan(connection, developer_id, changes)
            await hold_projects(connection, project_id, bot)
            if not await connection.fetch(
                session_queries.UPDATE_PROJECT, *change_values(changes), developer_id, project_id
            ):
                return None
            if changes.webhook_url and await connection.fetch(
                delivery_queries.FIND_ENDED_WEBHOOK, developer_id, project_id
            ):
                raise _StillEnding
            if changes.webhook_url == "":
                await begin_ending(connection, project_id, now)
            if changes.webhook_url is not None:
                await connection.execute(delivery_queries.FORGET_ENDPOINT, project_id)
            if changes != ProjectChanges():
                await add_entry(connection, entry)
            await write_bot(connection, (developer_id, project_id), bot)
            return project_from(await connection.fetchrow(session_queries.READ_PROJECT, project_id))

        while True:
            try:
                return await self._pool.transact(update)
            except _StillEnding:
                await self._end_more(delivery_sql.FIND_ENDED_WEBHOOK, (developer_id, project_id), ENDED_AT_ONCE)

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
        return bool(await self._change(entry, session_queries.REPLACE_PROJECT_SECRETS, *values))

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
        return bool(await self._change(entry, session_queries.ROTATE_WEBHOOK_SECRET, *values))

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        return bool(await self._change(entry, session_queries.PROMOTE_WEBHOOK_SECRET, developer_id, project_id, now))

    async def delete_project(self, developer_id: str, project_id: str, *, entry: AuditEntry | None = None) -> bool:
        if "\0" in project_id:
            return False

        async def delete(connection: asyncpg.Connection) -> bool:
            if not await connection.fetch(session_queries.DELETE_PROJECT, developer_id, project_id):
                return False
            await connection.execute(session_queries.REMEMBER_DELETED_PROJECT, project_id, developer_id)
            await add_entry(connection, entry)
            return True

        return await self._pool.transact(delete)

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase one project after the other; each is forgotten a minute after its deletion, see the schema."""
        if not await self._pool.fetch(sql.ANY_DELETED_PROJECT):
            return 0

        async def purge(connection: asyncpg.Connection) -> int:
            project = await connection.fetchrow(sql.NEXT_DELETED_PROJECT)
            return 0 if project is None else await _erase_project(connection, project, limit)

        return await self._pool.transact(purge)

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        return None if "\0" in project_id else await self._sign_in_projects.run(project_id)

    async def _read_sign_in_projects(self, project_ids: list[str]) -> list[SignInProject | None]:
        rows = await self._pool.fetch(sql.READ_SIGN_IN_PROJECTS, project_ids)
        found = {row[-1]: sign_in_project_from(row[:-1]) for row in rows}
        return [found.get(each) for each in project_ids]


async def _erase_project(connection: asyncpg.Connection, project: asyncpg.Record, limit: int) -> int:
    """Erase a step of a deleted project, in the transaction that holds its row."""
    project_id, developer_id, is_settled = project
    erased = 0
    left = limit
    while left > 0 and (day := await connection.fetchval(sql.DAY_OF_PROJECT, project_id)) is not None:
        # One that somebody holds just now is passed over; then this step is not the last.
        sessions = max(1, len(await connection.fetch(sql.ERASE_SESSIONS, day, project_id, left)))
        erased += sessions
        left -= sessions
    erased += len(await connection.fetch(sql.ERASE_EVENTS, project_id, limit))
    erased += await connection.fetchval(sql.ERASE_PEOPLE, developer_id, project_id, limit // 5 + 1)
    if erased == 0:
        # Counts are no personal data: what a late statement adds to them goes when the project is forgotten.
        await connection.execute(session_queries.ERASE_DAILY_COUNTS, project_id)
        await connection.execute(delivery_queries.FORGET_ENDPOINT, project_id)
        await connection.execute(user_queries.ERASE_BLOCKS, project_id)
        end = session_queries.FORGET_DELETED_PROJECT if is_settled else sql.MARK_ERASED_PROJECT
        await connection.execute(end, project_id)
        erased = 1
    return erased
