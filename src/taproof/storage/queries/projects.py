"""Projects and their secrets."""

from typing import Final

from taproof.core.accounts import AuditEntry
from taproof.core.model import PROJECT_FLAGS, NamedProject, Project
from taproof.storage.queries.database import AnyDatabase, Queries
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import project_from

_COLUMNS: Final = (
    *("id", "developer_id", "name", "secret_key_hash", "secret_key_preview", "encrypted_webhook_secret", "webhook_url"),
    *("created_at", *PROJECT_FLAGS, "allowed_origins"),
)
_COLLECT: Final = f"${_COLUMNS.index('collect_phone') + 1}"
CREATE_PROJECT: Final = f"""
INSERT INTO projects ({", ".join(_COLUMNS)})
SELECT {", ".join(f"${place}" for place in range(1, len(_COLUMNS) + 1))}
WHERE (SELECT COUNT(*) FROM projects WHERE developer_id = $2) < ${len(_COLUMNS) + 1}
  AND ({_COLLECT} = 0 OR EXISTS (SELECT 1 FROM developers d WHERE d.id = $2 AND d.plan <> 'free')) RETURNING id"""
_PROJECT: Final = f"""
SELECT p.id, p.developer_id, p.name, p.secret_key_preview, p.encrypted_webhook_secret, p.webhook_url, p.created_at,
  {", ".join(f"p.{flag}" for flag in PROJECT_FLAGS)}"""
_COUNTED_PROJECT: Final = f"""{_PROJECT},
  (SELECT COALESCE(SUM(c.requested), 0) FROM daily_counts c WHERE c.project_id = p.id),
  (SELECT COALESCE(SUM(c.confirmed), 0) FROM daily_counts c WHERE c.project_id = p.id),
  p.encrypted_next_webhook_secret, p.next_webhook_secret_at, w.failing_since, w.off_at, w.off_reason, w.off_url,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at
FROM projects p LEFT JOIN webhook_endpoints w ON w.project_id = p.id"""
READ_PROJECT: Final = f"{_COUNTED_PROJECT} WHERE p.id = $1"
LIST_PROJECTS: Final = f"{_COUNTED_PROJECT} WHERE p.developer_id = $1 ORDER BY p.created_at, p.id"
COUNT_PROJECTS: Final = "SELECT COUNT(*) FROM projects WHERE developer_id = $1"
NAME_PROJECTS: Final = "SELECT id, name FROM projects WHERE developer_id = $1 ORDER BY created_at, id"
READ_PROJECTS: Final = f"""{_COUNTED_PROJECT}
WHERE p.developer_id || '' = $1 AND p.id IN (SELECT value FROM json_each($2)) ORDER BY p.created_at, p.id"""
READ_PROJECT_BY_SECRET_KEY: Final = f"{_PROJECT} FROM projects p WHERE p.secret_key_hash = $1"
READ_WEBHOOK_SECRETS: Final = """
SELECT encrypted_webhook_secret, encrypted_next_webhook_secret, next_webhook_secret_at FROM projects WHERE id = $1"""
READ_SIGN_IN_PROJECT: Final = """
SELECT p.developer_id, COALESCE(d.plan, 'free'), p.is_active, p.public_access, p.show_context, p.match_code,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at
FROM projects p LEFT JOIN developers d ON d.id = p.developer_id WHERE p.id = $1"""
_CHANGED: Final = ("name", "webhook_url", *PROJECT_FLAGS, "allowed_origins")
_COLLECTS: Final = f"${_CHANGED.index('collect_phone') + 1}"
_OWNER: Final = f"${len(_CHANGED) + 1}"
UPDATE_PROJECT: Final = f"""
UPDATE projects SET {", ".join(f"{name} = COALESCE(${place}, {name})" for place, name in enumerate(_CHANGED, 1))}
WHERE developer_id = {_OWNER} AND id = ${len(_CHANGED) + 2}
  AND (COALESCE({_COLLECTS}, 0) = 0 OR EXISTS (SELECT 1 FROM developers d WHERE d.id = {_OWNER} AND d.plan <> 'free'))
RETURNING id"""
REPLACE_PROJECT_SECRETS: Final = """
UPDATE projects SET secret_key_hash = $1, secret_key_preview = $2, encrypted_webhook_secret = $3,
  encrypted_next_webhook_secret = NULL, next_webhook_secret_at = NULL, secrets_version = secrets_version + 1
WHERE developer_id = $4 AND id = $5 RETURNING id"""
ROTATE_WEBHOOK_SECRET: Final = """
UPDATE projects SET encrypted_webhook_secret = COALESCE(encrypted_next_webhook_secret, encrypted_webhook_secret),
  secrets_version = secrets_version + CASE WHEN encrypted_next_webhook_secret IS NULL THEN 0 ELSE 1 END,
  encrypted_next_webhook_secret = $1, next_webhook_secret_at = $2
WHERE developer_id = $3 AND id = $4 AND (next_webhook_secret_at IS NULL OR next_webhook_secret_at <= $5)
RETURNING id"""
PROMOTE_WEBHOOK_SECRET: Final = """
UPDATE projects SET encrypted_webhook_secret = encrypted_next_webhook_secret, encrypted_next_webhook_secret = NULL,
  next_webhook_secret_at = NULL, secrets_version = secrets_version + 1
WHERE developer_id = $1 AND id = $2 AND next_webhook_secret_at > $3 RETURNING id"""
DELETE_PROJECT: Final = "DELETE FROM projects WHERE developer_id = $1 AND id = $2 RETURNING id"
REMEMBER_DELETED_PROJECT: Final = "INSERT INTO deleted_projects (id, developer_id) VALUES ($1, $2)"
NEXT_DELETED_PROJECT: Final = "SELECT id, developer_id FROM deleted_projects ORDER BY id LIMIT 1"
FORGET_DELETED_PROJECT: Final = "DELETE FROM deleted_projects WHERE id = $1"
ERASE_SESSIONS: Final = """
DELETE FROM sessions WHERE (day, token_hash) IN
  (SELECT day, token_hash FROM sessions WHERE project_id = $1 LIMIT $2) RETURNING day"""
ERASE_EVENTS: Final = """
DELETE FROM webhook_events WHERE id IN (SELECT id FROM webhook_events WHERE project_id = $1 LIMIT $2) RETURNING id"""


class ProjectQueries(Queries[AnyDatabase]):
    """See `storage.protocol.ProjectStorage`."""

    async def read_project(self, project_id: str) -> Project | None:
        found = await self._database.read(READ_PROJECT, project_id)
        return project_from(found[0]) if found else None

    async def list_projects(self, developer_id: str) -> list[Project]:
        return [project_from(row) for row in await self._database.look_up(LIST_PROJECTS, developer_id)]

    async def count_projects(self, developer_id: str) -> int:
        found = await self._database.read(COUNT_PROJECTS, developer_id)
        return int(found[0][0]) if found else 0

    async def name_projects(self, developer_id: str) -> list[NamedProject]:
        return [NamedProject(*row) for row in await self._database.read(NAME_PROJECTS, developer_id)]

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
        return bool(await self._database.change(REPLACE_PROJECT_SECRETS, *values, entry=entry))

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
        return bool(await self._database.change(ROTATE_WEBHOOK_SECRET, *values, entry=entry))

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        return bool(await self._database.change(PROMOTE_WEBHOOK_SECRET, developer_id, project_id, now, entry=entry))

    async def delete_project(self, developer_id: str, project_id: str, *, entry: AuditEntry | None = None) -> bool:
        async def delete(transaction: Transaction) -> bool:
            if not await transaction.fetch(DELETE_PROJECT, developer_id, project_id):
                return False
            await transaction.add(REMEMBER_DELETED_PROJECT, project_id, developer_id)
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(delete)
