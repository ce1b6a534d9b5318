"""The account of the service's own bot, as the messenger reported it last."""

from dataclasses import dataclass
from typing import Final

SERVICE_BOT: Final = 0
"""The bot id that stands for the service's own bot."""


@dataclass(frozen=True, slots=True)
class ServiceBot:
    """The service's own bot. `username` has no `@`; `token_hash` tells tokens apart without revealing them.

    `is_refused`: the messenger has refused the token since it reported this account.
    """

    id: int
    username: str
    token_hash: str
    manages_bots: bool = False
    is_refused: bool = False
