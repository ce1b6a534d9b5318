"""Sign developers in with the messenger. The service is its own application for these sign-ins.

The console, `taproof login` and invitations each have one project, so that the messenger's prompt names exactly what a
tap allows. These sign-ins always have a match code, and their prompt always shows where the request came from. A trial
is a sign-in to one of the developer's own projects, started from the project's page in the console.

Only the client that started a sign-in can read it, with an encrypted text that the client keeps. The session token
alone is not enough: the QR code contains it, and a person who photographs that code must not learn who confirmed.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final, NamedTuple

from taproof.contract.session import SignInStatus
from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed, SignInNotFound
from taproof.core.identifiers import key_hash, key_preview, new_id, new_key, new_webhook_secret, session_key
from taproof.core.projects import SERVICE_DEVELOPER, Project
from taproof.core.request_context import Requester
from taproof.core.session_state import visible_status
from taproof.core.sessions import DeveloperSignIn, PolledSession, SessionKey
from taproof.service.sessions.create_and_verify import NOBODY_KNOWN, SignInSessions
from taproof.service.sessions.results import VerifyResult
from taproof.service.sessions.wait import UntilGone, WaitEnd, Waiting
from taproof.storage.protocol import Storage

_ENCRYPTED_LIMIT: Final = 2_000
"""The maximum length of an encrypted sign-in in characters: it contains a link."""
_START: Final = "?start="


@dataclass(frozen=True, slots=True)
class StartedSignIn:
    """A sign-in that waits for the user's decision, or has got it.

    `deeplink`: for the user, as a link or a QR code. `match_code`: shown next to it; None if there is none.
    `encrypted`: a base64url text with which only the client that started the sign-in can read the result. `expires_at`:
    in ms.
    """

    deeplink: str
    expires_at: int
    encrypted: str
    match_code: str | None = None
    status: SignInStatus = "pending"


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a sign-in to one of the service's own projects, whose id is stored under the name `mark`.

    `project_name` is the name in the messenger's prompt.
    """

    mark: str
    project_name: str

    @property
    def associated_data(self) -> str:
        """The associated data of a sign-in for this purpose. The sign-in does not decrypt for another one."""
        return f"console_sign_in:{self.mark}"


CONSOLE: Final = Purpose("console_project", "the Taproof console")
TERMINAL: Final = Purpose("terminal_project", "Taproof: create an access token for a terminal")
INVITATION: Final = Purpose("invitation_project", "Taproof: link this account to the console")


class Trial(NamedTuple):
    """A trial sign-in to a developer's own project, started from this console session."""

    project_id: str
    console_session_id: str

    @property
    def associated_data(self) -> str:
        """The associated data of this trial, which binds it to its project and console session."""
        return f"console_try:{self.console_session_id}:{self.project_id}"


class DeveloperSignIns:
    """Starts developers' sign-ins, and reads the results for the client that started them.

    Each method takes the purpose that the sign-in was started for. All but `start` raise SignInNotFound if `encrypted`
    is not a sign-in of this service for that purpose, or if the session was erased.

    Args:
        encryptor: encrypts the text that the client keeps, and the webhook secrets of the service's own projects.
        sessions: creates and reads the sessions.
        waiting: the calls that wait for a decision.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        sessions: SignInSessions,
        clock: Clock,
        entropy: Entropy,
        *,
        waiting: Waiting,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._sessions = sessions
        self._waiting = waiting
        self._clock = clock
        self._entropy = entropy
        self._project_ids: dict[Purpose, str] = {}

    async def start(self, purpose: Purpose | Trial, requester: Requester = NOBODY_KNOWN) -> StartedSignIn:
        """Start a sign-in, whether or not the project's public access is on; its prompt shows the `requester`.

        Raises:
            MessengerUnavailable: the base URL of links is not known yet.
            InvalidRequest, ProjectNotFound, ProjectPaused, BotBroken, PlanLimitReached: only for a trial; nothing is
                stored.
        """
        project_id = purpose.project_id if isinstance(purpose, Trial) else await self._own_project(purpose)
        session = await self._sessions.create_session(project_id, public=False, requester=requester)
        # A space separates the two, since a link contains none.
        kept = " ".join(filter(None, (session.deeplink, session.match_code)))
        encrypted = self._encryptor.encrypt(kept, purpose.associated_data, self._entropy)
        text = base64.urlsafe_b64encode(encrypted).rstrip(b"=").decode()
        return StartedSignIn(session.deeplink, session.expires_at, text, session.match_code)

    async def read(self, encrypted: str, purpose: Purpose | Trial) -> StartedSignIn:
        """Return the state of a sign-in without changing it."""
        opened = await self._open(encrypted, purpose)
        deeplink, _, match_code = opened.kept.partition(" ")
        expires_at = opened.session.expires_at
        status = visible_status(opened.session.status, expires_at, self._clock())
        return StartedSignIn(deeplink, expires_at, encrypted, match_code or None, status)

    async def wait(self, encrypted: str, purpose: Purpose | Trial, seconds: float, until_gone: UntilGone) -> WaitEnd:
        """Wait for at most `seconds` while a sign-in is pending, without changing it."""
        opened = await self._open(encrypted, purpose)
        project_id = opened.session.project_id
        return await self._waiting.wait(project_id, opened.session_token, seconds, until_gone, public=False)

    async def finish(self, encrypted: str, purpose: Purpose | Trial) -> VerifyResult:
        """Return the result of verify. Exactly one caller gets the user who confirmed, and the proof."""
        opened = await self._open(encrypted, purpose)
        return await self._sessions.verify_session(opened.session.project_id, opened.session_token, public=False)

    async def source(self, encrypted: str, purpose: Purpose) -> DeveloperSignIn:
        """Return the sign-in with which a session or token is created. The store refuses a reported one."""
        key = (await self._open(encrypted, purpose)).key
        session = await self._storage.sessions.read_session(key)
        if session is None:
            raise SignInNotFound
        return DeveloperSignIn(key, session.id)

    async def _open(self, encrypted: str, purpose: Purpose | Trial) -> "_Opened":
        try:
            if len(encrypted) > _ENCRYPTED_LIMIT:
                raise SignInNotFound
            raw = base64.b64decode(encrypted + "=" * (-len(encrypted) % 4), altchars=b"-_", validate=True)
            kept = self._encryptor.decrypt(raw, purpose.associated_data)
        except (binascii.Error, ValueError, DecryptionFailed):
            raise SignInNotFound from None
        session_token = kept.partition(" ")[0].rpartition(_START)[2]
        key = session_key(session_token)
        session = None if key is None else await self._storage.sessions.poll_session(key)
        if key is None or session is None:
            raise SignInNotFound
        return _Opened(kept, session_token, key, session)

    async def _own_project(self, purpose: Purpose) -> str:
        """Return the id of a purpose's project. Create the project on first use."""
        if purpose not in self._project_ids:
            kept = await self._storage.metadata.read_mark(purpose.mark) or await self._make_project(purpose)
            self._project_ids[purpose] = kept.decode()
        return self._project_ids[purpose]

    async def _make_project(self, purpose: Purpose) -> bytes:
        """Create the project, unless another caller or node has created it; return the id of the stored project.

        Its secret key is discarded and its public access is off, so only this class can start sessions in it.
        """
        secret_key = new_key("sk", self._entropy)
        project_id = new_id("proj", self._entropy)
        secret, bound = new_webhook_secret(self._entropy), associated_data_of("webhook_secret", project_id)
        project = Project(
            id=project_id,
            developer_id=SERVICE_DEVELOPER,
            name=purpose.project_name,
            secret_key_preview=key_preview(secret_key),
            encrypted_webhook_secret=self._encryptor.encrypt(secret, bound, self._entropy),
            webhook_url="",
            is_active=True,
            public_access=False,
            collect_phone=False,
            created_at=self._clock(),
        )
        # Store the project before other callers can read its id.
        await self._storage.projects.create_project(project, key_hash(secret_key))
        kept = await self._storage.metadata.claim_mark(purpose.mark, project_id.encode())
        if kept != project_id.encode():
            await self._storage.projects.delete_project(SERVICE_DEVELOPER, project_id)
        return kept


class _Opened(NamedTuple):
    """A decrypted sign-in: its encrypted text, its session token, and the key and row of its session."""

    kept: str
    session_token: str
    key: SessionKey
    session: PolledSession
