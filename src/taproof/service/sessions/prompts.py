"""The messages that show sessions to their owners: whether they can be sent, and which of them must be edited.

The bot records each prompt that it sends. A prompt is needed for three purposes:

- If the user blocks the bot, their pending sessions get the hint "unreachable" until the user unblocks it.
- If the application cancels a session, the bot edits the prompt. A claim is a lease, so another process edits the
  message if this one ends.
- If a tap on a prompt proves nothing, the bot sends a fresh one in its place.
"""

from typing import Final, NamedTuple

from taproof.core.clock import SECOND, Clock
from taproof.core.identifiers import session_key
from taproof.core.prompts import EndedPrompt, Renewal, ShownPrompt
from taproof.core.sessions import SessionKey
from taproof.service.signals import Signals
from taproof.storage.protocol import Storage

LEASE: Final = 90 * SECOND
"""The time (ms) for which a claim prevents other processes from editing a message. An edit takes less than that."""

FIRST_PAUSE: Final = 15 * SECOND
"""The least time (ms) between two attempts to edit a message. The pause doubles while the attempts fail."""

RENEWALS: Final = 3
"""The number of fresh prompts that a session can have."""
RENEWAL_PAUSE: Final = 10 * SECOND
"""The least time (ms) between two fresh prompts of a session, so that quick taps get one."""


class PromptToEdit(NamedTuple):
    """A claimed prompt, with the content of its message. `phone_asked`: a keyboard for the contact may be showing."""

    ended: EndedPrompt
    project_id: str
    project_name: str
    cancelled_at: int
    phone_asked: bool


class Prompts:
    """Records the prompts of one store. `signals` tell the waiting calls of each new hint."""

    def __init__(self, storage: Storage, clock: Clock, *, signals: Signals) -> None:
        self._storage = storage
        self._clock = clock
        self._signals = signals

    async def record_prompt(
        self, session_token: str, bot_id: int, user_id: str, message_id: int | None, language: str
    ) -> None:
        """Record the message that shows a session to its owner. `message_id` is None if the user has blocked the bot.

        A message that was sent shows that the user can be reached again. Repeating the call is safe.
        """
        key = session_key(session_token)
        if key is None:
            return
        hint = await self._storage.prompts.record_prompt(ShownPrompt(key, bot_id, user_id, message_id, language))
        if message_id is None:
            await self.mark_unreachable(bot_id, user_id)
        elif hint == "unreachable":
            await self.mark_reachable(bot_id, user_id)

    async def renew_prompt(self, session_token: str, bot_id: int, user_id: str, language: str, tap_id: str) -> Renewal:
        """Begin to send a fresh prompt in place of the one whose tap was not verified. `record_prompt` ends it."""
        key = session_key(session_token)
        if key is None:
            return Renewal("refused")
        shown = ShownPrompt(key, bot_id, user_id, None, language)
        return await self._storage.prompts.renew_prompt(shown, tap_id, self._clock(), RENEWALS, RENEWAL_PAUSE)

    async def find_message(self, session_token: str, bot_id: int, user_id: str) -> int | None:
        """Return the id of the bot's message that shows a session to its owner; None if it is not known."""
        key = session_key(session_token)
        return None if key is None else await self._storage.prompts.find_message(key, bot_id, user_id)

    async def mark_unreachable(self, bot_id: int, user_id: str) -> None:
        """Record that a user has blocked a bot."""
        for key in await self._storage.prompts.mark_unreachable(bot_id, user_id, self._clock()):
            self._signals.hint_changed(key, "unreachable")

    async def mark_reachable(self, bot_id: int, user_id: str) -> None:
        """Record that a user has unblocked a bot."""
        for key, hint in await self._storage.prompts.mark_reachable(bot_id, user_id, self._clock()):
            self._signals.hint_changed(key, hint)

    async def claim_ended_prompts(self, limit: int) -> list[PromptToEdit]:
        """Claim at most `limit` messages that must be edited. Prompts whose session is gone are erased."""
        now = self._clock()
        found: list[PromptToEdit] = []
        for ended in await self._storage.prompts.claim_ended_prompts(now, now + LEASE, limit):
            key = ended.prompt.key
            session = await self._storage.sessions.read_session(key)
            if session is None or session.cancelled_at is None or ended.prompt.message_id is None:
                await self.finish(ended)
                continue
            phone_asked = await self._phone_asked(key)
            named = session.project_id, session.project_name
            found.append(PromptToEdit(ended, *named, session.cancelled_at, phone_asked))
        return found

    async def _phone_asked(self, key: SessionKey) -> bool:
        """Return whether the keyboard for the contact may be showing. It is removed before the user is sent back."""
        if await self._storage.users.read_phone_request(key) is None:
            return False
        polled = await self._storage.sessions.poll_session(key)
        return polled is not None and polled.hint != "return"

    async def finish(self, ended: EndedPrompt) -> None:
        """Record that a claimed message is edited, or that it never can be."""
        await self._storage.prompts.finish_prompt(ended)

    async def postpone(self, to_edit: PromptToEdit) -> None:
        """Let a process try again later: after `FIRST_PAUSE`, then after as long as the edit is overdue."""
        now = self._clock()
        pause = max(FIRST_PAUSE, now - to_edit.cancelled_at)
        await self._storage.prompts.postpone_prompt(to_edit.ended, now + pause)
