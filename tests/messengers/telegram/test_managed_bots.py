"""Updates about managed bots: only those of the service's own bot count, and only about bots of people."""

from typing import Any

import pytest
from tests.messengers.telegram.conftest import TOKEN

from taproof.core.errors import MessengerUnavailable
from taproof.messengers.telegram import managed_bots
from taproof.messengers.telegram.bot_api import TelegramNetworkError
from taproof.messengers.telegram.managed_bots import Manager, adopt_managed_bot
from taproof.messengers.telegram.types import BotFullInfo, ManagedBotUpdated, User
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

    def __init__(self, *, can_manage_bots: bool | None) -> None:
        self.asked = 0
        self.is_away = False
        self.me = BotFullInfo(
            id=1, is_bot=True, first_name="x", username="Sign_In_Bot", can_manage_bots=can_manage_bots
        )

    async def get_me(self, *, seconds: float) -> BotFullInfo:
        self.asked += 1
        if self.is_away:
            raise TelegramNetworkError("away")
        assert seconds > 0
        return self.me

    async def get_managed_bot_token(self, user_id: int) -> str:
        assert user_id == MADE.id
        return TOKEN


async def test_the_creator_and_the_bot_are_told() -> None:
    """The token is fetched for the bot of the update; bots and accounts without a username create nothing."""
    adopter, bot = Adopter(), ManagerBot(can_manage_bots=True)
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


async def test_the_manager_is_asked_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its right can be given and taken away in @BotFather; without an answer, it may not manage bots."""
    manager = Manager()
    assert await manager.find_username() is None
    for can_manage_bots, username in ((None, None), (False, None), (True, "Sign_In_Bot")):
        manager = Manager()
        bot = ManagerBot(can_manage_bots=can_manage_bots)
        manager.bot = bot  # type: ignore[assignment]
        assert await manager.find_username() == username
        assert await manager.find_username() == username
        assert bot.asked == 1
    monkeypatch.setattr(managed_bots, "KNOWN_SECONDS", 0.0)
    bot.is_away = True
    assert await manager.find_username() is None
