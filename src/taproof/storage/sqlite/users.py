"""What users say of sessions and projects, on SQLite."""

import apsw

from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.model import NamedProject, PhoneRequest, Session, SessionKey, Status
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import sessions as session_queries
from taproof.storage.queries import users as user_queries
from taproof.storage.rows import event_values, phone_request_from, phone_request_values
from taproof.storage.sqlite import notify
from taproof.storage.sqlite.deliveries import SqliteDeliveries
from taproof.storage.sqlite.group_commit import rows
from taproof.storage.sqlite.listing import list_sessions
from taproof.storage.user_protocol import PROJECTS_OF_USER


class SqliteUsers(SqliteDeliveries):
    """The part of the store that users act on. See `storage.user_protocol.UserStorage`."""

    def __init__(
        self, reader: apsw.Connection, writer: apsw.Connection, lookup: apsw.Connection, clock: Clock | None
    ) -> None:
        super().__init__(reader, writer, lookup)
        self._clock = clock

    def _at_least(self, now: int) -> int:
        """Return the time that a deadline is held to in a write: nobody may have read "expired" before a decision."""
        return now if self._clock is None else max(now, self._clock())

    async def ask_for_phone(self, request: PhoneRequest) -> None:
        await self._write(user_queries.ASK_FOR_PHONE, phone_request_values(request))

    async def read_phone_request(self, key: SessionKey) -> PhoneRequest | None:
        found = self._read(user_queries.READ_PHONE_REQUEST, key)
        return phone_request_from(found[0]) if found else None

    async def find_phone_request(self, messenger_id: str, bot_id: int) -> PhoneRequest | None:
        found = self._read(user_queries.FIND_PHONE_REQUEST, (messenger_id, bot_id))
        return phone_request_from(found[0]) if found else None

    async def purge_phone_requests(self, expired_before: int, limit: int) -> int:
        if not self._read(user_queries.ANY_OLD_PHONE_REQUEST, (expired_before,)):
            return 0
        return len(await self._write(user_queries.PURGE_PHONE_REQUESTS, (expired_before, limit)))

    async def report_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Status | None:
        def write(connection: apsw.Connection) -> Status | None:
            found = rows(connection, session_queries.REPORT_SESSION, (now, *key, opener_id, self._at_least(now)))
            if not found:
                return None
            project_id, session_id, status, confirmed_at = found[0]
            connection.execute(session_queries.COUNT_REPORTED, (project_id, key.day, int(status == "cancelled")))
            if status == "cancelled":
                notify.record(connection, key)
                connection.execute(delivery_queries.RECORD_EVENT, (session_id, *event_values(event)))
            else:
                connection.execute(
                    session_queries.END_CONFIRMED_EVENT, (b"", now, project_id, confirmed_at, session_id)
                )
            reported: Status = status
            return reported

        status: Status | None = await self._writer.run(write)
        return status

    async def list_sign_ins(
        self, messenger_id: str, since: int, limit: int, now: int, *, project_id: str | None = None
    ) -> list[Session]:
        ids = [project_id] if project_id is not None else []
        if project_id is None:
            ids = [row[0] for row in self._read(user_queries.LIST_PROJECTS_OF_USER, (messenger_id, PROJECTS_OF_USER))]
        return list_sessions(self._read, ids, None, None, limit, now, since=since, messenger_id=messenger_id)

    async def block_project(self, messenger_id: str, project_id: str, now: int) -> bool:
        return bool(await self._write(user_queries.BLOCK_PROJECT, (messenger_id, project_id, now)))

    async def unblock_project(self, messenger_id: str, project_id: str) -> bool:
        return bool(await self._write(user_queries.UNBLOCK_PROJECT, (messenger_id, project_id)))

    async def is_blocked(self, messenger_id: str, project_id: str) -> bool:
        return bool(self._read(user_queries.IS_BLOCKED, (messenger_id, project_id)))

    async def list_blocks(self, messenger_id: str, limit: int, *, project_id: str | None = None) -> list[NamedProject]:
        return [NamedProject(*row) for row in self._read(user_queries.LIST_BLOCKS, (messenger_id, project_id, limit))]
