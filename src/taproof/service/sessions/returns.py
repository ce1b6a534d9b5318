"""The end of a sign-in that requires a return code: the browser in which it began has the code, after Confirm.

Until then, the session is pending for every reader. Its confirmation is counted and sent only now.
"""

import dataclasses

from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.sessions import PolledSession, SessionKey
from taproof.service.sessions.events import SessionEvents
from taproof.service.signals import Signals
from taproof.storage.protocol import Storage


class Returns:
    """Confirms sessions whose users have returned to the browser, and sends the `signals` of each confirmation."""

    def __init__(
        self, storage: Storage, encryptor: Encryptor, clock: Clock, entropy: Entropy, *, signals: Signals
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._events = SessionEvents(encryptor, entropy)
        self._clock = clock
        self._signals = signals

    async def confirm_return(self, key: SessionKey, session: PolledSession, session_token: str) -> bool:
        """Confirm a session that waits for the code with the hash `session.return_hash`, and return whether it was.

        The caller has checked the code and the code verifier.
        """
        if session.return_hash is None:
            return False
        user = await self._storage.sessions.read_returning_user(key, session.return_hash)
        if user is None:
            return False
        identity = user.identity
        if user.encrypted_phone is not None:
            phone = self._encryptor.decrypt(user.encrypted_phone, associated_data_of("phone", user.session_id))
            identity = dataclasses.replace(identity, messenger_phone=phone)
        now = self._clock()
        event = self._events.confirmed(session.project_id, session_token, identity, now)
        if not await self._storage.sessions.return_session(key, session.return_hash, user, now, event):
            return False
        self._signals.decided(key)
        self._signals.event_recorded()
        self._signals.count_decision("confirmed")
        return True
