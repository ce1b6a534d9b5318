"""The messages about a session: the prompt with its buttons, the question for a phone number, and the outcome."""

from typing import Final

from taproof.core.clock import MINUTE, SECOND
from taproof.core.names import isolated_name
from taproof.core.project_texts import own_text
from taproof.core.request_context import RequestContext
from taproof.messengers.browsers import UNKNOWN_BROWSER, Browser
from taproof.messengers.telegram.chat import Reply
from taproof.messengers.telegram.shown import shown_text, shown_time
from taproof.messengers.telegram.types import (
    InlineKeyboardMarkup,
    KeyboardButton,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
    inline_keyboard,
)
from taproof.messengers.telegram.user_control_replies import (
    blocked_link_reply,
    not_me_after_withdrawal,
    not_me_button,
)
from taproof.messengers.texts.catalog import Texts
from taproof.service.sessions.seen import SeenSession

CONFIRM: Final = "c"
"""Data of the Confirm button: `c:<session token>`. The next two have the same form."""
CANCEL: Final = "x"
WITHOUT_PHONE: Final = "w"
MATCH: Final = "m"
"""Data of a match code: `m:<session token>:<index>`, with an index from 0 to 2."""
_DOMAIN_SHOWN: Final = 60
"""Maximum number of characters shown of a page's domain. The last ones are shown, because the end of a domain
identifies its owner."""


def opened_reply(
    texts: Texts, seen: SeenSession, session_token: str, now: int, browser: Browser = UNKNOWN_BROWSER
) -> Reply:
    """Return the reply to a user who opened a link at `now` (ms): the prompt if the session waits for this user."""
    if seen.outcome == "phone":
        return phone_reply(texts, seen, session_token)
    if seen.outcome != "opened":
        return outcome_reply(texts, seen, session_token)
    choose = f"{texts.choose_code.format(cancel=texts.cancel_button)}\n\n" if seen.choices else ""
    text = texts.prompt.format(
        project=shown_text(seen.project_name),
        context=_context(texts, seen.context, browser),
        age=_age(texts, now - seen.created_at),
        choose=choose,
        cancel=texts.cancel_button,
    )
    # The project's title stands above the question, which says what Confirm does, and does not replace it.
    text = _paragraphs(_own_text(texts, seen, "prompt_title"), text)
    return Reply(text, _buttons(texts, session_token, seen.choices), is_protected=seen.has_link_back)


def phone_reply(texts: Texts, seen: SeenSession, session_token: str) -> Reply:
    """Return the message that replaces a confirmed prompt if the project asks for a phone number."""
    labels = {"share": texts.phone.share_button, "cancel": texts.cancel_button}
    cancel = (texts.cancel_button, f"{CANCEL}:{session_token}")
    row = [cancel]
    template = texts.phone.prompt
    if not seen.phone_required:
        label = texts.phone.without_button
        row = [(label, f"{WITHOUT_PHONE}:{session_token}"), cancel]
        template = texts.phone.prompt_optional
        labels["without"] = label
    text = template.format(project=shown_text(seen.project_name), **labels)
    buttons = inline_keyboard(row, [not_me_button(texts.control, session_token)])
    return Reply(text, buttons, is_protected=seen.has_link_back)


def phone_keyboard(texts: Texts, seen: SeenSession) -> Reply:
    """Return the message that shows the button to share the user's contact. A reply keyboard needs its own message."""
    return Reply(texts.phone.keyboard.format(project=shown_text(seen.project_name)), keyboard=_keyboard(texts))


def wrong_contact_reply(texts: Texts, seen: SeenSession) -> Reply:
    """Return the message that asks the user to share only with the button, and shows the button again."""
    wrong = texts.phone.wrong.format(share=texts.phone.share_button)
    return Reply(f"{wrong}\n\n{phone_keyboard(texts, seen).text}", keyboard=_keyboard(texts))


def keyboard_gone(texts: Texts) -> Reply:
    """Return the message that removes the button to share the contact. Editing another message cannot remove it."""
    return Reply(texts.phone.over, keyboard=ReplyKeyboardRemove())


def outcome_reply(texts: Texts, seen: SeenSession, session_token: str) -> Reply:
    """Return the message that replaces the prompt once the session is decided or over."""
    if seen.outcome == "blocked":
        return blocked_link_reply(texts.control, seen)
    template = {
        "confirmed": texts.confirmed,
        "returning": texts.returning,
        "cancelled": texts.cancelled,
        "withdrawn": texts.withdrawn,
        "mismatched": texts.mismatched,
        "expired": texts.expired,
        "foreign": texts.foreign,
    }.get(seen.outcome, texts.unknown)
    project = shown_text(seen.project_name)
    back = texts.back_button.format(project=project)
    text = template.format(project=project, when=_when(seen), back=back)
    if seen.outcome in {"confirmed", "cancelled", "expired"}:
        usual = {"confirmed": texts.confirmed_next, "expired": texts.expired_next}.get(seen.outcome, "")
        text = _paragraphs(text, _own_text(texts, seen, seen.outcome) or usual)
    return Reply(text, _outcome_buttons(texts, seen, session_token), is_protected=seen.has_link_back)


def _own_text(texts: Texts, seen: SeenSession, key: str) -> str:
    """Return the project's own text for HTML; "" if it has none."""
    text = own_text(seen.texts, texts.language, key)
    return shown_text(text) if text else ""


def _paragraphs(*each: str) -> str:
    return "\n\n".join(filter(None, each))


def _outcome_buttons(texts: Texts, seen: SeenSession, session_token: str) -> InlineKeyboardMarkup | None:
    """Return the button back to the page where the sign-in began, and those that still refuse the session."""
    back = None
    if seen.return_link is not None:
        back = (texts.back_button.format(project=isolated_name(seen.project_name)), seen.return_link)
    if seen.outcome == "returning":
        cancel = (texts.cancel_button, f"{CANCEL}:{session_token}")
        return inline_keyboard([cancel], [not_me_button(texts.control, session_token)], link=back)
    if seen.outcome == "withdrawn":
        return not_me_after_withdrawal(texts.control, seen.project_id)
    return None if back is None else inline_keyboard(link=back)


def outcome_notice(texts: Texts, seen: SeenSession) -> str:
    """Return the outcome as a short pop-up in plain text."""
    template = {
        "confirmed": texts.confirmed_notice,
        "returning": texts.returning_notice,
        "cancelled": texts.cancelled_notice,
        "withdrawn": texts.withdrawn_notice,
        "mismatched": texts.mismatched_notice,
        "expired": texts.expired_notice,
        "blocked": texts.control.blocked_notice,
        "foreign": texts.foreign,
    }.get(seen.outcome, texts.unknown)
    return template.format(when=_when(seen))


def _buttons(texts: Texts, session_token: str, choices: tuple[str, ...]) -> InlineKeyboardMarkup:
    """Return the prompt's buttons: Confirm and Cancel, or the match codes and Cancel.

    Confirm and Cancel look alike and share a row, so that neither is the easier choice.
    """
    cancel = (texts.cancel_button, f"{CANCEL}:{session_token}")
    not_me = not_me_button(texts.control, session_token)
    if choices:
        codes = [(code, f"{MATCH}:{session_token}:{index}") for index, code in enumerate(choices)]
        return inline_keyboard(codes, [cancel], [not_me])
    return inline_keyboard([(texts.confirm_button, f"{CONFIRM}:{session_token}"), cancel], [not_me])


def _keyboard(texts: Texts) -> ReplyKeyboardMarkup:
    share = KeyboardButton(text=texts.phone.share_button, request_contact=True)
    return ReplyKeyboardMarkup(keyboard=[[share]], one_time_keyboard=True, resize_keyboard=True)


def _context(texts: Texts, context: RequestContext, browser: Browser) -> str:
    """Return one line for each known fact about the origin of the request."""
    lines = []
    if context.domain:
        lines.append(texts.context.page_line.format(page=shown_text(_end(context.domain))))
    elif context.hides_page:
        lines.append(texts.context.page_line.format(page=isolated_name(texts.context.page_not_told)))
    if browser.program:
        name = browser.program
        if browser.system:
            name = texts.context.browser_on.format(browser=name, system=browser.system)
        lines.append(texts.context.browser_line.format(browser=isolated_name(name)))
    if context.place:
        lines.append(texts.context.place_line.format(place=shown_text(context.place)))
    return "".join(f"{line}\n" for line in lines)


def _end(domain: str) -> str:
    return domain if len(domain) <= _DOMAIN_SHOWN else f"…{domain[-_DOMAIN_SHOWN:]}"


def _when(seen: SeenSession) -> str:
    return "" if seen.decided_at is None else shown_time(seen.decided_at)


def _age(texts: Texts, age: int) -> str:
    """Return an age (ms) in words, without a singular: seconds up to two minutes, then minutes."""
    if age < 5 * SECOND:
        return texts.just_now
    if age < 2 * MINUTE:
        return texts.seconds_ago.format(n=age // SECOND)
    return texts.minutes_ago.format(n=age // MINUTE)
