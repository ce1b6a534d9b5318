"""Limits on the messages that the bot sends to one user.

An attacker may get a user to open link after link, until the user taps Confirm only to stop the prompts (MFA fatigue).
The limits also prevent a user who floods the bot from receiving a reply to every message.
"""

from typing import Final, Literal

from taproof.core.clock import MINUTE, Clock
from taproof.core.rate_limit import Gcra, KeyedGcra, Rate

PROMPTS: Final = Rate(10, 10 * MINUTE)
"""The limit on prompts. A session lasts ten minutes, and a person opens one or two links in that time. A burst of ten
allows repeated attempts; after that, one prompt a minute is allowed."""
REPLIES: Final = Rate(20, 10 * MINUTE)
"""The limit on all other replies to messages: help, and the outcome of a link."""

PromptDecision = Literal["allowed", "refused", "ignored"]
"""The decision on a prompt. "refused": the bot must tell the user. "ignored": it is refused too, and the user already
knows."""


class ReplyLimits:
    """Counts messages per user, in the memory of this process. One user's count does not affect other users."""

    def __init__(self, clock: Clock, prompts: Rate = PROMPTS, replies: Rate = REPLIES) -> None:
        self._clock = clock
        self._prompts = KeyedGcra(Gcra(prompts.number, prompts.window, prompts.number))
        self._replies = KeyedGcra(Gcra(replies.number, replies.window, replies.number))
        self._refusals = KeyedGcra(Gcra(1, prompts.window, 1))

    def spend_prompt(self, user_id: int) -> PromptDecision:
        """Return whether a prompt is allowed, and count it if so."""
        now = self._clock()
        if self._prompts.spend(user_id, now):
            return "allowed"
        return "refused" if self._refusals.spend(user_id, now) else "ignored"

    def give_back_prompt(self, user_id: int) -> None:
        """Uncount a prompt that was not shown."""
        self._prompts.give_back(user_id, self._clock())

    def spend_reply(self, user_id: int) -> bool:
        """Return whether a message other than a prompt is allowed, and count it if so."""
        return self._replies.spend(user_id, self._clock())
