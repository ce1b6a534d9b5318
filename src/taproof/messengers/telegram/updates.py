"""Handles each update once, from polling or a webhook: it is claimed, handled, finished, and only then acknowledged."""

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import structlog
from pydantic import ValidationError

from taproof.core.clock import SECOND, Clock
from taproof.core.errors import StoreUnavailable
from taproof.core.model import SERVICE_BOT
from taproof.messengers.telegram.bot_api import (
    Bot,
    TelegramForbiddenError,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from taproof.messengers.telegram.types import Update

Handling = Literal["done", "unanswered", "retry"]
"""The result of handling an update. "done": it can be acknowledged. "unanswered": its decision is stored, but the reply
was not sent, so it must be delivered again. "retry": it must be delivered again for another reason."""
React = Callable[[Update, Bot, int, asyncio.Event], Awaitable[None]]

ALLOWED_UPDATES: Final = ["message", "callback_query", "my_chat_member"]

LEASE: Final = 30 * SECOND
"""The time (ms) for which a claim prevents other processes from handling the update."""
HANDLING_SECONDS: Final = 25
"""The time limit of handling. It is shorter than the lease, so that two processes never answer the same update."""
_BUG_PAUSES: Final = (0.2, 1.0, None)

_TROUBLE: Final = (
    TelegramNetworkError,
    TelegramServerError,
    TelegramRetryAfter,
    TelegramUnauthorizedError,
    TelegramNotFound,
)

_log = structlog.get_logger(__name__)


class UpdateClaims(Protocol):
    """The part of the store that contains claims of updates."""

    async def claim_update(
        self, bot_id: int, update_id: int, now: int, stale_before: int
    ) -> Literal["claimed", "in_progress", "done"]:
        """Claim an update, unless it was already handled or another process claimed it after `stale_before`."""

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        """Record that an update is completely handled."""

    async def release_update(self, bot_id: int, update_id: int) -> None:
        """Give up a claim, so that the update can be claimed again immediately."""


class UpdateIntake:
    """Handles the updates of one bot.

    Args:
        bot: the bot that receives the updates and sends the answers.
        react: answers an update. It gets the update, `bot`, `bot_id`, and the `hurry` of `handle`.
        claims: the store of claims.
        clock: returns the time in ms.
        bot_id: the id that the services use: the real id for a project's bot, `SERVICE_BOT` for the service's own bot.
    """

    def __init__(self, bot: Bot, react: React, claims: UpdateClaims, clock: Clock, bot_id: int = SERVICE_BOT) -> None:
        self._bot = bot
        self._react = react
        self._claims = claims
        self._clock = clock
        self._bot_id = bot_id
        self._in_hand: set[int] = set()
        self._handled: set[int] = set()
        self._claimed: set[int] = set()

    async def handle(
        self, update: dict[str, Any], *, sole_since: int | None = None, hurry: asyncio.Event | None = None
    ) -> Handling:
        """Handle an update once, however often it is delivered. Raise nothing except when cancelled.

        "unanswered" means that the Bot API did not accept the reply. "retry" means that the store is unavailable, that
        handling took too long, or that the update is being handled elsewhere. Once `hurry` is set, no reply waits for
        the flood limit to end.

        An abandoned claim is taken over when its lease ends. `sole_since` is the time in ms since which no other
        program should receive these updates; an earlier claim is taken over immediately. Other programs' later claims
        are still respected: they show that another program does receive updates.
        """
        parsed = _parse(update)
        if parsed is None:
            return "done"
        if parsed.update_id in self._in_hand:
            return "retry"
        self._in_hand.add(parsed.update_id)
        try:
            return await self._handle_claimed(parsed, hurry or asyncio.Event(), sole_since)
        except StoreUnavailable:
            _log.warning("bot_update_deferred", update_id=parsed.update_id, reason="store_unavailable")
            return "retry"
        except Exception as error:  # noqa: BLE001 — the calling loop must survive any bug.
            _log_bug(parsed.update_id, error)
            return "retry"
        finally:
            self._in_hand.discard(parsed.update_id)

    async def _handle_claimed(self, update: Update, hurry: asyncio.Event, sole_since: int | None) -> Handling:
        # An update that was handled but could not be recorded as finished is not handled again.
        if update.update_id not in self._handled:
            now = self._clock()
            stale_before = now - LEASE
            if sole_since is not None:
                stale_before = now if update.update_id in self._claimed else max(stale_before, sole_since)
            claim = await self._claims.claim_update(self._bot.id, update.update_id, now, stale_before)
            if claim == "done":
                self._claimed.discard(update.update_id)
                return "done"
            if claim == "in_progress":
                return "retry"
            if sole_since is not None:
                self._claimed.add(update.update_id)
            handling = await self._answer(update, hurry, HANDLING_SECONDS if sole_since is None else None)
            if handling != "done":
                if sole_since is None:
                    # The Bot API delivers it again within about a second, perhaps to another process.
                    with contextlib.suppress(StoreUnavailable):
                        await self._claims.release_update(self._bot.id, update.update_id)
                return handling
            self._handled.add(update.update_id)
        await self._claims.finish_update(self._bot.id, update.update_id)
        self._handled.discard(update.update_id)
        self._claimed.discard(update.update_id)
        return "done"

    async def _answer(self, update: Update, hurry: asyncio.Event, seconds: float | None) -> Handling:
        """Answer the update. Return "done" if it succeeded or can never succeed."""
        try:
            async with asyncio.timeout(seconds):
                for pause in _BUG_PAUSES:
                    try:
                        await self._react(update, self._bot, self._bot_id, hurry)
                    except (StoreUnavailable, TelegramForbiddenError, TimeoutError, *_TROUBLE):
                        raise
                    except Exception as error:  # noqa: BLE001 — one poison update must not stop the bot.
                        _log_bug(update.update_id, error)
                        if pause is None:
                            _log.error("bot_update_given_up", update_id=update.update_id)
                        else:
                            await asyncio.sleep(pause)
                    else:
                        return "done"
        except TelegramForbiddenError as refusal:
            _log.info("bot_blocked", update_id=update.update_id, reason=refusal.message)
        except _TROUBLE as trouble:
            _log.warning("bot_update_deferred", update_id=update.update_id, reason=type(trouble).__name__)
            return "unanswered"
        except (StoreUnavailable, TimeoutError) as trouble:
            _log.warning("bot_update_deferred", update_id=update.update_id, reason=type(trouble).__name__)
            return "retry"
        return "done"


def _parse(update: dict[str, Any]) -> Update | None:
    """Return the parsed update; None if it is malformed or of a kind that is not handled."""
    try:
        parsed = Update.model_validate(update)
    except (ValidationError, RecursionError) as error:
        # The error's text is not logged, because it quotes the update.
        _log.warning("bot_update_malformed", problem=type(error).__name__)
        return None
    if not 0 <= parsed.update_id < 2**63:
        _log.warning("bot_update_malformed", problem="update_id")
        return None
    is_known = parsed.message is not None or parsed.callback_query is not None or parsed.my_chat_member is not None
    return parsed if is_known else None


def code_lines(error: BaseException) -> list[str]:
    """Return the code lines that raised an error, for a log. The error's text could quote names, tokens or updates."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]


def _log_bug(update_id: int, error: Exception) -> None:
    _log.error("bot_update_failed", update_id=update_id, error=type(error).__name__, where=code_lines(error))
