"""The groups of a client: names with messenger ids, which decide who may sign in and as what (contract.md)."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from taproof.contract.client import GROUP_MEMBERS_LIMIT, GROUP_NAME, GROUPS_LIMIT
from taproof.core.errors import InvalidRequest
from taproof.core.identity import is_messenger_id

_NAME: Final = re.compile(GROUP_NAME)
NOT_ADMITTED: Final = "The user is in none of the groups that may sign in to this client."
"""The error description for an application whose client does not admit the user."""


class GroupRow(NamedTuple):
    """A stored member of a group. The row without a messenger id is the group itself, which may have no members."""

    messenger_id: str
    group_name: str
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a client, and the names of those whose members may sign in. With none of these, everybody may."""

    members: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    allowed: tuple[str, ...] = ()

    def of(self, messenger_id: str) -> tuple[str, ...]:
        """Return the names of the groups of an account."""
        return tuple(name for name, members in self.members.items() if messenger_id in members)

    def admits(self, messenger_id: str) -> bool:
        """Return whether an account may sign in."""
        return not self.allowed or any(messenger_id in self.members[name] for name in self.allowed)

    def rows(self) -> list[GroupRow]:
        """Return the rows to store."""
        return [
            GroupRow(messenger_id, name, name in self.allowed)
            for name, members in self.members.items()
            for messenger_id in ("", *members)
        ]

    def changed(
        self, members: Mapping[str, Iterable[str]] | None = None, allowed: Iterable[str] | None = None
    ) -> "Groups":
        """Return the groups with new members and new allowed groups; None leaves either unchanged.

        Raises:
            InvalidRequest: an allowed group does not exist.
        """
        new_members = self.members if members is None else {name: tuple(ids) for name, ids in members.items()}
        new_allowed = self.allowed if allowed is None else tuple(allowed)
        missing = next((name for name in new_allowed if name not in new_members), None)
        if missing is not None:
            raise InvalidRequest(f'allowed_groups contains "{missing}", which is no group of this client.')
        return Groups(new_members, new_allowed)

    def with_member(self, name: str, messenger_id: str, *, is_member: bool) -> "Groups":
        """Return the groups after an account was added to one of them, or removed. An unknown group changes nothing.

        Raises:
            InvalidRequest: the id is malformed, or the groups would have too many members.
        """
        if name not in self.members:
            return self
        if is_member and not is_messenger_id(messenger_id):
            raise InvalidRequest("The messenger id must be a number, such as 123456789: see the list of users.")
        others = tuple(each for each in self.members[name] if each != messenger_id)
        ids = tuple(sorted((*others, messenger_id))) if is_member else others
        return Groups(read_groups({**self.members, name: ids}), self.allowed)

    def with_group(self, name: str) -> "Groups":
        """Return the groups with one more, which has no members. A group that exists is not changed.

        Raises:
            InvalidRequest: the name is invalid, or there would be too many groups.
        """
        return self.changed(read_groups({name: (), **self.members}))

    def without_group(self, name: str) -> "Groups":
        """Return the groups without one of them.

        Raises:
            InvalidRequest: it is one of the groups that may sign in.
        """
        if name in self.allowed:
            raise InvalidRequest(f'"{name}" is one of the groups that may sign in. Uncheck it and save first.')
        return self.changed({each: ids for each, ids in self.members.items() if each != name})


NO_GROUPS: Final = Groups()


def groups_from(rows: Iterable[GroupRow]) -> Groups:
    """Return the groups that these rows, in the order of names and ids, store."""
    members: dict[str, list[str]] = {}
    allowed = []
    for messenger_id, name, is_allowed in rows:
        if messenger_id:
            members[name].append(messenger_id)
        else:
            members[name] = []
            allowed += [name] if is_allowed else []
    return Groups({name: tuple(ids) for name, ids in members.items()}, tuple(allowed))


def read_groups(given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return groups as they are stored: names and ids in order, each id once.

    Args:
        given: lists of messenger ids by name; the values are not checked.

    Raises:
        InvalidRequest: a name, an id or a number is invalid; the error's sentence names it.
    """
    if len(given) > GROUPS_LIMIT:
        raise InvalidRequest(f"groups can contain at most {GROUPS_LIMIT} groups.")
    groups = {name: _read_members(name, given[name]) for name in sorted(given)}
    if sum(map(len, groups.values())) > GROUP_MEMBERS_LIMIT:
        raise InvalidRequest(f"groups can contain at most {GROUP_MEMBERS_LIMIT} messenger ids in all.")
    return groups


def read_allowed_groups(given: Iterable[str]) -> tuple[str, ...]:
    """Return the names in order, each once. `Groups.changed` refuses unknown ones."""
    return tuple(sorted(set(given)))


def _read_members(name: str, given: Any) -> tuple[str, ...]:
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(
            "The name of a group must have 1 to 64 letters, digits, spaces and . _ : / @ + -, and begin with a letter "
            "or digit."
        )
    if not isinstance(given, list | tuple) or not all(
        isinstance(each, str) and is_messenger_id(each) for each in given
    ):
        raise InvalidRequest(f'The group "{name}" must be a list of messenger ids, such as ["123456789"].')
    return tuple(sorted(set(given)))
