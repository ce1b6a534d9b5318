"""The connection to the Bot API: clear errors, patience, and the token in none of them."""

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import Fault, ScriptedApi
from tests.messengers.telegram.test_bot_api import UNUSABLE, assert_no_token

from taproof.messengers.telegram.bot_api import (
    Bot,
    TelegramAPIError,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from taproof.messengers.telegram.connection import (
    BotApiUnreachableError,
    BotTokenRefusedError,
    Reconnection,
    fetch_username,
)


async def test_username_is_fetched(bot: Bot) -> None:
    """The link base contains the username that getMe returns."""
    assert await fetch_username(bot) == "Sign_In_Bot"


@pytest.mark.parametrize("fault", [Fault(401, "Unauthorized"), Fault(404, "Not Found")])
async def test_refused_token_has_its_own_error(fault: Fault, bot: Bot, api: ScriptedApi) -> None:
    """A wrong token is the operator's to correct, and the error says where."""
    api.fail("getMe", Fault(fault.status, fault.description))
    with pytest.raises(BotTokenRefusedError, match="TAPROOF_BOT_TOKEN") as refusal:
        await fetch_username(bot)
    assert_no_token(refusal.value)


@pytest.mark.parametrize("fault", UNUSABLE)
async def test_unusable_answer_does_not_leak_the_token(fault: Fault, bot: Bot, api: ScriptedApi) -> None:
    """No error contains the token, even if an answer quotes the URL. The call is made once."""
    api.fail("getMe", Fault(fault.status, fault.description, fault.parameters, raw=fault.raw))
    with pytest.raises(BotApiUnreachableError, match="TAPROOF_BOT_API_URL") as trouble:
        await fetch_username(bot)
    assert_no_token(trouble.value)
    assert len(api.calls) == 1


async def test_delays_grow_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits between attempts are 1, 2, 4, … seconds, at most 30, and start again at 1 after a success."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("taproof.messengers.telegram.connection.asyncio.sleep", sleep)
    shown: list[int] = []
    reconnection = Reconnection(shown.append)
    trouble = TelegramNetworkError("away")
    with capture_logs() as logs:
        for _ in range(8):
            await reconnection.wait(trouble)
        reconnection.succeeded()
        assert shown == [1] * 8 + [0]
        await reconnection.wait(trouble)
        await reconnection.wait(TelegramUnauthorizedError("Unauthorized"))
        await reconnection.wait(TelegramRetryAfter("wait", 45))
        await reconnection.wait(TelegramAPIError("odd"))
        await reconnection.wait(TelegramRetryAfter("wait", 10**400))
        await reconnection.wait(TelegramRetryAfter("wait", -1))
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30, 1, 30, 45, 8, 3600, 1]
    assert [entry["event"] for entry in logs] == [
        "bot_api_unreachable",
        "bot_api_reached",
        "bot_api_unreachable",
        "bot_token_refused",
        "bot_flood_wait",
        "bot_api_error",
        "bot_flood_wait",
    ]
