"""Sign-ins from Telegram Mini Apps: the data that Telegram signed takes the place of Confirm.

The data creates a session that is confirmed and used at once, so it is counted, listed and reported like any other. The
session's token derives from the signed data, and the store accepts it once, on any number of nodes.
"""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import InitDataUsed, PhoneNeeded, ProjectBotNeeded, ProjectPaused
from taproof.core.identifiers import new_session_id, session_key
from taproof.core.mini_apps import read_init_data, require_fresh
from taproof.core.request_context import Requester
from taproof.core.sessions import NewSession
from taproof.service.sessions.create_and_verify import NOBODY_KNOWN, SignInSessions
from taproof.service.sessions.decide import storable_identity
from taproof.service.sessions.events import SessionEvents
from taproof.service.sessions.results import VerifyResult
from taproof.service.signals import Signals
from taproof.storage.protocol import Storage


class MiniAppSignIns:
    """Signs in the users of Mini Apps.

    Args:
        encryptor: encrypts webhook bodies.
        sessions: admits new sessions and signs proofs.
        public_key: the key with which the messenger signs the data of Mini Apps.
        signals: tell the webhook sender of each sign-in.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        sessions: SignInSessions,
        clock: Clock,
        entropy: Entropy,
        *,
        signals: Signals,
        public_key: bytes,
    ) -> None:
        self._storage = storage
        self._events = SessionEvents(encryptor, entropy)
        self._sessions = sessions
        self._public_key = Ed25519PublicKey.from_public_bytes(public_key)
        self._clock = clock
        self._entropy = entropy
        self._signals = signals

    async def sign_in(
        self, project_id: str, init_data: str, *, public: bool, requester: Requester = NOBODY_KNOWN
    ) -> VerifyResult:
        """Return the result of a confirmed session for the user who opened the Mini App of the project's bot.

        `init_data` is `Telegram.WebApp.initData`, unchanged. Without a secret key (`public`), the requester's origin
        must be allowed. A call that raises stores nothing, and does not use up the data.

        Raises:
            ProjectPaused, ProjectBotNeeded, PhoneNeeded, InitDataInvalid, InitDataExpired, InitDataUsed, SignInBlocked,
                and the errors of `SignInSessions.admit`.
        """
        project = await self._sessions.admit(project_id, public=public, requester=requester)
        if not project.is_active:
            raise ProjectPaused
        # All projects without a bot of their own share the service's bot. Any of them could sign in to the others with
        # the data of its users.
        if project.bot_id is None:
            raise ProjectBotNeeded
        if project.requires_phone:
            raise PhoneNeeded
        data = read_init_data(init_data, project.bot_id, self._public_key)
        now = self._clock()
        require_fresh(data, now)
        key = session_key(data.session_token)
        assert key is not None  # noqa: S101 — `read_init_data` creates tokens of the right form.
        # Only the store decides, but this read spares it the transaction of most repetitions.
        if await self._storage.sessions.poll_session(key) is not None:
            raise InitDataUsed
        identity = storable_identity(data.identity)
        await self._sessions.check_signing_secret(project_id, now)
        # The day of the token is that of `created_at`, as for every session.
        session = NewSession(
            key=key,
            id=new_session_id(data.auth_date, self._entropy),
            project_id=project_id,
            created_at=data.auth_date,
            expires_at=data.expires_at,
            bot_id=project.bot_id,
        )
        event = self._events.confirmed(project_id, data.session_token, identity, now)
        consumed = await self._storage.mini_apps.create_used_session(session, identity, now, event, public=public)
        self._signals.event_recorded()
        return self._sessions.confirmed(consumed, data.session_token)
