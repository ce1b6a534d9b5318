"""The interface of `store.mini_apps`."""

from typing import Protocol

from taproof.core.deliveries import Event
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import ConsumedSession, NewSession


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
