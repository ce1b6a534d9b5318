"""Updates about managed bots: only those to the service's own bot count, and only bots of people."""

import asyncio
from typing import Any

import pytest
from tests.messengers.telegram.conftest import TOKEN, HandClock, ScriptedApi
from tests.whole_sign_in import WholeSignIn

from taproof.core.errors import MessengerUnavailable
from taproof.core.service_bot import SERVICE_BOT
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.handlers import Conversation
from taproof.messengers.telegram.signed_buttons import ButtonSigner
from taproof.messengers.telegram.types import ManagedBotUpdated, Update, User
from taproof.messengers.telegram.updates import ALLOWED_UPDATES
from taproof.service.bots import BotAccount

ADA = User(id=1001, is_bot=False, first_name="Ada")
MADE = User(id=7_100_000_000, is_bot=True, first_name="Shop", username="shop_bot")


class Adopter:
    """A fake of the service that records its calls."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.is_away = False

    async def adopt_bot(self, creator_id: str, account: BotAccount, fetch_token: Any) -> bool:
        if self.is_away:
            raise MessengerUnavailable
        self.told.append((creator_id, account, await fetch_token()))
        return True


async def test_the_creator_and_the_bot_are_told(
    bot: Bot, api: ScriptedApi, signin: WholeSignIn, signer: ButtonSigner, clock: HandClock
) -> None:
    """The token of the created bot is fetched; updates about bots and accounts without a username create nothing."""
    api.results["getManagedBotToken"] = TOKEN
    adopter: Any = Adopter()
    conversation = Conversation(signin, signer, clock, prompts=signin.prompts, managed_bots=adopter)

    async def update(user: User, made: User, bot_id: int = SERVICE_BOT) -> None:
        content = Update(update_id=1, managed_bot=ManagedBotUpdated(user=user, bot=made))
        await conversation.on_update(content, bot, bot_id, asyncio.Event())

    await update(ADA, MADE)
    await update(ADA, MADE, bot_id=bot.id)  # As a project's bot.
    await update(MADE, MADE)
    await update(ADA, ADA)
    await update(ADA, MADE.model_copy(update={"username": None}))
    assert adopter.told == [("1001", BotAccount(MADE.id, "shop_bot"), TOKEN)]
    assert api.of("getManagedBotToken") == [{"user_id": MADE.id}]
    adopter.is_away = True
    with pytest.raises(TimeoutError):  # The update is delivered again.
        await update(ADA, MADE)
    assert "managed_bot" in ALLOWED_UPDATES
