"""The interface of `store.mini_apps`."""

from typing import Protocol

from taproof.core.deliveries import Event
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import ConsumedSession, NewSession


class MiniAppStorage(Protocol):
    """Sessions of Mini Apps, which are created, opened, confirmed and used in one step."""

    async def create_used_session(
        self, session: NewSession, identity: MessengerIdentity, now: int, event: Event, *, public: bool
    ) -> ConsumedSession | None:
        """Store a session that `identity` has opened, confirmed and used at `now`, and count each of these changes.

        `event` is recorded if the project has a webhook. Return None and change nothing if the store already has a
        session with this key or `session` has expired. Also return None if its bot is not the project's working bot,
        the user has blocked the project, or the project does not exist, is paused or, with `public`, has no public
        access.
        """
