"""A sign-in that one browser, or `taproof login`, has started and alone may read.

What it keeps of the sign-in is encrypted: the session token stands in the QR code too, and whoever photographs that
must not be able to read who confirmed.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final, NamedTuple

from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed, SignInNotFound
from taproof.core.identifiers import session_key
from taproof.core.model import DeveloperSignIn, PolledSession, SessionKey, Status
from taproof.core.request_context import Requester
from taproof.core.session_state import visible_status
from taproof.service.sessions.create_and_verify import NOBODY_KNOWN, SignIn, Verification
from taproof.service.sessions.wait import UntilGone, WaitEnd
from taproof.storage.protocol import Storage

_ENCRYPTED_LIMIT: Final = 2_000
"""Characters of an encrypted sign-in at most: it holds a link."""
_START: Final = "?start="


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """A sign-in that waits for its decision.

    `deeplink` is for the person, as a link or a QR code, and `match_code` to be shown beside it, None without.
    `encrypted` is for the one who started it alone: base64url text that reads the result. `expires_at` in ms.
    """

    deeplink: str
    expires_at: int
    encrypted: str
    match_code: str | None = None


@dataclass(frozen=True, slots=True)
class SeenSignIn:
    """What became of a sign-in so far."""

    status: Status
    deeplink: str
    expires_at: int
    match_code: str | None = None


class TrySignIn:
    """Starts sign-ins of any project and reads what became of them.

    Each method takes the `associated_data` that the sign-in was started with: what it is for, and whose it is.
    Under another one it does not open.

    Args:
        storage: the store.
        encryptor: encrypts what the client keeps.
        signin: the use cases of every sign-in.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(self, storage: Storage, encryptor: Encryptor, signin: SignIn, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._signin = signin
        self._clock = clock
        self._entropy = entropy

    async def start(self, project_id: str, associated_data: str, requester: Requester = NOBODY_KNOWN) -> StartedSignIn:
        """Start a sign-in of a project, whether or not its public access is on.

        The prompt shows what is known of the `requester`.

        Raises:
            InvalidRequest, ProjectNotFound, ProjectPaused, BotBroken, PlanLimitReached, MessengerUnavailable: and
                nothing is stored.
        """
        session = await self._signin.create_session(project_id, public=False, requester=requester)
        # With a space between them: there is none in a link.
        kept = " ".join(filter(None, (session.deeplink, session.match_code)))
        encrypted = (
            base64.urlsafe_b64encode(self._encryptor.encrypt(kept, associated_data, self._entropy))
            .rstrip(b"=")
            .decode()
        )
        return StartedSignIn(session.deeplink, session.expires_at, encrypted, session.match_code)

    async def read(self, encrypted: str, associated_data: str) -> SeenSignIn:
        """Return what became of a sign-in, and change nothing.

        Raises:
            SignInNotFound: `encrypted` is none of this service's for `associated_data`, or the sign-in is long over.
        """
        opened = await self._open(encrypted, associated_data)
        deeplink, _, match_code = opened.kept.partition(" ")
        expires_at = opened.session.expires_at
        status = visible_status(opened.session.status, expires_at, self._clock())
        return SeenSignIn(status, deeplink, expires_at, match_code or None)

    async def wait(self, encrypted: str, associated_data: str, seconds: float, until_gone: UntilGone) -> WaitEnd:
        """Wait, for at most `seconds`, as long as a sign-in is pending; change nothing.

        Raises:
            SignInNotFound: as for `read`.
        """
        opened = await self._open(encrypted, associated_data)
        project_id = opened.session.project_id
        return await self._signin.waiting.wait(project_id, opened.session_token, seconds, until_gone, public=False)

    async def finish(self, encrypted: str, associated_data: str) -> Verification:
        """Return the answer that a client gets: to exactly one caller with who confirmed, and the proof.

        Raises:
            SignInNotFound: as for `read`.
        """
        opened = await self._open(encrypted, associated_data)
        return await self._signin.verify_session(opened.session.project_id, opened.session_token, public=False)

    async def source(self, encrypted: str, associated_data: str) -> DeveloperSignIn:
        """Return the sign-in as what something is created with. The store creates nothing with a reported one.

        Raises:
            SignInNotFound: as for `read`.
        """
        key = (await self._open(encrypted, associated_data)).key
        session = await self._storage.sessions.read_session(key)
        if session is None:
            raise SignInNotFound
        return DeveloperSignIn(key, session.id)

    async def _open(self, encrypted: str, associated_data: str) -> "_Opened":
        try:
            if len(encrypted) > _ENCRYPTED_LIMIT:
                raise SignInNotFound
            raw = base64.b64decode(encrypted + "=" * (-len(encrypted) % 4), altchars=b"-_", validate=True)
            kept = self._encryptor.decrypt(raw, associated_data)
        except (binascii.Error, ValueError, DecryptionFailed):
            raise SignInNotFound from None
        session_token = kept.partition(" ")[0].rpartition(_START)[2]
        key = session_key(session_token)
        session = None if key is None else await self._storage.sessions.poll_session(key)
        if key is None or session is None:
            raise SignInNotFound
        return _Opened(kept, session_token, key, session)


class _Opened(NamedTuple):
    """An opened sign-in: its encrypted text, its session token, and the key and row of its session."""

    kept: str
    session_token: str
    key: SessionKey
    session: PolledSession
