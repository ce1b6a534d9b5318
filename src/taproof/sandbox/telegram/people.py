"""The sandbox's people, the simulated users who can write to its bots.

The dictionaries are the Bot API's own objects (https://core.telegram.org/bots/api#available-types).
"""

from dataclasses import asdict, dataclass
from typing import Any, Final

PEOPLE_LIMIT: Final = 1_000
FIRST_ID: Final = 1_001
_AREA_CODES: Final = (202, 212, 213, 303, 305, 312, 404, 415, 512, 617)


@dataclass(frozen=True, slots=True)
class Person:
    """A simulated user. A field is None if the account does not have it. `phone` may have a leading `+`."""

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
        """The phone number. Without `phone`, it is fictional: 555-0100 to 555-0199 are reserved for fiction.

        Any thousand consecutive ids get different numbers.
        """
        return self.phone or f"+1{_AREA_CODES[self.id // 100 % 10]}55501{self.id % 100:02d}"


People = dict[int, Person]
"""All simulated users, by id. A replaced person keeps the chats."""


@dataclass(frozen=True, slots=True)
class SandboxContact:
    """A shared contact (https://core.telegram.org/bots/api#contact).

    `user_id` is None if no messenger account has this number. The number may have a leading `+`: this depends on
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
        return {name: value for name, value in asdict(self).items() if value is not None}


def simulated_people() -> People:
    """Return the three people who exist from the start."""
    people = (
        Person(FIRST_ID, "Ada", "Lovelace", "ada", None, "en"),
        Person(FIRST_ID + 1, "Борис", "Петров", None, None, "ru"),
        Person(FIRST_ID + 2, "سارا", "احمدی", "sara_ahmadi", None, "fa"),
    )
    return {person.id: person for person in people}
