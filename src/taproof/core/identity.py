"""The messenger account that signs in."""

import re
from dataclasses import dataclass
from typing import Final

_ID: Final = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class MessengerIdentity:
    """The messenger account that confirmed. `messenger_username` is "" if the account has none.

    `messenger_phone` is in E.164 format; None unless the project collects it and the user shared it.
    """

    messenger_id: str
    messenger_name: str
    messenger_username: str
    messenger_phone: str | None = None

    def to_fields(self) -> dict[str, str | None]:
        """Return the fields of responses and events. A missing username is null; a missing phone number is omitted."""
        fields = {
            "messenger_id": self.messenger_id,
            "messenger_name": self.messenger_name,
            "messenger_username": self.messenger_username or None,
        }
        return fields if self.messenger_phone is None else {**fields, "messenger_phone": self.messenger_phone}


def is_messenger_id(text: str) -> bool:
    """Return whether a text can be a messenger account's id: digits only, at most 20."""
    return _ID.fullmatch(text) is not None
