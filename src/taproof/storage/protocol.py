"""What the service asks of a store. Each method is one atomic operation; a write is durable when it returns.

Any method may raise `StoreUnavailable` when the database is locked, full, read-only or out of reach; then nothing
was changed. Times are milliseconds since the epoch.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from taproof.core.deliveries import Event
from taproof.core.model import (
    ConsumedSession,
    DailyCounts,
    DailyUsers,
    MessengerIdentity,
    NewSession,
    PageCursor,
    PolledSession,
    Session,
    SessionKey,
    Status,
)
from taproof.storage.account_protocol import AccountStorage
from taproof.storage.bot_protocol import BotStorage
from taproof.storage.delivery_protocol import DeliveryStorage
from taproof.storage.encrypted_value_protocol import EncryptedValueStorage
from taproof.storage.erasure_protocol import ErasureStorage
from taproof.storage.plan_protocol import PlanStorage
from taproof.storage.project_protocol import ProjectStorage
from taproof.storage.user_protocol import UserStorage

UpdateClaim = Literal["claimed", "in_progress", "done"]


class Storage(
    AccountStorage,
    ProjectStorage,
    BotStorage,
    PlanStorage,
    UserStorage,
    DeliveryStorage,
    ErasureStorage,
    EncryptedValueStorage,
    Protocol,
):
    """The store: SQLite on one machine, PostgreSQL for many.

    A method that takes an `entry` adds it to the audit log in the transaction of the change, if anything was changed.
    """

    async def close(self) -> None:
        """Let go of the database. Writes under way are finished first."""

    async def ping(self) -> None:
        """Do the smallest read that proves that the store answers."""

    # ---- what the installation remembers about itself

    async def read_mark(self, name: str) -> bytes | None:
        """Return the value kept under `name`, or None."""

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        """Keep `value` under `name` unless something is kept there already; return what is kept now."""

    # ---- several processes on one store

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        """Take the lease `name` for `holder`, or renew it; False while another holds it and its time is not over."""

    async def release_lease(self, name: str, holder: str) -> None:
        """Give up a lease, so that another may take it at once. Nothing happens when `holder` does not hold it."""

    async def watch_decisions(self, wake: Callable[[SessionKey], None], needed: asyncio.Event) -> None:
        """Call `wake` with each session that is confirmed or cancelled through any process, until cancelled.

        A session may be missed or told twice, so callers look for themselves now and then. While `needed` is not
        set nobody is waiting, and the store may rest. Errors of the store are survived.
        """

    # ---- the life of a session; each is one guarded statement, so of any number of callers one wins

    async def create_session(self, session: NewSession, *, public: bool) -> bool:
        """Store a pending session and count it.

        False, and nothing stored, when the project does not exist, is paused, or `public` is true and its public
        access is off.
        """

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        """Return what a poll needs: the hottest read."""

    async def read_session(self, key: SessionKey) -> Session | None:
        """Return the whole session."""

    async def open_session(self, key: SessionKey, opener_id: str, now: int) -> bool:
        """Make `opener_id` the owner of a pending session that nobody has opened; tell whether that happened."""

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, encrypted_phone: bytes | None = None
    ) -> bool:
        """Move pending to confirmed if `identity` opened it, record it, and record `event` if a webhook is set.

        `encrypted_phone` is the phone number that goes with it, encrypted. With one, nothing is changed unless the
        project collects them and its developer's plan is not "free".
        """

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> bool:
        """Move pending to cancelled if `opener_id` opened it, and record `event` if a webhook is set."""

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        """Move confirmed to used; only the one caller that did so gets the identity."""

    async def reread_session(self, key: SessionKey, since: int) -> ConsumedSession | None:
        """Return what `consume_session` gave to its one caller, of a session with a code challenge.

        None when that was at `since` (ms) or before, or the webhook secret that proofs are signed with was changed
        after it: the same proof cannot be made any more.
        """

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        """Make room for the sessions of these days, both included, where that has to be made beforehand."""

    async def expire_sessions(self, now: int, limit: int) -> int:
        """Write down the expiry of at most `limit` sessions whose time is over; return how many."""

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
        """Return sessions newest first, with the status that a reader sees at `now`, strictly after `before`.

        Only those that were created at `since` (ms) or later, and with `messenger_id` only those which that account
        confirmed.
        """

    async def find_session(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        """Return the session of one of these projects that was created at `created_at` and has this id."""

    # ---- retention: each erases in bounded steps and returns how much it erased (0: all is done)

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        """Erase at most about `limit` sessions, or the whole of some days, created before that day.

        Their counts stay. Pending ones are not spared: `before_day` lies further back than any session can be pending.
        """

    async def purge_events(self, finished_before: int, limit: int) -> int:
        """Erase at most `limit` webhook events that were finished before that time; those that are due stay."""

    async def purge_user_days(self, before_day: int, limit: int) -> int:
        """Forget who confirmed on days before that one; the counts of distinct users since any later day stay exact."""

    async def purge_console_access(self, now: int, idle_since: int, limit: int) -> int:
        """Erase at most `limit` console sessions last seen at or before `idle_since`, and as many outdated invitations.

        Return how many in all. An invitation is outdated when its time is over at `now`.
        """

    # ---- analytics

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        """Return the counts of each project and day from `first_day` on; days without any are left out."""

    async def read_daily_totals(self, developer_id: str, first_day: int) -> list[DailyCounts]:
        """Return the counts of each day from `first_day` on, over all projects of a developer.

        `project_id` is "", and distinct users are left at 0: see `read_daily_users`.
        """

    async def read_daily_users(self, developer_id: str, first_day: int) -> list[DailyUsers]:
        """Return distinct users per day over all projects of a developer, from `first_day` on."""

    # ---- bot updates

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        """Claim a bot update for handling.

        "claimed": handle it, then `finish_update`. "done": it was handled already. "in_progress": somebody claimed it
        after `stale_before` and has not finished; let the messenger deliver it again.
        """

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        """Write down that an update was handled to its end."""

    async def release_update(self, bot_id: int, update_id: int) -> None:
        """Give up a claim, so that the update can be claimed again at once. One that is finished stays finished."""

    async def purge_updates(self, claimed_before: int, limit: int) -> int:
        """Forget at most `limit` updates that were claimed before that time; return how many."""
