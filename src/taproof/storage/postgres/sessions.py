"""Sessions on PostgreSQL, with one statement for concurrent calls of the same kind."""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, get_args

import asyncpg

from taproof.contract.session import SignInStatus
from taproof.core.clock import MINUTE, Clock, day_number
from taproof.core.deliveries import Event
from taproof.core.identity import MessengerIdentity
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
from taproof.storage.batcher import Batcher
from taproof.storage.postgres import listing, notify, statements
from taproof.storage.postgres.database import PostgresDatabase, storable
from taproof.storage.postgres.notify import Announcer
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.prompts import END_PROMPTS
from taproof.storage.protocol.sessions import SessionQueries
from taproof.storage.queries import sessions as queries
from taproof.storage.queries.listing import Walk
from taproof.storage.queries.oidc.grants import OF_SESSION, end_grants
from taproof.storage.queries.sessions import Outcome
from taproof.storage.queries.transaction import Transaction
from taproof.storage.queries.users import PROJECTS_OF_USER
from taproof.storage.rows import (
    Values,
    columns,
    consumed_from,
    event_values,
    expired_session_from,
    identity_values,
    new_session_values,
    session_from,
)

_READS: Final = 512
_WRITES: Final = 256
"""The maximum number of sessions in one statement. It bounds how long the statement holds its locks."""
_OPEN: Final = frozenset({"pending", "confirmed"})
_LOOK_BACK_EVERY: Final = 10 * MINUTE


class _Change(NamedTuple):
    """A call that opens, confirms or cancels a session. `values` follow the deadline; `hint` is None for a decision."""

    key: SessionKey
    now: int
    values: Values
    hint: Hint | None = None


class _Expiry(NamedTuple):
    """A call that expires a session."""

    key: SessionKey
    now: int
    event_of: Callable[[ExpiredSession], Event]


class PostgresSessions(SessionQueries):
    """See `storage.protocol.sessions.SessionQueries`.

    `hears`: true to receive decisions of other nodes. LISTEN needs a separate connection to the server, so it does not
    work behind a PgBouncer in transaction mode.
    """

    _database: PostgresDatabase

    def __init__(
        self,
        database: PostgresDatabase,
        partitions: Partitions,
        announcer: Announcer,
        clock: Clock | None,
        *,
        hears: bool,
    ) -> None:
        super().__init__(database, clock)
        self._partitions = partitions
        self.hears = hears
        self._announcer = announcer
        self._looked_back: int | None = None
        self._overlooked: list[int] = []
        self._creations = Batcher[tuple[NewSession, bool], ReturnPolicy | str](self._create, limit=_WRITES)
        self._polls = Batcher[SessionKey, PolledSession | None](self._poll, limit=_READS)
        self._reads = Batcher[tuple[SessionKey, str], Session | None](self._read, limit=_READS)
        self._openings = self._changes(statements.OPEN_SESSIONS)
        self._confirmations = self._changes(statements.CONFIRM_SESSIONS)
        self._cancellations = self._changes(statements.CANCEL_SESSIONS)
        # As for `_changes`, a session cannot be in one statement twice.
        self._withdrawals = Batcher[_Change, Outcome](self._withdraw, limit=_WRITES, key=lambda each: each.key)
        self._expiries = Batcher[_Expiry, bool](self._expire_asked, limit=_WRITES, key=lambda each: each.key)
        self._consumptions = Batcher[tuple[SessionKey, int], ConsumedSession | None](self._consume, limit=_WRITES)

    async def close(self) -> None:
        """Finish the waiting calls."""
        for changes in (self._openings, self._confirmations, self._cancellations, self._withdrawals):
            await changes.close()
        for part in (self._creations, self._polls, self._reads, self._expiries, self._consumptions, self._announcer):
            await part.close()

    async def create_session(self, session: NewSession, *, public: bool) -> ReturnPolicy:
        created = await self._creations.run((session, public))
        if isinstance(created, str):
            raise queries.CREATION_REFUSALS[created]
        return created

    async def _create(self, items: list[tuple[NewSession, bool]]) -> list[ReturnPolicy | str]:
        values = columns(new_session_values(each, public=public) for each, public in items)
        try:
            made = await self._database.fetch(statements.CREATE_SESSIONS, *values)
        except asyncpg.CheckViolationError:
            # One of these days has no partition; the statement has changed nothing.
            await self._partitions.prepare(set(values[0]))
            made = await self._database.fetch(statements.CREATE_SESSIONS, *values)
        created = {(row[0], row[1]): row[2] or queries.return_policy(row[3], row[4]) for row in made}
        return [created[each.key] for each, _ in items]

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        found = await self._polls.run(key)
        # The other states lead to a write, or to an answer that the client does not rely on.
        if found is None or found.status not in _OPEN or found.expires_at <= self._deadline(0):
            await self._database.await_replication()
        return found

    async def read_session(self, key: SessionKey, viewer: str = "") -> Session | None:
        found = await self._reads.run((key, viewer))
        if found is None or found.status != "pending" or found.expires_at <= self._deadline(0):
            await self._database.await_replication()
        return found

    async def reread_session(self, key: SessionKey, since: int) -> ConsumedSession | None:
        found = await super().reread_session(key, since)
        if found is not None:
            await self._database.await_replication()
        return found

    async def _poll(self, items: list[SessionKey]) -> list[PolledSession | None]:
        values = columns(set(items))
        rows = await self._database.fetch(statements.POLL_SESSIONS, set(values[0]), *values)
        found = {(day, token_hash): PolledSession._make(polled) for day, token_hash, *polled in rows}
        return [found.get(key) for key in items]

    async def _read(self, items: list[tuple[SessionKey, str]]) -> list[Session | None]:
        values = columns((*key, viewer) for key, viewer in set(items))
        rows = await self._database.fetch(statements.READ_SESSIONS, set(values[0]), *values)
        found = {(row[0], row[1], viewer): session_from(row) for *row, viewer in rows}
        return [found.get((*key, viewer)) for key, viewer in items]

    def _changes(self, statement: str) -> Batcher[_Change, Outcome]:
        """Return a batcher for changes. It announces the sessions that a batch changed."""

        async def change(items: list[_Change]) -> list[Outcome]:
            values = self._change_values(items)
            outcomes = _outcomes(items, await self._database.fetch(statement, set(values[0]), *values))
            self._announcer.tell((each.key, each.hint) for each in itertools.compress(items, outcomes))
            return outcomes

        # A single statement cannot order two calls for the same session.
        return Batcher(change, limit=_WRITES, key=lambda each: each.key)

    def _change_values(self, items: list[_Change]) -> list[Values]:
        return columns((*each.key, each.now, self._deadline(each.now), *each.values) for each in items)

    async def open_session(self, key: SessionKey, opener_id: str, now: int, hint: Hint = "opened") -> Outcome:
        return await self._openings.run(_Change(key, now, (opener_id, hint), hint))

    async def set_hint(self, key: SessionKey, hint: Hint) -> bool:
        changed = await self._database.fetch(queries.SET_HINT, hint, *key)
        if changed:
            self._announcer.tell([(key, hint)])
        return bool(changed)

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, phone: NewPhone | None = None
    ) -> Outcome:
        values = (*identity_values(identity), *event_values(event), *(phone or (None, None)), None)
        return await self._confirmations.run(_Change(key, now, values))

    async def await_return(
        self,
        key: SessionKey,
        identity: MessengerIdentity,
        now: int,
        return_hash: bytes,
        encrypted_phone: bytes | None = None,
    ) -> Outcome:
        values = queries.awaiting_values(identity, now, return_hash, encrypted_phone)
        outcome = await self._change_one(statements.AWAIT_RETURN, (*values, *key, self._deadline(now)))
        if outcome:
            self._announcer.tell([(key, "return")])
        return outcome

    async def renew_return(self, key: SessionKey, opener_id: str, now: int, return_hash: bytes) -> Outcome:
        return await self._change_one(statements.RENEW_RETURN, (return_hash, opener_id, *key, self._deadline(now)))

    async def _change_one(self, statement: str, values: Values) -> Outcome:
        for is_moved, *state in await self._database.change(statement, *values):
            return True if is_moved else queries.refused([state])
        return Refused(None)

    async def return_session(
        self, key: SessionKey, return_hash: bytes, user: ReturningUser, now: int, event: Event
    ) -> bool:
        values = (*identity_values(user.identity), *event_values(event), None, None, return_hash)
        return bool(await self._confirmations.run(_Change(key, now, values)))

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Outcome:
        return await self._cancellations.run(_Change(key, now, (opener_id, *event_values(event))))

    async def withdraw_session(self, key: SessionKey, now: int) -> Outcome:
        outcome = await self._withdrawals.run(_Change(key, now, ()))
        if not outcome:
            # A missing session was only read. All others were locked, and so have already waited for the standbys.
            await self._database.await_replication()
        return outcome

    async def _withdraw(self, items: list[_Change]) -> list[Outcome]:
        values = self._change_values(items)

        async def withdraw(connection: asyncpg.Connection) -> list[Outcome]:
            found = await connection.fetch(statements.WITHDRAW_SESSIONS, set(values[0]), *values)
            outcomes = _outcomes(items, found)
            if any(outcomes):
                moved = itertools.compress(items, outcomes)
                await connection.execute(END_PROMPTS, *columns((*each.key, each.now) for each in moved))
            return outcomes

        outcomes = await self._database.transact(withdraw)
        self._announcer.tell((each.key, None) for each in itertools.compress(items, outcomes))
        return outcomes

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        consumed = await self._consumptions.run((key, now))
        if consumed is None:
            # The state was only read, for example because another caller has consumed the session.
            await self._database.await_replication()
        return consumed

    async def _consume(self, items: list[tuple[SessionKey, int]]) -> list[ConsumedSession | None]:
        # Of several callers for one session, the first one consumes it.
        first = dict(reversed(items))
        values = columns((*key, now) for key, now in first.items())
        found = await self._database.fetch(statements.CONSUME_SESSIONS, set(values[0]), *values)
        used: dict[Any, ConsumedSession] = {(row[0], row[1]): consumed_from(row[2:]) for row in found}
        return [used.pop(key, None) for key, _ in items]

    async def report_session(
        self, key: SessionKey, opener_id: str, now: int, events: Mapping[SignInStatus, Sequence[Event]]
    ) -> SignInStatus | None:
        recorded = columns((status, *event_values(each)[:4]) for status in events for each in events[status])
        values = (now, *key, opener_id, self._deadline(now), *recorded)

        async def report(transaction: Transaction) -> list[asyncpg.Record]:
            found = await transaction.fetch(statements.REPORT_SESSION, *values)
            if found:
                # The session is locked, so this sees every grant that it gave.
                await end_grants(transaction, OF_SESSION, key, now, "reported")
            return found

        reported = await self._database.in_transaction(report)
        if not reported:
            return None
        moved_to: SignInStatus = reported[0][0]
        if moved_to == "cancelled":
            self._announcer.tell([(key, None)])
        return moved_to

    async def expire_sessions(self, now: int, limit: int, event_of: Callable[[ExpiredSession], Event]) -> int:
        """Expire the sessions of yesterday and today and, from time to time, missed ones of older days."""
        today = day_number(now)
        if self._looked_back is None or abs(now - self._looked_back) >= _LOOK_BACK_EVERY:
            self._looked_back = now
            self._overlooked = [day for day in sorted(await self._partitions.days()) if day < today - 1]
        expired = 0
        while self._overlooked and expired < limit:
            expired += await self._expire_day(self._overlooked[0], now, limit - expired, event_of)
            if expired < limit:
                del self._overlooked[0]
        for day in (today - 1, today):
            if expired < limit:
                expired += await self._expire_day(day, now, limit - expired, event_of)
        return expired

    async def _expire_day(self, day: int, now: int, limit: int, event_of: Callable[[ExpiredSession], Event]) -> int:
        return len(await self._expire(statements.EXPIRE_SESSIONS, (day, now, limit), event_of))

    async def expire_session(self, key: SessionKey, now: int, event_of: Callable[[ExpiredSession], Event]) -> bool:
        return await self._expiries.run(_Expiry(key, now, event_of))

    async def _expire_asked(self, items: list[_Expiry]) -> list[bool]:
        asked = {each.key: each for each in items}
        values = columns((*each.key, each.now) for each in items)
        expired = await self._expire(
            statements.EXPIRE_ASKED_SESSIONS,
            (set(values[0]), *values),
            lambda session: asked[session.key].event_of(session),
        )
        found = {(row[0], row[1]) for row in expired}
        return [key in found for key in asked]

    async def _expire(
        self, statement: str, values: Values, event_of: Callable[[ExpiredSession], Event]
    ) -> list[asyncpg.Record]:
        """Expire the sessions that a statement finds, and record their events."""

        async def expire(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            expired: list[asyncpg.Record] = await connection.fetch(statement, *values)
            told = [expired_session_from(row) for *row, is_told in expired if is_told]
            if told:
                await connection.executemany(
                    statements.RECORD_EVENT, [(each.id, *event_values(event_of(each))) for each in told]
                )
            return expired

        return await self._database.transact(expire)

    async def _read_page(
        self, project_ids: Sequence[str], walks: list[Walk], messenger_id: str | None, limit: int, now: int
    ) -> list[Session]:
        return await listing.read_page(self._database, project_ids, walks, messenger_id, limit, now)

    async def _projects_of_user(self, messenger_id: str, since: int) -> list[str]:
        values = (messenger_id, day_number(since), PROJECTS_OF_USER)
        return [row[0] for row in await self._database.read(listing.LIST_PROJECTS_OF_USER, *values)]

    async def read_session_by_id(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        values = (storable(project_ids), get_args(SignInStatus), day_number(created_at), created_at, session_id)
        found = await self._database.read(listing.FIND_SESSION, *values)
        return session_from(found[0], now) if found else None

    async def watch_decisions(
        self,
        wake: Callable[[SessionKey], None],
        needed: asyncio.Event,
        notice: Callable[[SessionKey, Hint], None],
    ) -> None:
        if not self.hears:
            await asyncio.Event().wait()  # Until it is cancelled.
        await notify.listen(self._database.connect, wake, needed, notice)

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        await self._partitions.prepare(set(range(first_day, last_day + 1)))

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        return await self._partitions.drop(before_day, limit)


def _outcomes(items: list[_Change], rows: list[asyncpg.Record]) -> list[Outcome]:
    """Return the outcome of each change, from the rows of a statement that ends with `_OUTCOME`."""
    done: dict[tuple[int, bytes], Outcome] = {}
    for day, token_hash, is_moved, *state in rows:
        done[day, token_hash] = True if is_moved else queries.refused([state])
    return [done.get(each.key, Refused(None)) for each in items]
