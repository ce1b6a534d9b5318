"""The interface of `store.projects`."""

import sys
from collections.abc import Sequence
from typing import Final, Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.model import EncryptedWebhookSecrets, NamedProject, Project, ProjectChanges, SignInProject
from taproof.core.project_bots import BotChange

NO_LIMIT: Final = sys.maxsize


class ProjectStorage(Protocol):
    """Projects and their secrets.

    A developer's projects are those of which they are a member. A method that changes a project for a developer checks
    their role in the same transaction. It raises InsufficientRole if the role does not permit the change.
    """

    async def create_project(
        self,
        project: Project,
        secret_key_hash: bytes,
        *,
        limit: int = NO_LIMIT,
        entry: AuditEntry | None = None,
        bot: BotChange | None = None,
    ) -> bool:
        """Store a project with its developer as the owner, together with its bot if `bot` is given.

        Return False if the developer has `limit` projects, or if the project collects phone numbers on the plan "free".

        Raises:
            BotTaken: the bot serves another project, and this change does not take it away.
        """

    async def read_project(self, project_id: str) -> Project | None:
        """Return a project with its counts."""

    async def read_member_project(self, developer_id: str, project_id: str) -> Project | None:
        """Return a project with its counts, its plan and the developer's role; None if they are no member."""

    async def read_webhook_secrets(self, project_id: str) -> EncryptedWebhookSecrets | None:
        """Return a project's webhook secrets in their stored form."""

    async def read_project_by_secret_key(self, secret_key_hash: bytes) -> Project | None:
        """Return the project whose current secret key has this hash. Its counts are 0."""

    async def list_projects(self, developer_id: str) -> list[Project]:
        """Return a developer's projects with their counts, oldest first."""

    async def count_projects(self, developer_id: str) -> int:
        """Return the number of a developer's projects."""

    async def name_projects(self, developer_id: str) -> list[NamedProject]:
        """Return the id and name of each of a developer's projects, oldest first. This is cheaper than with counts."""

    async def read_projects(self, developer_id: str, project_ids: Sequence[str]) -> list[Project]:
        """Return the projects with these ids that belong to this developer, with their counts, oldest first."""

    async def read_sign_in_project(self, project_id: str) -> SignInProject | None:
        """Return the project settings that apply to a new session."""

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
        """Change the fields that are not None, and the bot if `bot` is given. Either all changes are made or none.

        Return None if this developer has no such project, if the change starts to collect phone numbers on the plan
        "free", or if it leaves a policy other than "off" without a page to return to: an allowed origin or return URL
        that the messenger opens, or the page of the sign-ins of an OpenID Connect client.

        Removing the webhook URL ends the project's due deliveries: `ENDED_AT_ONCE` of them immediately, and the rest in
        `end_deliveries`. Until then, the rest are shown as due, but no worker can claim them. A new webhook URL is set
        only after the last of them has ended. Setting a webhook URL, even the same one, resets the endpoint's state:
        since when it has been failing, and whether it was turned off.

        Raises:
            BotTaken: the bot serves another project, and this change does not take it away.
        """

    async def regenerate_secrets(
        self,
        developer_id: str,
        project_id: str,
        secret_key_hash: bytes,
        secret_key_preview: str,
        encrypted_webhook_secret: bytes,
        *,
        entry: AuditEntry | None = None,
    ) -> bool:
        """Replace both secrets, and end a rotation in progress. Return False if this developer has no such project."""

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
        """Store a webhook secret that replaces the current one at `next_at`.

        Return False if this developer has no such project, or if another rotation is in progress at `now`.
        """

    async def promote_webhook_secret(
        self, developer_id: str, project_id: str, now: int, *, entry: AuditEntry | None = None
    ) -> bool:
        """Make the next webhook secret the current one; False if no rotation is in progress at `now`."""

    async def delete_project(self, developer_id: str, project_id: str, *, entry: AuditEntry | None = None) -> bool:
        """Delete a project. From then on, no method finds its data, but `read_used` still counts its users.

        `purge_deleted_projects` erases the remaining rows, and removes the project's users from `read_daily_users`.
        """

    async def purge_deleted_projects(self, limit: int) -> int:
        """Erase at most about `limit` rows of deleted projects; return their number (0: none is left)."""
