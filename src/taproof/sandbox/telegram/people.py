"""The sandbox's people: whoever may write to its bots.

The dictionaries are the Bot API's own objects (https://core.telegram.org/bots/api#available-types).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

PEOPLE_LIMIT: Final = 1_000
FIRST_ID: Final = 1_001
_AREA_CODES: Final = (202, 212, 213, 303, 305, 312, 404, 415, 512, 617)


def fictional_phone(user_id: int) -> str:
    """Return the number of a person who names none: 555-0100 to 555-0199 belong to nobody, and yet are valid.

    Each of a thousand ids in a row gets its own.
    """
    return f"+1{_AREA_CODES[user_id // 100 % 10]}55501{user_id % 100:02d}"


@dataclass(frozen=True, slots=True)
class Person:
    """A pretend user; None for what the account does not have. `phone` with or without the leading `+`."""

    id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    phone: str | None = None
    language_code: str | None = None

    def as_user(self) -> dict[str, Any]:
        """Return the User that a bot sees. The phone number is not part of it."""
        user = {"id": self.id, "is_bot": False, "first_name": self.first_name}
        others = {"last_name": self.last_name, "username": self.username, "language_code": self.language_code}
        return user | {name: value for name, value in others.items() if value is not None}

    def as_chat(self) -> dict[str, Any]:
        """Return the Chat that a bot sees."""
        chat = {name: value for name, value in self.as_user().items() if name not in {"is_bot", "language_code"}}
        return chat | {"type": "private"}

    @property
    def number(self) -> str:
        """Return the phone number; every account has one."""
        return self.phone or fictional_phone(self.id)


@dataclass(frozen=True, slots=True)
class SandboxContact:
    """What a person shares of somebody; `user_id` is None when the messenger knows nobody with this number.

    https://core.telegram.org/bots/api#contact. The number is with or without the leading `+`: it depends on the app
    that sends it, so a bot meets both.
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
        """Return the Contact that a bot sees."""
        contact = {"phone_number": self.phone_number, "first_name": self.first_name}
        others = {"last_name": self.last_name, "user_id": self.user_id, "vcard": self.vcard}
        return contact | {name: value for name, value in others.items() if value is not None}


class People:
    """Everybody, by id. Three are there from the start."""

    def __init__(self) -> None:
        self._people: dict[int, Person] = {}
        for person in (
            Person(FIRST_ID, "Ada", "Lovelace", "ada", None, "en"),
            Person(FIRST_ID + 1, "Борис", "Петров", None, None, "ru"),
            Person(FIRST_ID + 2, "سارا", "احمدی", "sara_ahmadi", None, "fa"),
        ):
            self.put(person)

    def __iter__(self) -> Iterator[Person]:
        """Go through all of them."""
        return iter(self._people.values())

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self._people)

    def __contains__(self, user_id: int) -> bool:
        """Tell whether somebody has this id."""
        return user_id in self._people

    def __getitem__(self, user_id: int) -> Person:
        """Return who has this id, as they are now."""
        return self._people[user_id]

    def put(self, person: Person) -> None:
        """Add a person, or change the one with this id; their chats stay."""
        self._people[person.id] = person

    def free_id(self) -> int:
        """Return an id that nobody has."""
        return max([FIRST_ID, *(user_id + 1 for user_id in self._people)])
