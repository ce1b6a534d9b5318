"""The roles of a project's members."""

import pytest

from taproof.contract.member import Role
from taproof.core.errors import InsufficientRole
from taproof.core.roles import ACTIONS, ROLES, ProjectAction, require_action, roles_with

PERMITTED: dict[Role, set[ProjectAction]] = {
    "owner": {"read", "write", "secrets", "members", "traces", "delete"},
    "developer": {"read", "write", "secrets"},
    "viewer": {"read"},
}


def test_each_role_permits_what_the_page_about_teams_says() -> None:
    """The rights are written out a second time here. The other tests and the page derive from the table itself."""
    assert set(ROLES) == set(PERMITTED)
    for role in ROLES:
        for action in ACTIONS:
            assert (role in roles_with(action)) == (action in PERMITTED[role])
            if action in PERMITTED[role]:
                require_action(role, action)
            else:
                with pytest.raises(InsufficientRole, match=f"needs the role .* and yours is {role}"):
                    require_action(role, action)
