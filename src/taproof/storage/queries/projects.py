"""Projects and their secrets."""

import json
from collections.abc import Sequence
from typing import Final, Literal

from taproof.core.accounts import NO_PHONES, AuditEntry
from taproof.core.errors import BotTaken, InvalidRequest, TaproofError
from taproof.core.project_bots import BotChange
from taproof.core.projects import (
    PROJECT_FLAGS,
    EncryptedWebhookSecrets,
    NamedProject,
    Project,
    ProjectChanges,
    SignInProject,
)
from taproof.core.return_url import NO_RETURN_PAGE, lacks_return_page
from taproof.core.roles import require_action
from taproof.storage.queries.bots import is_taken, write_bot
from taproof.storage.queries.counts import ERASE_DAILY_COUNTS, remove_user_days
from taproof.storage.queries.database import NO_LIMIT, Purge, Queries, point_read
from taproof.storage.queries.deliveries import (
    ENDED_AT_ONCE,
    FIND_ENDED_WEBHOOK,
    FORGET_ENDPOINT,
    begin_ending,
    continue_ending,
)
from taproof.storage.queries.oidc.clients import delete_clients
from taproof.storage.queries.oidc.grants import ERASE_GRANTS_OF_PROJECT, ERASE_LOGOUTS_OF_PROJECT
from taproof.storage.queries.rights import (
    ADD_MEMBER,
    DELETE_ALL_ORIGINS,
    DELETE_MEMBER_INVITATIONS,
    DELETE_MEMBERS,
    FIND_DEVELOPER,
    change_as_member,
    lock_members,
    require_role,
)
from taproof.storage.queries.transaction import Transaction
from taproof.storage.queries.users import ERASE_BLOCKS
from taproof.storage.rows import Values, change_values, project_from, project_values

_SETTINGS: Final = (
    *PROJECT_FLAGS,
    *("allowed_origins", "webhook_events", "return_urls", "same_device", "texts", "logo_url"),
)
_COLUMNS: Final = (
    *("id", "developer_id", "name", "secret_key_hash", "secret_key_preview", "encrypted_webhook_secret", "webhook_url"),
    *("created_at", *_SETTINGS),
)
_COLLECT: Final = f"${_COLUMNS.index('collect_phone') + 1}"
CREATE_PROJECT: Final = f"""
INSERT INTO projects ({", ".join(_COLUMNS)}, creator_id)
SELECT {", ".join(f"${index}" for index in range(1, len(_COLUMNS) + 1))}, $2
WHERE (SELECT COUNT(*) FROM projects WHERE developer_id = $2) < ${len(_COLUMNS) + 1}
  AND ({_COLLECT} = 0 OR EXISTS (SELECT 1 FROM developers d WHERE d.id = $2 AND d.plan <> 'free')) RETURNING id"""
_PROJECT: Final = f"""p.id, p.developer_id, p.name, p.secret_key_preview, p.encrypted_webhook_secret, p.webhook_url,
  p.created_at, {", ".join(f"p.{flag}" for flag in PROJECT_FLAGS)}"""
_COUNTED: Final = f"""
SELECT {_PROJECT},
  (SELECT COALESCE(SUM(c.requested), 0) FROM daily_counts c WHERE c.project_id = p.id),
  (SELECT COALESCE(SUM(c.confirmed), 0) FROM daily_counts c WHERE c.project_id = p.id),
  p.encrypted_next_webhook_secret, p.next_webhook_secret_at, w.failing_since, w.off_at, w.off_reason, w.off_url,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at, p.webhook_events,
  p.same_device, p.return_urls, p.texts, p.logo_url"""
READ_PROJECT: Final = f"""{_COUNTED}
FROM projects p LEFT JOIN webhook_endpoints w ON w.project_id = p.id WHERE p.id = $1"""
_MEMBER_PROJECT: Final = f"""{_COUNTED},
  (SELECT d.plan FROM developers d WHERE d.id = p.developer_id), m.role
FROM project_members m JOIN projects p ON p.id = m.project_id LEFT JOIN webhook_endpoints w ON w.project_id = p.id"""
READ_MEMBER_PROJECT: Final = f"{_MEMBER_PROJECT} WHERE m.developer_id = $1 AND m.project_id = $2"
LIST_PROJECTS: Final = f"{_MEMBER_PROJECT} WHERE m.developer_id = $1 ORDER BY p.created_at, p.id"
COUNT_PROJECTS: Final = "SELECT COUNT(*) FROM project_members WHERE developer_id = $1"
NAME_PROJECTS: Final = """
SELECT p.id, p.name FROM project_members m JOIN projects p ON p.id = m.project_id
WHERE m.developer_id = $1 ORDER BY p.created_at, p.id"""
READ_PROJECTS: Final = f"""{_MEMBER_PROJECT}
WHERE m.developer_id = $1 AND m.project_id IN (SELECT value FROM json_each($2)) ORDER BY p.created_at, p.id"""
READ_PROJECT_BY_SECRET_KEY: Final = point_read(project_from, _PROJECT, "projects p", "p.secret_key_hash", "BYTEA")
READ_WEBHOOK_SECRETS: Final = point_read(
    lambda row: EncryptedWebhookSecrets(*row),
    "encrypted_webhook_secret, encrypted_next_webhook_secret, next_webhook_secret_at",
    "projects",
    "id",
)
READ_SIGN_IN_PROJECT: Final = point_read(
    SignInProject._make,
    """p.developer_id, COALESCE(d.plan, 'free'), p.is_active, p.public_access, p.show_context, p.match_code,
  p.allowed_origins, p.bot_id, p.bot_username, p.bot_broken_at,
  CASE WHEN d.plan <> 'free' THEN p.collect_phone * p.phone_required ELSE 0 END, p.same_device, p.return_urls""",
    "projects p LEFT JOIN developers d ON d.id = p.developer_id",
    "p.id",
)
_CHANGED: Final = ("name", "webhook_url", *_SETTINGS)
LOCK_PROJECTS: Final = "SELECT id FROM projects WHERE id = $1 OR id = $2 ORDER BY id"
FIND_DEVELOPER_OF_PROJECT: Final = """
SELECT 1 FROM developers WHERE id = (SELECT p.developer_id FROM projects p WHERE p.id = $1)"""
_COLLECTS: Final = f"${_CHANGED.index('collect_phone') + 1}"
_NEW: Final = {name: f"COALESCE(${index}, {name})" for index, name in enumerate(_CHANGED, 1)}
UPDATE_PROJECT: Final = f"""
UPDATE projects SET {", ".join(f"{name} = {value}" for name, value in _NEW.items())}
WHERE id = ${len(_CHANGED) + 1} AND (COALESCE({_COLLECTS}, 0) = 0
  OR EXISTS (SELECT 1 FROM developers d WHERE d.id = projects.developer_id AND d.plan <> 'free'))
RETURNING id"""
IS_PAID: Final = "SELECT 1 FROM developers WHERE id = $1 AND plan <> 'free'"
Refusal = Literal["taken", "no_phones", "no_page"]
FIND_ANY_CLIENT: Final = "SELECT 1 FROM oidc_clients WHERE project_id = $1 LIMIT 1"
REPLACE_PROJECT_SECRETS: Final = """
UPDATE projects SET secret_key_hash = $1, secret_key_preview = $2, encrypted_webhook_secret = $3,
  encrypted_next_webhook_secret = NULL, next_webhook_secret_at = NULL, secrets_version = secrets_version + 1
WHERE id = $4 RETURNING id"""
ROTATE_WEBHOOK_SECRET: Final = """
UPDATE projects SET encrypted_webhook_secret = COALESCE(encrypted_next_webhook_secret, encrypted_webhook_secret),
  secrets_version = secrets_version + CASE WHEN encrypted_next_webhook_secret IS NULL THEN 0 ELSE 1 END,
  encrypted_next_webhook_secret = $1, next_webhook_secret_at = $2
WHERE id = $3 AND (next_webhook_secret_at IS NULL OR next_webhook_secret_at <= $4)
RETURNING id"""
PROMOTE_WEBHOOK_SECRET: Final = """
UPDATE projects SET encrypted_webhook_secret = encrypted_next_webhook_secret, encrypted_next_webhook_secret = NULL,
  next_webhook_secret_at = NULL, secrets_version = secrets_version + 1
WHERE id = $1 AND next_webhook_secret_at > $2 RETURNING id"""
DELETE_PROJECT: Final = "DELETE FROM projects WHERE id = $1 RETURNING developer_id, creator_id"
REMEMBER_DELETED_PROJECT: Final = "INSERT INTO deleted_projects (id, developer_id, creator_id) VALUES ($1, $2, $3)"
NEXT_DELETED_PROJECT: Final = "SELECT id, developer_id, creator_id FROM deleted_projects ORDER BY id LIMIT 1"
FORGET_DELETED_PROJECT: Final = "DELETE FROM deleted_projects WHERE id = $1"
ERASE_SESSIONS: Final = Purge("sessions", "day, token_hash", "project_id = $1")
ERASE_EVENTS: Final = Purge("webhook_events", "id", "project_id = $1")


class ProjectQueries(Queries):
    """Projects and their secrets.

    A developer's projects are those of which they are a member. A method that changes a project for a developer checks
    their role in the same transaction. It raises InsufficientRole if the role does not permit the change.
    """

    async def create_project(
        self,
        project: Project,
        secret_key_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        entry: AuditEntry | None = None,
        bot: BotChange | None = None,
    ) -> bool:
        """Store a project with its developer as the owner, together with its bot if `bot` is given.

        Return False if the developer has `limit` projects.

        Raises:
            BotTaken: the bot serves another project, and this change does not take it away.
            InvalidRequest: the project collects phone numbers on the plan "free".
        """
        creator = (project.id, project.developer_id, "owner", project.created_at, "")

        async def create(transaction: Transaction) -> bool | Refusal:
            await transaction.lock(FIND_DEVELOPER, project.developer_id)
            if await is_taken(transaction, project.id, bot):
                return "taken"
            if not await transaction.add(CREATE_PROJECT, *project_values(project, secret_key_hash), limit):
                may_collect = not project.collect_phone or await transaction.fetch(IS_PAID, project.developer_id)
                return False if may_collect else "no_phones"
            await transaction.add(ADD_MEMBER, *creator)
            await transaction.add_entry(entry)
            await write_bot(transaction, project.id, bot)
            return True

        created = await self._database.in_transaction(create)
        if isinstance(created, str):
            raise _error_of(created)
        return created

    async def read_project(self, project_id: str) -> Project | None:
        """Return a project with its counts."""
        found = await self._database.read(READ_PROJECT, project_id)
        return project_from(found[0]) if found else None

    async def read_member_project(self, developer_id: str, project_id: str) -> Project | None:
        """Return a project with its counts, its plan and the developer's role; None if they are no member."""
        found = await self._database.read(READ_MEMBER_PROJECT, developer_id, project_id)
        return project_from(found[0]) if found else None

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        """Return a project's webhook secrets in their stored form."""
        return await self._database.find(READ_WEBHOOK_SECRETS, project_id)

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        """Return the project whose current secret key has this hash. Its counts are 0."""
        return await self._database.find(READ_PROJECT_BY_SECRET_KEY, secret_key_hash)

    async def list_projects(self, developer_id: str) -> list[Project]:
        """Return a developer's projects with their counts, oldest first."""
        return [project_from(row) for row in await self._database.look_up(LIST_PROJECTS, developer_id)]

    async def count_projects(self, developer_id: str) -> int:
        """Return the number of a developer's projects."""
        found = await self._database.read(COUNT_PROJECTS, developer_id)
        return int(found[0][0]) if found else 0

    async def name_projects(self, developer_id: str) -> list[NamedProject]:
        """Return the id and name of each of a developer's projects, oldest first. This is cheaper than with counts."""
        return [NamedProject(*row) for row in await self._database.look_up(NAME_PROJECTS, developer_id)]

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        """Return the projects with these ids that belong to this developer, with their counts, oldest first."""
        found = await self._database.look_up(READ_PROJECTS, developer_id, json.dumps(list(project_ids)))
        return [project_from(row) for row in found]

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        """Return the project settings that apply to a new session."""
        return await self._database.find(READ_SIGN_IN_PROJECT, project_id)

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
        """Change the fields that are not None, and the bot if `bot` is given. Either all changes are made or none.

        Return None if this developer has no such project.

        Removing the webhook URL ends the project's due deliveries: `ENDED_AT_ONCE` of them immediately, and the rest in
        `end_deliveries`. Until then, the rest are shown as due, but no worker can claim them. A new webhook URL is set
        only after the last of them has ended. Setting a webhook URL, even the same one, resets the endpoint's state:
        since when it has been failing, and whether it was turned off.

        Raises:
            BotTaken: the bot serves another project, and this change does not take it away.
            InvalidRequest: the change starts to collect phone numbers on the plan "free", or leaves a policy other than
                "off" without a page to return to: an allowed origin or return URL that the messenger opens, or the page
                of the sign-ins of an OpenID Connect client.
        """
        # A change of only the bot has no entry but that of `bot`.
        changed = entry if changes != ProjectChanges() else None

        async def update(transaction: Transaction) -> Project | Literal["later"] | Refusal | None:
            if not await _lock(transaction, developer_id, project_id, changes, bot):
                return None
            if not await _has_return_page(transaction, project_id, changes):
                return "no_page"
            if changes.webhook_url and await transaction.fetch(FIND_ENDED_WEBHOOK, project_id):
                return "later"
            if await is_taken(transaction, project_id, bot):
                return "taken"
            if not await transaction.add(UPDATE_PROJECT, *change_values(changes), project_id):
                return "no_phones"
            await _begin_endpoint(transaction, project_id, changes.webhook_url, now)
            await transaction.add_entry(changed)
            await write_bot(transaction, project_id, bot)
            return project_from((await transaction.fetch(READ_MEMBER_PROJECT, developer_id, project_id))[0])

        async def end(transaction: Transaction) -> None:
            found = await transaction.lock(FIND_ENDED_WEBHOOK, project_id, mode="FOR UPDATE OF e")
            await continue_ending(transaction, found, ENDED_AT_ONCE)

        while (project := await self._database.in_transaction(update)) == "later":
            await self._database.in_transaction(end)
        if isinstance(project, str):
            raise _error_of(project)
        return project

    async def regenerate_secrets(
        self,
        developer_id: str,
        project_id: str,
        secret_key_hash: bytes,
        secret_key_preview: str,
        encrypted_webhook_secret: bytes,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Replace both secrets, and end a rotation in progress. Return False if this developer has no such project."""
        values = (secret_key_hash, secret_key_preview, encrypted_webhook_secret, project_id)
        return await self._change_secrets(developer_id, REPLACE_PROJECT_SECRETS, project_id, values, entry)

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
        """Store a webhook secret that replaces the current one at `next_at`.

        Return False if this developer has no such project, or if another rotation is in progress at `now`.
        """
        values = (encrypted_next_secret, next_at, project_id, now)
        return await self._change_secrets(developer_id, ROTATE_WEBHOOK_SECRET, project_id, values, entry)

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Make the next webhook secret the current one; False if no rotation is in progress at `now`."""
        values = (project_id, now)
        return await self._change_secrets(developer_id, PROMOTE_WEBHOOK_SECRET, project_id, values, entry)

    async def _change_secrets(
        self, developer_id: str, statement: str, project_id: str, values: Values, entry: AuditEntry | None
    ) -> bool:
        member = (developer_id, project_id)
        return bool(await change_as_member(self._database, member, "secrets", statement, *values, entry=entry))

    async def delete_project(self, developer_id: str, project_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Delete a project. From then on, no method finds its data, but `read_used` still counts its users.

        `purge_deleted_projects` erases the remaining rows, and removes the project's users from `read_daily_users`.
        """

        async def delete(transaction: Transaction) -> bool:
            roles = await lock_members(transaction, project_id)
            if developer_id not in roles:
                return False
            require_action(roles[developer_id], "delete")
            await erase_project(transaction, project_id)
            await transaction.add_entry(entry)
            return True

        return await self._database.in_transaction(delete)

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase at most about `limit` rows of deleted projects; return their number (0: none is left)."""

        async def purge(transaction: Transaction) -> int:
            found = await transaction.fetch(NEXT_DELETED_PROJECT)
            if not found:
                return 0
            project_id, plan_id, creator_id = found[0]
            erased = len(await transaction.fetch(ERASE_SESSIONS.sqlite, project_id, limit))
            erased += len(await transaction.fetch(ERASE_EVENTS.sqlite, project_id, limit))
            erased += len(await transaction.fetch(ERASE_GRANTS_OF_PROJECT.sqlite, project_id, limit))
            erased += await remove_user_days(transaction, creator_id, project_id, plan_id, limit // 5 + 1)
            if erased == 0:
                rest = (ERASE_DAILY_COUNTS, FORGET_ENDPOINT, ERASE_BLOCKS, ERASE_LOGOUTS_OF_PROJECT)
                for statement in (*rest, FORGET_DELETED_PROJECT):
                    await transaction.fetch(statement, project_id)
                erased = 1
            return erased

        return await self._database.in_transaction(purge) if await self._database.read(NEXT_DELETED_PROJECT) else 0


def _error_of(refusal: Refusal) -> TaproofError:
    """Return the error of a refused change. It is raised after the transaction, so that it fails no other write."""
    if refusal == "taken":
        return BotTaken()
    return InvalidRequest(NO_PHONES if refusal == "no_phones" else NO_RETURN_PAGE)


async def erase_project(transaction: Transaction, project_id: str) -> None:
    """Delete a project whose members are locked. Housekeeping erases its data later."""
    for plan_and_creator in await transaction.fetch(DELETE_PROJECT, project_id):
        await delete_clients(transaction, project_id)
        await transaction.fetch(DELETE_MEMBERS, project_id)
        await transaction.fetch(DELETE_ALL_ORIGINS, project_id)
        await transaction.fetch(DELETE_MEMBER_INVITATIONS, project_id)
        await transaction.add(REMEMBER_DELETED_PROJECT, project_id, *plan_and_creator)


async def _lock(
    transaction: Transaction, developer_id: str, project_id: str, changes: ProjectChanges, bot: BotChange | None
) -> bool:
    """Lock a member's project before a change, and the project that loses its bot to it; False if there is none."""
    if changes.collect_phone:
        # The developer first: see `postgres/__init__.py`. The next statement sees the current plan.
        await transaction.lock(FIND_DEVELOPER_OF_PROJECT, project_id)
    if not await require_role(transaction, developer_id, project_id, "write"):
        return False
    loser_id = "" if bot is None or bot.loss is None else bot.loss.project_id
    return project_id in {row[0] for row in await transaction.lock(LOCK_PROJECTS, project_id, loser_id)}


async def _has_return_page(transaction: Transaction, project_id: str, changes: ProjectChanges) -> bool:
    """Return whether a locked project has a page to return to after the changes, if its policy needs one."""
    if changes.same_device is None and changes.allowed_origins is None and changes.return_urls is None:
        return True
    before = project_from((await transaction.fetch(READ_PROJECT, project_id))[0])
    # Sign-ins of OpenID Connect clients return to a page of this service.
    return not lacks_return_page(before, changes) or bool(await transaction.fetch(FIND_ANY_CLIENT, project_id))


async def _begin_endpoint(transaction: Transaction, project_id: str, webhook_url: str | None, now: int) -> None:
    """Reset the state of an endpoint whose URL was just set, if it was. If it was removed, end its due deliveries."""
    if webhook_url is None:
        return
    if not webhook_url:
        await begin_ending(transaction, project_id, now)
    await transaction.fetch(FORGET_ENDPOINT, project_id)
