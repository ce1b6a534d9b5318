"""What the service asks of a store about developers, what signs them in, and their audit log. See `protocol.py`."""

import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol

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
)
from taproof.core.model import DeveloperSignIn, PageCursor

CONSOLE_SESSIONS_KEPT: Final = 50
"""Console sessions of one developer that are kept: they are listed on one page, and signing in again is easy."""
EXPIRED_TOKENS_KEPT: Final = 100
"""Expired access tokens of one developer that are kept, for the list of them."""
NO_LIMIT: Final = sys.maxsize


DescribeEnded = Callable[[EndedRights], Sequence[AuditEntry]]
"""Returns the audit entries of what a report ended. It has no other effect: a driver may call it more than once."""
DescribeTokens = Callable[[Sequence[EndedToken]], Sequence[AuditEntry]]
"""Returns the audit entries of tokens that are revoked, or raises what undoes it all; likewise."""


class AccountStorage(Protocol):
    """The part of the store that knows developers, access tokens, invitations, console sessions and the audit log.

    A change whose entry was made by an access token or a console session is made only while that still exists, checked
    in the same transaction; otherwise it raises InvalidAccessToken or SignedOut, and changes nothing. So no credential
    is created by one that has ended (design.md, convention 17). A change with `sign_in` is made only while that
    messenger sign-in is not reported, and raises AccessDenied otherwise.
    """

    # ---- developers and access tokens

    async def create_developer(self, developer: Developer, *, entry: AuditEntry | None = None) -> bool:
        """Store a developer; False when the e-mail address is taken (compared without case)."""

    async def read_developer(self, email: str) -> Developer | None:
        """Return the developer with this e-mail address (compared without case)."""

    async def read_developer_by_messenger_id(self, messenger_id: str) -> Developer | None:
        """Return the developer whom this messenger account signs in to the console."""

    async def list_developers(self) -> list[Developer]:
        """Return all developers, oldest first."""

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

    # ---- invitations

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

    # ---- the console's sessions

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

    # ---- the report of a sign-in

    async def read_developer_of_sign_in(self, messenger_id: str, sign_in: str) -> Developer | None:
        """Return the developer who has something that came of a sign-in, or else whom this account signs in."""

    async def end_sign_in(self, developer_id: str, sign_in: str, *, describe: DescribeEnded) -> EndedRights:
        """End everything that came of a sign-in of a developer which was reported before this call, in one transaction.

        All console sessions of the developer end, and all access tokens that came of this sign-in or of a later one,
        however far removed; of invitations those that came of this one. Nobody who came by one of these invitations can
        sign in any more, or act with what they created. A messenger account that the sign-in bound is bound no longer.
        While this runs nothing of the kind is created, so nothing is left. Safe to repeat.
        """

    # ---- the audit log

    async def add_audit_entry(self, entry: AuditEntry) -> None:
        """Add an entry of something that changed nothing in the store, such as that a secret was shown."""

    async def read_audit_purge(self, developer_id: str) -> AuditPurge | None:
        """Return what was erased of a developer's log; None when it is whole."""

    async def purge_audit_entries(self, before: int, now: int, limit: int) -> int:
        """Erase at most `limit` entries made before that time (ms), and note whose; return how many.

        Of a log of which any is erased, all entries made before that time are no longer listed.
        """

    async def list_audit_entries(self, developer_id: str, before: PageCursor | None, limit: int) -> list[AuditEntry]:
        """Return entries of a developer's audit log, newest first, strictly after `before`."""
