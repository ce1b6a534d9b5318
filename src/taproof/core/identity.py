"""The messenger account that signs in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MessengerIdentity:
    """The messenger account that confirmed. `messenger_username` is "" if the account has none.

    `messenger_phone` is in E.164 format; None unless the project collects it and the user shared it.
    """

    messenger_id: str
    messenger_name: str
    messenger_username: str
    messenger_phone: str | None = None
