"""What users say of projects, on PostgreSQL; what they say of sessions stands in `sessions.py`."""

from taproof.core.clock import day_number
from taproof.core.model import NamedProject, PhoneRequest, Session, SessionKey
from taproof.storage.postgres import sql
from taproof.storage.postgres.deliveries import PostgresDeliveries
from taproof.storage.postgres.listing import list_sessions
from taproof.storage.queries import users as user_queries
from taproof.storage.rows import phone_request_from, phone_request_values
from taproof.storage.user_protocol import PROJECTS_OF_USER


class PostgresUsers(PostgresDeliveries):
    """The part of the store that users act on. See `storage.user_protocol.UserStorage`."""

    async def ask_for_phone(self, request: PhoneRequest) -> None:
        await self._pool.fetch(user_queries.ASK_FOR_PHONE, *phone_request_values(request))

    async def read_phone_request(self, key: SessionKey) -> PhoneRequest | None:
        found = await self._pool.fetch(user_queries.READ_PHONE_REQUEST, *key)
        return phone_request_from(found[0]) if found else None

    async def find_phone_request(self, messenger_id: str, bot_id: int) -> PhoneRequest | None:
        found = await self._pool.find(user_queries.FIND_PHONE_REQUEST, messenger_id, bot_id)
        return phone_request_from(found[0]) if found else None

    async def purge_phone_requests(self, expired_before: int, limit: int) -> int:
        return len(await self._pool.fetch(sql.PURGE_PHONE_REQUESTS, expired_before, limit))

    async def list_sign_ins(
        self, messenger_id: str, since: int, limit: int, now: int, *, project_id: str | None = None
    ) -> list[Session]:
        ids = [project_id] if project_id is not None else []
        if project_id is None:
            values = (messenger_id, day_number(since), PROJECTS_OF_USER)
            ids = [row[0] for row in await self._pool.find(sql.LIST_PROJECTS_OF_USER, *values)]
        return await list_sessions(self._pool, ids, None, None, limit, now, since=since, messenger_id=messenger_id)

    async def block_project(self, messenger_id: str, project_id: str, now: int) -> bool:
        return bool(await self._pool.find(user_queries.BLOCK_PROJECT, messenger_id, project_id, now))

    async def unblock_project(self, messenger_id: str, project_id: str) -> bool:
        return bool(await self._pool.find(user_queries.UNBLOCK_PROJECT, messenger_id, project_id))

    async def is_blocked(self, messenger_id: str, project_id: str) -> bool:
        return bool(await self._pool.find(user_queries.IS_BLOCKED, messenger_id, project_id))

    async def list_blocks(self, messenger_id: str, limit: int, *, project_id: str | None = None) -> list[NamedProject]:
        found = await self._pool.find(user_queries.LIST_BLOCKS, messenger_id, project_id, limit)
        return [NamedProject(*row) for row in found]
