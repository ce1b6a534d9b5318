"""Projects on PostgreSQL."""

from collections.abc import Sequence
from typing import Final

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.model import BotChange, EncryptedWebhookSecrets, Project, ProjectChanges, SignInProject
from taproof.storage.batcher import Batcher
from taproof.storage.postgres.bots import hold_projects, write_bot
from taproof.storage.postgres.deliveries import FIND_ENDED_WEBHOOK, begin_ending, end_more
from taproof.storage.postgres.pool import PostgresPool, storable
from taproof.storage.postgres.transaction import add_entry
from taproof.storage.protocol import ENDED_AT_ONCE, NO_LIMIT
from taproof.storage.queries import counts as count_queries
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import projects as queries
from taproof.storage.queries import users as user_queries
from taproof.storage.queries.rights import FIND_DEVELOPER
from taproof.storage.rows import change_values, project_from, project_values, sign_in_project_from

_HOLD_DEVELOPER: Final = f"{FIND_DEVELOPER} FOR UPDATE"
READ_WEBHOOK_SECRETS: Final = """
SELECT id, encrypted_webhook_secret, encrypted_next_webhook_secret, next_webhook_secret_at
FROM projects WHERE id = ANY ($1::TEXT[])"""
READ_SIGN_IN_PROJECTS: Final = """
SELECT p.developer_id, COALESCE(d.plan, 'free'), p.is_active, p.public_access, p.show_context, p.match_code,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at, p.id
FROM projects p LEFT JOIN developers d ON d.id = p.developer_id WHERE p.id = ANY ($1::TEXT[])"""
READ_PROJECTS_BY_SECRET_KEY: Final = queries.READ_PROJECT_BY_SECRET_KEY.replace(
    " FROM projects p WHERE p.secret_key_hash = $1",
    ", p.secret_key_hash FROM projects p WHERE p.secret_key_hash = ANY ($1::BYTEA[])",
)
READ_PROJECTS: Final = queries.READ_PROJECTS.replace("IN (SELECT value FROM json_each($2))", "= ANY ($2::TEXT[])")
_SETTLED: Final = "deleted_at < clock_timestamp() - INTERVAL '60 seconds'"
"""After this time, no statement that began before the deletion is still running: each ends within seconds."""
ANY_DELETED_PROJECT: Final = f"SELECT 1 FROM deleted_projects WHERE is_erased = 0 OR {_SETTLED} LIMIT 1"
NEXT_DELETED_PROJECT: Final = f"""
SELECT id, developer_id, {_SETTLED} FROM deleted_projects WHERE is_erased = 0 OR {_SETTLED}
ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"""
MARK_ERASED_PROJECT: Final = "UPDATE deleted_projects SET is_erased = 1 WHERE id = $1"
DAY_OF_PROJECT: Final = "SELECT day FROM sessions WHERE project_id = $1 LIMIT 1"
ERASE_SESSIONS: Final = """
WITH old AS MATERIALIZED
  (SELECT token_hash FROM sessions WHERE day = $1 AND project_id = $2 LIMIT $3 FOR UPDATE SKIP LOCKED)
DELETE FROM sessions s USING old WHERE s.day = $1 AND s.token_hash = old.token_hash RETURNING s.day"""
ERASE_EVENTS: Final = """
WITH old AS MATERIALIZED (SELECT id FROM webhook_events WHERE project_id = $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM webhook_events e USING old WHERE e.id = old.id RETURNING e.id"""
ERASE_PEOPLE: Final = "SELECT erase_people($1, $2, $3)"
_READS: Final = 512


class _StillEnding(Exception):
    """Rolls back the transaction of `update_project`."""


class PostgresProjects(queries.ProjectQueries[PostgresPool]):
    """See `storage.protocol.ProjectStorage`."""

    def __init__(self, pool: PostgresPool) -> None:
        super().__init__(pool)
        self._secrets = Batcher[str, EncryptedWebhookSecrets | None](self._read_secrets, limit=_READS)
        self._sign_in_projects = Batcher[str, SignInProject | None](self._read_sign_in_projects, limit=_READS)
        self._keys = Batcher[bytes, Project | None](self._read_by_keys, limit=_READS)

    async def close(self) -> None:
        """Finish the waiting calls."""
        for each in (self._secrets, self._sign_in_projects, self._keys):
            await each.close()

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
            await connection.execute(_HOLD_DEVELOPER, project.developer_id)
            if not await connection.fetch(queries.CREATE_PROJECT, *values):
                return False
            await add_entry(connection, entry)
            await write_bot(connection, (project.developer_id, project.id), bot)
            return True

        return await self._database.transact(create)

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        return None if "\0" in project_id else await self._secrets.run(project_id)

    async def _read_secrets(self, project_ids: list[str]) -> list[EncryptedWebhookSecrets | None]:
        rows = await self._database.fetch(READ_WEBHOOK_SECRETS, project_ids)
        found = {project_id: EncryptedWebhookSecrets(*secrets) for project_id, *secrets in rows}
        return [found.get(each) for each in project_ids]

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        return await self._keys.run(secret_key_hash)

    async def _read_by_keys(self, hashes: list[bytes]) -> list[Project | None]:
        rows = await self._database.fetch(READ_PROJECTS_BY_SECRET_KEY, hashes)
        found = {key_hash: project_from(project) for *project, key_hash in rows}
        return [found.get(each) for each in hashes]

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        found = await self._database.read(READ_PROJECTS, developer_id, storable(project_ids))
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
            await _hold_plan(connection, developer_id, changes)
            await hold_projects(connection, project_id, bot)
            if not await connection.fetch(queries.UPDATE_PROJECT, *change_values(changes), developer_id, project_id):
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
            return project_from(await connection.fetchrow(queries.READ_PROJECT, project_id))

        while True:
            try:
                return await self._database.transact(update)
            except _StillEnding:
                await end_more(self._database, FIND_ENDED_WEBHOOK, (developer_id, project_id), ENDED_AT_ONCE)

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

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        return None if "\0" in project_id else await self._sign_in_projects.run(project_id)

    async def _read_sign_in_projects(self, project_ids: list[str]) -> list[SignInProject | None]:
        rows = await self._database.fetch(READ_SIGN_IN_PROJECTS, project_ids)
        found = {project_id: sign_in_project_from(project) for *project, project_id in rows}
        return [found.get(each) for each in project_ids]


async def _hold_plan(connection: asyncpg.Connection, developer_id: str, changes: ProjectChanges) -> None:
    """Lock the developer before changes that depend on their plan, so that the next statement sees the current plan."""
    if changes.collect_phone:
        await connection.execute(_HOLD_DEVELOPER, developer_id)


async def _erase_project(connection: asyncpg.Connection, project: asyncpg.Record, limit: int) -> int:
    """Erase a part of a deleted project, in the transaction that locks its row."""
    project_id, developer_id, is_settled = project
    erased = 0
    left = limit
    while left > 0 and (day := await connection.fetchval(DAY_OF_PROJECT, project_id)) is not None:
        # A session that is locked by others is skipped. Then this step is not the last.
        sessions = max(1, len(await connection.fetch(ERASE_SESSIONS, day, project_id, left)))
        erased += sessions
        left -= sessions
    erased += len(await connection.fetch(ERASE_EVENTS, project_id, limit))
    erased += await connection.fetchval(ERASE_PEOPLE, developer_id, project_id, limit // 5 + 1)
    if erased == 0:
        # Counts are not personal data. Counts that a late statement adds are erased with the project's row.
        await connection.execute(count_queries.ERASE_DAILY_COUNTS, project_id)
        await connection.execute(delivery_queries.FORGET_ENDPOINT, project_id)
        await connection.execute(user_queries.ERASE_BLOCKS, project_id)
        end = queries.FORGET_DELETED_PROJECT if is_settled else MARK_ERASED_PROJECT
        await connection.execute(end, project_id)
        erased = 1
    return erased
