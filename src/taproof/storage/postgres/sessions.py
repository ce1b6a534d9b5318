"""Sessions on PostgreSQL, with one statement for concurrent calls of the same kind."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, get_args

import asyncpg

from taproof.core.clock import MINUTE, Clock, day_number
from taproof.core.deliveries import Event
from taproof.core.model import (
    ConsumedSession,
    ExpiredSession,
    Hint,
    MessengerIdentity,
    NewSession,
    PageCursor,
    PolledSession,
    ReturningUser,
    Session,
    SessionKey,
    Status,
)
from taproof.storage.batcher import Batcher
from taproof.storage.postgres import listing, notify
from taproof.storage.postgres.database import PostgresDatabase, storable
from taproof.storage.postgres.notify import Announcer
from taproof.storage.postgres.partitions import Partitions
from taproof.storage.postgres.prompts import END_PROMPTS
from taproof.storage.protocol.users import PROJECTS_OF_USER
from taproof.storage.queries import sessions as queries
from taproof.storage.queries.deliveries import RECORD_EVENT as RECORD_UNLOCKED_EVENT
from taproof.storage.queries.listing import session_walks
from taproof.storage.rows import (
    Values,
    columns,
    consumed_from,
    event_values,
    expired_session_from,
    identity_values,
    new_session_values,
    page_start,
    session_from,
)

_READS: Final = 512
_WRITES: Final = 256
"""The maximum number of sessions in one statement. It bounds how long the statement holds its locks."""
_OPEN: Final = frozenset({"pending", "confirmed"})
_LOOK_BACK_EVERY: Final = 10 * MINUTE


def _locked(condition: str) -> str:
    """Return the part of a statement that locks, in one order, the requested sessions that meet a condition."""
    return f"""locked AS MATERIALIZED (
  SELECT a.* FROM (SELECT * FROM asked ORDER BY day, token_hash) AS a CROSS JOIN LATERAL (
    SELECT FROM sessions s
    WHERE s.day = ANY ($1::INTEGER[]) AND s.day = a.day AND s.token_hash = a.token_hash AND {condition}
    LIMIT 1 FOR UPDATE
  ) AS s
)"""


def _counted(counter: str) -> str:
    """Return the part of a statement that counts the changed sessions in `moved`."""
    return f"""counted AS (
  INSERT INTO daily_counts AS c (project_id, day, {counter})
  SELECT m.project_id, m.day, COUNT(*) FROM moved m GROUP BY m.project_id, m.day ORDER BY m.project_id, m.day
  ON CONFLICT (project_id, day) DO UPDATE SET {counter} = c.{counter} + excluded.{counter} RETURNING c.project_id
)"""


CREATE_SESSIONS: Final = f"""
WITH moved AS (
  INSERT INTO sessions (day, token_hash, id, status, created_at, expires_at, code_challenge, bot_id, context,
    match_code, match_choices, return_url, return_required, project_id)
  SELECT a.day, a.token_hash, a.id, 'pending', a.created_at, a.expires_at, a.code_challenge, a.bot_id, a.context,
    a.match_code, a.match_choices, a.return_url, a.return_required, p.id
  FROM unnest($1::INTEGER[], $2::BYTEA[], $3::TEXT[], $4::BIGINT[], $5::BIGINT[], $6::BYTEA[], $7::BIGINT[],
    $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::TEXT[], $12::INTEGER[], $13::TEXT[], $14::INTEGER[])
    AS a (day, token_hash, id, created_at, expires_at, code_challenge, bot_id, context, match_code, match_choices,
      return_url, return_required, project_id, is_public)
  JOIN projects p ON p.id = a.project_id
  WHERE p.is_active = 1 AND (p.public_access = 1 OR a.is_public = 0)
  RETURNING day, token_hash, project_id
), {_counted("requested")}
SELECT day, token_hash FROM moved"""
POLL_SESSIONS: Final = """
SELECT s.day, s.token_hash, s.project_id, p.public_access, s.status, s.expires_at, s.code_challenge, s.encrypted_phone,
  s.hint, s.return_required, s.return_hash
FROM unnest($2::INTEGER[], $3::BYTEA[]) AS a (day, token_hash)
CROSS JOIN LATERAL (
  SELECT * FROM sessions x
  WHERE x.day = ANY ($1::INTEGER[]) AND x.day = a.day AND x.token_hash = a.token_hash LIMIT 1
) AS s JOIN projects p ON p.id = s.project_id"""
OPEN_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::TEXT[])
    AS a (day, token_hash, opened_at, deadline, opener_id, hint)
), {_locked("s.status || '' = 'pending' AND s.opener_id IS NULL AND s.expires_at > a.deadline")}, moved AS (
  UPDATE sessions s SET opened_at = l.opened_at, opener_id = l.opener_id, hint = l.hint FROM locked l
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash
  RETURNING s.day, s.token_hash, s.project_id
), {_counted("opened")}
SELECT day, token_hash FROM moved"""
CONFIRM_SESSIONS: Final = """
SELECT * FROM confirm_sessions($1, $2, $3, $4, $6, $7, $8, $5, $9, $10, $11, $12, $13, $14, $15)"""
CANCEL_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[], $6::TEXT[], $7::TEXT[], $8::TEXT[],
    $9::BYTEA[], $10::BIGINT[], $11::TEXT[])
    AS a (day, token_hash, cancelled_at, deadline, opener_id, event_id, type, encrypted_body, created_at, project_id)
), {_locked("s.status || '' = 'pending' AND s.opener_id = a.opener_id AND s.expires_at > a.deadline")}, moved AS (
  UPDATE sessions s SET status = 'cancelled', cancelled_at = l.cancelled_at, context = NULL, {queries.FORGET_RETURN}
  FROM locked l, projects p
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash AND p.id = s.project_id
  RETURNING s.day, s.token_hash, s.id, s.project_id
), {_counted("cancelled")}, hooked AS MATERIALIZED (
  SELECT p.id, p.webhook_events FROM projects p
  WHERE p.id IN (SELECT n.project_id FROM counted n) AND p.webhook_url <> ''
  ORDER BY p.id FOR SHARE
), recorded AS (
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
    session_id)
  SELECT a.event_id, a.type, a.encrypted_body, a.created_at, 'due', a.created_at, 0, 0, h.id, m.id
  FROM asked a JOIN moved m ON m.day = a.day AND m.token_hash = a.token_hash
  JOIN hooked h ON h.id = a.project_id AND h.webhook_events LIKE '%' || a.type || '%'
)
SELECT day, token_hash FROM moved"""
WITHDRAW_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[], $5::BIGINT[])
    AS a (day, token_hash, cancelled_at, deadline)
), {_locked("s.status || '' = 'pending' AND s.expires_at > a.deadline")}, moved AS (
  UPDATE sessions s SET status = 'cancelled', cancelled_at = l.cancelled_at, withdrawn = 1, context = NULL,
    {queries.FORGET_RETURN}
  FROM locked l, projects p
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash AND p.id = s.project_id
  RETURNING s.day, s.token_hash, s.project_id, s.cancelled_at
), {_counted("cancelled")}
SELECT day, token_hash, cancelled_at FROM moved"""
CONSUME_SESSIONS: Final = f"""
WITH asked AS (
  SELECT * FROM unnest($2::INTEGER[], $3::BYTEA[], $4::BIGINT[]) AS a (day, token_hash, used_at)
), {_locked("s.status || '' = 'confirmed'")}, moved AS (
  UPDATE sessions s SET status = 'used', used_at = l.used_at, secrets_version = p.secrets_version
  FROM locked l, projects p
  WHERE s.day = ANY ($1::INTEGER[]) AND s.day = l.day AND s.token_hash = l.token_hash AND p.id = s.project_id
  RETURNING s.day, s.token_hash, s.project_id, s.messenger_id, s.messenger_name, s.messenger_username,
    s.confirmed_at, p.encrypted_webhook_secret, p.encrypted_next_webhook_secret, p.next_webhook_secret_at,
    s.used_at, s.id, s.encrypted_phone
), {_counted("used")}
SELECT * FROM moved"""
# `used_at` does not change: it is the time at which an application received the proof.
REPORT_SESSION: Final = f"""
WITH held AS MATERIALIZED (
  SELECT s.day, s.token_hash, s.status FROM sessions s
  WHERE s.day = $2 AND s.token_hash = $3 AND s.opener_id = $4 AND s.reported_at IS NULL AND s.status || '' = $6
    AND (s.status || '' IN ('confirmed', 'used') OR (s.status || '' = 'pending' AND s.expires_at > $5))
  FOR UPDATE
), moved AS (
  UPDATE sessions s SET reported_at = $1, context = NULL,
    status = CASE h.status WHEN 'pending' THEN 'cancelled' ELSE 'used' END,
    cancelled_at = CASE h.status WHEN 'pending' THEN $1 ELSE s.cancelled_at END,
    {queries.FORGET_RETURN_IF_PENDING}
  FROM held h, projects p
  WHERE s.day = $2 AND s.token_hash = $3 AND p.id = s.project_id
  RETURNING s.id, s.day, s.project_id, s.status, s.confirmed_at
), counted AS (
  INSERT INTO daily_counts AS c (project_id, day, reported, cancelled)
  SELECT m.project_id, m.day, 1, CASE m.status WHEN 'cancelled' THEN 1 ELSE 0 END FROM moved m
  ON CONFLICT (project_id, day) DO UPDATE SET reported = c.reported + excluded.reported,
    cancelled = c.cancelled + excluded.cancelled
  RETURNING c.project_id
), hooked AS MATERIALIZED (
  SELECT p.id, p.webhook_events FROM counted n JOIN projects p ON p.id = n.project_id WHERE p.webhook_url <> ''
  ORDER BY p.id FOR SHARE OF p
), recorded AS (
  INSERT INTO webhook_events (id, type, encrypted_body, created_at, state, due_at, leased_until, attempts, project_id,
    session_id)
  SELECT a.id, a.type, a.encrypted_body, a.created_at, 'due', a.created_at, 0, 0, h.id, m.id
  FROM unnest($7::TEXT[], $8::TEXT[], $9::BYTEA[], $10::BIGINT[]) AS a (id, type, encrypted_body, created_at)
  JOIN hooked h ON h.webhook_events LIKE '%' || a.type || '%' JOIN moved m ON m.project_id = h.id
), confirmed AS MATERIALIZED ( -- By id after it was waited for, as whoever sends it again moves it between states.
  SELECT x.id FROM moved m CROSS JOIN unnest(ARRAY['due', 'delivered', 'failed', 'ended']) AS s (state)
  CROSS JOIN LATERAL (
    SELECT e.id FROM webhook_events e
    WHERE e.project_id = m.project_id AND e.state = s.state AND e.type COLLATE "C" = 'auth.confirmed'
      AND e.created_at = m.confirmed_at AND e.session_id = m.id
    ORDER BY e.id
  ) AS x WHERE m.status = 'used'
), ended AS (
  UPDATE webhook_events e SET state = CASE e.state WHEN 'delivered' THEN e.state ELSE 'ended' END, encrypted_body = '',
    finished_at = COALESCE(e.finished_at, $1), leased_until = 0,
    interrupted = e.interrupted + CASE WHEN e.state = 'due' AND e.leased_until > 0 THEN 1 ELSE 0 END
  FROM confirmed c WHERE e.id = c.id
)
SELECT status FROM moved"""
EXPIRE_SESSIONS: Final = f"""
WITH due AS MATERIALIZED (
  SELECT token_hash FROM sessions WHERE day = $1 AND status = 'pending' AND expires_at <= $2
  ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED
), moved AS (
  UPDATE sessions s SET status = 'expired', context = NULL, {queries.FORGET_RETURN} FROM due d
  WHERE s.day = $1 AND s.token_hash = d.token_hash
  RETURNING s.day, s.token_hash, s.id, s.project_id, s.created_at, s.expires_at
), {_counted("expired")}
SELECT m.day, m.token_hash, m.id, m.project_id, m.created_at, m.expires_at, p.id IS NOT NULL
FROM moved m
LEFT JOIN projects p ON p.id = m.project_id AND p.webhook_url <> '' AND p.webhook_events LIKE '%auth.expired%'
ORDER BY m.project_id"""
# The lock keeps the webhook from being removed in between: its due events end after this commit, or none are made.
RECORD_EVENT: Final = f"{RECORD_UNLOCKED_EVENT} FOR SHARE"


class _Change(NamedTuple):
    """A call that opens, confirms or cancels a session. `values` are the arguments that follow the deadline.

    `hint` is announced with the change; None announces a decision.
    """

    key: SessionKey
    now: int
    values: Values
    hint: Hint | None = None


class PostgresSessions(queries.SessionQueries[PostgresDatabase]):
    """See `storage.protocol.SessionStorage`.

    Args:
        database: runs statements.
        partitions: the partitions of sessions, one per day.
        announcer: announces decisions and hints to other nodes.
        clock: see `SessionQueries`.
        hears: true to receive decisions of other nodes. LISTEN needs a separate connection to the server, so
            it does not work behind a PgBouncer in transaction mode.
    """

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
        self._hears = hears
        self._announcer = announcer
        self._looked_back: int | None = None
        self._overlooked: list[int] = []
        self._creations = Batcher[tuple[NewSession, bool], bool](self._create, limit=_WRITES)
        self._polls = Batcher[SessionKey, PolledSession | None](self._poll, limit=_READS)
        self._openings = self._changes(OPEN_SESSIONS)
        self._confirmations = self._changes(CONFIRM_SESSIONS)
        self._cancellations = self._changes(CANCEL_SESSIONS)
        # As for `_changes`, a session cannot be in one statement twice.
        self._withdrawals = Batcher[_Change, bool](self._withdraw, limit=_WRITES, key=lambda each: each.key)
        self._consumptions = Batcher[tuple[SessionKey, int], ConsumedSession | None](self._consume, limit=_WRITES)

    async def close(self) -> None:
        """Finish the waiting calls."""
        for batcher in (self._creations, self._polls, self._openings, self._confirmations, self._cancellations):
            await batcher.close()
        await self._withdrawals.close()
        await self._consumptions.close()
        await self._announcer.close()

    async def create_session(self, session: NewSession, *, public: bool) -> bool:
        return await self._creations.run((session, public))

    async def _create(self, items: list[tuple[NewSession, bool]]) -> list[bool]:
        values = columns(new_session_values(each, public=public) for each, public in items)
        try:
            made = await self._database.fetch(CREATE_SESSIONS, *values)
        except asyncpg.CheckViolationError:
            # One of these days has no partition; the statement has changed nothing.
            await self._partitions.prepare(set(values[0]))
            made = await self._database.fetch(CREATE_SESSIONS, *values)
        return _are_in(made, [each.key for each, _ in items])

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        found = await self._polls.run(key)
        # The other states lead to a write, or to an answer that the client does not rely on.
        if found is None or found.status not in _OPEN or found.expires_at <= self._deadline(0):
            await self._database.await_replication()
        return found

    async def read_session(self, key: SessionKey) -> Session | None:
        found = await super().read_session(key)
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
        rows = await self._database.fetch(POLL_SESSIONS, set(values[0]), *values)
        found = {(day, token_hash): PolledSession._make(polled) for day, token_hash, *polled in rows}
        return [found.get(key) for key in items]

    def _changes(self, statement: str) -> Batcher[_Change, bool]:
        """Return a batcher for changes. It announces the sessions that a batch changed."""

        async def change(items: list[_Change]) -> list[bool]:
            values = columns((*each.key, each.now, self._deadline(each.now), *each.values) for each in items)
            keys = [each.key for each in items]
            changed = _are_in(await self._database.fetch(statement, set(values[0]), *values), keys)
            self._announcer.tell((each.key, each.hint) for each in itertools.compress(items, changed))
            return changed

        # A single statement cannot order two calls for the same session.
        return Batcher(change, limit=_WRITES, key=lambda each: each.key)

    async def open_session(self, key: SessionKey, opener_id: str, now: int, hint: Hint = "opened") -> bool:
        return await self._openings.run(_Change(key, now, (opener_id, hint), hint))

    async def set_hint(self, key: SessionKey, hint: Hint) -> bool:
        changed = await self._database.fetch(queries.SET_HINT, hint, *key)
        if changed:
            self._announcer.tell([(key, hint)])
        return bool(changed)

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, encrypted_phone: bytes | None = None
    ) -> bool:
        values = (*identity_values(identity), *event_values(event), encrypted_phone, None)
        return await self._confirmations.run(_Change(key, now, values))

    async def await_return(
        self,
        key: SessionKey,
        identity: MessengerIdentity,
        now: int,
        return_hash: bytes,
        encrypted_phone: bytes | None = None,
    ) -> bool:
        values = self._await_return_values(key, identity, now, return_hash, encrypted_phone)
        changed = await self._database.change(queries.AWAIT_RETURN, *values)
        if changed:
            self._announcer.tell([(key, "return")])
        return bool(changed)

    async def return_session(
        self, key: SessionKey, return_hash: bytes, user: ReturningUser, now: int, event: Event
    ) -> bool:
        values = (*identity_values(user.identity), *event_values(event), user.encrypted_phone, return_hash)
        return await self._confirmations.run(_Change(key, now, values))

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> bool:
        return await self._cancellations.run(_Change(key, now, (opener_id, *event_values(event))))

    async def withdraw_session(self, key: SessionKey, now: int) -> bool:
        return await self._withdrawals.run(_Change(key, now, ()))

    async def _withdraw(self, items: list[_Change]) -> list[bool]:
        values = columns((*each.key, each.now, self._deadline(each.now)) for each in items)

        async def withdraw(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            moved: list[asyncpg.Record] = await connection.fetch(WITHDRAW_SESSIONS, set(values[0]), *values)
            if moved:
                await connection.execute(END_PROMPTS, *columns(moved))
            return moved

        moved = await self._database.transact(withdraw)
        keys = [SessionKey(row[0], row[1]) for row in moved]
        self._announcer.tell((key, None) for key in keys)
        return [each.key in keys for each in items]

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        consumed = await self._consumptions.run((key, now))
        if consumed is None:
            # That another caller has consumed it was only read.
            await self._database.await_replication()
        return consumed

    async def _consume(self, items: list[tuple[SessionKey, int]]) -> list[ConsumedSession | None]:
        # Of several callers for one session, the first one consumes it.
        first = dict(reversed(items))
        values = columns((*key, now) for key, now in first.items())
        used: dict[tuple[Any, ...], ConsumedSession] = {}
        for day, token_hash, *consumed in await self._database.fetch(CONSUME_SESSIONS, set(values[0]), *values):
            used[day, token_hash] = consumed_from(consumed)
        return [used.pop(key, None) for key, _ in items]

    async def report_session(
        self, key: SessionKey, opener_id: str, now: int, status: Status, events: Sequence[Event]
    ) -> Status | None:
        recorded = columns(event_values(each)[:4] for each in events)
        reported = await self._database.read(
            REPORT_SESSION, now, *key, opener_id, self._deadline(now), status, *recorded
        )
        if not reported:
            return None
        moved_to: Status = reported[0][0]
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
        async def expire(connection: asyncpg.Connection) -> int:
            expired = await connection.fetch(EXPIRE_SESSIONS, day, now, limit)
            told = [expired_session_from(row) for *row, is_told in expired if is_told]
            if told:
                await connection.executemany(RECORD_EVENT, [(each.id, *event_values(event_of(each))) for each in told])
            return len(expired)

        return await self._database.transact(expire)

    async def list_sign_ins(
        self, messenger_id: str, since: int, limit: int, now: int, *, project_id: str | None = None
    ) -> list[Session]:
        ids = [project_id] if project_id is not None else []
        if project_id is None:
            values = (messenger_id, day_number(since), PROJECTS_OF_USER)
            ids = [row[0] for row in await self._database.read(listing.LIST_PROJECTS_OF_USER, *values)]
        return await self.list_sessions(ids, None, None, limit, now, since=since, messenger_id=messenger_id)

    async def list_sessions(
        self,
        project_ids: Sequence[str],
        status: Status | None,
        before: PageCursor | None,
        limit: int,
        now: int,
        *,
        since: int = 0,
        messenger_id: str | None = None,
    ) -> list[Session]:
        walks = session_walks(status, page_start(before), since, now, messenger_id)
        return await listing.read_page(self._database, project_ids, walks, messenger_id, limit, now)

    async def read_session_by_id(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        values = (storable(project_ids), get_args(Status), day_number(created_at), created_at, session_id)
        found = await self._database.read(listing.FIND_SESSION, *values)
        return session_from(found[0], now) if found else None

    async def watch_decisions(
        self,
        wake: Callable[[SessionKey], None],
        needed: asyncio.Event,
        notice: Callable[[SessionKey, Hint], None] = lambda _key, _hint: None,
    ) -> None:
        if not self._hears:
            await asyncio.Event().wait()  # Until it is cancelled.
        await notify.listen(self._database.connect, wake, needed, notice)

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        await self._partitions.prepare(set(range(first_day, last_day + 1)))

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        return await self._partitions.drop(before_day, limit)


def _are_in(rows: list[asyncpg.Record], keys: list[SessionKey]) -> list[bool]:
    """Return for each key whether a row contains it."""
    found = {tuple(row) for row in rows}
    return [key in found for key in keys]
