"""The users of projects, requests for their phone numbers, and the projects that users have blocked."""

from typing import Final

from taproof.core.counts import ProjectUser
from taproof.core.page_cursor import PageCursor
from taproof.core.projects import NamedProject
from taproof.core.prompts import PhoneRequest
from taproof.core.sessions import SessionKey
from taproof.storage.queries.database import Purge, Queries
from taproof.storage.queries.oidc.grants import IS_BLOCKED, OF_USER, end_grants
from taproof.storage.queries.transaction import Transaction
from taproof.storage.rows import page_start, phone_request_from, phone_request_values

HOLD_SESSION: Final = "SELECT 1 FROM sessions s WHERE s.day = $1 AND s.token_hash = $2"
# `asked_at` is later than that of any other request of this bot to the user, even if the clocks of two nodes differ.
ASK_FOR_PHONE: Final = """
INSERT INTO phone_requests (day, token_hash, session_id, messenger_id, bot_id, encrypted_token, asked_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, (
  SELECT CASE WHEN MAX(o.asked_at) >= $7 THEN MAX(o.asked_at) + 1 ELSE $7 END FROM phone_requests o
  WHERE o.messenger_id = $4 AND o.bot_id = $5 AND NOT (o.day = $1 AND o.token_hash = $2)), $8
WHERE $1 = $1 ON CONFLICT (day, token_hash) DO UPDATE SET asked_at = excluded.asked_at
WHERE phone_requests.asked_at < excluded.asked_at"""
_PHONE_REQUEST: Final = """
SELECT r.day, r.token_hash, r.session_id, r.messenger_id, r.bot_id, r.encrypted_token, r.asked_at, r.expires_at
FROM phone_requests r"""
READ_PHONE_REQUEST: Final = f"{_PHONE_REQUEST} WHERE r.day = $1 AND r.token_hash = $2"
# Finds a request in any state: a contact that is sent twice or too late must not answer another open request.
FIND_PHONE_REQUEST: Final = f"""{_PHONE_REQUEST}
WHERE r.messenger_id = $1 AND r.bot_id = $2 ORDER BY r.asked_at DESC, r.session_id DESC LIMIT 1"""
BLOCK_PROJECT: Final = """
INSERT INTO blocks (messenger_id, project_id, created_at) SELECT $1, $2, $3
WHERE EXISTS (SELECT 1 FROM projects WHERE id = $2) ON CONFLICT (messenger_id, project_id) DO NOTHING
RETURNING project_id"""
UNBLOCK_PROJECT: Final = "DELETE FROM blocks WHERE messenger_id = $1 AND project_id = $2 RETURNING project_id"
LIST_BLOCKS: Final = """
SELECT b.project_id, p.name FROM blocks b JOIN projects p ON p.id = b.project_id
WHERE b.messenger_id = $1 AND (CAST($2 AS TEXT) IS NULL OR b.project_id = $2)
ORDER BY b.created_at DESC, b.project_id LIMIT $3"""
ERASE_BLOCKS: Final = "DELETE FROM blocks WHERE project_id = $1"
PURGE_PHONE_REQUESTS: Final = Purge("phone_requests", "day, token_hash", "expires_at <= $1")

# The newest row of each user has the time of the last sign-in, so a page reads one row for each user on it.
_PROJECT_USER: Final = """
SELECT u.messenger_id, u.messenger_name, u.messenger_username, u.first_at, u.last_at, u.sign_ins, (
  SELECT COUNT(*) FROM sessions s
  WHERE s.messenger_id = u.messenger_id AND s.project_id = u.project_id AND s.reported_at IS NOT NULL)
FROM user_days u"""
LIST_USERS: Final = f"""{_PROJECT_USER}
WHERE u.project_id = $1 AND u.last_at IS NOT NULL AND (u.last_at, u.messenger_id) < ($2, $3)
ORDER BY u.last_at DESC, u.messenger_id DESC LIMIT $4"""
READ_USER: Final = f"""{_PROJECT_USER}
WHERE u.developer_id = (SELECT p.creator_id FROM projects p WHERE p.id = $1)
  AND u.messenger_id = $2 AND u.project_id = $1 AND u.last_at IS NOT NULL"""


PROJECTS_OF_USER: Final = 200
"""The maximum number of projects searched for an account's sign-ins. The cost of a list depends only on this number."""


class UserQueries(Queries):
    """The users of projects, requests for their phone numbers, and the projects that they have blocked."""

    async def list_users(self, project_id: str, before: PageCursor | None, limit: int) -> list[ProjectUser]:
        """Return the users who signed in to a project, the latest first. A position has `last_at` and the account."""
        found = await self._database.look_up(LIST_USERS, project_id, *page_start(before), limit)
        return [ProjectUser(*row) for row in found]

    async def read_user(self, project_id: str, messenger_id: str) -> ProjectUser | None:
        """Return a user of a project; None if the account has not signed in to it, or was erased."""
        found = await self._database.read(READ_USER, project_id, messenger_id)
        return ProjectUser(*found[0]) if found else None

    async def ask_for_phone(self, request: PhoneRequest) -> None:
        """Record that a user was asked for their contact. Repeating the call is safe.

        Without the session, which an erasure may have deleted meanwhile, nothing is recorded.
        The stored `asked_at` is later than that of any other request of this bot to this user.
        """

        async def ask(transaction: Transaction) -> None:
            # An erasure deletes the session first. A request that it did not see would be left without a session.
            if await transaction.lock(HOLD_SESSION, *request.key, mode="FOR SHARE"):
                await transaction.fetch(ASK_FOR_PHONE, *phone_request_values(request))

        await self._database.in_transaction(ask)

    async def read_phone_request(self, key: SessionKey) -> PhoneRequest | None:
        """Return the request for a contact that belongs to this session; None if there is none."""
        found = await self._database.read(READ_PHONE_REQUEST, *key)
        return phone_request_from(found[0]) if found else None

    async def find_phone_request(self, messenger_id: str, bot_id: int) -> PhoneRequest | None:
        """Return the latest request of this bot to this user, which is the one that a contact answers.

        Its session may be decided or expired: a contact that is sent twice gets the same response twice.
        """
        found = await self._database.read(FIND_PHONE_REQUEST, messenger_id, bot_id)
        return phone_request_from(found[0]) if found else None

    async def purge_phone_requests(self, expired_before: int, limit: int) -> int:
        """Erase at most `limit` requests that expired at or before `expired_before`; return their number."""
        return await self._database.purge(PURGE_PHONE_REQUESTS, expired_before, limit)

    async def block_project(self, messenger_id: str, project_id: str, now: int) -> bool:
        """Block a project for an account, and end the account's grants there.

        Return False if it is already blocked, or if the project does not exist.
        """

        async def block(transaction: Transaction) -> bool:
            await transaction.lock_user(project_id, messenger_id)
            blocked = await transaction.fetch(BLOCK_PROJECT, messenger_id, project_id, now)
            await end_grants(transaction, OF_USER, (messenger_id, project_id), now, "blocked")
            return bool(blocked)

        return await self._database.in_transaction(block)

    async def unblock_project(self, messenger_id: str, project_id: str) -> bool:
        """Remove a block; False if there is none."""
        return bool(await self._database.change(UNBLOCK_PROJECT, messenger_id, project_id))

    async def is_blocked(self, messenger_id: str, project_id: str) -> bool:
        """Return whether an account has blocked a project."""
        return bool(await self._database.read(IS_BLOCKED, messenger_id, project_id))

    async def list_blocks(self, messenger_id: str, limit: int, *, project_id: str | None = None) -> list[NamedProject]:
        """Return the projects that an account has blocked, most recent first; with `project_id`, only that project."""
        return [NamedProject(*row) for row in await self._database.read(LIST_BLOCKS, messenger_id, project_id, limit)]
