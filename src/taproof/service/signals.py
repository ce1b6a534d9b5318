"""Signals of the use cases to the other parts of their process, sent after a change is stored.

Nothing depends on a signal: other processes get none, and this process may end before it sends one. A signal only
makes the rest happen at once instead of a moment later.
"""

from collections.abc import Callable
from dataclasses import dataclass

from taproof.core.session_state import CountedDecision
from taproof.core.sessions import Hint, SessionKey


@dataclass(frozen=True, slots=True)
class Signals:
    """The functions to call after a change is durable. They return immediately. None has a default.

    Args:
        decided: ends the calls that wait for this session.
        hint_changed: ends the calls that wait for this session and know another hint.
        event_recorded: lets the webhook sender look for due events.
        prompt_ended: lets the bot edit the prompts of sessions that their application cancelled.
        count_decision: counts one decision.
    """

    decided: Callable[[SessionKey], None]
    hint_changed: Callable[[SessionKey, Hint], None]
    event_recorded: Callable[[], None]
    prompt_ended: Callable[[], None]
    count_decision: Callable[[CountedDecision], None]
