"""The methods of `store.sessions`: those that each database implements, and those that both share."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

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
    ReturningUser,
    ReturnPolicy,
    Session,
    SessionKey,
)
from taproof.storage.queries.database import Database, Queries
from taproof.storage.queries.listing import Walk, session_walks
from taproof.storage.queries.sessions import READ_RETURNING_USER, REREAD_SESSION, Outcome, write_time
from taproof.storage.rows import consumed_from, page_start, returning_user_from


class SessionStorage(Protocol):
    """The methods of `store.sessions` that each database implements.

    Each change of a session's state is one guarded statement: only one of concurrent callers succeeds. `Refused` has
    the state in which the statement that changed nothing found the session.
    """

    async def create_session(self, session: NewSession, *, public: bool) -> ReturnPolicy:
        """Store a pending session and count it. The project's `same_device` decides whether it requires a return code.

        The `return_url` of `session` is not stored if `same_device` is "off".

        Raises:
            ProjectNotFound, PublicAccessDisabled, ProjectPaused: the project gets no new session. Only a call with
                `public` needs public access.
            SameDeviceRequired: `same_device` is "require", and the session has no code challenge or no `return_url`.
        """

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        """Return the data that a poll needs. This is the most frequent read."""

    async def read_session(self, key: SessionKey, viewer: str = "") -> Session | None:
        """Return the whole session, with the details that only the bot needs.

        `viewer` is the account for which `PromptDetails.is_blocked` is set.
        """

    async def open_session(self, key: SessionKey, opener_id: str, now: int, hint: Hint = "opened") -> Outcome:
        """Make `opener_id` the owner of a pending session that was not opened before, and set its hint."""

    async def set_hint(self, key: SessionKey, hint: Hint) -> bool:
        """Change the hint of a session whose status is pending; return whether it has changed."""

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, phone: NewPhone | None = None
    ) -> Outcome:
        """Move a session from pending to confirmed if `identity` opened it, and store the identity.

        `event` is recorded if the project has a webhook. `phone` is stored, and the event gets its body, only if the
        project still collects phone numbers and its developer's plan is not "free". A session with a required return
        code does not change: see `await_return`.
        """

    async def await_return(
        self,
        key: SessionKey,
        identity: MessengerIdentity,
        now: int,
        return_hash: bytes,
        encrypted_phone: bytes | None = None,
    ) -> Outcome:
        """Store the identity and the hash of a return code with a pending session, if `opener_id` opened it.

        The session stays pending, and expires after `RETURN_LIFETIME`. Until `return_session`, no other method returns
        the identity. This changes only a session with a required return code, once. For the phone, see
        `confirm_session`.
        """

    async def renew_return(self, key: SessionKey, opener_id: str, now: int, return_hash: bytes) -> Outcome:
        """Replace the return code of a session for which `opener_id` has called `await_return`. Its expiry stays."""

    async def return_session(
        self, key: SessionKey, return_hash: bytes, user: ReturningUser, now: int, event: Event
    ) -> bool:
        """Confirm a session that waits for the return code with this hash, as `confirm_session` does, at `now`.

        `user` is the result of `read_returning_user`, from which the caller makes `event`.
        """

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Outcome:
        """Move a session from pending to cancelled if `opener_id` opened it; record `event` if a webhook is set.

        A session that waits for its return code loses the identity. So it does when it is reported or expires.
        """

    async def withdraw_session(self, key: SessionKey, now: int) -> Outcome:
        """Move a session from pending to cancelled for its application.

        In the same transaction, the prompt is ended, so that the bot edits its message. No event is recorded.
        """

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        """Move a session from confirmed to used. Only the caller that made the change gets the identity."""

    async def report_session(
        self, key: SessionKey, opener_id: str, now: int, events: Mapping[SignInStatus, Sequence[Event]]
    ) -> SignInStatus | None:
        """Record that the user of a session reports "This wasn't me", and return the new state.

        A pending session becomes cancelled. A confirmed session becomes used, and its proof is never issued. `events`
        has the events for each status in which the report may find the session; those that the project has chosen are
        recorded. If the session was confirmed or used, the body of its auth.confirmed event is erased, so that it is
        not sent again. That event ends unless it was already delivered; an attempt in progress counts as interrupted.

        Return None if `opener_id` did not open the session, or if it has expired at `now` or was cancelled or reported.
        """

    async def expire_sessions(self, now: int, limit: int, event_of: Callable[[ExpiredSession], Event]) -> int:
        """Move at most `limit` overdue sessions from pending to expired; return their number.

        In the same transaction, record `event_of` each session whose project has chosen auth.expired. `event_of` may be
        called more than once for a session.
        """

    async def expire_session(self, key: SessionKey, now: int, event_of: Callable[[ExpiredSession], Event]) -> bool:
        """Move one overdue session from pending to expired, as `expire_sessions` does; return whether this call did."""

    async def read_session_by_id(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        """Return the session with this id and time of creation, if it belongs to one of these projects."""

    async def watch_decisions(
        self,
        wake: Callable[[SessionKey], None],
        needed: asyncio.Event,
        notice: Callable[[SessionKey, Hint], None],
    ) -> None:
        """Call `wake` with each session that any process confirms or cancels, and `notice` with each new hint.

        Run until cancelled. An announcement may be missed or repeated, so callers must also poll from time to time. The
        store may stop watching while `needed` is not set. Store errors do not end this call.
        """

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        """Prepare the store for sessions of these days, both included: for example, create partitions."""

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        """Erase sessions created before `before_day`: about `limit` at most, or whole days. Their counts are kept.

        Pending sessions are erased too, so `before_day` must be early enough that none is pending.
        """

    async def _read_page(
        self, project_ids: Sequence[str], walks: list[Walk], messenger_id: str | None, limit: int, now: int
    ) -> list[Session]:
        """Return the first `limit` sessions of these walks, newest first."""

    async def _projects_of_user(self, messenger_id: str, since: int) -> list[str]:
        """Return projects to which an account has signed in since `since`, at most `PROJECTS_OF_USER`."""


class SessionQueries(Queries, SessionStorage):
    """Sessions and their changes of state.

    Args:
        database: reads and writes.
        clock: read again when a decision is written, which may be seconds later while another process holds a lock.
            Without it, the `now` of the decision counts.
    """

    def __init__(self, database: Database, clock: Clock | None) -> None:
        super().__init__(database)
        self._clock = clock

    def _deadline(self, now: int) -> int:
        return write_time(self._clock, now)

    async def read_returning_user(self, key: SessionKey, return_hash: bytes) -> ReturningUser | None:
        """Return the user of a session that waits for the return code with this hash."""
        found = await self._database.read(READ_RETURNING_USER, *key, return_hash)
        return returning_user_from(found[0]) if found else None

    async def reread_session(self, key: SessionKey, since: int) -> ConsumedSession | None:
        """Return the result of `consume_session` again, for a session with a code challenge.

        Return None if the session was consumed at or before `since` (ms), or was reported. Also return None if the
        webhook secret that signs proofs has changed since then: the same proof can no longer be created.
        """
        found = await self._database.read(REREAD_SESSION, *key, since)
        return consumed_from(found[0]) if found else None

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
        """Return the sessions created since `since`, newest first, strictly after `before`.

        Their status is as a reader sees it at `now`. With `messenger_id`, return only sessions that this account
        confirmed.
        """
        walks = session_walks(status, page_start(before), since, now, messenger_id)
        return await self._read_page(project_ids, walks, messenger_id, limit, now)

    async def list_sign_ins(
        self, messenger_id: str, since: int, limit: int, now: int, *, project_id: str | None = None
    ) -> list[Session]:
        """Return the sessions created since `since` that an account confirmed, in one project or all, newest first."""
        ids = await self._projects_of_user(messenger_id, since) if project_id is None else [project_id]
        return await self.list_sessions(ids, None, None, limit, now, since=since, messenger_id=messenger_id)
