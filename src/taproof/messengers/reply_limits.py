"""How often the bot writes to one user of its own accord, so that it cannot be made to wear somebody out.

Whoever gets a user to open link after link wants them to tap Confirm at last, only to be left in peace. And what
anybody sends to the bot must not become as many messages of it.
"""

from typing import Final, Literal

from taproof.core.clock import MINUTE, Clock
from taproof.core.rate_limit import Gcra, KeyedGcra, Rate

PROMPTS: Final = Rate(10, 10 * MINUTE)
"""A request lives ten minutes and a person opens one or two of them. Ten at once leave room for who tries again and
again; from then on it is one a minute."""
REPLIES: Final = Rate(20, 10 * MINUTE)
"""All other answers to messages: help, and what became of a link."""

Allowance = Literal["allowed", "told", "silent"]
"""Whether a prompt may be shown. "told": not, and it is time to say so; "silent": not, and that was said already."""


class ReplyLimits:
    """Counts by user, in the memory of this process; one user's count delays nobody else.

    Args:
        clock: returns the time in ms.
        prompts: how many prompts a user gets, all of which may come at once.
        replies: how many other messages.
    """

    def __init__(self, clock: Clock, prompts: Rate = PROMPTS, replies: Rate = REPLIES) -> None:
        self._clock = clock
        self._prompts = KeyedGcra(Gcra(prompts.number, prompts.window, prompts.number))
        self._replies = KeyedGcra(Gcra(replies.number, replies.window, replies.number))
        self._told = KeyedGcra(Gcra(1, prompts.window, 1))

    def spend_prompt(self, user_id: int) -> Allowance:
        """Count a prompt if it is allowed."""
        now = self._clock()
        if self._prompts.spend(user_id, now):
            return "allowed"
        return "told" if self._told.spend(user_id, now) else "silent"

    def give_back_prompt(self, user_id: int) -> None:
        """Take back a prompt that was not shown after all."""
        self._prompts.give_back(user_id, self._clock())

    def spend_reply(self, user_id: int) -> bool:
        """Count a message that is no prompt if it is allowed."""
        return self._replies.spend(user_id, self._clock())
