"""The groups of a client: who is in them, and who may sign in."""

from collections.abc import Callable

import pytest

from taproof.core.errors import InvalidRequest
from taproof.core.oidc.groups import NO_GROUPS, Groups, groups_from

TEAM = Groups({"admins": ("1",), "staff": ("1", "2")})


def test_groups_decide_who_may_sign_in() -> None:
    """Without allowed groups, everybody may. An allowed group without members admits nobody."""
    assert [TEAM.of(each) for each in ("1", "2", "3")] == [("admins", "staff"), ("staff",), ()]
    assert TEAM.admits("3")
    restricted = TEAM.changed(allowed=["admins"])
    assert [restricted.admits(each) for each in ("1", "2", "3", "")] == [True, False, False, False]
    assert not NO_GROUPS.with_group("nobody").changed(allowed=["nobody"]).admits("1")


def test_groups_survive_their_storage() -> None:
    """Rows in the order of the statement give the same groups, empty ones too."""
    groups = TEAM.with_group("empty").changed(allowed=["empty", "staff"])
    rows = sorted(groups.rows(), key=lambda row: (row.group_name, row.messenger_id))
    assert groups_from(rows) == groups


def test_edits_of_groups() -> None:
    """Each edit changes one thing. An allowed group cannot be deleted, since that would admit everybody."""
    added = TEAM.with_group("new").with_member("new", "7", is_member=True).with_member("new", "5", is_member=True)
    assert added.members == {"admins": ("1",), "new": ("5", "7"), "staff": ("1", "2")}
    assert added.with_group("new") == added
    assert added.with_member("new", "5", is_member=False).members["new"] == ("7",)
    assert added.with_member("gone", "5", is_member=True) == added
    assert added.without_group("new") == TEAM
    restricted = TEAM.changed(allowed=["staff"])
    edits: tuple[Callable[[], Groups], ...] = (
        lambda: restricted.without_group("staff"),
        lambda: TEAM.changed(allowed=["gone"]),
        lambda: restricted.changed({"admins": ()}),
        lambda: TEAM.with_member("staff", "x", is_member=True),
        lambda: TEAM.with_group("\n"),
    )
    for edit in edits:
        with pytest.raises(InvalidRequest):
            edit()
