"""The interface of `store.credentials`."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, Developer, EndedToken
from taproof.core.model import DeveloperSignIn
from taproof.storage.protocol.projects import NO_LIMIT

CONSOLE_SESSIONS_KEPT: Final = 50
"""The maximum number of console sessions per developer. One page lists them all, and signing in again is easy."""
EXPIRED_TOKENS_KEPT: Final = 100
"""The number of expired access tokens kept per developer, so that the list of tokens can show them."""
DescribeTokens = Callable[[Sequence[EndedToken]], Sequence[AuditEntry]]
"""Returns the audit entries for revoked tokens. If it raises, the revocation is rolled back. A driver may call it more
than once, so it must have no side effects."""


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
        that were opened with a revoked token end, and so do the open invitations to projects that were created with it.
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

        These are invitations of both kinds. At most `limit` of each are erased.
        """
