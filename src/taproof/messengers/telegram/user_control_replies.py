"""The messages and buttons for users to list and report sign-ins, and to block and unblock projects."""

import base64
import re
from collections.abc import Sequence
from typing import Final

from taproof.core.names import isolated_name
from taproof.core.projects import NamedProject
from taproof.core.sessions import SessionKey
from taproof.messengers.telegram.chat import Reply
from taproof.messengers.telegram.shown import shown_text, shown_time
from taproof.messengers.telegram.types import InlineKeyboardMarkup, inline_keyboard
from taproof.messengers.texts.catalog import ControlTexts
from taproof.service.sessions.seen import SeenSession
from taproof.service.user_control import RecentSignIn

REPORT: Final = "r"
"""Data of "This wasn't me" on a prompt: `r:<session token>`."""
REPORT_SIGN_IN: Final = "rs"
"""Data of the same button for a confirmed sign-in: `rs:<day>:<hash of the session token>`, at most 52 of the 64
bytes."""
BLOCK: Final = "b"
"""Data of a button that blocks a project: `b:<project id>`. `UNBLOCK` has the same form."""
UNBLOCK: Final = "u"
_KEY: Final = re.compile(r"([0-9]{1,5}):([A-Za-z0-9_-]{43})")


def not_me_button(texts: ControlTexts, session_token: str) -> tuple[str, str]:
    """Return label and data of the prompt's button for a user who did not start the sign-in."""
    return texts.not_me_button, f"{REPORT}:{session_token}"


def not_me_after_withdrawal(texts: ControlTexts, project_id: str) -> InlineKeyboardMarkup:
    """Return the same button for a session that its application cancelled. Only the project is left to block."""
    return inline_keyboard([(texts.not_me_button, f"{BLOCK}:{project_id}")])


def sessions_reply(texts: ControlTexts, sign_ins: Sequence[RecentSignIn]) -> Reply:
    """Return a numbered list of sign-ins, with a button for each one that can be reported."""
    if not sign_ins:
        return Reply(texts.no_sessions)
    lines, rows = [], []
    for number, each in enumerate(sign_ins, 1):
        line = f"{number}. {shown_text(each.project.project_name)}\n{shown_time(each.confirmed_at)}"
        if each.is_reported:
            line = f"{line}\n{texts.already_reported}"
        else:
            rows.append([(f"{number}. {texts.not_me_button}", f"{REPORT_SIGN_IN}:{write_key(each.key)}")])
        lines.append(line)
    text = "\n\n".join([texts.sessions.format(not_me=texts.not_me_button), *lines])
    return Reply(text, inline_keyboard(*rows) if rows else None)


def block_reply(texts: ControlTexts, projects: Sequence[NamedProject]) -> Reply:
    """Return the message that offers projects to block."""
    if not projects:
        return Reply(texts.nothing_to_block.format(not_me=texts.not_me_button))
    return Reply(texts.block, _choices(BLOCK, projects))


def unblock_reply(texts: ControlTexts, projects: Sequence[NamedProject]) -> Reply:
    """Return the message that offers blocked projects to unblock."""
    return Reply(texts.unblock, _choices(UNBLOCK, projects)) if projects else Reply(texts.nothing_to_unblock)


def reported_reply(texts: ControlTexts, seen: SeenSession) -> Reply:
    """Return the message that explains the effect of a report, with a button to unblock the project."""
    template = texts.reported_used if seen.was_used else texts.reported
    if seen.signed_out:
        template = texts.reported_developer
    return _with_unblock_button(texts, template, seen.project_id, seen.project_name)


def blocked_reply(texts: ControlTexts, project: NamedProject) -> Reply:
    """Return the message that confirms a block, with a button to unblock the project."""
    return _with_unblock_button(texts, texts.blocked, project.project_id, project.project_name)


def unblocked_reply(texts: ControlTexts, project: NamedProject) -> Reply:
    """Return the message that confirms that a project is unblocked."""
    return Reply(texts.unblocked.format(project=shown_text(project.project_name)))


def blocked_link_reply(texts: ControlTexts, seen: SeenSession) -> Reply:
    """Return the reply to a blocked project's link: why it does nothing, and a button to unblock the project."""
    return _with_unblock_button(texts, texts.blocked_link, seen.project_id, seen.project_name)


def _with_unblock_button(texts: ControlTexts, template: str, project_id: str, project_name: str) -> Reply:
    """Return a message about a blocked project, with a button that unblocks it."""
    text = template.format(project=shown_text(project_name), unblock=texts.unblock_button)
    return Reply(text, inline_keyboard([(texts.unblock_button, f"{UNBLOCK}:{project_id}")]))


def commands_help(texts: ControlTexts) -> str:
    """Return one line for each command, for the help message."""
    return "\n".join(f"/{name} – {does}" for name, does in described_commands(texts).items())


def described_commands(texts: ControlTexts) -> dict[str, str]:
    """Return the description of each command, by its name without the slash."""
    return {"sessions": texts.sessions_command, "block": texts.block_command, "unblock": texts.unblock_command}


def write_key(key: SessionKey) -> str:
    """Return a session's key as callback data."""
    return f"{key.day}:{base64.urlsafe_b64encode(key.token_hash).rstrip(b'=').decode()}"


def read_key(data: str) -> SessionKey | None:
    """Return the key that `write_key` wrote; None if the data is malformed."""
    found = _KEY.fullmatch(data)
    return None if found is None else SessionKey(int(found[1]), base64.urlsafe_b64decode(f"{found[2]}="))


def _choices(act: str, projects: Sequence[NamedProject]) -> InlineKeyboardMarkup:
    # A label is plain text, so it needs no escaping.
    return inline_keyboard(*([(isolated_name(each.project_name), f"{act}:{each.project_id}")] for each in projects))
