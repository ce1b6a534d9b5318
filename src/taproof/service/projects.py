"""Projects and their secrets (service-spec.md, Project; contract.md, Developer endpoints)."""

import dataclasses
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from taproof.contract.account import Plan
from taproof.contract.project import OVERLAP_LIMIT
from taproof.core.accounts import Actor, Developer
from taproof.core.address_rules import AddressRules
from taproof.core.clock import HOUR, Clock, iso8601
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    InvalidRequest,
    InvalidSecretKey,
    NoRotation,
    PlanLimitReached,
    ProjectNotFound,
    RotationUnderWay,
    TooManyProjects,
)
from taproof.core.identifiers import is_key, key_hash, key_preview, new_id, new_key, new_webhook_secret
from taproof.core.project_bots import BotChange, CheckedBot, ProjectBot, RemovedBot
from taproof.core.projects import PROJECT_DEFAULTS, NamedProject, Project, ProjectChanges
from taproof.core.proof import signing_secrets
from taproof.core.return_url import NO_RETURN_PAGE, lacks_return_page
from taproof.core.roles import ProjectAction
from taproof.service.audit import audit_entry
from taproof.service.project_access import as_seen, read_project_for
from taproof.service.project_settings import SettingsRules, audit_details
from taproof.storage.protocol import Storage

PROJECT_LIMIT: Final = 1000
"""The maximum number of projects per developer."""
_READ_AT_ONCE: Final = 25
"""The number of projects read and written as JSON in one step, which blocks the event loop for 1 to 2 ms."""


@dataclass(frozen=True, slots=True)
class ProjectSecrets:
    """Both secrets of a project in plaintext. The secret key cannot be retrieved later."""

    secret_key: str
    webhook_secret: str


@dataclass(frozen=True, slots=True)
class Rotation:
    """The current webhook secret and, during a rotation, the one that replaces it at `promoted_at` (ms)."""

    webhook_secret: str
    next_webhook_secret: str | None
    promoted_at: int | None


class Projects:
    """Creates, changes and deletes projects, and authenticates their secret keys.

    A method that takes a project id raises InvalidRequest if the id is malformed, ProjectNotFound if the developer has
    no such project, and InsufficientRole if their role does not permit the call. A call that raises changes nothing.

    Args:
        encryptor: encrypts the webhook secrets.
        address_rules: the addresses allowed in webhook URLs.
        webhook_ports: the ports allowed in webhook URLs.
        allow_loopback_http: accept http:// webhook URLs to a loopback address, as the sandbox does.
        limits: the maximum number of projects per developer, by plan; `PROJECT_LIMIT` for a plan without an entry.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        clock: Clock,
        entropy: Entropy,
        *,
        address_rules: AddressRules,
        webhook_ports: frozenset[int],
        allow_loopback_http: bool,
        limits: Mapping[Plan, int] | None = None,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._entropy = entropy
        self._rules = SettingsRules(address_rules, webhook_ports, allow_loopback_http)
        self._limits = limits or {}

    def check_new(self, actor: Actor, wanted: ProjectChanges) -> None:
        """Validate the fields of a new project without creating it: see `create_project`."""
        actor.grant.require("write")
        self._rules.checked(actor.developer.plan, wanted)

    async def check_changes(self, actor: Actor, project_id: str, changes: ProjectChanges) -> ProjectChanges:
        """Validate changes of a project, and return them as they will be stored: see `update_project`."""
        actor.grant.require("write")
        project = await read_project_for(self._storage, actor.developer, project_id, "write")
        return self._rules.checked(project.plan, changes)

    async def create_project(
        self, actor: Actor, wanted: ProjectChanges, *, bot: CheckedBot | None = None
    ) -> tuple[Project, ProjectSecrets]:
        """Create a project with new secrets, and with a bot if one is given.

        Raises:
            InvalidRequest: a field is invalid; the error's sentence names it.
            BotTaken: the bot serves another project.
            PlanLimitReached: the developer has as many projects as their plan allows.
            TooManyProjects: the developer has `PROJECT_LIMIT` projects.
        """
        wanted = self._rules.checked(actor.developer.plan, dataclasses.replace(wanted, name=wanted.name or ""))
        if lacks_return_page(PROJECT_DEFAULTS, wanted):
            raise InvalidRequest(NO_RETURN_PAGE)
        settings = {**PROJECT_DEFAULTS.given(), **wanted.given()}
        secrets = self._new_secrets()
        project_id = new_id("proj", self._entropy)
        now = self._clock()
        project = Project(
            id=project_id,
            developer_id=actor.developer.id,
            secret_key_preview=key_preview(secrets.secret_key),
            encrypted_webhook_secret=self._encrypt(secrets.webhook_secret, project_id),
            created_at=now,
            plan=actor.developer.plan,
            role="owner",
            **settings,
        )
        details = {"name": project.name}
        entry = audit_entry(actor, "project.created", now, self._entropy, subject=project_id, details=details)
        change = None if bot is None else self._bot_change(actor, project_id, bot)
        key = key_hash(secrets.secret_key)
        limit = min(PROJECT_LIMIT, self._limits.get(actor.developer.plan, PROJECT_LIMIT))
        if not await self._storage.projects.create_project(project, key, limit=limit, entry=entry, bot=change):
            raise TooManyProjects if limit == PROJECT_LIMIT else _no_room(actor.developer, limit)
        if bot is not None:
            project = dataclasses.replace(project, bot_id=bot.id, bot_username=bot.username)
        return project, secrets

    async def list_projects(self, developer: Developer) -> list[Project]:
        """Return a developer's projects, oldest first."""
        return list(map(as_seen, await self._storage.projects.list_projects(developer.id)))

    async def walk_projects(self, developer: Developer) -> AsyncIterator[Project]:
        """Yield a developer's projects, oldest first, reading a few at a time. Deleted ones are omitted."""
        ids = [each.project_id for each in await self._storage.projects.name_projects(developer.id)]
        for start in range(0, len(ids), _READ_AT_ONCE):
            for project in await self._storage.projects.read_projects(developer.id, ids[start : start + _READ_AT_ONCE]):
                yield as_seen(project)

    async def page_projects(self, developer: Developer, start: int, limit: int) -> tuple[list[Project], int]:
        """Return `limit` projects after the first `start` ones, oldest first, and the number of all projects."""
        ids = [each.project_id for each in await self._storage.projects.name_projects(developer.id)]
        found = await self._storage.projects.read_projects(developer.id, ids[start : start + limit])
        return list(map(as_seen, found)), len(ids)

    async def name_projects(self, developer: Developer) -> list[NamedProject]:
        """Return the id and name of each of a developer's projects, oldest first."""
        return await self._storage.projects.name_projects(developer.id)

    async def count_projects(self, developer_id: str) -> int:
        """Return the number of a developer's projects."""
        return await self._storage.projects.count_projects(developer_id)

    async def read_project(self, developer: Developer, project_id: str, action: ProjectAction = "read") -> Project:
        """Return one project to a developer whose role permits `action`."""
        return await read_project_for(self._storage, developer, project_id, action)

    async def update_project(
        self, actor: Actor, project_id: str, changes: ProjectChanges, *, bot: CheckedBot | RemovedBot | None = None
    ) -> Project:
        """Change the fields that are not None, and set or remove the bot if `bot` is not None.

        Raises:
            InsufficientScope: the acting credential may only read.
            InvalidRequest: a field is invalid; the error's sentence names it.
            BotTaken: the bot serves another project.
        """
        actor.grant.require("write")  # Also for an empty request, because the response contains the whole project.
        before = await read_project_for(self._storage, actor.developer, project_id, "write")
        changes = self._rules.checked(before.plan, changes)
        now = self._clock()
        entry = None
        if details := audit_details(before, changes):  # An empty request changes nothing.
            entry = audit_entry(actor, "project.updated", now, self._entropy, subject=project_id, details=details)
        change = None if bot is None else self._bot_change(actor, project_id, bot)
        member = (actor.developer.id, project_id)
        project = await self._storage.projects.update_project(*member, changes, now, entry=entry, bot=change)
        if project is None:
            raise ProjectNotFound
        return project

    async def delete_project(self, actor: Actor, project_id: str) -> None:
        """Delete a project with its sessions and analytics. This cannot be undone."""
        project = await read_project_for(self._storage, actor.developer, project_id, "delete")
        now = self._clock()
        details = {"name": project.name}
        entry = audit_entry(actor, "project.deleted", now, self._entropy, subject=project_id, details=details)
        if not await self._storage.projects.delete_project(actor.developer.id, project_id, entry=entry):
            raise ProjectNotFound

    async def regenerate_secrets(self, actor: Actor, project_id: str) -> ProjectSecrets:
        """Replace the secret key and the webhook secret. The old ones stop working immediately."""
        await read_project_for(self._storage, actor.developer, project_id, "secrets")
        secrets = self._new_secrets()
        entry = audit_entry(actor, "project.secrets_regenerated", self._clock(), self._entropy, subject=project_id)
        key, preview = key_hash(secrets.secret_key), key_preview(secrets.secret_key)
        encrypted, member = self._encrypt(secrets.webhook_secret, project_id), (actor.developer.id, project_id)
        if not await self._storage.projects.regenerate_secrets(*member, key, preview, encrypted, entry=entry):
            raise ProjectNotFound
        return secrets

    async def read_webhook_secret(self, actor: Actor, project_id: str) -> Rotation:
        """Return the webhook secret in plaintext and, during a rotation, the next one.

        It can be used to sign proofs, so this needs the scope `write`. The audit log does not record this call, because
        an application may read the secret at each sign-in.
        """
        actor.grant.require("write")
        project = await read_project_for(self._storage, actor.developer, project_id, "secrets")
        associated_data = associated_data_of("webhook_secret", project.id)
        current, following = signing_secrets(project.webhook_secrets, self._clock())
        secret = self._encryptor.decrypt(current, associated_data)
        if following is None:
            return Rotation(secret, None, None)
        return Rotation(secret, self._encryptor.decrypt(following, associated_data), project.next_webhook_secret_at)

    async def reveal_webhook_secret(self, actor: Actor, project_id: str) -> Rotation:
        """Return the same as `read_webhook_secret`, to show it to a person. The audit log records this call."""
        rotation = await self.read_webhook_secret(actor, project_id)
        entry = audit_entry(actor, "webhook_secret.revealed", self._clock(), self._entropy, subject=project_id)
        await self._storage.audit.add_audit_entry(entry)
        return rotation

    async def rotate_webhook_secret(self, actor: Actor, project_id: str, overlap_hours: int) -> Rotation:
        """Create another webhook secret, which replaces the current one after `overlap_hours`.

        Until then, both sign webhooks, and the current one signs proofs. The secret key does not change.

        Raises:
            InvalidRequest: `overlap_hours` is out of range.
            RotationUnderWay: the next secret has not replaced the current one yet.
        """
        if not 1 <= overlap_hours <= OVERLAP_LIMIT:
            raise InvalidRequest(f"overlap_hours must be a whole number from 1 to {OVERLAP_LIMIT}.")
        # Refuse to rotate a secret that cannot be decrypted, because the response must contain it.
        await self.read_webhook_secret(actor, project_id)
        now = self._clock()
        encrypted = self._encrypt(new_webhook_secret(self._entropy), project_id)
        until = now + overlap_hours * HOUR
        details = {"overlap_hours": overlap_hours}
        entry = audit_entry(actor, "webhook_secret.rotated", now, self._entropy, subject=project_id, details=details)
        member = (actor.developer.id, project_id)
        rotated = await self._storage.projects.rotate_webhook_secret(*member, encrypted, now, until, entry=entry)
        rotation = await self.read_webhook_secret(actor, project_id)
        if not rotated:
            raise _under_way(rotation)
        return rotation

    async def promote_webhook_secret(self, actor: Actor, project_id: str) -> str:
        """Replace the webhook secret with the next one now, and return it. Raise NoRotation if there is none."""
        await read_project_for(self._storage, actor.developer, project_id, "secrets")
        now = self._clock()
        entry = audit_entry(actor, "webhook_secret.promoted", now, self._entropy, subject=project_id)
        promoted = await self._storage.projects.promote_webhook_secret(actor.developer.id, project_id, now, entry=entry)
        secret = (await self.read_webhook_secret(actor, project_id)).webhook_secret
        if not promoted:
            raise NoRotation
        return secret

    async def authenticate(self, bearer: str | None) -> Project:
        """Return the project with this secret key, without its counts.

        Raises:
            InvalidSecretKey: the key is missing, malformed, unknown or replaced.
        """
        if bearer is None or not is_key(bearer, "sk"):
            raise InvalidSecretKey
        project = await self._storage.projects.read_project_by_secret_key(key_hash(bearer))
        if project is None:
            raise InvalidSecretKey
        return project

    def _bot_change(self, actor: Actor, project_id: str, bot: CheckedBot | RemovedBot) -> BotChange:
        entry = partial(audit_entry, actor, now=self._clock(), entropy=self._entropy, subject=project_id)
        if isinstance(bot, RemovedBot):
            return BotChange(None, entry(action="bot.removed", details={"bot_username": bot.username}))
        encrypted = self._encryptor.encrypt(bot.token, associated_data_of("bot_token", project_id), self._entropy)
        details = {"bot_id": bot.id, "bot_username": bot.username}
        given = ProjectBot(project_id, bot.id, bot.username, encrypted)
        return BotChange(given, entry(action="bot.set", details=details), bot.loss)

    def _new_secrets(self) -> ProjectSecrets:
        return ProjectSecrets(new_key("sk", self._entropy), new_webhook_secret(self._entropy))

    def _encrypt(self, webhook_secret: str, project_id: str) -> bytes:
        return self._encryptor.encrypt(webhook_secret, associated_data_of("webhook_secret", project_id), self._entropy)


def _no_room(developer: Developer, limit: int) -> PlanLimitReached:
    return PlanLimitReached(
        f"The {developer.plan} plan allows {limit} project{'s' if limit != 1 else ''}, and this account has reached "
        "that limit. Delete an unused project, or ask the operator of this service for another plan."
    )


def _under_way(rotation: Rotation) -> RotationUnderWay:
    if rotation.promoted_at is None:  # It ended just now.
        return RotationUnderWay()
    return RotationUnderWay(
        f"A rotation of this project's webhook secret is under way until {iso8601(rotation.promoted_at)}. Promote the"
        " next secret with POST /api/v1/dev/projects/:id/webhook-secret/promote, or wait until then."
    )
