"""The interface of `store.prompts`."""

from collections.abc import Sequence
from typing import Protocol

from taproof.core.model import EndedPrompt, Hint, Renewal, SessionKey, ShownPrompt


class PromptStorage(Protocol):
    """The messages that show sessions to their owners."""

    async def record_prompt(self, prompt: ShownPrompt) -> Hint | None:
        """Record which message shows a session, instead of an earlier one; return the session's hint.

        If the application has cancelled the session, the message must be edited. Return None and record nothing if the
        session does not belong to this account.
        """

    async def renew_prompt(self, prompt: ShownPrompt, tap_id: str, now: int, limit: int, pause: int) -> Renewal:
        """Begin to replace the message that shows a session by a fresh one, because of the tap `tap_id`.

        `record_prompt` ends it. A session has at most `limit` fresh messages, and at most one within `pause` ms. Of
        several taps at the same time, one begins. The same tap begins again until the message is recorded.
        """

    async def find_message(self, key: SessionKey, bot_id: int, messenger_id: str) -> int | None:
        """Return the id of this bot's message that shows a session to this account; None if none is recorded."""

    async def mark_unreachable(self, bot_id: int, messenger_id: str, now: int) -> Sequence[SessionKey]:
        """Give the account's pending sessions with this bot the hint "unreachable"; return the changed ones."""

    async def mark_reachable(self, bot_id: int, messenger_id: str, now: int) -> Sequence[tuple[SessionKey, Hint]]:
        """Give these sessions their earlier hints again; return the changed ones with their hints.

        A session whose prompt was never delivered gets the hint "waiting".
        """

    async def claim_ended_prompts(self, now: int, leased_until: int, limit: int) -> list[EndedPrompt]:
        """Claim messages that must be edited and that no other process holds at `now`. Claims end at `leased_until`."""

    async def finish_prompt(self, ended: EndedPrompt) -> bool:
        """Erase a claimed prompt, because its message needs no edit any more; False if the claim was lost."""

    async def postpone_prompt(self, ended: EndedPrompt, until: int) -> bool:
        """Give up a claim, so that the message is claimed again from `until` on; False if the claim was lost."""

    async def purge_prompts(self, now: int, limit: int) -> int:
        """Erase at most `limit` prompts whose sessions have expired, at the latest; return their number.

        A message that must still be edited is kept for another hour.
        """
