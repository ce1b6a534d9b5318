"""Projects and their secrets (service-spec.md, Project; contract.md, Developer endpoints)."""

from dataclasses import dataclass

from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import InvalidRequest, InvalidSecretKey, ProjectNotFound
from taproof.core.identifiers import is_key, is_project_id, key_hash, key_preview, new_id, new_key, new_webhook_secret
from taproof.core.model import Developer, Project, ProjectChanges
from taproof.core.names import name_problem
from taproof.core.sealing import Sealer
from taproof.core.webhook_url import webhook_url_problem
from taproof.service.signin import webhook_secret_binding
from taproof.storage.protocol import Storage


@dataclass(frozen=True, slots=True)
class ProjectSecrets:
    """Both secrets of a project in plaintext. The secret key is never to be had again."""

    secret_key: str
    webhook_secret: str


class Projects:
    """Creates, changes and deletes projects, and recognises their secret keys.

    Args:
        storage: the store.
        sealer: seals the webhook secrets.
        clock: returns the time in ms.
        entropy: returns random bytes.
        allow_loopback_http: accept http:// webhook URLs to a loopback address, as the sandbox does.
    """

    def __init__(
        self, storage: Storage, sealer: Sealer, clock: Clock, entropy: Entropy, *, allow_loopback_http: bool
    ) -> None:
        self._storage = storage
        self._sealer = sealer
        self._clock = clock
        self._entropy = entropy
        self._allow_loopback_http = allow_loopback_http

    async def create_project(
        self, developer: Developer, name: str, *, webhook_url: str, public_access: bool, collect_phone: bool
    ) -> tuple[Project, ProjectSecrets]:
        """Create a project with new secrets.

        Raises:
            InvalidRequest: a field cannot be accepted; the sentence names it.
        """
        name = name.strip()
        self._check(developer, name=name, webhook_url=webhook_url, collect_phone=collect_phone)
        secrets = self._new_secrets()
        project_id = new_id("proj", self._entropy)
        project = Project(
            id=project_id,
            developer_id=developer.id,
            name=name,
            secret_key_preview=key_preview(secrets.secret_key),
            sealed_webhook_secret=self._seal(secrets, project_id),
            webhook_url=webhook_url,
            is_active=True,
            public_access=public_access,
            collect_phone=collect_phone,
            created_at=self._clock(),
        )
        await self._storage.create_project(project, key_hash(secrets.secret_key))
        return project, secrets

    async def list_projects(self, developer: Developer) -> list[Project]:
        """Return a developer's projects, oldest first."""
        return await self._storage.list_projects(developer.id)

    async def read_project(self, developer: Developer, project_id: str) -> Project:
        """Return one project.

        Raises:
            InvalidRequest: not the form of a project id.
            ProjectNotFound: none of this developer's.
        """
        _check_project_id(project_id)
        project = await self._storage.read_project(project_id)
        if project is None or project.developer_id != developer.id:
            raise ProjectNotFound
        return project

    async def update_project(self, developer: Developer, project_id: str, changes: ProjectChanges) -> Project:
        """Change the fields that are not None.

        Raises:
            InvalidRequest, ProjectNotFound: and nothing is changed.
        """
        _check_project_id(project_id)
        name = None if changes.name is None else changes.name.strip()
        self._check(developer, name=name, webhook_url=changes.webhook_url, collect_phone=changes.collect_phone)
        changes = ProjectChanges(
            name, changes.webhook_url, changes.is_active, changes.public_access, changes.collect_phone
        )
        project = await self._storage.update_project(developer.id, project_id, changes, self._clock())
        if project is None:
            raise ProjectNotFound
        return project

    async def delete_project(self, developer: Developer, project_id: str) -> None:
        """Delete a project with its sessions and analytics. This cannot be undone.

        Raises:
            InvalidRequest, ProjectNotFound: and nothing is deleted.
        """
        _check_project_id(project_id)
        if not await self._storage.delete_project(developer.id, project_id):
            raise ProjectNotFound

    async def regenerate_secrets(self, developer: Developer, project_id: str) -> ProjectSecrets:
        """Replace the secret key and the webhook secret. The old ones are dead at once.

        Raises:
            InvalidRequest, ProjectNotFound: and nothing is changed.
        """
        _check_project_id(project_id)
        secrets = self._new_secrets()
        if not await self._storage.replace_project_secrets(
            developer.id,
            project_id,
            key_hash(secrets.secret_key),
            key_preview(secrets.secret_key),
            self._seal(secrets, project_id),
        ):
            raise ProjectNotFound
        return secrets

    async def read_webhook_secret(self, developer: Developer, project_id: str) -> str:
        """Return the current webhook secret in plaintext.

        Raises:
            InvalidRequest, ProjectNotFound: as for `read_project`.
        """
        project = await self.read_project(developer, project_id)
        return self._sealer.unseal(project.sealed_webhook_secret, webhook_secret_binding(project.id))

    async def authenticate(self, bearer: str | None) -> Project:
        """Return the project whose current secret key this is; its counts are not read.

        Raises:
            InvalidSecretKey: missing, malformed, unknown or replaced.
        """
        if bearer is None or not is_key(bearer, "sk"):
            raise InvalidSecretKey
        project = await self._storage.read_project_by_secret_key(key_hash(bearer))
        if project is None:
            raise InvalidSecretKey
        return project

    def _check(
        self, developer: Developer, *, name: str | None, webhook_url: str | None, collect_phone: bool | None
    ) -> None:
        if name is not None and (problem := name_problem(name)) is not None:
            raise InvalidRequest(f"name {problem}.")
        if webhook_url is not None:
            problem = webhook_url_problem(webhook_url, allow_loopback_http=self._allow_loopback_http)
            if problem is not None:
                raise InvalidRequest(f"webhook_url {problem}.")
        if collect_phone and developer.plan == "free":
            raise InvalidRequest("collect_phone is available on the pro and business plans.")

    def _new_secrets(self) -> ProjectSecrets:
        return ProjectSecrets(new_key("sk", self._entropy), new_webhook_secret(self._entropy))

    def _seal(self, secrets: ProjectSecrets, project_id: str) -> bytes:
        return self._sealer.seal(secrets.webhook_secret, webhook_secret_binding(project_id), self._entropy)


def _check_project_id(project_id: str) -> None:
    if not is_project_id(project_id):
        raise InvalidRequest("The project id in the path must be proj_ followed by letters and digits.")
