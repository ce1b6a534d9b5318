"""The connection to the Bot API: clear errors and increasing delays."""

import pytest
from structlog.testing import capture_logs

from taproof.messengers.telegram.bot_api import (
    TelegramAPIError,
    TelegramBadRequest,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
)
from taproof.messengers.telegram.connection import Reconnection


async def test_delays_grow_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The delays between attempts are 1, 2, 4, … seconds, at most 30, and start again at 1 after a success."""
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
        await reconnection.wait(TelegramBadRequest("Bad Request: Logged out"))
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30, 1, 30, 45, 8, 3600, 1, 30]
    assert [entry["event"] for entry in logs] == [
        "bot_api_unreachable",
        "bot_api_reached",
        "bot_api_unreachable",
        "bot_token_refused",
        "bot_flood_wait",
        "bot_api_error",
        "bot_flood_wait",
        "bot_logged_out",
    ]
