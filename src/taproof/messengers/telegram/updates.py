"""Handles each update once, from polling or a webhook: it is claimed, handled, finished, and only then acknowledged.

A claim is a lease with the times of `core/leases.py`: it is renewed while the update is being handled. If a process
dies, another one takes its updates over within ten seconds. If a process is slow, its updates stay its own.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, Literal, NamedTuple, Protocol

import structlog
from pydantic import ValidationError

from taproof.core.clock import SECOND, Clock
from taproof.core.errors import StoreUnavailable
from taproof.core.leases import LEASE_SECONDS, LOSE_SECONDS, RENEW_SECONDS
from taproof.core.service_bot import SERVICE_BOT
from taproof.core.stacks import describe_stack
from taproof.http.metrics import TapRefusal
from taproof.messengers.telegram.bot_api import (
    Bot,
    TelegramAPIError,
    TelegramForbiddenError,
    TelegramNetworkError,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from taproof.messengers.telegram.chat import answer_tap
from taproof.messengers.telegram.types import Update
from taproof.messengers.texts.catalog import texts_for

Handling = Literal["done", "unanswered", "retry"]
"""The result of handling an update. "done": it can be acknowledged. "unanswered": its decision is stored, but the reply
was not sent, so it must be delivered again. "retry": it must be delivered again for another reason."""
React = Callable[[Update, Bot, int, asyncio.Event], Awaitable[TapRefusal | None]]
"""Answers an update, and returns why a tap had no effect."""

ALLOWED_UPDATES: Final = ["message", "callback_query", "my_chat_member", "managed_bot"]

LEASE: Final = int(LEASE_SECONDS * SECOND)
"""The time (ms) for which a claim prevents other processes from handling the update, unless it is renewed."""
_QUERY_ID_LENGTH: Final = 64

_TROUBLE: Final = (TelegramNetworkError, TelegramServerError, TelegramRetryAfter, TelegramUnauthorizedError)

_log = structlog.get_logger(__name__)


class HandlingTimes(NamedTuple):
    """The time limits and pauses of handling an update, in seconds."""

    handling: float = 25
    """The limit for an update from a webhook, because the messenger waits for the answer."""
    renew: float = RENEW_SECONDS
    lose: float = LOSE_SECONDS
    bug_pauses: tuple[float, ...] = (0.2, 1.0)
    """The pauses before further attempts at an update that a bug prevents."""


_TIMES: Final = HandlingTimes()


class UpdateClaims(Protocol):
    """The part of the store that contains claims of updates."""

    async def claim_update(
        self, bot_id: int, update_id: int, now: int, stale_before: int
    ) -> Literal["claimed", "in_progress", "done"]:
        """Claim an update or renew a claim, unless it is handled or another process claimed it after `stale_before`."""

    async def finish_update(self, bot_id: int, update_id: int) -> None:
        """Record that an update is completely handled."""

    async def release_update(self, bot_id: int, update_id: int, claimed_at: int) -> None:
        """Give up the claim made at `claimed_at`, so that the update can be claimed again immediately."""


class UpdateIntake:
    """Handles the updates of one bot.

    `react` answers an update; it gets the update, `bot`, `bot_id`, and the `hurry` of `handle`. `bot_id` is the id that
    the services use: the real id for a project's bot, `SERVICE_BOT` for the service's own. `observe_tap` is called for
    each tap on a button, with the seconds from its receipt until it is handled. For a tap that had no effect,
    `count_refused_tap` is called instead, with the reason.
    """

    def __init__(
        self,
        bot: Bot,
        react: React,
        claims: UpdateClaims,
        clock: Clock,
        bot_id: int = SERVICE_BOT,
        *,
        observe_tap: Callable[[float], None],
        count_refused_tap: Callable[[TapRefusal], None],
        times: HandlingTimes = _TIMES,
    ) -> None:
        self._bot = bot
        self._react = react
        self._claims = claims
        self._clock = clock
        self._bot_id = bot_id
        self._observe_tap = observe_tap
        self._count_refused_tap = count_refused_tap
        self._times = times
        self._in_hand: set[int] = set()
        self._handled: set[int] = set()
        self._claimed_at: dict[int, int] = {}
        """The time (ms) of this process's last claim of an update, or of its last attempt to renew it."""

    async def handle(
        self,
        update: dict[str, Any],
        *,
        sole_since: int | None = None,
        hurry: asyncio.Event | None = None,
        received_at: float | None = None,
    ) -> Handling:
        """Handle an update once, however often it is delivered. Raise nothing except when cancelled.

        "unanswered" means that the Bot API did not accept the reply. "retry" means that the store is unavailable, that
        handling took too long, or that the update is being handled elsewhere. Once `hurry` is set, no reply waits for
        the flood limit to end.

        A claim that is no longer renewed is taken over when its lease ends. `sole_since` is the time in ms since which
        no other program should receive these updates; an earlier claim is taken over immediately. Other programs' later
        claims are still respected: they show that another program does receive updates.

        `received_at` is the event loop's time at which the update arrived, if that is earlier than this call.
        """
        received_at = asyncio.get_running_loop().time() if received_at is None else received_at
        parsed = _parse(update)
        if parsed is None:
            await self._answer_malformed(update.get("callback_query"))
            return "done"
        if parsed.update_id in self._in_hand:
            return "retry"
        self._in_hand.add(parsed.update_id)
        try:
            return await self._handle_claimed(parsed, hurry or asyncio.Event(), sole_since, received_at)
        except StoreUnavailable:
            _log.warning("bot_update_deferred", update_id=parsed.update_id, reason="store_unavailable")
            return "retry"
        except Exception as error:  # noqa: BLE001 — the calling loop must survive any bug.
            _log_bug(parsed.update_id, error)
            return "retry"
        finally:
            self._in_hand.discard(parsed.update_id)

    def forget(self, update_id: int) -> None:
        """Drop what is known of an update that will not be handled again."""
        self._claimed_at.pop(update_id, None)
        self._handled.discard(update_id)

    async def _handle_claimed(
        self, update: Update, hurry: asyncio.Event, sole_since: int | None, received_at: float
    ) -> Handling:
        # An update that was handled but could not be recorded as finished is not handled again.
        if update.update_id not in self._handled:
            asked, now = asyncio.get_running_loop().time(), self._clock()
            stale_before = now - LEASE
            if sole_since is not None:
                stale_before = max(stale_before, sole_since, self._claimed_at.get(update.update_id, 0))
            claim = await self._claims.claim_update(self._bot.id, update.update_id, now, stale_before)
            if claim == "done":
                self._claimed_at.pop(update.update_id, None)
                return "done"
            if claim == "in_progress":
                return "retry"
            self._claimed_at[update.update_id] = now
            seconds = self._times.handling if sole_since is None else None
            answering = self._answer(update, hurry, seconds, received_at)
            handling = await self._keep_claim(update.update_id, answering, asked + self._times.lose)
            if handling != "done":
                if sole_since is None:
                    # The Bot API delivers it again within about a second, perhaps to another process.
                    claimed_at = self._claimed_at.pop(update.update_id)
                    with contextlib.suppress(StoreUnavailable):
                        await self._claims.release_update(self._bot.id, update.update_id, claimed_at)
                return handling
            self._handled.add(update.update_id)
        await self._claims.finish_update(self._bot.id, update.update_id)
        self.forget(update.update_id)
        return "done"

    async def _keep_claim(self, update_id: int, answering: Coroutine[Any, Any, Handling], deadline: float) -> Handling:
        """Answer an update, and renew its claim meanwhile. Without a renewal by `deadline`, break off with "retry"."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(answering)
        try:
            while True:
                await asyncio.wait([task], timeout=min(self._times.renew, max(0.0, deadline - loop.time())))
                if task.done():
                    return task.result()
                asked = loop.time()
                # Check this first: a process that was suspended must not continue during a renewal.
                if asked >= deadline or (renewed := await self._renew(update_id, deadline)) is False:
                    _log.warning("bot_update_deferred", update_id=update_id, reason="claim_lost")
                    return "retry"
                if renewed:
                    deadline = asked + self._times.lose
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    async def _renew(self, update_id: int, answer_by: float) -> bool | None:
        """Renew a claim. Return False if another process has the update, and None if the store did not answer."""
        now, claimed_at = self._clock(), self._claimed_at[update_id]
        # Kept even if the store does not answer, because it may renew the claim nevertheless. It is still earlier than
        # any claim of another process, which can begin only after this process has broken off.
        self._claimed_at[update_id] = now
        try:
            async with asyncio.timeout_at(answer_by):
                return await self._claims.claim_update(self._bot.id, update_id, now, claimed_at) == "claimed"
        except (StoreUnavailable, TimeoutError):
            return None

    async def _answer(
        self, update: Update, hurry: asyncio.Event, seconds: float | None, received_at: float
    ) -> Handling:
        """Answer the update. Return "done" if it succeeded or can never succeed; only a success is timed."""
        try:
            async with asyncio.timeout(seconds):
                for pause in (*self._times.bug_pauses, None):
                    try:
                        refusal = await self._react(update, self._bot, self._bot_id, hurry)
                    except (StoreUnavailable, TelegramForbiddenError, TimeoutError, *_TROUBLE):
                        raise
                    except Exception as error:  # noqa: BLE001 — one poison update must not stop the bot.
                        _log_bug(update.update_id, error)
                        if pause is None:
                            _log.error("bot_update_given_up", update_id=update.update_id)
                        else:
                            await asyncio.sleep(pause)
                    else:
                        if update.callback_query is not None:
                            self._record_tap(refusal, received_at)
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

    def _record_tap(self, refusal: TapRefusal | None, received_at: float) -> None:
        if refusal is None:
            self._observe_tap(asyncio.get_running_loop().time() - received_at)
        else:
            self._count_refused_tap(refusal)

    async def _answer_malformed(self, query: Any) -> None:
        """Answer a tap that cannot be read, because the app shows a progress bar until a tap is answered."""
        if not isinstance(query, dict) or not isinstance(query.get("id"), str) or len(query["id"]) > _QUERY_ID_LENGTH:
            return
        self._count_refused_tap("malformed")
        _log.info("bot_tap_refused", reason="malformed", entities=[], answer="none")
        user = query.get("from")
        language = user.get("language_code") if isinstance(user, dict) else None
        texts = texts_for(language if isinstance(language, str) else None)
        with contextlib.suppress(TelegramAPIError):
            await answer_tap(self._bot, query["id"], texts.unknown, alert=True)


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
    kinds = (parsed.message, parsed.callback_query, parsed.my_chat_member, parsed.managed_bot)
    return parsed if any(kind is not None for kind in kinds) else None


def _log_bug(update_id: int, error: Exception) -> None:
    _log.error("bot_update_failed", update_id=update_id, error=type(error).__name__, stack=describe_stack(error))
