"""The interface of a store. Each method is one atomic operation, and a write is durable when it returns.

A store is composed of parts (`store.sessions`, `store.projects`, …), one Protocol each. Any method may raise
`StoreUnavailable` if the database is locked, full, read-only or unreachable; nothing is changed in this case. Times are
milliseconds since the epoch. If a method that makes a change returns False, None or an empty result, nothing was
changed.

A method that takes an `entry` adds it to the audit log in the transaction of the change, if anything was changed. If
the entry's actor used an access token or a console session, the same transaction checks that this credential still
exists. Otherwise the method raises InvalidAccessToken or SignedOut and changes nothing. So a credential that has ended
cannot create another one (docs/explanation/rights.md). A change with `sign_in` requires that this
messenger sign-in was not reported; otherwise the method raises AccessDenied.

A method named `purge_…` erases in bounded steps and returns the number of erased items (0: none is left).
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
from taproof.core.oidc.clients import CLIENT_LIMIT, ClientChanges, ClientSecret, OidcClient, SignInClient
from taproof.core.oidc.model import Authorization, NewAuthorization, NewCode, NewTokens, SigningKey

CONSOLE_SESSIONS_KEPT: Final = 50
"""The maximum number of console sessions per developer. One page lists them all, and signing in again is easy."""
EXPIRED_TOKENS_KEPT: Final = 100
"""The number of expired access tokens kept per developer, so that the list of tokens can show them."""
NO_LIMIT: Final = sys.maxsize
ENDED_AT_ONCE: Final = 200
"""The maximum number of due deliveries that end in the transaction that removes their webhook. Ending 100,000 at once
would block all other writers for seconds."""
PROJECTS_OF_USER: Final = 200
"""The maximum number of projects searched for an account's sign-ins. The cost of a list depends only on this number."""

DescribeEnded = Callable[[EndedRights], Sequence[AuditEntry]]
"""Returns the audit entries for the rights that a report ended. A driver may call it more than once, so it must have no
side effects."""
DescribeTokens = Callable[[Sequence[EndedToken]], Sequence[AuditEntry]]
"""Returns the audit entries for revoked tokens. If it raises, the revocation is rolled back. A driver may call it more
than once, so it must have no side effects."""
UpdateClaim = Literal["claimed", "in_progress", "done"]
EncryptedKind = Literal[
    "webhook_secret",
    "next_webhook_secret",
    "bot_token",
    "event_body",
    "webhook_answer",
    "phone",
    "phone_request",
    "oidc_session",
    "signing_key",
    "mark",
]
"""A kind of encrypted value. Each kind is one column of one table: see `queries/encrypted_values.py`."""
RowKey = tuple[str | int | bytes, ...]
"""The primary key of a row."""


class EncryptedRow(NamedTuple):
    """An encrypted value. `name` is the id of the project, event or session, or the name of the metadata entry."""

    key: RowKey
    name: str
    encrypted: bytes


class EncryptedPage(NamedTuple):
    """A page of encrypted values in the order of their keys.

    `after` is the start of the next page, None after the last page. A page may be empty without being the last.
    """

    rows: list[EncryptedRow]
    after: RowKey | None


class Replacement(NamedTuple):
    """A new encrypted value and the old one that it replaces. Nothing changes if the row no longer contains `old`."""

    key: RowKey
    old: bytes
    new: bytes


class OpenedDay(NamedTuple):
    """A project and a UTC day with sessions that were opened but not confirmed."""

    project_id: str
    day: int


class OpenedCursor(NamedTuple):
    """A position in a walk over the sessions of an `OpenedDay`."""

    status: Status
    created_at: int
    session_id: str


class ErasedPage(NamedTuple):
    """The number of sessions erased in one page. `after` is the start of the next page, None after the last page."""

    erased: int
    after: OpenedCursor | None


class Used(NamedTuple):
    """The usage of a developer's plan: the number of projects, and of sign-ins confirmed since a given day.

    A user counts once a day, even if they sign in several times or to several projects of the developer.
    """

    projects: int
    sign_ins: int


class SessionStorage(Protocol):
    """Sessions. Each change of a session's state is one guarded statement: only one of concurrent callers succeeds."""

    async def create_session(self, session: NewSession, *, public: bool) -> bool:
        """Store a pending session and count it.

        Return False if the project does not exist, is paused or, with `public`, has no public access.
        """

    async def poll_session(self, key: SessionKey) -> PolledSession | None:
        """Return the data that a poll needs. This is the most frequent read."""

    async def read_session(self, key: SessionKey) -> Session | None:
        """Return the whole session, with the details that only the bot needs."""

    async def open_session(self, key: SessionKey, opener_id: str, now: int) -> bool:
        """Make `opener_id` the owner of a pending session that was not opened before; return whether this succeeded."""

    async def confirm_session(
        self, key: SessionKey, identity: MessengerIdentity, now: int, event: Event, encrypted_phone: bytes | None = None
    ) -> bool:
        """Move a session from pending to confirmed if `identity` opened it, and store the identity.

        `event` is recorded if the project has a webhook. With `encrypted_phone`, nothing changes unless the project
        collects phone numbers and its developer's plan is not "free".
        """

    async def cancel_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> bool:
        """Move a session from pending to cancelled if `opener_id` opened it; record `event` if a webhook is set."""

    async def consume_session(self, key: SessionKey, now: int) -> ConsumedSession | None:
        """Move a session from confirmed to used. Only the caller that made the change gets the identity."""

    async def reread_session(self, key: SessionKey, since: int) -> ConsumedSession | None:
        """Return the result of `consume_session` again, for a session with a code challenge.

        Return None if the session was consumed at or before `since` (ms), or was reported. Also return None if the
        webhook secret that signs proofs has changed since then: the same proof can no longer be created.
        """

    async def report_session(self, key: SessionKey, opener_id: str, now: int, event: Event) -> Status | None:
        """Record that the session's user reports "This wasn't me", count the report, and return the new state.

        A pending session becomes cancelled, and `event` is recorded if a webhook is set. A confirmed session becomes
        used, and its proof is never issued. If the session was confirmed or used, the body of its auth.confirmed event
        is erased, so that the event is not sent again. That event ends unless it was already delivered. An attempt in
        progress counts as interrupted.

        Return None if `opener_id` did not open the session, or if it has expired at `now` or was cancelled or reported.
        """

    async def expire_sessions(self, now: int, limit: int) -> int:
        """Move at most `limit` overdue sessions from pending to expired; return their number."""

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
        """Return the sessions created since `since`, newest first, strictly after `before`.

        Their status is as a reader sees it at `now`. With `messenger_id`, return only sessions that this account
        confirmed.
        """

    async def list_sign_ins(
        self, messenger_id: str, since: int, limit: int, now: int, *, project_id: str | None = None
    ) -> list[Session]:
        """Return the sessions created since `since` that an account confirmed, in one project or all, newest first."""

    async def read_session_by_id(
        self, project_ids: Sequence[str], created_at: int, session_id: str, now: int
    ) -> Session | None:
        """Return the session with this id and time of creation, if it belongs to one of these projects."""

    async def watch_decisions(self, wake: Callable[[SessionKey], None], needed: asyncio.Event) -> None:
        """Call `wake` with each session that any process confirms or cancels. Run until cancelled.

        A decision may be missed or announced twice, so callers must also poll from time to time. The store may stop
        watching while `needed` is not set. Store errors do not end this call.
        """

    async def prepare_days(self, first_day: int, last_day: int) -> None:
        """Prepare the store for sessions of these days, both included: for example, create partitions."""

    async def purge_sessions(self, before_day: int, limit: int) -> int:
        """Erase sessions created before `before_day`: about `limit` at most, or whole days. Their counts are kept.

        Pending sessions are erased too, so `before_day` must be early enough that none is pending.
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
        """Store a project, together with its bot if `bot` is given.

        Return False if the developer has `limit` projects, or if the project collects phone numbers on the plan "free".

        Raises:
            BotTaken: the bot serves another project, and this change does not take it away.
        """

    async def read_project(self, project_id: str) -> Project | None:
        """Return a project with its counts."""

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        """Return a project's webhook secrets in their stored form."""

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        """Return the project whose current secret key has this hash. Its counts are 0."""

    async def list_projects(self, developer_id: str) -> list[Project]:
        """Return a developer's projects with their counts, oldest first."""

    async def count_projects(self, developer_id: str) -> int:
        """Return the number of a developer's projects."""

    async def name_projects(self, developer_id: str) -> list[NamedProject]:
        """Return the id and name of each of a developer's projects, oldest first. This is cheaper than with counts."""

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        """Return the projects with these ids that belong to this developer, with their counts, oldest first."""

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        """Return the project settings that apply to a new session."""

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
        """Change the fields that are not None, and the bot if `bot` is given. Either all changes are made or none.

        Return None if this developer has no such project, or if the change starts to collect phone numbers on the plan
        "free".

        Removing the webhook URL ends the project's due deliveries: `ENDED_AT_ONCE` of them immediately, and the rest in
        `end_deliveries`. Until then, the rest are shown as due, but no worker can claim them. A new webhook URL is set
        only after the last of them has ended. Setting a webhook URL, even the same one, resets the endpoint's state:
        since when it has been failing, and whether it was turned off.

        Raises:
            BotTaken: the bot serves another project, and this change does not take it away.
        """

    async def regenerate_secrets(
        self,
        developer_id: str,
        project_id: str,
        secret_key_hash: bytes,
        secret_key_preview: str,
        encrypted_webhook_secret: bytes,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Replace both secrets, and end a rotation in progress. Return False if this developer has no such project."""

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
        """Store a webhook secret that replaces the current one at `next_at`.

        Return False if this developer has no such project, or if another rotation is in progress at `now`.
        """

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Make the next webhook secret the current one; False if no rotation is in progress at `now`."""

    async def delete_project(self, developer_id: str, project_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Delete a project. From then on, no method finds its data, but `read_used` still counts its users.

        `purge_deleted_projects` erases the remaining rows, and removes the project's users from `read_daily_users`.
        """

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase at most about `limit` rows of deleted projects; return their number (0: none is left)."""


class OidcClientStorage(Protocol):
    """The OpenID Connect clients of projects. Deleting a project deletes its clients."""

    async def create_client(
        self,
        developer_id: str,
        client: OidcClient,
        secret_hash: bytes | None,
        *,
        limit: int = CLIENT_LIMIT,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Store a client. Return False if this developer has no such project, or if it has `limit` clients."""

    async def read_client(self, client_id: str) -> SignInClient | None:
        """Return a client with its secret's hash and the data of its project. Every sign-in needs this read."""

    async def list_clients(self, developer_id: str, project_id: str) -> list[OidcClient]:
        """Return the clients of a developer's project, oldest first."""

    async def update_client(
        self,
        developer_id: str,
        project_id: str,
        client_id: str,
        changes: ClientChanges,
        secret: ClientSecret | None = None,
        *,
        entry: AuditEntry | None = None,
    ) -> OidcClient | None:
        """Change the fields that are not None. Return None if this developer's project has no such client.

        If the new `auth_method` is "none", the client's secret is erased. Otherwise, a client that has no secret gets
        `secret`. A change to an `auth_method` with a secret must give one, because the client may have none.
        """

    async def delete_client(
        self, developer_id: str, project_id: str, client_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """Delete a client. Return False if this developer's project has no such client."""

    async def regenerate_client_secret(
        self,
        developer_id: str,
        project_id: str,
        client_id: str,
        secret: ClientSecret,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Replace a client's secret. Return False if this developer's project has no such client with a secret."""


class BotStorage(Protocol):
    """Project bots, and the updates that bots receive."""

    async def list_project_bots(self) -> list[ProjectBot]:
        """Return the bots of all projects, broken or not, ordered by id."""

    async def read_project_bot(self, bot_id: int) -> ProjectBot | None:
        """Return the bot with this id and its project; None if no project has this bot."""

    async def mark_bot_broken(
        self, project_id: str, encrypted_token: bytes, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Record that the messenger has refused this token since `now`. Setting another token clears the mark.

        Return False if the project now has another token, or if the bot is already marked.
        """

    async def rename_bot(self, bot_id: int, username: str) -> bool:
        """Store a bot's username; False if it has not changed, or if no project has this bot."""

    async def claim_update(self, bot_id: int, update_id: int, now: int, stale_before: int) -> UpdateClaim:
        """Claim a bot update. Only the caller that gets "claimed" handles it, and then calls `finish_update`.

        "in_progress": another caller claimed it after `stale_before`, so the messenger must deliver it again.
        """

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        """Record that an update was completely handled."""

    async def release_update(self, bot_id: int, update_id: int) -> None:
        """Release a claim, so that the update can immediately be claimed again. A finished update remains finished."""

    async def purge_updates(self, claimed_before: int, limit: int) -> int:
        """Erase at most `limit` updates claimed before `claimed_before`; return their number."""


class UserStorage(Protocol):
    """Requests for users' phone numbers, and the projects that users have blocked."""

    async def ask_for_phone(self, request: PhoneRequest) -> None:
        """Record that a user was asked for their contact. Repeating the call is safe.

        The stored `asked_at` is later than that of any other request of this bot to this user.
        """

    async def read_phone_request(self, key: SessionKey) -> PhoneRequest | None:
        """Return the request for a contact that belongs to this session; None if there is none."""

    async def find_phone_request(self, messenger_id: str, bot_id: int) -> PhoneRequest | None:
        """Return the latest request of this bot to this user, which is the one that a contact answers.

        Its session may be decided or expired: a contact that is sent twice gets the same response twice.
        """

    async def purge_phone_requests(self, expired_before: int, limit: int) -> int:
        """Erase at most `limit` requests that expired at or before `expired_before`; return their number."""

    async def block_project(self, messenger_id: str, project_id: str, now: int) -> bool:
        """Block a project for an account; False if it is already blocked, or if the project does not exist."""

    async def unblock_project(self, messenger_id: str, project_id: str) -> bool:
        """Remove a block; False if there is none."""

    async def is_blocked(self, messenger_id: str, project_id: str) -> bool:
        """Return whether an account has blocked a project."""

    async def list_blocks(self, messenger_id: str, limit: int, *, project_id: str | None = None) -> list[NamedProject]:
        """Return the projects that an account has blocked, most recent first; with `project_id`, only that project."""


class DeliveryStorage(Protocol):
    """Webhook events, their deliveries and attempts."""

    async def claim_deliveries(
        self, now: int, leased_until: int, limit: int, passed_over: PassedOver = NOBODY
    ) -> list[Delivery]:
        """Lease at most `limit` events that are due at `now`, not leased and not `passed_over`; longest due first."""

    async def release_deliveries(self, deliveries: Sequence[Delivery], now: int) -> None:
        """Release the leases of events that were not sent, so that the events are due again. Skip lost leases."""

    async def finish_attempt(
        self, delivery: Delivery, attempt: Attempt, state: DeliveryState, due_at: int, *, reached: bool = True
    ) -> bool:
        """Record an attempt and the event's new state: "due" again at `due_at`, or a final state.

        With "delivered", the endpoint no longer counts as failing. With any other state, it counts as failing from this
        attempt on, unless it was already failing. If `reached` is False, no request was made, and the endpoint's state
        does not change. Only the event's latest `ATTEMPTS_SHOWN` attempts are kept.

        Return False if another worker has taken over the lease, or if the webhook was removed meanwhile.
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
        """Clear a project's webhook URL and end its due deliveries, as `update_project` does.

        The old URL and `reason` are stored for the developer. Return False if the URL has changed, or if
        `failing_before` is given and the endpoint has not been failing since then.
        """

    async def end_deliveries(self, limit: int) -> int:
        """End at most `limit` due deliveries that remained when their webhook was removed; return their number.

        0 means that all of them have ended, or that a later call continues.
        """

    async def read_oldest_due(self, now: int) -> int | None:
        """Return the time since which the longest-waiting event is due at `now`; None if no event is due."""

    async def record_delivery(self, event: Event, attempt: Attempt, state: DeliveryState) -> bool:
        """Store an event with its only attempt; False if its project does not exist.

        With "delivered", the endpoint no longer counts as failing.
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
        """Return one delivery with its attempts; None if it belongs to none of this developer's projects."""

    async def find_deliveries(self, project_id: str, created_at: int, session_id: str) -> list[DeliveryRecord]:
        """Return the deliveries, with their attempts, of the events of a session that was decided at `created_at`."""

    async def resend_delivery(
        self, developer_id: str, event_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Make an event due immediately, and restart its retry schedule, unless a worker is sending it at `now`.

        Return False if this developer has no such event, its project has no webhook URL, or its body was erased by a
        report.
        """

    async def purge_events(self, finished_before: int, limit: int) -> int:
        """Erase at most `limit` webhook events that were finished before `finished_before`. Due events are kept."""


class DeveloperStorage(Protocol):
    """Developers and invitations."""

    async def create_developer(self, developer: Developer, *, entry: AuditEntry | None = None) -> bool:
        """Store a developer; False if the e-mail address is taken (compared without case)."""

    async def read_developer(self, email: str) -> Developer | None:
        """Return the developer with this e-mail address (compared without case)."""

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        """Return the developer to whom this messenger account is linked."""

    async def list_developers(self) -> list[Developer]:
        """Return all developers, oldest first."""

    async def read_developer_of_sign_in(self, messenger_id: str, sign_in: str) -> Developer | None:
        """Return the developer whose rights derive from a sign-in; otherwise the one to whom this account is linked."""

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        """End, in one transaction, all credentials and rights that derive from a developer's reported sign-in.

        The sign-in must be reported before this call. The transaction ends:

        - all console sessions of the developer;
        - all access tokens that derive, directly or indirectly, from this sign-in or a later one;
        - the invitations that derive from this sign-in or, if it linked the account, also from a later one.

        Developers who accepted one of these invitations can no longer sign in, and the credentials that they created
        end too. A messenger account that the sign-in linked is unlinked. No such credential can be created meanwhile,
        so none remains. Repeating the call is safe.
        """

    async def create_invitation(
        self, invitation: Invitation, code_hash: bytes, *, entry: AuditEntry | None = None
    ) -> None:
        """Store an invitation, which replaces all others for the same developer or address (compared without case)."""

    async def read_invitation(self, code_hash: bytes, now: int) -> Invitation | None:
        """Return the invitation whose code has this SHA-256; None if there is none or it has expired at `now`."""

    async def list_invitations(self, now: int) -> list[Invitation]:
        """Return the invitations with an e-mail address that have not expired at `now`, newest first."""

    async def delete_invitation(self, invitation_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Revoke an invitation; False if there is none."""

    async def accept_invitation(
        self,
        code_hash: bytes,
        developer: Developer,
        now: int,
        *,
        sign_in: DeveloperSignIn | None = None,
        entry: AuditEntry | None = None,
    ) -> InvitationOutcome:
        """Accept an invitation: store `developer`, or link its messenger account to the existing developer.

        Exactly one of several concurrent callers gets "accepted". This also deletes all other invitations for that
        developer or that address, and those for the first developer. So no older link can link another account later.
        With any other outcome, nothing is changed, and the invitation can be tried again. "not_first": the invitation
        is for the first developer, but a developer exists. "email_taken" and "identity_taken": another developer has
        that address or that messenger account. Linking another account to a developer ends that developer's console
        sessions.

        For an invitation with a `developer_id`, `developer` is the existing developer with the messenger account to
        link. `sign_in` is the sign-in that confirmed this account.
        """


class CredentialStorage(Protocol):
    """Developers' credentials: access tokens and console sessions."""

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

        `sign_in` is the sign-in that directly created the token, by `taproof login`. The account that confirmed it must
        still be linked to the developer; otherwise this raises AccessDenied.

        Return False if the developer has `limit` tokens that have not expired. Of the expired ones, the
        `EXPIRED_TOKENS_KEPT` that expired last are kept.
        """

    async def read_access_token(self, token_hash: bytes) -> tuple[AccessToken, Developer] | None:
        """Return the token with this hash, expired or not, and its developer; None if it is unknown or revoked."""

    async def touch_access_token(self, token_id: str, now: int) -> None:
        """Record that the token was used at `now`."""

    async def list_access_tokens(self, developer_id: str) -> list[AccessToken]:
        """Return a developer's tokens, newest first."""

    async def delete_access_token(
        self, developer_id: str, token_id: str, *, keep_created: bool = False, describe: DescribeTokens | None = None
    ) -> list[EndedToken]:
        """Revoke a token with all tokens that it created, directly or indirectly; return them, this one first.

        With `keep_created`, the created tokens are kept, and this token's parent becomes their parent. Console sessions
        that were opened with a revoked token end.
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

        Return False if the access token used to sign in has ended or, without one, the developer now has another
        messenger account. The developer's least recently seen sessions end, so that at most `CONSOLE_SESSIONS_KEPT`
        remain.
        """

    async def read_console_session(
        self, token_hash: bytes, now: int, idle_since: int
    ) -> tuple[ConsoleSession, Developer] | None:
        """Return the session with this hash and its developer.

        Return None if the session is unknown or was last seen at or before `idle_since`. Also return None if the access
        token used to sign in has ended at `now` or, without one, the developer now has another messenger account.
        """

    async def touch_console_session(self, session_id: str, now: int) -> None:
        """Record that the session was seen at `now`."""

    async def list_console_sessions(self, developer_id: str, now: int, idle_since: int) -> list[ConsoleSession]:
        """Return the sessions of a developer that `read_console_session` would return, newest first."""

    async def delete_console_session(
        self, developer_id: str, session_id: str, *, entry: AuditEntry | None = None
    ) -> bool:
        """End a session; False if this developer has no such session."""

    async def delete_console_sessions(self, developer_id: str, *, entry: AuditEntry | None = None) -> int:
        """End all sessions of a developer; return their number."""

    async def purge_console_access(self, now: int, idle_since: int, limit: int) -> int:
        """Erase console sessions last seen at or before `idle_since`, and invitations that have expired at `now`.

        At most `limit` of each are erased.
        """


class AuditStorage(Protocol):
    """The audit log."""

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        """Add an entry for an action that changed nothing in the store, such as revealing a secret."""

    async def list_audit_entries(self, developer_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        """Return entries of a developer's audit log, newest first, strictly after `before`."""

    async def read_audit_purge(self, developer_id: str) -> AuditPurge | None:
        """Return the erased part of a developer's log; None if nothing was erased."""

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        """Erase at most `limit` entries made before `before` (ms); return their number. Record the erasure in each log.

        Once any entry of a log is erased, none of the log's entries made before `before` is listed.
        """


class PlanStorage(Protocol):
    """Developers' plans and their usage."""

    async def update_plan(self, developer_id: str, plan: Plan, *, entry: AuditEntry | None = None) -> bool:
        """Change a developer's plan; False if there is no such developer, or if they are already on this plan.

        With "free", all their projects stop collecting phone numbers, and no concurrent change can turn it on again.
        """

    async def read_used(self, developer_id: str, first_day: int) -> Used:
        """Return a developer's usage since `first_day`, by session day, including users of deleted projects."""

    async def purge_removed_usage(self, before_day: int, limit: int) -> int:
        """Erase deleted projects' usage before `before_day`; return the number of erased days, at most `limit`."""


class CountStorage(Protocol):
    """Counts of sessions and of distinct users."""

    async def read_daily_counts(self, project_ids: Sequence[str], first_day: int) -> list[DailyCounts]:
        """Return the counts of each project and day from `first_day` on. Days without counts are omitted."""

    async def read_daily_totals(self, developer_id: str, first_day: int) -> list[DailyCounts]:
        """Return the counts of each day over all projects of a developer, without distinct users or a `project_id`."""

    async def read_daily_users(self, developer_id: str, first_day: int) -> list[DailyUsers]:
        """Return distinct users per day over all projects of a developer, from `first_day` on."""

    async def purge_user_days(self, before_day: int, limit: int) -> int:
        """Erase at most `limit` users of days before `before_day`. Counts since any later day remain exact."""


class ErasureStorage(Protocol):
    """Erases users' data. Each call is bounded, so it blocks other calls only briefly.

    A session is erased with its phone number, its webhook events (due ones too) and its request for a phone number, in
    one transaction. Counts do not change. With `developer_id`, only this developer's projects are searched.
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
        """Erase at most about `limit` rows of an account's sign-ins; return their number (0: nothing is left).

        The record of a confirmation on a day is kept, with the user replaced by `replacement`, so that the counts of
        distinct users remain exact. `replacement` must be unique for each call. Without `developer_id`, the account's
        blocks are erased too, since they belong to the user and not to a developer.
        """

    async def list_opened_days(self, developer_id: str | None, after: OpenedDay | None, limit: int) -> list[OpenedDay]:
        """Return the projects and days with opened but unconfirmed sessions, strictly after `after`."""

    async def erase_opened(
        self,
        messenger_id: str,
        of: OpenedDay,
        after: OpenedCursor | None,
        limit: int,
        *,
        entry: AuditEntry | None = None,
    ) -> ErasedPage:
        """Check the next `limit` sessions, and erase those that the account opened but did not confirm.

        A walk checks every session that existed when it began, unless the session was confirmed meanwhile.
        """


class EncryptedValueStorage(Protocol):
    """All encrypted values, for the rotation of the master key."""

    async def list_encrypted_values(self, kind: EncryptedKind, after: RowKey | None, limit: int) -> EncryptedPage:
        """Return the next encrypted values of a kind, from at most `limit` rows. Rows added meanwhile may be missed."""

    async def replace_encrypted_values(self, kind: EncryptedKind, replacements: Sequence[Replacement]) -> int:
        """Replace each value that has not changed since it was read; return the number of replaced values."""


class AuthorizationStorage(Protocol):
    """Sign-ins through the OpenID provider, and pushed authorization requests."""

    async def create_authorization(self, authorization: NewAuthorization) -> bool:
        """Store a sign-in. Return False if its user code is taken."""

    async def read_authorization(self, authorization_id: str) -> Authorization | None:
        """Return the sign-in with this id."""

    async def read_authorization_by_code(self, code_hash: bytes) -> Authorization | None:
        """Return the sign-in with this authorization code, redeemed or not."""

    async def read_authorization_by_access_token(self, access_token_hash: bytes) -> Authorization | None:
        """Return the sign-in with this access token, expired or not."""

    async def read_authorization_by_user_code(self, user_code: str, now: int) -> Authorization | None:
        """Return the sign-in with this user code, if it has not expired at `now` and no browser is bound to it."""

    async def poll_authorization(
        self, device_code_hash: bytes, now: int, since: int
    ) -> tuple[Authorization, bool] | None:
        """Return the sign-in of a device, and whether the device has polled after `since`. Record the poll at `now`."""

    async def bind_browser(self, authorization_id: str, browser_hash: bytes, now: int) -> bool:
        """Bind a device's sign-in to a browser. Return False if it is bound already, has ended or has expired."""

    async def replace_session(
        self,
        authorization_id: str,
        previous: SessionKey | None,
        session: SessionKey,
        encrypted_session: bytes,
        now: int,
    ) -> bool:
        """Give a sign-in another session.

        Return False if the current one is not `previous`, or if the sign-in is finished, has ended or has expired.
        """

    async def end_authorization(self, authorization_id: str, now: int) -> bool:
        """End a sign-in that is not finished. Return False if it is finished or has ended."""

    async def finish_authorization(
        self, authorization_id: str, session: SessionKey, now: int, given: NewCode | NewTokens
    ) -> bool:
        """Consume a confirmed session and store the code, or the tokens, that it gives, in one transaction.

        Return False if the session is not the sign-in's current one, or is not confirmed. Also return False if the
        sign-in is finished, has ended or has expired. Of concurrent calls, only one succeeds.
        """

    async def redeem_code(self, code_hash: bytes, tokens: NewTokens, now: int) -> bool:
        """Store the tokens that a code gives. Of concurrent calls, only one succeeds.

        An expired code gives none. Nor does one whose session was reported or erased.
        """

    async def revoke_tokens(self, authorization_id: str, now: int) -> bool:
        """Revoke the tokens of a sign-in. Return False if it has none, or if they were revoked before."""

    async def purge_authorizations(self, ended_before: int, limit: int) -> int:
        """Erase at most `limit` sign-ins that had expired, with their access tokens, at `ended_before` (ms)."""

    async def create_pushed_request(self, uri_hash: bytes, client_id: str, parameters: str, expires_at: int) -> None:
        """Store an authorization request that a client pushed (RFC 9126)."""

    async def take_pushed_request(self, uri_hash: bytes, client_id: str, now: int) -> str | None:
        """Return and erase the parameters of a client's pushed request. Of concurrent calls, only one gets them."""

    async def purge_pushed_requests(self, now: int, limit: int) -> int:
        """Erase at most `limit` pushed requests that have expired."""


class SigningKeyStorage(Protocol):
    """The keys that sign ID tokens."""

    async def list_signing_keys(self) -> list[SigningKey]:
        """Return all keys, ordered by algorithm and generation."""

    async def create_signing_key(self, key: SigningKey) -> bool:
        """Store a key. Return False if its algorithm has a key of this generation: another node was faster."""

    async def advance_signing_key(self, kid: str, signs_from: int) -> bool:
        """Make a key sign from an earlier time on. Return False if it already signs from then or earlier."""

    async def purge_signing_keys(self, replaced_before: int, limit: int) -> int:
        """Erase at most `limit` keys whose successors have signed since `replaced_before` (ms)."""


class LeaseStorage(Protocol):
    """Leases, with which the processes on one store elect a leader."""

    async def hold_lease(self, name: str, holder: str, now: int, until: int) -> bool:
        """Take or renew the lease `name` for `holder`; False while another process holds it and it has not expired."""

    async def release_lease(self, name: str, holder: str) -> None:
        """Release a lease, so that another process can take it. Do nothing if `holder` does not hold it."""


class MetadataStorage(Protocol):
    """An installation's named values."""

    async def read_mark(self, name: str) -> bytes | None:
        """Return the value stored under `name`; None if there is none."""

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        """Store `value` under `name` unless a value exists; return the stored value."""


class Storage(Protocol):
    """The store: SQLite on one machine, PostgreSQL for many."""

    sessions: SessionStorage
    projects: ProjectStorage
    oidc_clients: OidcClientStorage
    bots: BotStorage
    users: UserStorage
    deliveries: DeliveryStorage
    developers: DeveloperStorage
    credentials: CredentialStorage
    audit: AuditStorage
    plans: PlanStorage
    counts: CountStorage
    erasure: ErasureStorage
    authorizations: AuthorizationStorage
    signing_keys: SigningKeyStorage
    encrypted_values: EncryptedValueStorage
    leases: LeaseStorage
    metadata: MetadataStorage

    async def close(self) -> None:
        """Close the database after finishing the writes in progress."""

    async def ping(self) -> None:
        """Run the smallest read that proves that the store responds."""
