"""What the service asks of a store about projects. See `protocol.py`."""

from collections.abc import Sequence
from typing import Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.model import BotChange, EncryptedWebhookSecrets, NamedProject, Project, ProjectChanges, SignInProject
from taproof.storage.account_protocol import NO_LIMIT


class ProjectStorage(Protocol):
    """The part of the store that knows projects and their secrets."""

    async def create_project(
        self,
        project: Project,
        secret_key_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        entry: AuditEntry | None = None,
        bot: BotChange | None = None,
    ) -> bool:
        """Store a project, with `bot` together with it.

        False, and nothing stored, when the developer has `limit` of them, or it is to collect phone numbers and their
        plan is "free".

        Raises:
            BotTaken: the bot serves another project, which does not lose it now; and nothing is stored.
        """

    async def read_project(self, project_id: str) -> Project | None:
        """Return a project with its counts."""

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        """Return a project's webhook secrets as they are stored."""

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        """Return the project whose current secret key has this hash; its counts are left at 0."""

    async def list_projects(self, developer_id: str) -> list[Project]:
        """Return a developer's projects with their counts, oldest first."""

    async def count_projects(self, developer_id: str) -> int:
        """Return how many projects a developer has."""

    async def name_projects(self, developer_id: str) -> list[NamedProject]:
        """Return id and name of each project of a developer, oldest first: nothing that costs more as it is used."""

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        """Return those of these projects that are this developer's, with their counts, oldest first."""

    async def update_project(
        self,
        developer_id: str,
        project_id: str,
        changes: ProjectChanges,
        now: int,
        *,
        entry: AuditEntry | None = None,
        bot: BotChange | None = None,
    ) -> Project | None:
        """Change the fields that are not None, and the bot if one is given: all of it or nothing.

        None, and nothing changed, when this developer has no such project, or it is to collect phone numbers from here
        on and their plan is "free".

        Removing the webhook URL ends the project's due deliveries: `ENDED_AT_ONCE` of them now, and the others in
        `end_deliveries`. These are shown as due until then, but nobody gets them any more; a webhook URL is not set
        before the last of them has ended. A webhook URL, also the same one again, makes what was known of the endpoint
        forgotten: since when it fails, and that it was turned off.

        Raises:
            BotTaken: the bot serves another project, which does not lose it now; and nothing is changed.
        """

    async def replace_project_secrets(
        self,
        developer_id: str,
        project_id: str,
        secret_key_hash: bytes,
        secret_key_preview: str,
        encrypted_webhook_secret: bytes,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Replace both secrets at once; False when this developer has no such project. Ends a rotation under way."""

    async def rotate_webhook_secret(
        self,
        developer_id: str,
        project_id: str,
        encrypted_next_secret: bytes,
        now: int,
        next_at: int,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Let another webhook secret follow the current one at `next_at`.

        False when this developer has no such project, or another rotation of it is under way at `now`.
        """

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Let the next webhook secret be the current one at once; False when no rotation is under way at `now`."""

    async def delete_project(self, developer_id: str, project_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Delete a project: from here on nothing of it is found, but `read_used` goes on counting its users.

        `purge_deleted_projects` erases what is left of it, and takes its people out of `read_daily_users` as it goes.
        """

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase at most about `limit` rows of deleted projects; return how many were erased (0: all is done)."""

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        """Return what a project has to say about a new session."""
