"""Sessions on SQLite."""

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import apsw

from taproof.contract.session import SignInStatus
from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import (
    ConsumedSession,
    ExpiredSession,
    Hint,
    NewPhone,
    NewSession,
    PolledSession,
    ReturningUser,
    ReturnPolicy,
    Session,
    SessionKey,
)
from taproof.storage.protocol.sessions import SessionQueries
from taproof.storage.queries import counts as count_queries
from taproof.storage.queries import deliveries as delivery_queries
from taproof.storage.queries import listing as listing_queries
from taproof.storage.queries import sessions as queries
from taproof.storage.queries.database import Purge
from taproof.storage.queries.listing import Walk
from taproof.storage.queries.oidc.grants import OF_SESSION, end_grants
from taproof.storage.queries.prompts import END_PROMPT
from taproof.storage.queries.sessions import Outcome
from taproof.storage.queries.users import PROJECTS_OF_USER
from taproof.storage.rows import (
    Values,
    consumed_from,
    event_values,
    expired_session_from,
    identity_values,
    new_session_values,
    session_from,
)
from taproof.storage.sqlite import listing, notify
from taproof.storage.sqlite.counts import Counters, count_user
from taproof.storage.sqlite.database import SqliteDatabase, SqliteTransaction, finish
from taproof.storage.sqlite.group_commit import rows

_NO_RETURN: Final = ReturnPolicy(required=False, offered=False)
_PURGE: Purge = Purge("sessions", "day, token_hash", "day < $1")


class SqliteSessions(SessionQueries):
    """See `storage.protocol.sessions.SessionQueries`. `counters` count the changes of a group of writes."""

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

    async def _decide(
        self, statement: str, values: Values, key: SessionKey, now: int, decided: Callable[..., None] | None = None
    ) -> Outcome:
        """Run a guarded statement, and `decided` with the connection and the row that it changed."""

        def write(connection: apsw.Connection) -> Outcome:
            for row in rows(connection, statement, (*values, *key, self._deadline(now))):
                if decided is not None:
                    decided(connection, *row)
                return True
            return queries.refused(rows(connection, queries.FIND_STATE, key))

        return await self._database.writer.run(write)

    async def open_session(self, key: SessionKey, opener_id: str, now: int, hint: Hint = "opened") -> Outcome:
        def opened(connection: apsw.Connection, project_id: str) -> None:
            self._counters.add("opened", project_id, key.day)
            notify.record(connection, key, hint)

        return await self._decide(queries.OPEN_SESSION, (now, opener_id, hint), key, now, opened)

    async def set_hint(self, key: SessionKey, hint: Hint) -> bool:
        def write(connection: apsw.Connection) -> bool:
            found = rows(connection, queries.SET_HINT, (hint, *key))
            if found:
                notify.record(connection, key, hint)
            return bool(found)

        return await self._database.writer.run(write)

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, phone: NewPhone | None = None
    ) -> Outcome:
        values = (now, *identity_values(identity), None if phone is None else phone.encrypted)
        confirmed = self._confirmed(key, identity, now, event, phone)
        return await self._decide(queries.CONFIRM_SESSION, values, key, now, confirmed)

    async def await_return(
        self,
        key: SessionKey,
        identity: MessengerIdentity,
        now: int,
        return_hash: bytes,
        encrypted_phone: bytes | None = None,
    ) -> Outcome:
        def awaited(connection: apsw.Connection, _session_id: str) -> None:
            notify.record(connection, key, "return")

        values = queries.awaiting_values(identity, now, return_hash, encrypted_phone)
        return await self._decide(queries.AWAIT_RETURN, values, key, now, awaited)

    async def renew_return(self, key: SessionKey, opener_id: str, now: int, return_hash: bytes) -> Outcome:
        return await self._decide(queries.RENEW_RETURN, (return_hash, opener_id), key, now)

    async def return_session(
        self, key: SessionKey, return_hash: bytes, user: ReturningUser, now: int, event: Event
    ) -> bool:
        confirmed = self._confirmed(key, user.identity, now, event, None)
        return bool(await self._decide(queries.RETURN_SESSION, (now, return_hash), key, now, confirmed))

    def _confirmed(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, phone: NewPhone | None
    ) -> Callable[..., None]:
        """Return a function that counts a confirmed session, announces it, and records its event."""
        with_phone = event if phone is None else dataclasses.replace(event, encrypted_body=phone.event_body)

        def confirmed(
            connection: apsw.Connection, project_id: str, creator_id: str, session_id: str, has_phone: int
        ) -> None:
            self._counters.add("confirmed", project_id, key.day)
            notify.record(connection, key)
            count_user(connection, creator_id, project_id, identity, key.day, now)
            recorded = event_values(with_phone if has_phone else event)
            connection.execute(delivery_queries.RECORD_EVENT, (session_id, *recorded))

        return confirmed

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Outcome:
        def cancelled(connection: apsw.Connection, project_id: str, session_id: str) -> None:
            self._counters.add("cancelled", project_id, key.day)
            notify.record(connection, key)
            connection.execute(delivery_queries.RECORD_EVENT, (session_id, *event_values(event)))

        return await self._decide(queries.CANCEL_SESSION, (now, opener_id), key, now, cancelled)

    async def withdraw_session(self, key: SessionKey, now: int) -> Outcome:
        def withdrawn(connection: apsw.Connection, project_id: str) -> None:
            self._counters.add("cancelled", project_id, key.day)
            notify.record(connection, key)
            connection.execute(END_PROMPT, (now, *key))

        return await self._decide(queries.WITHDRAW_SESSION, (now,), key, now, withdrawn)

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
        def write(connection: apsw.Connection) -> SignInStatus | None:
            found = rows(connection, queries.REPORT_SESSION, (now, *key, opener_id, self._deadline(now)))
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
            finish(end_grants(SqliteTransaction(connection), OF_SESSION, key, now, "reported"))
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

    async def _read_page(
        self, project_ids: Sequence[str], walks: list[Walk], messenger_id: str | None, limit: int, now: int
    ) -> list[Session]:
        return await self._database.in_snapshot(
            lambda read: listing.read_page(read, project_ids, walks, messenger_id, limit, now)
        )

    async def _projects_of_user(self, messenger_id: str, since: int) -> list[str]:  # noqa: ARG002
        values = (messenger_id, PROJECTS_OF_USER)
        return [row[0] for row in self._database.rows(listing_queries.LIST_PROJECTS_OF_USER, values)]

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
