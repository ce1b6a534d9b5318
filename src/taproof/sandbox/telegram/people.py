"""The sandbox's people, the pretend users who may write to its bots.

The dictionaries are the Bot API's own objects (https://core.telegram.org/bots/api#available-types).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

PEOPLE_LIMIT: Final = 1_000
FIRST_ID: Final = 1_001
_AREA_CODES: Final = (202, 212, 213, 303, 305, 312, 404, 415, 512, 617)


def fictional_phone(user_id: int) -> str:
    """Return the phone number of a person who has not set one.

    The numbers 555-0100 to 555-0199 are valid, but belong to nobody. Any thousand consecutive ids get different
    numbers.
    """
    return f"+1{_AREA_CODES[user_id // 100 % 10]}55501{user_id % 100:02d}"


@dataclass(frozen=True, slots=True)
class Person:
    """A pretend user. A field is None if the account does not have it. `phone` may have a leading `+`."""

    id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    phone: str | None = None
    language_code: str | None = None

    def as_user(self) -> dict[str, Any]:
        """Return the person as the User object that a bot sees, which has no phone number."""
        user = {"id": self.id, "is_bot": False, "first_name": self.first_name}
        others = {"last_name": self.last_name, "username": self.username, "language_code": self.language_code}
        return user | {name: value for name, value in others.items() if value is not None}

    def as_chat(self) -> dict[str, Any]:
        """Return the person's private chat as the Chat object that a bot sees."""
        chat = {name: value for name, value in self.as_user().items() if name not in {"is_bot", "language_code"}}
        return chat | {"type": "private"}

    @property
    def number(self) -> str:
        """The phone number. Every account has one."""
        return self.phone or fictional_phone(self.id)


@dataclass(frozen=True, slots=True)
class SandboxContact:
    """A shared contact (https://core.telegram.org/bots/api#contact).

    `user_id` is None if no account of the messenger has this number. The number may have a leading `+`: this depends on
    the app that sends it, so a bot receives both forms.
    """

    phone_number: str
    first_name: str
    last_name: str | None = None
    user_id: int | None = None
    vcard: str | None = None

    @classmethod
    def of(cls, person: Person) -> "SandboxContact":
        """Return a person's own contact."""
        return cls(person.number, person.first_name, person.last_name, person.id)

    def as_contact(self) -> dict[str, Any]:
        """Return the Contact object that a bot sees."""
        contact = {"phone_number": self.phone_number, "first_name": self.first_name}
        others = {"last_name": self.last_name, "user_id": self.user_id, "vcard": self.vcard}
        return contact | {name: value for name, value in others.items() if value is not None}


class People:
    """All pretend users, by id. Three exist from the start."""

    def __init__(self) -> None:
        self._people: dict[int, Person] = {}
        for person in (
            Person(FIRST_ID, "Ada", "Lovelace", "ada", None, "en"),
            Person(FIRST_ID + 1, "Борис", "Петров", None, None, "ru"),
            Person(FIRST_ID + 2, "سارا", "احمدی", "sara_ahmadi", None, "fa"),
        ):
            self.put(person)

    def __iter__(self) -> Iterator[Person]:
        """Iterate over all people."""
        return iter(self._people.values())

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self._people)

    def __contains__(self, user_id: int) -> bool:
        """Tell whether a person has this id."""
        return user_id in self._people

    def __getitem__(self, user_id: int) -> Person:
        """Return the person with this id.

        Raises:
            KeyError: no person has this id.
        """
        return self._people[user_id]

    def put(self, person: Person) -> None:
        """Add a person, or replace the one with this id, whose chats are kept."""
        self._people[person.id] = person

    def free_id(self) -> int:
        """Return an unused id."""
        return max([FIRST_ID, *(user_id + 1 for user_id in self._people)])
