"""The handlers of /sessions, /block, /unblock and "This wasn't me", which users use to control their sign-ins.

A report takes effect immediately, without a second question, because the user may be under attack. The button in the
reply undoes its effect on the user.
"""

from functools import partial

import structlog

from taproof.core.identifiers import is_project_id, session_key
from taproof.core.projects import NamedProject
from taproof.messengers.telegram.chat import ButtonTap, Handlers, PrivateChat, Reply, TapResult
from taproof.messengers.telegram.prompts import keyboard_gone
from taproof.messengers.telegram.user_control_replies import (
    BLOCK,
    REPORT,
    REPORT_SIGN_IN,
    UNBLOCK,
    block_reply,
    blocked_reply,
    read_key,
    reported_reply,
    sessions_reply,
    unblock_reply,
    unblocked_reply,
)
from taproof.service.sessions.decide import Decisions
from taproof.service.sessions.seen import SeenSession
from taproof.service.user_control import UserControl

_log = structlog.get_logger(__name__)


def user_control_handlers(control: UserControl, decisions: Decisions) -> Handlers:
    """Return the handlers of these commands and buttons. They check a tap's data, which is untrusted."""
    handlers = _UserControlHandlers(control, decisions)
    return Handlers(
        commands={"sessions": handlers.show_sessions, "block": handlers.offer_block, "unblock": handlers.offer_unblock},
        taps={
            REPORT: handlers.report_prompt,
            REPORT_SIGN_IN: handlers.report_sign_in,
            BLOCK: partial(handlers.set_block, blocks=True),
            UNBLOCK: partial(handlers.set_block, blocks=False),
        },
    )


class _UserControlHandlers:
    def __init__(self, control: UserControl, decisions: Decisions) -> None:
        self._control = control
        self._decisions = decisions

    async def show_sessions(self, chat: PrivateChat, _payload: str) -> None:
        sign_ins = await self._control.list_sign_ins(chat.user_id, chat.bot_id)
        await chat.send(sessions_reply(chat.texts.control, sign_ins))

    async def offer_block(self, chat: PrivateChat, _payload: str) -> None:
        projects = await self._control.list_blockable(chat.user_id, chat.bot_id)
        await chat.send(block_reply(chat.texts.control, projects))

    async def offer_unblock(self, chat: PrivateChat, _payload: str) -> None:
        projects = await self._control.list_blocks(chat.user_id, chat.bot_id)
        await chat.send(unblock_reply(chat.texts.control, projects))

    async def report_prompt(self, tap: ButtonTap, data: str) -> TapResult:
        if session_key(data) is None:
            await tap.answer(tap.texts.unknown)
            return "unknown_session"
        return await self._show_report(tap, await self._decisions.report_session(data, tap.user_id, tap.bot_id))

    async def report_sign_in(self, tap: ButtonTap, data: str) -> TapResult:
        key = read_key(data)
        if key is None:
            await tap.answer(tap.texts.unknown)
            return "unknown_session"
        return await self._show_report(tap, await self._control.report_sign_in(key, tap.user_id, tap.bot_id))

    async def _show_report(self, tap: ButtonTap, seen: SeenSession) -> TapResult:
        if seen.changed:
            _log.info("sign_in_reported", project_id=seen.project_id, session_id=seen.session_id)
        if seen.outcome == "reported":
            await tap.replace(reported_reply(tap.texts.control, seen), needed=seen.changed)
            if seen.phone_asked:
                await tap.send(keyboard_gone(tap.texts), needed=seen.changed)
            await tap.answer(tap.texts.control.reported_notice)
        elif seen.outcome == "blocked":
            project = NamedProject(seen.project_id, seen.project_name)
            await tap.replace(blocked_reply(tap.texts.control, project), needed=True)
            await tap.answer(tap.texts.control.blocked_notice)
        elif seen.outcome == "foreign":
            await tap.answer(tap.texts.foreign, alert=True)
            return "foreign"
        else:
            return await _show_gone(tap)
        return "done"

    async def set_block(self, tap: ButtonTap, project_id: str, *, blocks: bool) -> TapResult:
        if not is_project_id(project_id):
            await tap.answer(tap.texts.unknown)
            return "unknown_session"
        change = self._control.block_project if blocks else self._control.unblock_project
        project = await change(tap.user_id, project_id, tap.bot_id)
        if project is None:
            return await _show_gone(tap)
        texts = tap.texts.control
        await tap.replace(blocked_reply(texts, project) if blocks else unblocked_reply(texts, project))
        await tap.answer(texts.blocked_notice if blocks else texts.unblocked_notice)
        return "done"


async def _show_gone(tap: ButtonTap) -> TapResult:
    gone = tap.texts.control.gone
    await tap.replace(Reply(gone))
    await tap.answer(gone)
    return "unknown_session"
