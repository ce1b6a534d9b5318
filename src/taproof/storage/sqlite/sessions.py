"""Sessions on SQLite."""

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import apsw

from taproof.contract.session import SignInStatus
from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.identity import MessengerIdentity
from taproof.core.page_cursor import PageCursor
from taproof.core.sessions import (
    ConsumedSession,
    ExpiredSession,
    Hint,
    NewPhone,
    NewSession,
    PolledSession,
    Refused,
    ReturningUser,
    ReturnPolicy,
    Session,
    SessionKey,
)
from taproof.storage.queries import counts as count_queries
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import listing as listing_queries
from taproof.storage.queries import sessions as queries
from taproof.storage.queries.database import Purge
from taproof.storage.queries.listing import session_walks
from taproof.storage.queries.prompts import END_PROMPT
from taproof.storage.queries.users import PROJECTS_OF_USER
from taproof.storage.rows import (
    Values,
    consumed_from,
    event_values,
    expired_session_from,
    identity_values,
    new_session_values,
    page_start,
    session_from,
)
from taproof.storage.sqlite import listing, notify
from taproof.storage.sqlite.counts import Counters, count_user
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import rows

_NO_RETURN: Final = ReturnPolicy(required=False, offered=False)
_PURGE: Purge = Purge("sessions", "day, token_hash", "day < $1")


class SqliteSessions(queries.SessionQueries):
    """See `storage.protocol.SessionStorage`.

    Args:
        database: reads and writes.
        counters: counts the changes of a group of writes.
        clock: see `SessionQueries`.
    """

    _database: SqliteDatabase

    def __init__(self, database: SqliteDatabase, counters: Counters, clock: Clock | None) -> None:
        super().__init__(database, clock)
        self._counters = counters

    async def create_session(self, session: NewSession, *, public: bool) -> ReturnPolicy:
        values = new_session_values(session, public=public)
        asked = (public, session.return_url, session.code_challenge, session.project_id)

        def write(connection: apsw.Connection) -> ReturnPolicy | str:
            connection.execute(queries.CREATE_SESSION, values)
            if not connection.changes():
                found = rows(connection, queries.EXPLAIN_CREATION, asked)
                return found[0][0] if found else "no_project"
            self._counters.add("requested", session.project_id, session.key.day)
            # RETURNING would make every creation a quarter slower, and without a URL there is no way back.
            if session.return_url is None:
                return _NO_RETURN
            return queries.return_policy(*rows(connection, queries.READ_RETURN_POLICY, session.key)[0])

        created = await self._database.writer.run(write)
        if isinstance(created, str):
            raise queries.CREATION_REFUSALS[created]
        return created

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        found = self._database.rows(queries.POLL_SESSION, key)
        return PolledSession._make(found[0]) if found else None

    async def read_session(self, key: SessionKey, viewer: str = "") -> Session | None:
        found = self._database.rows(queries.READ_SESSION, (viewer, *key))
        return session_from(found[0]) if found else None

    async def open_session(
        self, key: SessionKey, opener_id: str, now: int, hint: Hint = "opened"
    ) -> Literal[True] | Refused:
        def write(connection: apsw.Connection) -> Literal[True] | Refused:
            for (project_id,) in rows(
                connection, queries.OPEN_SESSION, (now, opener_id, hint, *key, self._deadline(now))
            ):
                self._counters.add("opened", project_id, key.day)
                notify.record(connection, key, hint)
                return True
            return queries.refused(rows(connection, queries.FIND_STATE, key))

        return await self._database.writer.run(write)

    async def set_hint(self, key: SessionKey, hint: Hint) -> bool:
        def write(connection: apsw.Connection) -> bool:
            found = rows(connection, queries.SET_HINT, (hint, *key))
            if found:
                notify.record(connection, key, hint)
            return bool(found)

        return await self._database.writer.run(write)

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, phone: NewPhone | None = None
    ) -> Literal[True] | Refused:
        values = (now, *identity_values(identity), None if phone is None else phone.encrypted, *key)

        def write(connection: apsw.Connection) -> Literal[True] | Refused:
            found = rows(connection, queries.CONFIRM_SESSION, (*values, self._deadline(now)))
            self._confirmed(connection, key, found, identity, now=now, event=event, phone=phone)
            return True if found else queries.refused(rows(connection, queries.FIND_STATE, key))

        return await self._database.writer.run(write)

    async def await_return(
        self,
        key: SessionKey,
        identity: MessengerIdentity,
        now: int,
        return_hash: bytes,
        encrypted_phone: bytes | None = None,
    ) -> Literal[True] | Refused:
        values = self._await_return_values(key, identity, now, return_hash, encrypted_phone)

        def write(connection: apsw.Connection) -> Literal[True] | Refused:
            if not rows(connection, queries.AWAIT_RETURN, values):
                return queries.refused(rows(connection, queries.FIND_STATE, key))
            notify.record(connection, key, "return")
            return True

        return await self._database.writer.run(write)

    async def renew_return(
        self, key: SessionKey, opener_id: str, now: int, return_hash: bytes
    ) -> Literal[True] | Refused:
        values = (return_hash, *key, opener_id, self._deadline(now))

        def write(connection: apsw.Connection) -> Literal[True] | Refused:
            found = rows(connection, queries.RENEW_RETURN, values)
            return True if found else queries.refused(rows(connection, queries.FIND_STATE, key))

        return await self._database.writer.run(write)

    async def return_session(
        self, key: SessionKey, return_hash: bytes, user: ReturningUser, now: int, event: Event
    ) -> bool:
        def write(connection: apsw.Connection) -> bool:
            found = rows(connection, queries.RETURN_SESSION, (now, *key, return_hash, self._deadline(now)))
            self._confirmed(connection, key, found, user.identity, now=now, event=event, phone=None)
            return bool(found)

        return await self._database.writer.run(write)

    def _confirmed(
        self,
        connection: apsw.Connection,
        key: SessionKey,
        found: list[tuple[Any, ...]],
        identity: MessengerIdentity,
        *,
        now: int,
        event: Event,
        phone: NewPhone | None,
    ) -> None:
        """Count a session that was just confirmed, announce it, and record its event."""
        for project_id, creator_id, session_id, has_phone in found:
            if has_phone and phone is not None:
                event = dataclasses.replace(event, encrypted_body=phone.event_body)
            self._counters.add("confirmed", project_id, key.day)
            notify.record(connection, key)
            count_user(connection, creator_id, project_id, identity, key.day, now)
            connection.execute(delivery_queries.RECORD_EVENT, (session_id, *event_values(event)))

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Literal[True] | Refused:
        def write(connection: apsw.Connection) -> Literal[True] | Refused:
            found = rows(connection, queries.CANCEL_SESSION, (now, *key, opener_id, self._deadline(now)))
            for project_id, session_id in found:
                self._counters.add("cancelled", project_id, key.day)
                notify.record(connection, key)
                connection.execute(delivery_queries.RECORD_EVENT, (session_id, *event_values(event)))
            return True if found else queries.refused(rows(connection, queries.FIND_STATE, key))

        return await self._database.writer.run(write)

    async def withdraw_session(self, key: SessionKey, now: int) -> Literal[True] | Refused:
        def write(connection: apsw.Connection) -> Literal[True] | Refused:
            found = rows(connection, queries.WITHDRAW_SESSION, (now, *key, self._deadline(now)))
            for (project_id,) in found:
                self._counters.add("cancelled", project_id, key.day)
                notify.record(connection, key)
                connection.execute(END_PROMPT, (now, *key))
            return True if found else queries.refused(rows(connection, queries.FIND_STATE, key))

        return await self._database.writer.run(write)

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        def write(connection: apsw.Connection) -> ConsumedSession | None:
            found = rows(connection, queries.CONSUME_SESSION, (now, *key))
            if not found:
                return None
            consumed = consumed_from(found[0])
            self._counters.add("used", consumed.project_id, key.day)
            return consumed

        return await self._database.writer.run(write)

    async def report_session(
        self, key: SessionKey, opener_id: str, now: int, events: Mapping[SignInStatus, Sequence[Event]]
    ) -> SignInStatus | None:
        values = (now, *key, opener_id, self._deadline(now))

        def write(connection: apsw.Connection) -> SignInStatus | None:
            found = rows(connection, queries.REPORT_SESSION, values)
            if not found:
                return None
            moved_to: SignInStatus
            project_id, session_id, moved_to, confirmed_at, used_at = found[0]
            before: SignInStatus = "pending" if moved_to == "cancelled" else "confirmed" if used_at is None else "used"
            connection.execute(count_queries.COUNT_REPORTED, (project_id, key.day, int(moved_to == "cancelled")))
            if moved_to == "cancelled":
                notify.record(connection, key)
            else:
                connection.execute(queries.END_CONFIRMED_EVENT, (b"", now, project_id, confirmed_at, session_id))
            for event in events.get(before, ()):
                connection.execute(delivery_queries.RECORD_EVENT, (session_id, *event_values(event)))
            return moved_to

        return await self._database.writer.run(write)

    async def expire_sessions(self, now: int, limit: int, event_of: Callable[[ExpiredSession], Event]) -> int:
        if not self._database.rows(queries.ANY_OVERDUE_SESSION, (now,)):
            return 0

        return await self._expire(queries.EXPIRE_SESSIONS, (now, limit), event_of)

    async def expire_session(self, key: SessionKey, now: int, event_of: Callable[[ExpiredSession], Event]) -> bool:
        return bool(await self._expire(queries.EXPIRE_SESSION, (*key, now), event_of))

    async def _expire(self, statement: str, values: Values, event_of: Callable[[ExpiredSession], Event]) -> int:
        """Expire the sessions that a statement finds, count them, and record their events."""

        def write(connection: apsw.Connection) -> int:
            found = [expired_session_from(row) for row in rows(connection, statement, values)]
            counts = Counter((each.project_id, each.key.day) for each in found)
            for (project_id, day), count in counts.items():
                connection.execute(count_queries.COUNT_EXPIRED, (count, project_id, day))
            of_projects = json.dumps(list({project_id for project_id, _ in counts}))
            told = {row[0] for row in rows(connection, queries.TELL_EXPIRED, (of_projects,))}
            for each in found:
                if each.project_id in told:
                    connection.execute(delivery_queries.RECORD_EVENT, (each.id, *event_values(event_of(each))))
            return len(found)

        return await self._database.writer.run(write)

    async def list_sessions(
        self,
        project_ids: Sequence[str],
        status: SignInStatus | None,
        before: PageCursor | None,
        limit: int,
        now: int,
        *,
        since: int = 0,
        messenger_id: str | None = None,
    ) -> list[Session]:
        walks = session_walks(status, page_start(before), since, now, messenger_id)
        return await self._database.in_snapshot(
            lambda read: listing.read_page(read, project_ids, walks, messenger_id, limit, now)
        )

    async def list_sign_ins(
        self, messenger_id: str, since: int, limit: int, now: int, *, project_id: str | None = None
    ) -> list[Session]:
        ids = [project_id] if project_id is not None else []
        if project_id is None:
            values = (messenger_id, PROJECTS_OF_USER)
            ids = [row[0] for row in self._database.rows(listing_queries.LIST_PROJECTS_OF_USER, values)]
        return await self.list_sessions(ids, None, None, limit, now, since=since, messenger_id=messenger_id)

    async def read_session_by_id(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        values = (json.dumps(list(project_ids)), created_at, session_id)
        found = await self._database.look_up(listing_queries.FIND_SESSION, *values)
        return session_from(found[0], now) if found else None

    async def watch_decisions(
        self,
        wake: Callable[[SessionKey], None],
        needed: asyncio.Event,
        notice: Callable[[SessionKey, Hint], None],
    ) -> None:
        await notify.watch(self._database.rows, wake, needed, notice)

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        """Do nothing: one table contains the sessions of all days."""

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        return await self._database.purge(_PURGE, before_day, limit)
