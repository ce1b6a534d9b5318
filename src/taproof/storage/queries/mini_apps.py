"""Sessions of Mini Apps: the interface of `store.mini_apps`, and the conditions that both databases share."""

from collections.abc import Mapping
from typing import Final, Protocol

from taproof.core.deliveries import Event
from taproof.core.errors import (
    BotBroken,
    InitDataExpired,
    InitDataInvalid,
    InitDataUsed,
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    SignInBlocked,
    TaproofError,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import ConsumedSession, NewSession
from taproof.storage.rows import Values

ADMISSION_REFUSAL: Final = """CASE WHEN p.id IS NULL THEN 'no_project'
  WHEN p.public_access = 0 AND {public} = 1 THEN 'no_public_access'
  WHEN p.bot_broken_at IS NOT NULL THEN 'broken_bot'
  WHEN p.is_active = 0 THEN 'paused'
  WHEN p.bot_id IS DISTINCT FROM {bot} THEN 'other_bot'
  WHEN EXISTS (SELECT 1 FROM blocks b WHERE b.messenger_id = {user} AND b.project_id = p.id) THEN 'blocked' END"""
"""The reason why a project gets no session of a Mini App; null if it gets one, unless the session exists already."""
MINI_APP_REFUSALS: Final[Mapping[str, type[TaproofError]]] = {
    "no_project": ProjectNotFound,
    "no_public_access": PublicAccessDisabled,
    "broken_bot": BotBroken,
    "paused": ProjectPaused,
    "other_bot": InitDataInvalid,
    "blocked": SignInBlocked,
    "expired": InitDataExpired,
    "used": InitDataUsed,
}
INSERT_ONCE: Final = "ON CONFLICT (token_hash, day) DO NOTHING"


class MiniAppStorage(Protocol):
    """Sessions of Mini Apps, which are created, opened, confirmed and used in one step."""

    async def create_used_session(
        self, session: NewSession, identity: MessengerIdentity, now: int, event: Event, *, public: bool
    ) -> ConsumedSession:
        """Store a session that `identity` has opened, confirmed and used at `now`, and count each of these changes.

        `event` is recorded if the project has a webhook.

        Raises:
            InitDataUsed: the store already has a session with this key.
            InitDataExpired: `session` has expired.
            InitDataInvalid, BotBroken: its bot is not the project's, or does not work.
            ProjectNotFound, ProjectPaused, SignInBlocked: the project or the user admits no session.
            PublicAccessDisabled: the project has no public access, which a call with `public` needs.
        """


def opened_values(session: NewSession, identity: MessengerIdentity, now: int) -> Values:
    """Return the values `$1` to `$7` of a statement that inserts such a session. `$7` is the user."""
    return (*session.key, session.id, session.created_at, session.expires_at, now, identity.messenger_id)
