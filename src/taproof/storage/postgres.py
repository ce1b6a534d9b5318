"""The store for many nodes: PostgreSQL, where calls of one kind that come together are one statement."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

import asyncpg

from taproof.core.accounts import AuditEntry
from taproof.core.clock import Clock
from taproof.core.deliveries import Event
from taproof.core.model import (
    BotChange,
    ConsumedSession,
    DailyCounts,
    DailyUsers,
    Identity,
    NewSession,
    PageCursor,
    PolledSession,
    Project,
    ProjectChanges,
    SealedWebhookSecrets,
    Session,
    SessionKey,
    SignInProject,
    Status,
)
from taproof.storage import (
    delivery_sql,
    plan_sql,
    postgres_account_sql,
    postgres_delivery_sql,
    postgres_sql,
    sql,
    user_sql,
)
from taproof.storage.account_protocol import NO_LIMIT
from taproof.storage.coalesce import Coalescer
from taproof.storage.delivery_protocol import ENDED_AT_ONCE
from taproof.storage.postgres_accounts import add_entry
from taproof.storage.postgres_bots import PostgresBots, write_bot
from taproof.storage.postgres_deliveries import begin_ending
from taproof.storage.postgres_erasure import PostgresErasure
from taproof.storage.postgres_listen import listen
from taproof.storage.postgres_listing import find_session, list_sessions
from taproof.storage.postgres_partitions import Partitions
from taproof.storage.postgres_plans import PostgresPlans, hold_plan
from taproof.storage.postgres_pool import PostgresPool, migrate_postgres, storable
from taproof.storage.postgres_sealed import PostgresSealed
from taproof.storage.postgres_sessions import Cancellation, Confirmation, Opening, PostgresSessions
from taproof.storage.postgres_users import PostgresUsers
from taproof.storage.protocol import NOTHING_COUNTS, UpdateClaim
from taproof.storage.rows import (
    change_values,
    columns,
    consumed_from,
    project_from,
    project_values,
    session_from,
    sign_in_project_from,
)

__all__ = ["PostgresStorage", "migrate_postgres"]
_UPDATES: Final = 256
_READS: Final = 512


class _StillEnding(Exception):
    """Undoes the transaction of `update_project`."""


class _Claim(NamedTuple):
    """A call of `claim_update`."""

    bot_id: int
    update_id: int
    now: int
    stale_before: int


class PostgresStorage(PostgresUsers, PostgresSealed, PostgresBots, PostgresPlans, PostgresErasure):
    """Storage in one PostgreSQL database. See `storage.protocol.Storage` for what each method promises."""

    def __init__(self, pool: PostgresPool, clock: Clock | None, *, pgbouncer: bool) -> None:
        """Use `open`."""
        super().__init__(pool)
        self._pgbouncer = pgbouncer
        self._partitions = Partitions(pool)
        self._sessions = PostgresSessions(pool, self._partitions, clock)
        self._claims = Coalescer[_Claim, UpdateClaim](self._claim_updates, limit=_UPDATES, key=lambda claim: claim[:2])
        self._secrets = Coalescer[str, SealedWebhookSecrets | None](self._read_secrets, limit=_READS)
        self._sign_in_projects = Coalescer[str, SignInProject | None](self._read_sign_in_projects, limit=_READS)
        self._keys = Coalescer[bytes, Project | None](self._read_by_keys, limit=_READS)
        self._finished = Coalescer[tuple[int, int], None](self._finish_updates, limit=_UPDATES)

    @classmethod
    async def open(cls, dsn: str, now: int, clock: Clock | None = None, *, pgbouncer: bool = False) -> Self:
        """Connect to a database and bring its schema up to date where needed.

        Args:
            dsn: `postgresql://user:password@host:port/database`.
            now: when its schema is brought up to date, in ms.
            clock: read again when a decision's turn to be written comes; without it a decision counts as of the `now`
                that it was made with.
            pgbouncer: the address is that of a PgBouncer in transaction mode. Nothing is prepared by name then, and
                decisions are not heard from other nodes (LISTEN needs a connection of its own).

        Raises:
            PostgresTooOld: the server is older than 14.
            StoreUnavailable: the database cannot be reached; the sentence says what to check.
            MigrationChanged: it was made by a release with another history.
        """
        await migrate_postgres(dsn, now)
        return cls(await PostgresPool.open(dsn, pgbouncer=pgbouncer), clock, pgbouncer=pgbouncer)

    async def close(self) -> None:
        await self._sessions.close()
        for each in (self._claims, self._secrets, self._sign_in_projects, self._keys):
            await each.close()
        await self._finished.close()
        await self._attempts.close()
        await self._pool.close()

    async def ping(self) -> None:
        await self._pool.fetch("SELECT 1")

    # ---- what the installation remembers about itself

    async def read_mark(self, name: str) -> bytes | None:
        found = await self._pool.find(sql.READ_MARK, name)
        return found[0][0] if found else None

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        async def claim(connection: asyncpg.Connection) -> bytes:
            # Two statements and no transaction: the second sees what another node kept while the first waited for it.
            await connection.execute(sql.CLAIM_MARK, name, value)
            kept: bytes = await connection.fetchval(sql.READ_MARK, name)
            return kept

        return await self._pool.run(claim)

    # ---- several processes on one store

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        return bool(await self._pool.fetch(sql.HOLD_LEASE, name, holder, until, now))

    async def release_lease(self, name: str, holder: str) -> None:
        await self._pool.fetch(sql.RELEASE_LEASE, name, holder)

    async def watch_decisions(self, wake: Callable[[SessionKey], None], needed: asyncio.Event) -> None:
        """Listen on a connection of its own. Through PgBouncer nothing is heard: it only waits to be cancelled."""
        if self._pgbouncer:
            await asyncio.Event().wait()
        await listen(self._pool.connect, wake, needed)

    # ---- projects

    async def create_project(
        self,
        project: Project,
        secret_key_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        entry: AuditEntry | None = None,
        bot: BotChange | None = None,
    ) -> bool:
        values = (*project_values(project, secret_key_hash), limit)

        async def create(connection: asyncpg.Connection) -> bool:
            await connection.execute(postgres_account_sql.HOLD_DEVELOPER, project.developer_id)
            if not await connection.fetch(sql.CREATE_PROJECT, *values):
                return False
            await add_entry(connection, entry)
            await write_bot(connection, (project.developer_id, project.id), bot)
            return True

        return await self._pool.transact(create)

    async def read_project(self, project_id: str) -> Project | None:
        found = await self._pool.find(sql.READ_PROJECT, project_id)
        return project_from(found[0]) if found else None

    async def read_webhook_secrets(self, project_id: str) -> SealedWebhookSecrets | None:
        return None if "\0" in project_id else await self._secrets.run(project_id)

    async def _read_secrets(self, project_ids: list[str]) -> list[SealedWebhookSecrets | None]:
        rows = await self._pool.fetch(postgres_sql.READ_WEBHOOK_SECRETS, project_ids)
        found = {row[0]: SealedWebhookSecrets(*row[1:]) for row in rows}
        return [found.get(each) for each in project_ids]

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        return await self._keys.run(secret_key_hash)

    async def _read_by_keys(self, hashes: list[bytes]) -> list[Project | None]:
        rows = await self._pool.fetch(postgres_sql.READ_PROJECTS_BY_SECRET_KEY, hashes)
        found = {row[-1]: project_from(row[:-1]) for row in rows}
        return [found.get(each) for each in hashes]

    async def list_projects(self, developer_id: str) -> list[Project]:
        return [project_from(row) for row in await self._pool.find(sql.LIST_PROJECTS, developer_id)]

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
        if "\0" in project_id:
            return None

        async def update(connection: asyncpg.Connection) -> Project | None:
            await hold_plan(connection, developer_id, changes)
            if not await connection.fetch(sql.UPDATE_PROJECT, *change_values(changes), developer_id, project_id):
                return None
            if changes.webhook_url and await connection.fetch(
                delivery_sql.FIND_ENDED_WEBHOOK, developer_id, project_id
            ):
                raise _StillEnding
            if changes.webhook_url == "":
                await begin_ending(connection, project_id, now)
            if changes.webhook_url is not None:
                await connection.execute(delivery_sql.FORGET_ENDPOINT, project_id)
            if changes != ProjectChanges():
                await add_entry(connection, entry)
            await write_bot(connection, (developer_id, project_id), bot)
            return project_from(await connection.fetchrow(sql.READ_PROJECT, project_id))

        while True:
            try:
                return await self._pool.transact(update)
            except _StillEnding:
                await self._end_more(
                    postgres_delivery_sql.FIND_ENDED_WEBHOOK, (developer_id, project_id), ENDED_AT_ONCE
                )

    async def replace_project_secrets(
        self,
        developer_id: str,
        project_id: str,
        secret_key_hash: bytes,
        secret_key_preview: str,
        sealed_webhook_secret: bytes,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        values = (secret_key_hash, secret_key_preview, sealed_webhook_secret, developer_id, project_id)
        return bool(await self._change(entry, sql.REPLACE_PROJECT_SECRETS, *values))

    async def rotate_webhook_secret(
        self,
        developer_id: str,
        project_id: str,
        sealed_next_secret: bytes,
        now: int,
        next_at: int,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        values = (sealed_next_secret, next_at, developer_id, project_id, now)
        return bool(await self._change(entry, sql.ROTATE_WEBHOOK_SECRET, *values))

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        return bool(await self._change(entry, sql.PROMOTE_WEBHOOK_SECRET, developer_id, project_id, now))

    async def delete_project(
        self,
        developer_id: str,
        project_id: str,
        *,
        usage_since: int = NOTHING_COUNTS,
        entry: AuditEntry | None = None,
    ) -> bool:
        if "\0" in project_id:
            return False

        async def delete(connection: asyncpg.Connection) -> bool:
            if not await connection.fetch(sql.DELETE_PROJECT, developer_id, project_id):
                return False
            await connection.execute(sql.REMEMBER_DELETED_PROJECT, project_id, developer_id)
            await connection.execute(plan_sql.REMEMBER_USAGE, developer_id, project_id, usage_since)
            await add_entry(connection, entry)
            return True

        return await self._pool.transact(delete)

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase one project after the other; each is forgotten a minute after its deletion, see the schema."""
        if not await self._pool.fetch(postgres_sql.ANY_DELETED_PROJECT):
            return 0

        async def purge(connection: asyncpg.Connection) -> int:
            project = await connection.fetchrow(postgres_sql.NEXT_DELETED_PROJECT)
            return 0 if project is None else await _erase_project(connection, project, limit)

        return await self._pool.transact(purge)

    # ---- the life of a session

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        return None if "\0" in project_id else await self._sign_in_projects.run(project_id)

    async def _read_sign_in_projects(self, project_ids: list[str]) -> list[SignInProject | None]:
        rows = await self._pool.fetch(postgres_sql.READ_SIGN_IN_PROJECTS, project_ids)
        found = {row[-1]: sign_in_project_from(row[:-1]) for row in rows}
        return [found.get(each) for each in project_ids]

    async def create_session(self, session: NewSession, *, public: bool) -> bool:
        return await self._sessions.create.run((session, public))

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        return await self._sessions.poll.run(key)

    async def read_session(self, key: SessionKey) -> Session | None:
        found = await self._pool.fetch(sql.READ_SESSION, *key)
        return session_from(found[0]) if found else None

    async def open_session(self, key: SessionKey, opener_id: str, now: int) -> bool:
        return await self._sessions.open.run(Opening(key, opener_id, now))

    async def confirm_session(
        self, key: SessionKey, identity: Identity, now: int, event: Event, sealed_phone: bytes | None = None
    ) -> bool:
        return await self._sessions.confirm.run(Confirmation(key, identity, now, event, sealed_phone))

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> bool:
        return await self._sessions.cancel.run(Cancellation(key, opener_id, now, event))

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        return await self._sessions.consume.run((key, now))

    async def reread_session(self, key: SessionKey, since: int) -> ConsumedSession | None:
        found = await self._pool.fetch(sql.REREAD_SESSION, *key, since)
        return consumed_from(found[0]) if found else None

    async def report_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Status | None:
        return await self._sessions.report(key, opener_id, now, event)

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        await self._partitions.prepare(set(range(first_day, last_day + 1)))

    async def expire_sessions(self, now: int, limit: int) -> int:
        return await self._sessions.expire(now, limit)

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
        return await list_sessions(
            self._pool, project_ids, status, before, limit, now, since=since, messenger_id=messenger_id
        )

    async def find_session(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        return await find_session(self._pool, project_ids, created_at, session_id, now)

    # ---- retention

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        return await self._partitions.drop(before_day, limit)

    async def purge_events(self, finished_before: int, limit: int) -> int:
        return len(await self._pool.fetch(postgres_sql.PURGE_EVENTS, finished_before, limit))

    async def purge_user_days(self, before_day: int, limit: int) -> int:
        return len(await self._pool.fetch(postgres_sql.PURGE_USER_DAYS, before_day, limit))

    # ---- analytics

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        rows = await self._pool.fetch(postgres_sql.READ_DAILY_COUNTS, storable(project_ids), first_day)
        return [DailyCounts(*row) for row in rows]

    async def read_daily_users(self, developer_id: str, first_day: int) -> list[DailyUsers]:
        return [DailyUsers(*row) for row in await self._pool.find(sql.READ_DAILY_USERS, developer_id, first_day)]

    # ---- bot updates

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        return await self._claims.run(_Claim(bot_id, update_id, now, stale_before))

    async def _claim_updates(self, items: list[_Claim]) -> list[UpdateClaim]:
        values = columns(items)
        claimed = {row[:] for row in await self._pool.fetch(postgres_sql.CLAIM_UPDATES, *values)}
        if len(claimed) == len(items):
            return ["claimed"] * len(items)
        done = {row[:] for row in await self._pool.fetch(postgres_sql.DONE_UPDATES, *values[:2])}
        return ["claimed" if item[:2] in claimed else "done" if item[:2] in done else "in_progress" for item in items]

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        await self._finished.run((bot_id, update_id))

    async def _finish_updates(self, items: list[tuple[int, int]]) -> list[None]:
        await self._pool.fetch(postgres_sql.FINISH_UPDATES, *columns(items))
        return [None] * len(items)

    async def release_update(self, bot_id: int, update_id: int) -> None:
        await self._pool.fetch(sql.RELEASE_UPDATE, bot_id, update_id)

    async def purge_updates(self, claimed_before: int, limit: int) -> int:
        return len(await self._pool.fetch(postgres_sql.PURGE_UPDATES, claimed_before, limit))


async def _erase_project(connection: asyncpg.Connection, project: asyncpg.Record, limit: int) -> int:
    """Erase a step of a deleted project, in the transaction that holds its row."""
    project_id, developer_id, is_settled = project
    erased = 0
    left = limit
    while left > 0 and (day := await connection.fetchval(postgres_sql.DAY_OF_PROJECT, project_id)) is not None:
        # One that somebody holds just now is passed over; then this step is not the last.
        sessions = max(1, len(await connection.fetch(postgres_sql.ERASE_SESSIONS, day, project_id, left)))
        erased += sessions
        left -= sessions
    erased += len(await connection.fetch(postgres_sql.ERASE_EVENTS, project_id, limit))
    erased += await connection.fetchval(postgres_sql.ERASE_PEOPLE, developer_id, project_id, limit // 5 + 1)
    if erased == 0:
        # Counts are no personal data: what a late statement adds to them goes when the project is forgotten.
        await connection.execute(sql.ERASE_DAILY_COUNTS, project_id)
        await connection.execute(delivery_sql.FORGET_ENDPOINT, project_id)
        await connection.execute(user_sql.ERASE_BLOCKS, project_id)
        end = sql.FORGET_DELETED_PROJECT if is_settled else postgres_sql.MARK_ERASED_PROJECT
        await connection.execute(end, project_id)
        erased = 1
    return erased
