"""The roles of a project's members, and the actions that each role permits.

Source: contract.md, Rights of developers. This table is the only place that decides: the store checks it in the
transaction of each change, and `docs/how-to/teams.md` shows it.
"""

from collections.abc import Mapping
from typing import Final, Literal

from taproof.contract.member import Role
from taproof.core.errors import InsufficientRole

ROLES: Final[tuple[Role, ...]] = ("owner", "developer", "viewer")
"""All roles, from the one with the most rights to the one with the fewest."""

ProjectAction = Literal["read", "write", "secrets", "members", "traces", "delete"]
"""A kind of call on a project.

`read` reads everything but secrets, `write` changes settings and data, `secrets` reads and replaces secrets, `members`
changes members and invitations, `traces` reads what identifies another member's machine, and `delete` deletes the
project.
"""

ACTIONS: Final[Mapping[ProjectAction, str]] = {
    "read": "Read the project, its sessions, users, analytics, webhook deliveries, members and audit log",
    "write": "Change settings, the bot and OpenID Connect clients; test and resend webhooks; export and erase users",
    "secrets": "Read the whole webhook URL; read and rotate the webhook secret; replace both secrets",
    "members": "Invite, change and remove members",
    "traces": "See the IP addresses and credentials of other members in the audit log",
    "delete": "Delete the project",
}
"""Each action in words, for the documentation."""

PERMITTED: Final[Mapping[Role, frozenset[ProjectAction]]] = {
    "owner": frozenset(ACTIONS),
    "developer": frozenset({"read", "write", "secrets"}),
    "viewer": frozenset({"read"}),
}
"""The actions that each role permits."""


def require_action(role: Role, action: ProjectAction) -> None:
    """Refuse a role that does not permit an action: raise InsufficientRole, which names the roles that do."""
    if action not in PERMITTED[role]:
        raise InsufficientRole(role, roles_with(action))


def permits(role: Role | None, action: ProjectAction) -> bool:
    """Return whether a role permits an action. None is the role of a developer who is no member."""
    return role is not None and action in PERMITTED[role]


def roles_with(action: ProjectAction) -> list[Role]:
    """Return the roles that permit an action, from the one with the most rights."""
    return [role for role in ROLES if action in PERMITTED[role]]
