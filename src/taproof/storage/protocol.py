"""What the service asks of a store. Each method is one atomic operation; a write is durable when it returns.

A store is composed of parts (`store.sessions`, `store.projects`, …), one Protocol each. Any method may raise
`StoreUnavailable` when the database is locked, full, read-only or out of reach; then nothing was changed. Times are
milliseconds since the epoch.

A method that takes an `entry` adds it to the audit log in the transaction of the change, if anything was changed. If
an access token or a console session made the entry, the change is made only while that credential exists, checked in
the same transaction. Otherwise the method raises InvalidAccessToken or SignedOut and changes nothing. So no credential
is created by one that has ended (design.md, convention 17). A change with `sign_in` is made only while that messenger
sign-in is not reported, and raises AccessDenied otherwise.

A method named `purge_…` erases in bounded steps and returns how much it erased (0: all is done).
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from taproof.core.accounts import (
    AccessToken,
    AuditEntry,
    AuditPurge,
    ConsoleSession,
    Developer,
    EndedRights,
    EndedToken,
    Invitation,
    InvitationOutcome,
    Plan,
)
from taproof.core.deliveries import (
    NOBODY,
    Attempt,
    Delivery,
    DeliveryRecord,
    DeliveryState,
    Event,
    EventType,
    PassedOver,
)
from taproof.core.model import (
    BotChange,
    ConsumedSession,
    DailyCounts,
    DailyUsers,
    DeveloperSignIn,
    EncryptedWebhookSecrets,
    MessengerIdentity,
    NamedProject,
    NewSession,
    PageCursor,
    PhoneRequest,
    PolledSession,
    Project,
    ProjectBot,
    ProjectChanges,
    Session,
    SessionKey,
    SignInProject,
    Status,
    TurnOffReason,
)

CONSOLE_SESSIONS_KEPT: Final = 50
"""Console sessions of one developer that are kept: they are listed on one page, and signing in again is easy."""
EXPIRED_TOKENS_KEPT: Final = 100
"""Expired access tokens of one developer that are kept, for the list of them."""
NO_LIMIT: Final = sys.maxsize
ENDED_AT_ONCE: Final = 200
"""Due deliveries that end in the very transaction that removes their webhook: 100,000 would hold up every other writer
for seconds."""
PROJECTS_OF_USER: Final = 200
"""Projects of one account that its sign-ins are looked for in: what a list costs grows with them alone."""

DescribeEnded = Callable[[EndedRights], Sequence[AuditEntry]]
"""Returns the audit entries of what a report ended. It has no other effect: a driver may call it more than once."""
DescribeTokens = Callable[[Sequence[EndedToken]], Sequence[AuditEntry]]
"""Returns the audit entries of tokens that are revoked, or raises what undoes it all; likewise."""
UpdateClaim = Literal["claimed", "in_progress", "done"]
EncryptedKind = Literal[
    "webhook_secret",
    "next_webhook_secret",
    "bot_token",
    "event_body",
    "webhook_answer",
    "phone",
    "phone_request",
    "mark",
]
"""Where an encrypted value lies: each is one column of one table, see `queries/encrypted_values.py`."""
RowKey = tuple[str | int | bytes, ...]
"""The primary key of a row."""


class EncryptedRow(NamedTuple):
    """An encrypted value. `name` is the id of its project, event or session, or the name of its metadata entry."""

    key: RowKey
    name: str
    encrypted: bytes


class EncryptedPage(NamedTuple):
    """Encrypted values, by key. `after` continues the walk and is None at its end; a page before that may be empty."""

    rows: list[EncryptedRow]
    after: RowKey | None


class Replacement(NamedTuple):
    """One encrypted value in place of another one, which must be the one that is there."""

    key: RowKey
    old: bytes
    new: bytes


class OpenedDay(NamedTuple):
    """Sessions of one project and UTC day, of which some were opened and not confirmed."""

    project_id: str
    day: int


class OpenedPlace(NamedTuple):
    """Where a walk over the sessions of an `OpenedDay` stands."""

    status: Status
    created_at: int
    session_id: str


class ErasedPage(NamedTuple):
    """How much was erased of what was looked at; `after` continues the walk, and is None at its end."""

    erased: int
    after: OpenedPlace | None


class Used(NamedTuple):
    """What a developer has used of a plan: projects there are, and sign-ins confirmed since a day.

    A user counts once a day, however often they sign in, and to however many projects of the developer.
    """

    projects: int
    sign_ins: int


class SessionStorage(Protocol):
    """Sessions. A change of a session's state is one guarded statement: of any number of callers one wins."""

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

    async def report_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Status | None:
        """Write down that its user says "This wasn't me", and count it; return the state that it has now.

        A pending session is cancelled, and `event` recorded if a webhook is set. A confirmed one is used, and nobody
        gets its proof; the body of its auth.confirmed is erased, so that it is not sent again, and it has ended if it
        was not delivered before; an attempt that is under way counts as interrupted. None, and nothing is changed, when
        `opener_id` did not open it, it has expired at `now`, was cancelled, or was reported before.
        """

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

    async def list_sign_ins(
        self, messenger_id: str, since: int, limit: int, now: int, *, project_id: str | None = None
    ) -> list[Session]:
        """Return what an account confirmed of the sessions since then, newest first; with `project_id` there only."""

    async def find_session(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        """Return the session of one of these projects that was created at `created_at` and has this id."""

    async def watch_decisions(self, wake: Callable[[SessionKey], None], needed: asyncio.Event) -> None:
        """Call `wake` with each session that is confirmed or cancelled through any process, until cancelled.

        A session may be missed or told twice, so callers look for themselves now and then. While `needed` is not
        set nobody is waiting, and the store may rest. Errors of the store are survived.
        """

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        """Make room for the sessions of these days, both included, where that has to be made beforehand."""

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        """Erase at most about `limit` sessions, or the whole of some days, created before that day.

        Their counts stay. Pending ones are not spared: `before_day` lies further back than any session can be pending.
        """


class ProjectStorage(Protocol):
    """Projects and their secrets."""

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
            BotTaken: the bot serves another project, which does not lose it now; and nothing is stored.
        """

    async def read_project(self, project_id: str) -> Project | None:
        """Return a project with its counts."""

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        """Return a project's webhook secrets as they are stored."""

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        """Return the project whose current secret key has this hash; its counts are left at 0."""

    async def list_projects(self, developer_id: str) -> list[Project]:
        """Return a developer's projects with their counts, oldest first."""

    async def count_projects(self, developer_id: str) -> int:
        """Return how many projects a developer has."""

    async def name_projects(self, developer_id: str) -> list[NamedProject]:
        """Return id and name of each project of a developer, oldest first: nothing that costs more as it is used."""

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        """Return those of these projects that are this developer's, with their counts, oldest first."""

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        """Return what a project has to say about a new session."""

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
            BotTaken: the bot serves another project, which does not lose it now; and nothing is changed.
        """

    async def replace_project_secrets(
        self,
        developer_id: str,
        project_id: str,
        secret_key_hash: bytes,
        secret_key_preview: str,
        encrypted_webhook_secret: bytes,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Replace both secrets at once; False when this developer has no such project. Ends a rotation under way."""

    async def rotate_webhook_secret(
        self,
        developer_id: str,
        project_id: str,
        encrypted_next_secret: bytes,
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

    async def delete_project(self, developer_id: str, project_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Delete a project: from here on nothing of it is found, but `read_used` goes on counting its users.

        `purge_deleted_projects` erases what is left of it, and takes its people out of `read_daily_users` as it goes.
        """

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase at most about `limit` rows of deleted projects; return how many were erased (0: all is done)."""


class BotStorage(Protocol):
    """The bots of projects, and the updates that bots receive."""

    async def list_project_bots(self) -> list[ProjectBot]:
        """Return the bots of all projects, broken or not, by id."""

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        """Return the bot with this id and whose it is; None when it is no project's."""

    async def mark_bot_broken(
        self, project_id: str, encrypted_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Write down that the messenger refuses this token since `now`, until another is set; once.

        False, and nothing is changed, when the project has another token by now or that was written down before.
        """

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        """Write down a bot's username; False when it is that already, or the bot is no project's."""

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


class UserStorage(Protocol):
    """What users said through a bot: phone numbers under way, and blocked projects."""

    async def ask_for_phone(self, request: PhoneRequest) -> None:
        """Remember that a user is asked for their contact. Safe to repeat: only `asked_at` moves on.

        It becomes later than that of all else which this user was asked for by this bot.
        """

    async def read_phone_request(self, key: SessionKey) -> PhoneRequest | None:
        """Return whether, and of whom, a contact was asked for this session."""

    async def find_phone_request(self, messenger_id: str, bot_id: int) -> PhoneRequest | None:
        """Return what this user was asked for last by this bot: that is what a contact answers.

        Also when it was decided or has expired meanwhile, so that a contact that comes twice hears the same twice.
        """

    async def purge_phone_requests(self, expired_before: int, limit: int) -> int:
        """Erase at most `limit` requests whose time was over at `expired_before`; return how many."""

    async def block_project(self, messenger_id: str, project_id: str, now: int) -> bool:
        """Let an account hear nothing of a project any more; False when it is blocked already, or there is none."""

    async def unblock_project(self, messenger_id: str, project_id: str) -> bool:
        """End a block; False when there is none."""

    async def is_blocked(self, messenger_id: str, project_id: str) -> bool:
        """Tell whether an account wants to hear nothing of a project."""

    async def list_blocks(self, messenger_id: str, limit: int, *, project_id: str | None = None) -> list[NamedProject]:
        """Return what an account has blocked, the latest first; with `project_id` that one only."""


class DeliveryStorage(Protocol):
    """Webhook events, their deliveries and attempts."""

    async def claim_deliveries(
        self, now: int, leased_until: int, limit: int, passed_over: PassedOver = NOBODY
    ) -> list[Delivery]:
        """Lease at most `limit` events that are due at `now` and that no living lease holds, oldest due first."""

    async def release_deliveries(self, deliveries: Sequence[Delivery], now: int) -> None:
        """Give up leases of events that nothing was sent of: they are due at once. Lost leases are passed over."""

    async def finish_attempt(
        self, delivery: Delivery, attempt: Attempt, state: DeliveryState, due_at: int, *, reached: bool = True
    ) -> bool:
        """Write down an attempt, and what becomes of its event: "due" again at `due_at`, or another state for good.

        One that was delivered ends the time for which the endpoint has been failing; any other begins it, unless
        `reached` is False: then nothing was tried. Of the event's attempts the latest `ATTEMPTS_SHOWN` are kept. False,
        and nothing is changed, when the lease was lost to another worker, or the webhook was removed meanwhile.
        """

    async def turn_off_webhook(
        self,
        project_id: str,
        webhook_url: str,
        reason: TurnOffReason,
        now: int,
        failing_before: int | None,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Empty a project's webhook URL, keep it and the reason for its developer to see, and end its due deliveries.

        They end as `update_project` has it. False when the URL is another by now, or when `failing_before` is given and
        the endpoint has not been failing since that time.
        """

    async def end_deliveries(self, limit: int) -> int:
        """End at most `limit` due deliveries that were left when their webhook was removed.

        Return how many. When it is 0 all of them have ended, or a later call goes on with them.
        """

    async def read_oldest_due(self, now: int) -> int | None:
        """Return since when the event has been due that has waited longest at `now`; None when none is due."""

    async def record_delivery(self, event: Event, attempt: Attempt, state: DeliveryState) -> bool:
        """Store an event with the one attempt that was made to send it; False when its project does not exist.

        One that was delivered ends the time for which the endpoint has been failing; any other changes nothing there.
        """

    async def list_deliveries(
        self,
        project_id: str,
        event_type: EventType | None,
        state: DeliveryState | None,
        before: PageCursor | None,
        limit: int,
    ) -> list[DeliveryRecord]:
        """Return deliveries of a project with their attempts, newest event first, strictly after `before`."""

    async def read_delivery(self, developer_id: str, event_id: str) -> DeliveryRecord | None:
        """Return one delivery with its attempts; None when it is of none of this developer's projects."""

    async def find_deliveries(self, project_id: str, created_at: int, session_id: str) -> list[DeliveryRecord]:
        """Return the deliveries of the events of a session, which was decided at `created_at`, with their attempts."""

    async def resend_delivery(
        self, developer_id: str, event_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Make an event due at once, with the schedule of retries from its beginning.

        One that a worker is sending at `now` is left alone. False when this developer has no such event, its project
        has no webhook URL, or its body was erased since the user has said that it was not them.
        """

    async def purge_events(self, finished_before: int, limit: int) -> int:
        """Erase at most `limit` webhook events that were finished before that time; those that are due stay."""


class DeveloperStorage(Protocol):
    """Developers and invitations."""

    async def create_developer(self, developer: Developer, *, entry: AuditEntry | None = None) -> bool:
        """Store a developer; False when the e-mail address is taken (compared without case)."""

    async def read_developer(self, email: str) -> Developer | None:
        """Return the developer with this e-mail address (compared without case)."""

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        """Return the developer whom this messenger account signs in to the console."""

    async def list_developers(self) -> list[Developer]:
        """Return all developers, oldest first."""

    async def read_developer_of_sign_in(self, messenger_id: str, sign_in: str) -> Developer | None:
        """Return the developer who has something that came of a sign-in, or else whom this account signs in."""

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        """End everything that came of a sign-in of a developer which was reported before this call, in one transaction.

        All console sessions of the developer end, and all access tokens that came of this sign-in or of a later one,
        however far removed; of invitations those that came of this one. Nobody who came by one of these invitations can
        sign in any more, or act with what they created. A messenger account that the sign-in bound is bound no longer.
        While this runs nothing of the kind is created, so nothing is left. Safe to repeat.
        """

    async def create_invitation(
        self, invitation: Invitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> None:
        """Store an invitation under the SHA-256 of its code.

        It takes the place of all others for the same developer, or the same address, compared without case.
        """

    async def read_invitation(self, code_hash: bytes, now: int) -> Invitation | None:
        """Return the invitation with this hash if its time is not over."""

    async def list_invitations(self, now: int) -> list[Invitation]:
        """Return the invitations with an e-mail address whose time is not over, newest first."""

    async def delete_invitation(self, invitation_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Revoke an invitation; False when there is none."""

    async def accept_invitation(
        self,
        code_hash: bytes,
        developer: Developer,
        now: int,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> InvitationOutcome:
        """Take up an invitation: store `developer`, or bind its messenger account to the one who is there already.

        Of any number of callers one is "accepted", and then the invitation is gone, and with it all others for that
        developer or that address, and those for a first developer: no older link can bind another account later. The
        other callers change nothing, and leave theirs for another try. "not_first": it is for the first developer, and
        there is one. "email_taken" and "identity_taken": another developer has that address or that messenger account.
        Binding another account to a developer ends that developer's console sessions.

        Args:
            code_hash: the SHA-256 of the invitation's code.
            developer: for an invitation with a `developer_id` the one with that id, whose messenger account is bound.
            now: in ms.
            sign_in: by which the messenger account was confirmed.
            entry: for the audit log.
        """


class CredentialStorage(Protocol):
    """What signs developers in: access tokens and console sessions."""

    async def create_access_token(
        self,
        token: AccessToken,
        token_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Store an access token under the SHA-256 of its plaintext.

        `sign_in`: the sign-in that it is given to directly, by `taproof login`. The account that confirmed it must sign
        the developer in, still; otherwise this raises AccessDenied.

        False, and nothing stored, when the developer has `limit` tokens that have not expired when it is created. Of
        those that have, the `EXPIRED_TOKENS_KEPT` that did so last stay.
        """

    async def read_access_token(self, token_hash: bytes) -> tuple[AccessToken, Developer] | None:
        """Return the token with this hash and its developer, expired or not; None when unknown or revoked."""

    async def touch_access_token(self, token_id: str, now: int) -> None:
        """Write down that the token was used at `now`."""

    async def list_access_tokens(self, developer_id: str) -> list[AccessToken]:
        """Return a developer's tokens, newest first."""

    async def delete_access_token(
        self, developer_id: str, token_id: str, *, keep_created: bool = False, describe: DescribeTokens | None = None
    ) -> list[EndedToken]:
        """Revoke a token for good, with all tokens that were created with it, and with these in turn.

        With `keep_created` those stay, and count as created with the parent of this one. Console sessions that were
        opened with a token end with it.

        Returns:
            What was revoked, the token itself first; nothing when this developer has no such token.
        """

    async def create_console_session(
        self,
        session: ConsoleSession,
        token_hash: bytes,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Store a console session under the SHA-256 of its cookie.

        False, and nothing stored, when what it was opened with does not open one any more: the access token was revoked
        or has expired, the developer has another messenger account.

        It ends those of the developer that were seen longest ago, so that `CONSOLE_SESSIONS_KEPT` are left.
        """

    async def read_console_session(
        self, token_hash: bytes, now: int, idle_since: int
    ) -> tuple[ConsoleSession, Developer] | None:
        """Return the session with this hash and its developer.

        None when it is unknown, was last seen at or before `idle_since`, or what it was signed in with does so no
        longer: the access token was revoked or has expired at `now`, the developer has another messenger account.
        """

    async def touch_console_session(self, session_id: str, now: int) -> None:
        """Write down that the session was seen at `now`."""

    async def list_console_sessions(self, developer_id: str, now: int, idle_since: int) -> list[ConsoleSession]:
        """Return a developer's sessions that `read_console_session` would return, newest first."""

    async def delete_console_session(
        self, developer_id: str, session_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """End a session; False when this developer has no such session."""

    async def delete_console_sessions(self, developer_id: str, *, entry: AuditEntry | None = None) -> int:
        """End all sessions of a developer; return how many."""

    async def purge_console_access(self, now: int, idle_since: int, limit: int) -> int:
        """Erase at most `limit` console sessions last seen at or before `idle_since`, and as many outdated invitations.

        Return how many in all. An invitation is outdated when its time is over at `now`.
        """


class AuditStorage(Protocol):
    """The audit log."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        """Add an entry of something that changed nothing in the store, such as that a secret was shown."""

    async def list_audit_entries(self, developer_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        """Return entries of a developer's audit log, newest first, strictly after `before`."""

    async def read_audit_purge(self, developer_id: str) -> AuditPurge | None:
        """Return what was erased of a developer's log; None when it is whole."""

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        """Erase at most `limit` entries made before that time (ms), and note whose; return how many.

        Of a log of which any is erased, all entries made before that time are no longer listed.
        """


class PlanStorage(Protocol):
    """Plans and how much of them is used."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        """Put a developer on another plan; False when there is none, or they are on it already.

        On "free" no project of theirs collects phone numbers any more: from here on none is set to, whoever tries so
        at the same instant, since `create_project` and `update_project` look at the plan too.
        """

    async def read_used(self, developer_id: str, first_day: int) -> Used:
        """Return what a developer uses; a sign-in counts on the day that its session was created on.

        Users of projects that are deleted by now count too.
        """

    async def purge_removed_usage(self, before_day: int, limit: int) -> int:
        """Forget who had confirmed in deleted projects before that day; return of how many days, `limit` at most."""


class CountStorage(Protocol):
    """Counts of sessions and of distinct users."""

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        """Return the counts of each project and day from `first_day` on; days without any are left out."""

    async def read_daily_totals(self, developer_id: str, first_day: int) -> list[DailyCounts]:
        """Return the counts of each day from `first_day` on, over all projects of a developer.

        `project_id` is "", and distinct users are left at 0: see `read_daily_users`.
        """

    async def read_daily_users(self, developer_id: str, first_day: int) -> list[DailyUsers]:
        """Return distinct users per day over all projects of a developer, from `first_day` on."""

    async def purge_user_days(self, before_day: int, limit: int) -> int:
        """Forget who confirmed on days before that one; the counts of distinct users since any later day stay exact."""


class ErasureStorage(Protocol):
    """Forgets users. Each call is bounded, and holds up nobody for longer than a moment.

    A session goes with its phone number, its webhook events, due ones too, and its request for a phone number, in one
    transaction. Counts stay as they are. With `developer_id` only this developer's projects are looked at.
    """

    async def erase_user(
        self,
        messenger_id: str,
        developer_id: str | None,
        replacement: str,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> int:
        """Erase at most about `limit` rows of what an account confirmed; return how many (0: all is done).

        So that the counts of distinct users stay exact, that somebody confirmed on a day is kept, as `replacement`:
        a name that nobody else has, and another one at each call. Without `developer_id` also what the account has
        blocked is erased; the blocks are the user's own.
        """

    async def list_opened_days(self, developer_id: str | None, after: OpenedDay | None, limit: int) -> list[OpenedDay]:
        """Return project days with sessions that somebody opened and did not confirm, strictly after `after`."""

    async def erase_opened(
        self,
        messenger_id: str,
        of: OpenedDay,
        after: OpenedPlace | None,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> ErasedPage:
        """Look at the next `limit` sessions, and erase those that the account opened and did not confirm.

        No session is passed over that was there when the walk began, unless it was confirmed meanwhile.
        """


class EncryptedValueStorage(Protocol):
    """All encrypted values, for the rotation of the master key."""

    async def list_encrypted_values(self, kind: EncryptedKind, after: RowKey | None, limit: int) -> EncryptedPage:
        """Return the next encrypted values of a kind, having looked at no more than `limit` rows.

        No row is passed over that was there when the walk began and still is; those that come meanwhile may be.
        """

    async def replace_encrypted_values(self, kind: EncryptedKind, replacements: Sequence[Replacement]) -> int:
        """Replace each value that is still the old one; return how many were. Nothing else of their rows changes.

        On PostgreSQL each is a transaction of its own, so that this can be in nobody's way.
        """


class LeaseStorage(Protocol):
    """Leases, by which several processes on one store elect one of them."""

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        """Take the lease `name` for `holder`, or renew it; False while another holds it and its time is not over."""

    async def release_lease(self, name: str, holder: str) -> None:
        """Give up a lease, so that another may take it at once. Nothing happens when `holder` does not hold it."""


class MetadataStorage(Protocol):
    """What the installation remembers about itself."""

    async def read_mark(self, name: str) -> bytes | None:
        """Return the value kept under `name`, or None."""

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        """Keep `value` under `name` unless something is kept there already; return what is kept now."""


class Storage(Protocol):
    """The store: SQLite on one machine, PostgreSQL for many."""

    sessions: SessionStorage
    projects: ProjectStorage
    bots: BotStorage
    users: UserStorage
    deliveries: DeliveryStorage
    developers: DeveloperStorage
    credentials: CredentialStorage
    audit: AuditStorage
    plans: PlanStorage
    counts: CountStorage
    erasure: ErasureStorage
    encrypted_values: EncryptedValueStorage
    leases: LeaseStorage
    metadata: MetadataStorage

    async def close(self) -> None:
        """Let go of the database. Writes under way are finished first."""

    async def ping(self) -> None:
        """Do the smallest read that proves that the store answers."""
