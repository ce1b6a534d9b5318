"""Updates about managed bots: only those of the service's own bot count, and only about bots of people."""

from typing import Any

import pytest
from tests.messengers.telegram.conftest import TOKEN

from taproof.core.errors import MessengerUnavailable
from taproof.messengers.telegram.managed_bots import adopt_managed_bot
from taproof.messengers.telegram.types import ManagedBotUpdated, User
from taproof.messengers.telegram.updates import ALLOWED_UPDATES
from taproof.service.bots import BotAccount

ADA = User(id=1001, is_bot=False, first_name="Ada")
MADE = User(id=7_100_000_000, is_bot=True, first_name="Shop", username="shop_bot")


class Adopter:
    """Stands for the service: notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.is_away = False

    async def adopt_bot(self, creator_id: str, account: BotAccount, fetch_token: Any) -> bool:
        if self.is_away:
            raise MessengerUnavailable
        self.told.append((creator_id, account, await fetch_token()))
        return True


class ManagerBot:
    """Stands for the service's bot at the Bot API."""

    async def get_managed_bot_token(self, user_id: int) -> str:
        assert user_id == MADE.id
        return TOKEN


async def test_the_creator_and_the_bot_are_told() -> None:
    """The token is fetched for the bot of the update; bots and accounts without a username create nothing."""
    adopter, bot = Adopter(), ManagerBot()
    for user, made in (
        (ADA, MADE),
        (MADE, MADE),
        (ADA, ADA),
        (ADA, MADE.model_copy(update={"username": None})),
    ):
        await adopt_managed_bot(adopter, ManagedBotUpdated(user=user, bot=made), bot)  # type: ignore[arg-type]
    assert adopter.told == [("1001", BotAccount(MADE.id, "shop_bot"), TOKEN)]
    adopter.is_away = True
    with pytest.raises(TimeoutError):  # The update is delivered again.
        await adopt_managed_bot(adopter, ManagedBotUpdated(user=ADA, bot=MADE), bot)  # type: ignore[arg-type]
    assert "managed_bot" in ALLOWED_UPDATES
