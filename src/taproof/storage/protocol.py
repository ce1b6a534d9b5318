"""What the service asks of a store. Each method is one atomic operation; a write is durable when it returns.

Any method may raise `StoreUnavailable` when the database is locked, full, read-only or out of reach; then nothing
was changed. Times are milliseconds since the epoch.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.deliveries import (
    Event,
)
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
from taproof.storage.account_protocol import NO_LIMIT, AccountStorage
from taproof.storage.bot_protocol import BotStorage
from taproof.storage.delivery_protocol import DeliveryStorage
from taproof.storage.erasure_protocol import ErasureStorage
from taproof.storage.plan_protocol import PlanStorage
from taproof.storage.sealed_protocol import SealedStorage
from taproof.storage.user_protocol import UserStorage

UpdateClaim = Literal["claimed", "in_progress", "done"]
NOTHING_COUNTS: Final = (1 << 31) - 1
"""A day that no session was created on or after."""


class Storage(
    AccountStorage, UserStorage, BotStorage, PlanStorage, DeliveryStorage, ErasureStorage, SealedStorage, Protocol
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
        """Store a project, with `bot` together with it.

        False, and nothing stored, when the developer has `limit` of them, or it is to collect phone numbers and their
        plan is "free".

        Raises:
            BotTaken: the bot serves another project; and nothing is stored.
        """

    async def read_project(self, project_id: str) -> Project | None:
        """Return a project with its counts."""

    async def read_webhook_secrets(self, project_id: str) -> SealedWebhookSecrets | None:
        """Return a project's webhook secrets as they are stored."""

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        """Return the project whose current secret key has this hash; its counts are left at 0."""

    async def list_projects(self, developer_id: str) -> list[Project]:
        """Return a developer's projects with their counts, oldest first."""

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
        """Change the fields that are not None, and the bot if one is given: all of it or nothing.

        None, and nothing changed, when this developer has no such project, or it is to collect phone numbers from here
        on and their plan is "free".

        Removing the webhook URL ends the project's due deliveries: `ENDED_AT_ONCE` of them now, and the others in
        `end_deliveries`. These are shown as due until then, but nobody gets them any more; a webhook URL is not set
        before the last of them has ended. A webhook URL, also the same one again, makes what was known of the endpoint
        forgotten: since when it fails, and that it was turned off.

        Raises:
            BotTaken: the bot serves another project; and nothing is changed.
        """

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
        """Replace both secrets at once; False when this developer has no such project. Ends a rotation under way."""

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
        """Let another webhook secret follow the current one at `next_at`.

        False when this developer has no such project, or another rotation of it is under way at `now`.
        """

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Let the next webhook secret be the current one at once; False when no rotation is under way at `now`."""

    async def delete_project(
        self,
        developer_id: str,
        project_id: str,
        *,
        usage_since: int = NOTHING_COUNTS,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Delete a project: from here on nothing of it is found, but `read_used` goes on counting its sign-ins.

        It does so for the days from `usage_since` on; what is confirmed at this very instant may be left out.

        `purge_deleted_projects` erases what is left of it, and takes its people out of `read_daily_users` as it goes.
        """

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase at most about `limit` rows of deleted projects; return how many were erased (0: all is done)."""

    # ---- the life of a session; each is one guarded statement, so of any number of callers one wins

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        """Return what a project has to say about a new session."""

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
        self, key: SessionKey, identity: Identity, now: int, event: Event, sealed_phone: bytes | None = None
    ) -> bool:
        """Move pending to confirmed if `identity` opened it, record it, and record `event` if a webhook is set.

        `sealed_phone` is the phone number that goes with it, encrypted.
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
