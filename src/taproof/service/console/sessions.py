"""Console sessions, one for each signed-in browser: open, authenticate, list and end them."""

import contextlib
import re
from dataclasses import dataclass
from typing import Final

from taproof.contract.audit import AuditAction
from taproof.core.accounts import AccessToken, Actor, ConsoleSession, Developer
from taproof.core.clock import DAY, HOUR, MINUTE, Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import AccessDenied, ConsoleSessionNotFound, InvalidAccessToken, StoreUnavailable
from taproof.core.identifiers import is_key, key_hash, new_id, new_key
from taproof.core.names import stored_text
from taproof.core.rights import FULL
from taproof.core.sessions import DeveloperSignIn
from taproof.service.audit import audit_entry
from taproof.storage.protocol import Storage

IDLE_LIFETIME: Final = 12 * HOUR
"""The time (ms) without requests after which a session expires."""
LIFETIME: Final = 30 * DAY
"""The maximum lifetime (ms) of a session, however often it is used."""
USER_AGENT_LIMIT: Final = 200
"""The maximum number of stored characters of a browser's User-Agent."""
_TOUCH_EVERY: Final = MINUTE
"""The precision (ms) of a session's last-seen time: at most one write per minute, however many pages are read."""
_SESSION_ID: Final = re.compile(r"cses_[A-Za-z0-9]{1,40}")


@dataclass(frozen=True, slots=True)
class AuthenticatedSession:
    """A valid session and its developer."""

    session: ConsoleSession
    developer: Developer


class ConsoleSessions:
    """Opens, authenticates, lists and ends the console's sessions."""

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    async def create_console_session(
        self, developer: Developer, *, opened_with: AccessToken | DeveloperSignIn, address: str, user_agent: str
    ) -> str:
        """Open a session and return its cookie, `con_…`, which cannot be retrieved later.

        With an access token in `opened_with`, the session has the token's scopes and ends with it.

        Raises:
            AccessDenied: the sign-in was reported, or the developer now has another messenger account.
            InvalidAccessToken: the access token has ended.
        """
        sign_in, token = (None, opened_with) if isinstance(opened_with, AccessToken) else (opened_with, None)
        grant = FULL if token is None else token.grant
        now = self._clock()
        cookie = new_key("con", self._entropy)
        session = ConsoleSession(
            id=new_id("cses", self._entropy),
            developer_id=developer.id,
            created_at=now,
            last_seen_at=now,
            access_token_id=grant.access_token_id,
            address=address,
            user_agent=stored_text(user_agent)[:USER_AGENT_LIMIT],
            messenger_id=developer.messenger_id if token is None else None,
            scopes=grant.scopes,
            expires_at=grant.expires_at,
            sign_in=grant.sign_in if sign_in is None else sign_in.id,
        )
        actor = Actor(developer, "console", session.id, address)
        details = {"access_token_id": grant.access_token_id, "user_agent": session.user_agent}
        entry = audit_entry(actor, "console.signed_in", now, self._entropy, subject=session.id, details=details)
        if not await self._storage.credentials.create_console_session(
            session, key_hash(cookie), sign_in=sign_in, entry=entry
        ):
            raise AccessDenied if token is None else InvalidAccessToken
        return cookie

    async def authenticate(self, cookie: str | None, *, by_itself: bool = False) -> AuthenticatedSession | None:
        """Return the valid session with this cookie; None if there is none.

        A request that a page makes `by_itself`, without the user, does not extend the session.
        """
        if cookie is None or not is_key(cookie, "con"):
            return None
        now = self._clock()
        found = await self._storage.credentials.read_console_session(key_hash(cookie), now, now - IDLE_LIFETIME)
        if found is None:
            return None
        session, developer = found
        if _is_over(session, now):
            return None
        if not by_itself and now - session.last_seen_at >= _TOUCH_EVERY:
            # Pages must be readable even while the store cannot be written.
            with contextlib.suppress(StoreUnavailable):
                await self._storage.credentials.touch_console_session(session.id, now)
        return AuthenticatedSession(session, developer)

    async def list_console_sessions(self, developer: Developer) -> list[ConsoleSession]:
        """Return a developer's valid sessions, newest first."""
        now = self._clock()
        found = await self._storage.credentials.list_console_sessions(developer.id, now, now - IDLE_LIFETIME)
        return [session for session in found if not _is_over(session, now)]

    async def delete_console_session(self, actor: Actor, session_id: str, *, signed_out: bool = False) -> None:
        """End a session immediately, or raise ConsoleSessionNotFound if this developer has no such session.

        `signed_out`: its own browser signed out; otherwise another session revoked it.
        """
        if _SESSION_ID.fullmatch(session_id) is None:
            raise ConsoleSessionNotFound
        action: AuditAction = "console.signed_out" if signed_out else "console.session_revoked"
        entry = audit_entry(actor, action, self._clock(), self._entropy, subject=session_id)
        if not await self._storage.credentials.delete_console_session(actor.developer.id, session_id, entry=entry):
            raise ConsoleSessionNotFound

    async def delete_console_sessions(self, actor: Actor) -> int:
        """End all sessions of the acting developer, including the acting one; return their number."""
        developer_id = actor.developer.id
        entry = audit_entry(actor, "console.signed_out_everywhere", self._clock(), self._entropy, subject=developer_id)
        return await self._storage.credentials.delete_console_sessions(developer_id, entry=entry)


def _is_over(session: ConsoleSession, now: int) -> bool:
    """Return whether a session has reached its maximum lifetime.

    Its last-seen time is no longer updated, and it is erased like an idle session.
    """
    return now - session.created_at >= LIFETIME
