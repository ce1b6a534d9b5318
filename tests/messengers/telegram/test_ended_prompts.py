"""Prompts of sessions that the application cancelled, and users who block the bot while a session waits for them."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import ACME, PROJECT_ID, WHEN, Fault, Phone, ScriptedApi, opened
from tests.messengers.telegram.phone_asking import Asking
from tests.waiting import until

from taproof.core.clock import MINUTE, SECOND
from taproof.core.errors import StoreUnavailable
from taproof.core.identifiers import session_key
from taproof.core.prompts import EndedPrompt
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.ended_prompts import EndedPrompts
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.sandbox.telegram.html import parse_html
from taproof.service.sessions.prompts import FIRST_PAUSE, LEASE

EN = LANGUAGES["en"]
TAPPED = 501
"""The id of every message in which `Phone` taps."""


@pytest.fixture
def editor(phone: Phone, bot: Bot) -> EndedPrompts:
    return editor_of(phone, bot)


def editor_of(phone: Phone, bot: Bot | None) -> EndedPrompts:
    async def find_bot(_: int) -> Bot | None:
        return bot

    return EndedPrompts(phone.signin.prompts, find_bot, phone.signer, phone.signin.ended)


async def withdraw(phone: Phone, session_token: str) -> None:
    session = await phone.session(session_token)
    answer = await phone.signin.withdraw_session(session.project_id, session_token, public=False)
    assert answer == ("cancelled", True)


async def hint_of(phone: Phone, session_token: str) -> str | None:
    key = session_key(session_token)
    assert key is not None
    polled = await phone.storage.sessions.poll_session(key)
    assert polled is not None
    return polled.hint


def membership(phone: Phone, status: str, chat_type: str = "private", user_id: int = 11) -> dict[str, Any]:
    chat = {"id": user_id, "type": chat_type, "first_name": "Ada"}
    robot = {"id": 7000000001, "is_bot": True, "first_name": "Sign in"}
    change = {"chat": chat, "from": phone.user(user_id), "date": 1795214643, "old_chat_member": {"status": "x"}}
    return phone.update(my_chat_member={**change, "new_chat_member": {"user": robot, "status": status}})


def as_edited(edit: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a tap in the message that this edit made."""
    chat = {"id": 11, "first_name": "Ada", "type": "private"}
    robot = {"id": 7000000001, "is_bot": True, "first_name": "Sign in"}
    message = {"message_id": edit["message_id"], "from": robot, "chat": chat, "date": 1795214643}
    message |= {"edit_date": 1795214644, "text": parse_html(edit["text"]).text, "reply_markup": edit["reply_markup"]}
    return {"message": message, "from": user}


# ---- the edit


@pytest.mark.parametrize("language", LANGUAGES)
async def test_prompt_is_edited_in_the_users_language(language: str, phone: Phone, editor: EndedPrompts) -> None:
    """The session's latest message says once who cancelled and when. Its only button blocks the project."""
    session_token = await phone.create_session()
    user = {"from": phone.user(language_code=f"{language}-XX")}
    for _ in range(2):
        await phone.handle(phone.message(f"/start {session_token}", 11, **user))
    message_id = len(phone.api.calls)
    assert await editor.edit_some() == 0
    await withdraw(phone, session_token)
    assert [await editor.edit_some() for _ in range(2)] == [1, 0]
    [edit] = phone.api.of("editMessageText")
    assert (edit["chat_id"], edit["message_id"]) == (11, message_id)
    assert edit["text"] == LANGUAGES[language].withdrawn.format(project=ACME, when=WHEN)
    [[not_me]] = edit["reply_markup"]["inline_keyboard"]
    assert not_me["text"] == LANGUAGES[language].control.not_me_button
    await phone.handle(phone.tap_as_is(not_me["callback_data"], 11, **as_edited(edit, user["from"])))
    blocked = phone.api.of("editMessageText")[-1]
    assert blocked["text"] == LANGUAGES[language].control.blocked.format(project=ACME)
    assert await phone.storage.users.is_blocked("11", PROJECT_ID)


async def test_taps_and_links_tell_the_same(phone: Phone, api: ScriptedApi, editor: EndedPrompts) -> None:
    """A tap before the edit changes nothing and says who cancelled.

    So does the link, whether it was opened before or not.
    """
    session_token = await opened(phone)
    await withdraw(phone, session_token)
    for button in ("c", "x", "w"):
        assert await phone.handle(phone.tap(f"{button}:{session_token}")) == "done"
    assert {each["text"] for each in api.of("answerCallbackQuery")} == {EN.withdrawn_notice.format(when=WHEN)}
    assert {each["text"] for each in api.of("editMessageText")} == {EN.withdrawn.format(project=ACME, when=WHEN)}
    await phone.handle(phone.message(f"/start {session_token}"))
    unopened = await phone.create_session()
    await withdraw(phone, unopened)
    await phone.handle(phone.message(f"/start {unopened}", 12))
    assert [each["text"] for each in api.of("sendMessage")[1:]] == [EN.withdrawn.format(project=ACME, when=WHEN)] * 2
    assert (await phone.session(session_token)).status == "cancelled"


async def test_report_before_the_edit_blocks_the_project(phone: Phone, api: ScriptedApi) -> None:
    """A cancelled session cannot be reported, so the message does not say that it was."""
    session_token = await opened(phone)
    await withdraw(phone, session_token)
    await phone.handle(phone.tap(f"r:{session_token}"))
    assert api.of("editMessageText")[-1]["text"] == EN.control.blocked.format(project=ACME)
    assert await phone.storage.users.is_blocked("11", PROJECT_ID)
    assert (await phone.session(session_token)).reported_at is None


async def test_contact_keyboard_is_removed(asking: Asking, bot: Bot) -> None:
    """A user who was asked for their number gets the prompt edited and the button removed."""
    session_token = await asking.begin()
    asking.api.calls.clear()
    assert await hint_of(asking.phone, session_token) == "phone_asked"
    await withdraw(asking.phone, session_token)
    assert await editor_of(asking.phone, bot).edit_some() == 1
    assert [method for method, _ in asking.api.calls] == ["editMessageText", "sendMessage"]
    [edit] = asking.api.of("editMessageText")
    assert edit["message_id"] == TAPPED
    [sent] = asking.api.of("sendMessage")
    assert (sent["text"], sent["reply_markup"]) == (EN.phone.over, {"remove_keyboard": True})


@pytest.mark.parametrize(
    ("fault", "is_final"),
    [
        (Fault(400, "Bad Request: message to edit not found"), True),
        (Fault(400, "Bad Request: message is not modified"), True),
        (Fault(403, "Forbidden: bot was blocked by the user"), True),
        (Fault(500, "Internal Server Error"), False),
        (Fault(502, raw="<html>"), False),
        (Fault(429, "Too Many Requests: retry after 3", {"retry_after": 3}), False),
        (Fault(401, "Unauthorized"), False),
    ],
)
async def test_edit_is_tried_again_unless_it_can_never_work(
    fault: Fault,
    is_final: bool,  # noqa: FBT001 — a table's column.
    phone: Phone,
    api: ScriptedApi,
    editor: EndedPrompts,
) -> None:
    """A failure postpones the edit by a few seconds; a deleted message or a blocked bot ends it."""
    await withdraw(phone, await opened(phone))
    api.fail("editMessageText", fault)
    assert await editor.edit_some() == 1
    phone.clock.now += FIRST_PAUSE - 1
    assert await editor.edit_some() == 0
    phone.clock.now += 1
    assert await editor.edit_some() == (0 if is_final else 1)
    assert len(api.of("editMessageText")) == (1 if is_final else 2)


async def test_attempts_become_rare(phone: Phone, api: ScriptedApi, editor: EndedPrompts) -> None:
    """A broken bot gets a few attempts an hour, the first after 15 seconds. With its new token, the bot edits."""
    await withdraw(phone, await opened(phone))
    began, attempts = phone.clock.now, []
    while phone.clock.now < began + 60 * MINUTE:
        if await editor_of(phone, None).edit_some():
            attempts.append((phone.clock.now - began) // SECOND)
        phone.clock.now += SECOND
    assert attempts == [0, 15, 30, 60, 120, 240, 480, 960, 1920]
    phone.clock.now = began + 3840 * SECOND
    assert await editor.edit_some() == 1
    assert len(api.of("editMessageText")) == 1


async def test_one_failure_stops_no_other_edit(phone: Phone, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug or an outage of the store postpones only its own prompt; the bug is logged."""
    for user in (11, 12, 13, 14):
        await withdraw(phone, await opened(phone, user))
    failures: list[Exception] = [StoreUnavailable(), RuntimeError("bug")]
    finish = phone.signin.prompts.finish

    async def failing(ended: EndedPrompt) -> None:
        if failures:
            raise failures.pop()
        await asyncio.sleep(0)
        await finish(ended)

    monkeypatch.setattr(phone.signin.prompts, "finish", failing)
    with capture_logs() as logs:
        assert await editor_of(phone, phone.bot).edit_some() == 2
    assert [each["error"] for each in logs if each["log_level"] == "error"] == ["RuntimeError"]
    assert {each["chat_id"] for each in api.of("editMessageText")} == {11, 12, 13, 14}
    phone.clock.now += LEASE
    assert await editor_of(phone, phone.bot).edit_some() == 2


async def test_process_that_is_killed_leaves_its_prompts_to_others(phone: Phone, editor: EndedPrompts) -> None:
    """After kill -9 before or after the edit, another process edits once the claim expires."""
    await withdraw(phone, await opened(phone))
    assert len(await phone.signin.prompts.claim_ended_prompts(10)) == 1
    phone.clock.now += LEASE - 1
    assert await editor.edit_some() == 0
    phone.clock.now += 1
    assert await editor.edit_some() == 1
    assert len(phone.api.of("editMessageText")) == 1


async def test_a_deleted_project_needs_no_edit(phone: Phone, api: ScriptedApi, editor: EndedPrompts) -> None:
    """The prompt of a deleted project is not edited or retried."""
    session_token = await opened(phone)
    await withdraw(phone, session_token)
    await phone.storage.projects.delete_project("dev_1", (await phone.session(session_token)).project_id)
    assert [await editor.edit_some() for _ in range(2)] == [0, 0]
    assert phone.storage.database.rows("SELECT COUNT(*) FROM prompts") == [(0,)]
    assert api.of("editMessageText") == []


async def test_it_runs_until_it_is_stopped(phone: Phone, editor: EndedPrompts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation in this process is edited immediately; a bug ends neither the loop nor later edits."""
    stopping = asyncio.Event()
    claim, failures = phone.signin.prompts.claim_ended_prompts, [RuntimeError("bug")]

    async def failing(limit: int) -> Any:
        if failures:
            raise failures.pop()
        return await claim(limit)

    monkeypatch.setattr(phone.signin.prompts, "claim_ended_prompts", failing)
    with capture_logs() as logs:
        running = asyncio.create_task(editor.run_until(stopping))
        await until(lambda: not failures)
        for user in range(11, 26):
            await withdraw(phone, await opened(phone, user))
        await until(lambda: len(phone.api.of("editMessageText")) == 15)
        stopping.set()
        await asyncio.wait_for(running, 20)
    assert [each["event"] for each in logs if each["log_level"] == "error"] == ["prompt_edit_failed"]


# ---- users who block the bot


async def test_blocking_the_bot_is_told_until_it_is_unblocked(phone: Phone) -> None:
    """All pending sessions of that user get the hint, and get their own back after the unblock.

    Groups and others change nothing.
    """
    mine, second = await opened(phone), await opened(phone)
    other = await opened(phone, 12)
    await phone.handle(membership(phone, "kicked", "supergroup"))
    assert await hint_of(phone, mine) == "opened"
    with capture_logs() as logs:
        for _ in range(2):
            assert await phone.handle(membership(phone, "kicked")) == "done"
    assert [entry["event"] for entry in logs] == ["bot_blocked"] * 2
    assert "Ada" not in str(logs)
    assert [await hint_of(phone, each) for each in (mine, second, other)] == ["unreachable", "unreachable", "opened"]
    await phone.handle(membership(phone, "member", "group"))
    assert await hint_of(phone, mine) == "unreachable"
    for _ in range(2):
        assert await phone.handle(membership(phone, "member")) == "done"
    assert [await hint_of(phone, each) for each in (mine, second, other)] == ["opened"] * 3


async def test_prompt_that_is_refused_is_told(phone: Phone, api: ScriptedApi, editor: EndedPrompts) -> None:
    """A 403 on the prompt sets the hint; a later prompt that arrives removes it."""
    session_token = await phone.create_session()
    api.fail("sendMessage", Fault(403, "Forbidden: bot was blocked by the user"))
    assert await phone.handle(phone.message(f"/start {session_token}")) == "done"
    assert await hint_of(phone, session_token) == "unreachable"
    phone.clock.now += MINUTE
    await phone.handle(phone.message(f"/start {session_token}"))
    assert await hint_of(phone, session_token) == "opened"
    api.fail("sendMessage", Fault(403, "Forbidden: bot was blocked by the user"))
    await phone.handle(phone.message(f"/start {session_token}"))
    await withdraw(phone, session_token)
    assert [await editor.edit_some() for _ in range(2)] == [0, 0]
    assert api.of("editMessageText") == []
