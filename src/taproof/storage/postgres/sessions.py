"""The life of a session on PostgreSQL: the calls of one kind that come together are one statement."""

from typing import Any, Final, NamedTuple

import asyncpg

from taproof.core.clock import MINUTE, Clock, day_number
from taproof.core.deliveries import Event
from taproof.core.model import ConsumedSession, MessengerIdentity, NewSession, PolledSession, SessionKey, Status
from taproof.storage.postgres import sql
from taproof.storage.postgres.batcher import Batcher
from taproof.storage.postgres.notify import Announcer
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.pool import PostgresPool
from taproof.storage.rows import columns, consumed_from, event_values, identity_values, new_session_values

_READS: Final = 512
_WRITES: Final = 256
"""Sessions in one statement at most: bounds how long it holds its locks."""
_LOOK_BACK_EVERY: Final = 10 * MINUTE


class Opening(NamedTuple):
    """A call of `open_session`."""

    key: SessionKey
    opener_id: str
    now: int


class Confirmation(NamedTuple):
    """A call of `confirm_session`."""

    key: SessionKey
    identity: MessengerIdentity
    now: int
    event: Event
    encrypted_phone: bytes | None


class Cancellation(NamedTuple):
    """A call of `cancel_session`."""

    key: SessionKey
    opener_id: str
    now: int
    event: Event


class PostgresSessions:
    """What `PostgresStorage` does with sessions. `storage.protocol.Storage` says what each method promises."""

    def __init__(self, pool: PostgresPool, partitions: Partitions, clock: Clock | None) -> None:
        self._pool = pool
        self._partitions = partitions
        self._clock = clock
        self._announcer = Announcer(pool)
        self._looked_back: int | None = None
        self._overlooked: list[int] = []
        self.create = Batcher[tuple[NewSession, bool], bool](self._create, limit=_WRITES)
        self.poll = Batcher[SessionKey, PolledSession | None](self._poll, limit=_READS)
        # Which of two calls for one session comes first, a single statement could not tell.
        self.open = Batcher[Opening, bool](self._open, limit=_WRITES, key=_key)
        self.confirm = Batcher[Confirmation, bool](self._confirm, limit=_WRITES, key=_key)
        self.cancel = Batcher[Cancellation, bool](self._cancel, limit=_WRITES, key=_key)
        self.consume = Batcher[tuple[SessionKey, int], ConsumedSession | None](self._consume, limit=_WRITES)

    async def close(self) -> None:
        """Finish what is waiting."""
        for each in (self.create, self.poll, self.open, self.confirm, self.cancel, self.consume):
            await each.close()
        await self._announcer.close()

    def _deadline(self, now: int) -> int:
        """Return the time that a deadline is held to in a write: nobody may have read "expired" before a decision."""
        return now if self._clock is None else max(now, self._clock())

    async def _create(self, items: list[tuple[NewSession, bool]]) -> list[bool]:
        values = columns(new_session_values(each, public=public) for each, public in items)
        try:
            made = await self._pool.fetch(sql.CREATE_SESSIONS, *values)
        except asyncpg.CheckViolationError:
            # No partition takes one of these days; the statement has changed nothing.
            await self._partitions.prepare(set(values[0]))
            made = await self._pool.fetch(sql.CREATE_SESSIONS, *values)
        return _are_in(made, [each.key for each, _ in items])

    async def _poll(self, items: list[SessionKey]) -> list[PolledSession | None]:
        values = columns(set(items))
        rows = await self._pool.fetch(sql.POLL_SESSIONS, set(values[0]), *values)
        found = {row[:2]: PolledSession._make(row[2:]) for row in rows}
        return [found.get(key) for key in items]

    async def _open(self, items: list[Opening]) -> list[bool]:
        values = columns((*each.key, each.opener_id, each.now, self._deadline(each.now)) for each in items)
        opened = await self._pool.fetch(sql.OPEN_SESSIONS, set(values[0]), *values)
        return _are_in(opened, [each.key for each in items])

    async def _confirm(self, items: list[Confirmation]) -> list[bool]:
        values = columns(
            (
                *each.key,
                each.now,
                *identity_values(each.identity),
                self._deadline(each.now),
                *event_values(each.event),
                each.encrypted_phone,
            )
            for each in items
        )
        return await self._decide(sql.CONFIRM_SESSIONS, values, [each.key for each in items])

    async def _cancel(self, items: list[Cancellation]) -> list[bool]:
        values = columns(
            (*each.key, each.opener_id, each.now, self._deadline(each.now), *event_values(each.event)) for each in items
        )
        return await self._decide(sql.CANCEL_SESSIONS, values, [each.key for each in items])

    async def _decide(self, statement: str, values: list[tuple[Any, ...]], keys: list[SessionKey]) -> list[bool]:
        decided = _are_in(await self._pool.fetch(statement, set(values[0]), *values), keys)
        self._announcer.tell(key for key, is_decided in zip(keys, decided, strict=True) if is_decided)
        return decided

    async def _consume(self, items: list[tuple[SessionKey, int]]) -> list[ConsumedSession | None]:
        # Of several callers for one session the first takes it.
        first = dict(reversed(items))
        values = columns((*key, now) for key, now in first.items())
        used: dict[tuple[Any, ...], ConsumedSession] = {}
        for row in await self._pool.fetch(sql.CONSUME_SESSIONS, set(values[0]), *values):
            used[row[:2]] = consumed_from(row[2:])
        return [used.pop(key, None) for key, _ in items]

    async def report(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Status | None:
        """Write down that a session was not its user's."""
        values = (
            now,
            *key,
            opener_id,
            self._deadline(now),
            event.id,
            event.type,
            event.encrypted_body,
            event.created_at,
        )
        reported = await self._pool.find(sql.REPORT_SESSION, *values)
        if not reported:
            return None
        status: Status = reported[0][0]
        if status == "cancelled":
            self._announcer.tell([key])
        return status

    async def expire(self, now: int, limit: int) -> int:
        """Write down expiry: of yesterday's and today's sessions, and now and then of all that were overlooked."""
        today = day_number(now)
        if self._looked_back is None or abs(now - self._looked_back) >= _LOOK_BACK_EVERY:
            self._looked_back = now
            self._overlooked = [day for day in sorted(await self._partitions.days()) if day < today - 1]
        expired = 0
        while self._overlooked and expired < limit:
            expired += await self._expire_day(self._overlooked[0], now, limit - expired)
            if expired < limit:
                del self._overlooked[0]
        for day in (today - 1, today):
            if expired < limit:
                expired += await self._expire_day(day, now, limit - expired)
        return expired

    async def _expire_day(self, day: int, now: int, limit: int) -> int:
        (row,) = await self._pool.fetch(sql.EXPIRE_SESSIONS, day, now, limit)
        return int(row[0])


def _key(item: Opening | Confirmation | Cancellation) -> SessionKey:
    return item.key


def _are_in(rows: list[asyncpg.Record], keys: list[SessionKey]) -> list[bool]:
    """Tell of each key whether it is among the rows."""
    found = {tuple(row) for row in rows}
    return [key in found for key in keys]
