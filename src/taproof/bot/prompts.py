"""What a user sees of a session: the prompt with its two buttons, and what became of it."""

import html
from dataclasses import dataclass
from typing import Final

from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

from taproof.bot.texts import Texts
from taproof.core.clock import MINUTE, SECOND, iso8601
from taproof.core.names import isolated_name
from taproof.service.signin import SeenSession

CONFIRM: Final = "c"
CANCEL: Final = "x"


@dataclass(frozen=True, slots=True)
class Reply:
    """A message as HTML, with its buttons if it has any."""

    text: str
    buttons: InlineKeyboardMarkup | None = None


def opened_reply(texts: Texts, seen: SeenSession, session_token: str, now: int) -> Reply:
    """Return what answers a user who opened a link at `now` (ms): the prompt if it waits for this user's decision."""
    if seen.outcome != "opened":
        return outcome_reply(texts, seen)
    text = texts.prompt.format(
        project=_project(seen),
        age=_age(texts, now - seen.created_at),
        cancel=texts.cancel_button,
    )
    return Reply(text, _buttons(texts, session_token))


def outcome_reply(texts: Texts, seen: SeenSession) -> Reply:
    """Return the message that takes the prompt's place once the session cannot be decided any more."""
    template = {
        "confirmed": texts.confirmed,
        "cancelled": texts.cancelled,
        "expired": texts.expired,
        "foreign": texts.foreign,
    }.get(seen.outcome, texts.unknown)
    return Reply(template.format(project=_project(seen), when=_when(seen)))


def outcome_notice(texts: Texts, seen: SeenSession) -> str:
    """Return the same as a short pop-up, in plain text."""
    template = {
        "confirmed": texts.confirmed_notice,
        "cancelled": texts.cancelled_notice,
        "expired": texts.expired_notice,
        "foreign": texts.foreign,
    }.get(seen.outcome, texts.unknown)
    return template.format(when=_when(seen))


def _buttons(texts: Texts, session_token: str) -> InlineKeyboardMarkup:
    """Return both buttons in one row and alike: neither is made the easier choice."""
    confirm = InlineKeyboardButton(text=texts.confirm_button, callback_data=f"{CONFIRM}:{session_token}")
    cancel = InlineKeyboardButton(text=texts.cancel_button, callback_data=f"{CANCEL}:{session_token}")
    return InlineKeyboardMarkup(inline_keyboard=[[confirm, cancel]])


def _project(seen: SeenSession) -> str:
    """Return the project's name for HTML.

    It stands in `<code>`, which sets it off from the bot's own words, and in which clients make no links: a name
    such as `t.me/other_bot` or `@someone` would be one tap away from the Confirm button otherwise.
    """
    return f"<code>{html.escape(isolated_name(seen.project_name), quote=False)}</code>"


def _when(seen: SeenSession) -> str:
    """Return the time of the decision as `2026-11-20 22:44 UTC`, isolated so that no right-to-left text reorders it."""
    if seen.decided_at is None:
        return ""
    written = iso8601(seen.decided_at)
    return isolated_name(f"{written[:10]} {written[11:16]} UTC")


def _age(texts: Texts, age: int) -> str:
    """Write an age (ms) so that no number needs a singular: seconds up to two minutes, then minutes."""
    if age < 5 * SECOND:
        return texts.just_now
    if age < 2 * MINUTE:
        return texts.seconds_ago.format(n=age // SECOND)
    return texts.minutes_ago.format(n=age // MINUTE)
