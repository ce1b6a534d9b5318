"""What a user sees of a session: the prompt with its buttons, the question for a phone number, what became of it."""

import html
from typing import Final

from taproof.core.clock import MINUTE, SECOND
from taproof.core.names import isolated_name
from taproof.core.request_context import RequestContext
from taproof.messengers.browsers import UNKNOWN_BROWSER, Browser
from taproof.messengers.telegram.chat import Reply
from taproof.messengers.telegram.shown import shown_project, shown_time
from taproof.messengers.telegram.types import (
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    KeyboardButton,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
)
from taproof.messengers.telegram.user_control_replies import blocked_link_reply, not_me_button
from taproof.messengers.texts.catalog import Texts
from taproof.service.sessions.decide import SeenSession

CONFIRM: Final = "c"
"""`c:<session token>`; so are the next two."""
CANCEL: Final = "x"
WITHOUT_PHONE: Final = "w"
MATCH: Final = "m"
"""`m:<session token>:<which of the three>`."""
_DOMAIN_SHOWN: Final = 60
"""Characters of a page's domain that are shown: the last ones, since whose it is stands at the end."""


def opened_reply(
    texts: Texts, seen: SeenSession, session_token: str, now: int, browser: Browser = UNKNOWN_BROWSER
) -> Reply:
    """Return what answers a user who opened a link at `now` (ms): the prompt if it waits for this user's decision."""
    if seen.outcome == "phone":
        return phone_reply(texts, seen, session_token)
    if seen.outcome != "opened":
        return outcome_reply(texts, seen)
    choose = f"{texts.choose_code.format(cancel=texts.cancel_button)}\n\n" if seen.choices else ""
    text = texts.prompt.format(
        project=shown_project(seen.project_name),
        context=_context(texts, seen.context, browser),
        age=_age(texts, now - seen.created_at),
        choose=choose,
        cancel=texts.cancel_button,
    )
    return Reply(text, _buttons(texts, session_token, seen.choices))


def phone_reply(texts: Texts, seen: SeenSession, session_token: str) -> Reply:
    """Return what takes the place of a prompt that was confirmed where a phone number is asked for."""
    labels = {"share": texts.phone.share_button, "cancel": texts.cancel_button}
    cancel = InlineKeyboardButton(text=texts.cancel_button, callback_data=f"{CANCEL}:{session_token}")
    row = [cancel]
    template = texts.phone.prompt
    if not seen.phone_required:
        label = texts.phone.without_button
        row = [InlineKeyboardButton(text=label, callback_data=f"{WITHOUT_PHONE}:{session_token}"), cancel]
        template = texts.phone.prompt_optional
        labels["without"] = label
    text = template.format(project=shown_project(seen.project_name), **labels)
    return Reply(text, InlineKeyboardMarkup(inline_keyboard=[row, [not_me_button(texts.control, session_token)]]))


def phone_keyboard(texts: Texts, seen: SeenSession) -> Reply:
    """Return the message that brings the button which shares the user's contact: it must be one of its own."""
    return Reply(texts.phone.keyboard.format(project=shown_project(seen.project_name)), keyboard=_keyboard(texts))


def wrong_contact_reply(texts: Texts, seen: SeenSession) -> Reply:
    """Say that only the button counts, and bring it again."""
    wrong = texts.phone.wrong.format(share=texts.phone.share_button)
    return Reply(f"{wrong}\n\n{phone_keyboard(texts, seen).text}", keyboard=_keyboard(texts))


def unasked_contact_reply(texts: Texts) -> Reply:
    """Answer a contact that nobody asked for; a button that was left behind goes."""
    return Reply(texts.phone.unasked, keyboard=ReplyKeyboardRemove())


def keyboard_gone(texts: Texts) -> Reply:
    """Return the message that takes the button away which shares the contact: editing another one cannot."""
    return Reply(texts.phone.over, keyboard=ReplyKeyboardRemove())


def outcome_reply(texts: Texts, seen: SeenSession) -> Reply:
    """Return the message that takes the prompt's place once the session cannot be decided any more."""
    if seen.outcome == "blocked":
        return blocked_link_reply(texts.control, seen)
    template = {
        "confirmed": texts.confirmed,
        "cancelled": texts.cancelled,
        "mismatched": texts.mismatched,
        "expired": texts.expired,
        "foreign": texts.foreign,
    }.get(seen.outcome, texts.unknown)
    return Reply(template.format(project=shown_project(seen.project_name), when=_when(seen)))


def outcome_notice(texts: Texts, seen: SeenSession) -> str:
    """Return the same as a short pop-up, in plain text."""
    template = {
        "confirmed": texts.confirmed_notice,
        "cancelled": texts.cancelled_notice,
        "mismatched": texts.mismatched_notice,
        "expired": texts.expired_notice,
        "blocked": texts.control.blocked_notice,
        "foreign": texts.foreign,
    }.get(seen.outcome, texts.unknown)
    return template.format(when=_when(seen))


def _buttons(texts: Texts, session_token: str, choices: tuple[str, ...]) -> InlineKeyboardMarkup:
    """Return Confirm and Cancel in one row and alike, so that neither is made the easier choice; or the match codes."""
    cancel = InlineKeyboardButton(text=texts.cancel_button, callback_data=f"{CANCEL}:{session_token}")
    not_me = not_me_button(texts.control, session_token)
    if choices:
        codes = [
            InlineKeyboardButton(text=code, callback_data=f"{MATCH}:{session_token}:{place}")
            for place, code in enumerate(choices)
        ]
        return InlineKeyboardMarkup(inline_keyboard=[codes, [cancel], [not_me]])
    confirm = InlineKeyboardButton(text=texts.confirm_button, callback_data=f"{CONFIRM}:{session_token}")
    return InlineKeyboardMarkup(inline_keyboard=[[confirm, cancel], [not_me]])


def _keyboard(texts: Texts) -> ReplyKeyboardMarkup:
    share = KeyboardButton(text=texts.phone.share_button, request_contact=True)
    return ReplyKeyboardMarkup(keyboard=[[share]], one_time_keyboard=True, resize_keyboard=True)


def _context(texts: Texts, context: RequestContext, browser: Browser) -> str:
    """Return a line for each thing that is known of where the request came from."""
    lines = []
    if context.domain:
        lines.append(texts.context.page_line.format(page=_stranger(_end(context.domain))))
    elif context.hides_page:
        lines.append(texts.context.page_line.format(page=isolated_name(texts.context.page_not_told)))
    if browser.program:
        name = browser.program
        if browser.system:
            name = texts.context.browser_on.format(browser=name, system=browser.system)
        lines.append(texts.context.browser_line.format(browser=isolated_name(name)))
    if context.place:
        lines.append(texts.context.place_line.format(place=_stranger(context.place)))
    return "".join(f"{line}\n" for line in lines)


def _stranger(text: str) -> str:
    """Return what somebody else wrote, for HTML: like a project's name it neither breaks out nor becomes a link."""
    return f"<code>{html.escape(isolated_name(text), quote=False)}</code>"


def _end(domain: str) -> str:
    return domain if len(domain) <= _DOMAIN_SHOWN else f"…{domain[-_DOMAIN_SHOWN:]}"


def _when(seen: SeenSession) -> str:
    return "" if seen.decided_at is None else shown_time(seen.decided_at)


def _age(texts: Texts, age: int) -> str:
    """Write an age (ms) so that no number needs a singular: seconds up to two minutes, then minutes."""
    if age < 5 * SECOND:
        return texts.just_now
    if age < 2 * MINUTE:
        return texts.seconds_ago.format(n=age // SECOND)
    return texts.minutes_ago.format(n=age // MINUTE)
