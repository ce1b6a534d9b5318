"""Signing in to the console with the messenger: the service uses itself, through a project of its own."""

from typing import Final

from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.identifiers import key_hash, key_preview, new_id, new_key, new_webhook_secret
from taproof.core.model import Identity, Project
from taproof.core.sealing import Sealer
from taproof.service.sealed_sign_in import SealedSignIn, SeenSignIn, StartedSignIn
from taproof.service.signin import SignIn, webhook_secret_binding
from taproof.service.waiting import UntilGone, WaitEnd
from taproof.storage.protocol import Storage

PROJECT_MARK: Final = "console_project"
PROJECT_NAME: Final = "Taproof console"
"""What the messenger asks the developer to sign in to."""
DEVELOPER_ID: Final = "dev_console"
"""Whose project it is: too short for the id of any developer."""
_BINDING: Final = "console_sign_in"


class ConsoleSignIn:
    """Starts sign-ins of developers and reads who confirmed.

    Args:
        storage: the store.
        sealer: seals what the client keeps, and the project's webhook secret.
        signin: the use cases of every sign-in.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(self, storage: Storage, sealer: Sealer, signin: SignIn, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._sealer = sealer
        self._sealed = SealedSignIn(storage, sealer, signin, clock, entropy)
        self._clock = clock
        self._entropy = entropy
        self._project_id: str | None = None

    async def start(self) -> StartedSignIn:
        """Start a sign-in.

        Raises:
            MessengerUnavailable: where links lead is not known yet.
        """
        return await self._sealed.start(await self._own_project(), _BINDING)

    async def read(self, sealed: str) -> SeenSignIn:
        """Return what became of a sign-in, and change nothing.

        Raises:
            SignInNotFound: `sealed` is not one of this service's, or the sign-in is long over.
        """
        return await self._sealed.read(sealed, _BINDING)

    async def wait(self, sealed: str, seconds: float, until_gone: UntilGone) -> WaitEnd:
        """Wait, for at most `seconds`, as long as a sign-in is pending; change nothing.

        Raises:
            SignInNotFound: as for `read`.
        """
        return await self._sealed.wait(sealed, _BINDING, seconds, until_gone)

    async def finish(self, sealed: str) -> Identity | None:
        """Return who confirmed, to exactly one caller; None as long as nobody has, and to every other caller.

        Raises:
            SignInNotFound: as for `read`.
        """
        return (await self._sealed.finish(sealed, _BINDING)).identity

    async def _own_project(self) -> str:
        """Return the id of the console's project, which is made on first use."""
        if self._project_id is None:
            kept = await self._storage.read_mark(PROJECT_MARK) or await self._make_project()
            self._project_id = kept.decode()
        return self._project_id

    async def _make_project(self) -> bytes:
        """Make the project, unless another caller or node was quicker; return the id of the one that is kept.

        Its secret key is given to nobody and its public access is off, so only this class can start sessions in it.
        """
        secret_key = new_key("sk", self._entropy)
        project_id = new_id("proj", self._entropy)
        binding = webhook_secret_binding(project_id)
        project = Project(
            id=project_id,
            developer_id=DEVELOPER_ID,
            name=PROJECT_NAME,
            secret_key_preview=key_preview(secret_key),
            sealed_webhook_secret=self._sealer.seal(new_webhook_secret(self._entropy), binding, self._entropy),
            webhook_url="",
            is_active=True,
            public_access=False,
            collect_phone=False,
            created_at=self._clock(),
        )
        # It is there before anybody can learn its id from the mark.
        await self._storage.create_project(project, key_hash(secret_key))
        kept = await self._storage.claim_mark(PROJECT_MARK, project_id.encode())
        if kept != project_id.encode():
            await self._storage.delete_project(DEVELOPER_ID, project_id)
        return kept
