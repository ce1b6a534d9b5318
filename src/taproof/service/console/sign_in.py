"""Developers' own sign-ins with the messenger: the service uses itself, through projects of its own.

There is one project for each purpose, so that the messenger asks for exactly what a tap gives away. `SignIn` asks every
one of these sign-ins for a match code, and its prompt always shows where the request came from.
"""

from dataclasses import dataclass
from typing import Final

from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.identifiers import key_hash, key_preview, new_id, new_key, new_webhook_secret
from taproof.core.model import SERVICE_DEVELOPER, DeveloperSignIn, MessengerIdentity, Project
from taproof.core.request_context import Requester
from taproof.service.associated_data import webhook_secret_associated_data
from taproof.service.console.try_sign_in import SeenSignIn, StartedSignIn, TrySignIn
from taproof.service.sessions.create_and_verify import NOBODY_KNOWN, SignIn
from taproof.service.sessions.wait import UntilGone, WaitEnd
from taproof.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a sign-in is for.

    `mark`: under which the id of its project is kept. `project_name`: what the messenger asks to sign in to.
    """

    mark: str
    project_name: str

    @property
    def associated_data(self) -> str:
        """What a sign-in of this purpose is encrypted for: under another one it does not open."""
        return f"console_sign_in:{self.mark}"


CONSOLE: Final = Purpose("console_project", "Taproof console")
TERMINAL: Final = Purpose("terminal_project", "Taproof in a terminal: gives it an access token")
INVITATION: Final = Purpose("invitation_project", "Taproof: bind this account to a developer")


class ConsoleSignIn:
    """Starts sign-ins of developers and reads who confirmed.

    Each method takes the purpose that the sign-in was started for.

    Args:
        storage: the store.
        encryptor: encrypts what the client keeps, and the project's webhook secret.
        signin: the use cases of every sign-in.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(self, storage: Storage, encryptor: Encryptor, signin: SignIn, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._encrypted = TrySignIn(storage, encryptor, signin, clock, entropy)
        self._clock = clock
        self._entropy = entropy
        self._project_ids: dict[Purpose, str] = {}

    async def start(self, purpose: Purpose, requester: Requester = NOBODY_KNOWN) -> StartedSignIn:
        """Start a sign-in; its prompt shows what is known of the `requester`.

        Raises:
            MessengerUnavailable: where links lead is not known yet.
        """
        return await self._encrypted.start(await self._own_project(purpose), purpose.associated_data, requester)

    async def read(self, encrypted: str, purpose: Purpose) -> SeenSignIn:
        """Return what became of a sign-in, and change nothing.

        Raises:
            SignInNotFound: `encrypted` is none of this service's for `purpose`, or the sign-in is long over.
        """
        return await self._encrypted.read(encrypted, purpose.associated_data)

    async def wait(self, encrypted: str, purpose: Purpose, seconds: float, until_gone: UntilGone) -> WaitEnd:
        """Wait, for at most `seconds`, as long as a sign-in is pending; change nothing.

        Raises:
            SignInNotFound: as for `read`.
        """
        return await self._encrypted.wait(encrypted, purpose.associated_data, seconds, until_gone)

    async def finish(self, encrypted: str, purpose: Purpose) -> MessengerIdentity | None:
        """Return who confirmed, to exactly one caller; None as long as nobody has, and to every other caller.

        Raises:
            SignInNotFound: as for `read`.
        """
        return (await self._encrypted.finish(encrypted, purpose.associated_data)).identity

    async def source(self, encrypted: str, purpose: Purpose) -> DeveloperSignIn:
        """Return the sign-in as what something is created with; see `TrySignIn.source`.

        Raises:
            SignInNotFound: as for `read`.
        """
        return await self._encrypted.source(encrypted, purpose.associated_data)

    async def _own_project(self, purpose: Purpose) -> str:
        """Return the id of the project of a purpose, which is made on first use."""
        if purpose not in self._project_ids:
            kept = await self._storage.metadata.read_mark(purpose.mark) or await self._make_project(purpose)
            self._project_ids[purpose] = kept.decode()
        return self._project_ids[purpose]

    async def _make_project(self, purpose: Purpose) -> bytes:
        """Make the project, unless another caller or node was quicker; return the id of the one that is kept.

        Its secret key is given to nobody and its public access is off, so only this class can start sessions in it.
        """
        secret_key = new_key("sk", self._entropy)
        project_id = new_id("proj", self._entropy)
        associated_data = webhook_secret_associated_data(project_id)
        project = Project(
            id=project_id,
            developer_id=SERVICE_DEVELOPER,
            name=purpose.project_name,
            secret_key_preview=key_preview(secret_key),
            encrypted_webhook_secret=self._encryptor.encrypt(
                new_webhook_secret(self._entropy), associated_data, self._entropy
            ),
            webhook_url="",
            is_active=True,
            public_access=False,
            collect_phone=False,
            created_at=self._clock(),
        )
        # It is there before anybody can learn its id from the mark.
        await self._storage.projects.create_project(project, key_hash(secret_key))
        kept = await self._storage.metadata.claim_mark(purpose.mark, project_id.encode())
        if kept != project_id.encode():
            await self._storage.projects.delete_project(SERVICE_DEVELOPER, project_id)
        return kept
