"""Projects on PostgreSQL."""

from collections.abc import Callable, Sequence
from typing import Final

import asyncpg

from taproof.core.model import EncryptedWebhookSecrets, Project, SignInProject
from taproof.storage.batcher import Batcher
from taproof.storage.postgres.database import PostgresDatabase, storable
from taproof.storage.queries import counts as count_queries
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import projects as queries
from taproof.storage.queries import users as user_queries
from taproof.storage.rows import Model, Row, project_from, sign_in_project_from

READ_WEBHOOK_SECRETS: Final = """
SELECT encrypted_webhook_secret, encrypted_next_webhook_secret, next_webhook_secret_at, id
FROM projects WHERE id = ANY ($1::TEXT[])"""
READ_SIGN_IN_PROJECTS: Final = """
SELECT p.developer_id, COALESCE(d.plan, 'free'), p.is_active, p.public_access, p.show_context, p.match_code,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at,
  CASE WHEN d.plan <> 'free' THEN p.collect_phone * p.phone_required ELSE 0 END,
  p.same_device, p.return_urls, p.id
FROM projects p LEFT JOIN developers d ON d.id = p.developer_id WHERE p.id = ANY ($1::TEXT[])"""
READ_PROJECTS_BY_SECRET_KEY: Final = queries.READ_PROJECT_BY_SECRET_KEY.replace(
    " FROM projects p WHERE p.secret_key_hash = $1",
    ", p.secret_key_hash FROM projects p WHERE p.secret_key_hash = ANY ($1::BYTEA[])",
)
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
_READS: Final = 512


class PostgresProjects(queries.ProjectQueries[PostgresDatabase]):
    """See `storage.protocol.ProjectStorage`."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._secrets = self._reader(READ_WEBHOOK_SECRETS, lambda row: EncryptedWebhookSecrets(*row))
        self._sign_in_projects = self._reader(READ_SIGN_IN_PROJECTS, sign_in_project_from)
        self._keys = self._reader(READ_PROJECTS_BY_SECRET_KEY, project_from)

    def _reader(self, statement: str, model: Callable[[Row], Model]) -> Batcher[str | bytes, Model | None]:
        """Return a batcher that reads models. The statement's last column is the requested value."""

        async def read(asked: list[str | bytes]) -> list[Model | None]:
            found = {key: model(row) for *row, key in await self._database.fetch(statement, asked)}
            return [found.get(each) for each in asked]

        return Batcher(read, limit=_READS)

    async def close(self) -> None:
        """Finish the waiting calls."""
        for each in (self._secrets, self._sign_in_projects, self._keys):
            await each.close()

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        return None if "\0" in project_id else await self._secrets.run(project_id)

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        return await self._keys.run(secret_key_hash)

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

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        return None if "\0" in project_id else await self._sign_in_projects.run(project_id)


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
    erased += await connection.fetchval(ERASE_PEOPLE, creator_id, project_id, plan_id, limit // 5 + 1)
    if erased == 0:
        # Counts are not personal data. Counts that a late statement adds are erased together with the project's row.
        await connection.execute(count_queries.ERASE_DAILY_COUNTS, project_id)
        await connection.execute(delivery_queries.FORGET_ENDPOINT, project_id)
        await connection.execute(user_queries.ERASE_BLOCKS, project_id)
        end = queries.FORGET_DELETED_PROJECT if is_settled else MARK_ERASED_PROJECT
        await connection.execute(end, project_id)
        erased = 1
    return erased
