"""/sessions, /block, /unblock and "This wasn't me" (docs/how-to/for-your-users.md), as users and attackers use them."""

import secrets
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import (
    ACME,
    PROJECT_ID,
    WHEN,
    Fault,
    Phone,
    ScriptedApi,
    add_project,
    opened,
    untagged,
)

from taproof.core.clock import DAY, MINUTE
from taproof.core.identifiers import session_key
from taproof.core.projects import NamedProject
from taproof.core.sessions import SessionKey
from taproof.messengers.telegram.signed_buttons import TAG_LENGTH
from taproof.messengers.telegram.user_control_replies import read_key, reported_reply, sessions_reply, write_key
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.service.sessions.seen import SeenSession
from taproof.service.user_control import SHOWN, RecentSignIn

EN = LANGUAGES["en"]
CONTROL = EN.control
OTHER_ID = "proj_0000000000000000000002"
UNBLOCK = {"text": CONTROL.unblock_button, "callback_data": f"u:{PROJECT_ID}"}


async def confirmed(phone: Phone, user_id: int = 11) -> str:
    session_token = await opened(phone, user_id)
    await phone.handle(phone.tap(f"c:{session_token}", user_id))
    assert (await phone.session(session_token)).status == "confirmed"
    return session_token


def report_of(session_token: str) -> str:
    """Return the data of the button that reports a past sign-in."""
    key = session_key(session_token)
    assert key is not None
    return f"rs:{write_key(key)}"


def buttons_of(message: dict[str, Any]) -> list[dict[str, str]]:
    """Return the buttons below a message, each of which has its own row."""
    rows = message.get("reply_markup", {"inline_keyboard": []})["inline_keyboard"]
    assert all(len(row) == 1 for row in rows)
    return untagged([row[0] for row in rows])


async def reported_count(phone: Phone) -> int:
    return sum(row.reported for row in await phone.storage.counts.read_daily_counts([PROJECT_ID, OTHER_ID], 0))


# ---- "This wasn't me" on a prompt


async def test_report_on_a_prompt_cancels_blocks_and_counts(phone: Phone, api: ScriptedApi) -> None:
    """A tap signs nobody in, blocks the project, and offers Unblock. Repeated reports count once for the developer."""
    session_token = await opened(phone)
    for taps in range(1, 4):
        assert await phone.handle(phone.tap(f"r:{session_token}")) == "done"
        session = await phone.session(session_token)
        assert (session.status, session.identity) == ("cancelled", None)
        assert session.reported_at is not None
        assert await phone.storage.users.is_blocked("11", PROJECT_ID)
        assert await reported_count(phone) == 1
        assert len(api.of("editMessageText")) == taps
        edit = api.of("editMessageText")[-1]
        assert edit["text"] == CONTROL.reported.format(project=ACME, unblock=CONTROL.unblock_button)
        assert buttons_of(edit) == [UNBLOCK]
        assert api.of("answerCallbackQuery")[-1]["text"] == CONTROL.reported_notice


async def test_outcome_of_a_report_reaches_the_user_without_the_prompt(phone: Phone, api: ScriptedApi) -> None:
    """If the prompt was deleted, the answer with its Unblock button is a separate message."""
    session_token = await opened(phone)
    api.fail("editMessageText", Fault(400, "Bad Request: message to edit not found"))
    await phone.handle(phone.tap(f"r:{session_token}"))
    assert buttons_of(api.of("sendMessage")[-1]) == [UNBLOCK]


async def test_link_of_a_blocked_project_is_explained_and_can_be_unblocked(phone: Phone, api: ScriptedApi) -> None:
    """While the project is blocked, no link creates a prompt; after Unblock, the next one does.

    A reported session stays cancelled.
    """
    first = await opened(phone)
    await phone.handle(phone.tap(f"r:{first}"))
    second = await opened(phone)
    shown = api.of("sendMessage")[-1]
    assert shown["text"] == CONTROL.blocked_link.format(project=ACME, unblock=CONTROL.unblock_button)
    assert buttons_of(shown) == [UNBLOCK]
    assert (await phone.session(second)).opener_id is None
    await phone.handle(phone.tap(f"u:{PROJECT_ID}"))
    assert api.of("editMessageText")[-1]["text"] == CONTROL.unblocked.format(project=ACME)
    assert "reply_markup" not in api.of("editMessageText")[-1]
    await phone.handle(phone.message(f"/start {second}"))
    assert (await phone.session(second)).opener_id == "11"
    assert (await phone.session(first)).status == "cancelled"


async def test_confirm_of_a_blocked_project_decides_nothing(phone: Phone, api: ScriptedApi) -> None:
    """After a report, another prompt of the same project cannot be confirmed either."""
    one, two = await opened(phone), await opened(phone)
    await phone.handle(phone.tap(f"r:{one}"))
    await phone.handle(phone.tap(f"c:{two}"))
    assert (await phone.session(two)).status == "pending"
    shown = api.of("editMessageText")[-1]
    assert shown["text"] == CONTROL.blocked_link.format(project=ACME, unblock=CONTROL.unblock_button)


async def test_report_of_an_expired_prompt_blocks_without_a_count(phone: Phone) -> None:
    """A user who sees a stranger's request an hour later can still report it and block the project."""
    session_token = await opened(phone)
    phone.clock.now += 60 * MINUTE
    await phone.handle(phone.tap(f"r:{session_token}"))
    assert await phone.storage.users.is_blocked("11", PROJECT_ID)
    assert await reported_count(phone) == 0


# ---- /sessions


async def test_sessions_lists_the_latest_with_a_button_each(phone: Phone, api: ScriptedApi) -> None:
    """The list shows only the user's own confirmed sign-ins, newest first, with names and times but no token."""
    await add_project(phone.storage, phone.clock(), "Blog", OTHER_ID)
    first = await confirmed(phone)
    await confirmed(phone, 22)
    phone.clock.now += MINUTE
    second = (await phone.signin.create_session(OTHER_ID, public=True)).session_token
    await phone.handle(phone.message(f"/start {second}"))
    await phone.handle(phone.tap(f"c:{second}"))
    await opened(phone)
    await phone.handle(phone.message("/sessions"))
    shown = api.of("sendMessage")[-1]
    assert shown["text"] == (
        f"{CONTROL.sessions.format(not_me=CONTROL.not_me_button)}\n\n"
        "1. <code>\u2068Blog\u2069</code>\n\u20682026-11-20 22:45 UTC\u2069\n\n"
        f"2. {ACME}\n{WHEN}"
    )
    assert buttons_of(shown) == [
        {"text": f"1. {CONTROL.not_me_button}", "callback_data": report_of(second)},
        {"text": f"2. {CONTROL.not_me_button}", "callback_data": report_of(first)},
    ]
    assert first not in str(shown)
    assert all(len(button["callback_data"].encode()) <= 64 - TAG_LENGTH for button in buttons_of(shown))


async def test_sessions_of_a_user_without_any(phone: Phone, api: ScriptedApi) -> None:
    """If the user has no sign-in of the last 30 days, the answer says so."""
    await confirmed(phone)
    phone.clock.now += 31 * DAY
    await phone.handle(phone.message("/sessions"))
    assert api.of("sendMessage")[-1]["text"] == CONTROL.no_sessions


async def test_report_of_an_unused_sign_in_prevents_its_use(phone: Phone, api: ScriptedApi) -> None:
    """The proof is never given out, and the answer says that nobody was signed in."""
    session_token = await confirmed(phone)
    await phone.handle(phone.tap(report_of(session_token)))
    assert (await phone.signin.verify_session(PROJECT_ID, session_token, public=True)).status == "used"
    assert api.of("editMessageText")[-1]["text"] == CONTROL.reported.format(
        project=ACME, unblock=CONTROL.unblock_button
    )
    assert await reported_count(phone) == 1


async def test_report_of_a_sign_in_that_was_used_says_so(phone: Phone, api: ScriptedApi) -> None:
    """A report of a used sign-in says that somebody may be signed in; the list then marks it, without a button."""
    session_token = await confirmed(phone)
    assert (
        await phone.storage.sessions.consume_session((await phone.session(session_token)).key, phone.clock())
        is not None
    )
    await phone.handle(phone.tap(report_of(session_token)))
    shown = api.of("editMessageText")[-1]
    assert shown["text"] == CONTROL.reported_used.format(project=ACME, unblock=CONTROL.unblock_button)
    assert buttons_of(shown) == [UNBLOCK]
    assert await phone.storage.users.is_blocked("11", PROJECT_ID)
    await phone.handle(phone.message("/sessions"))
    assert api.of("sendMessage")[-1]["text"].endswith(f"1. {ACME}\n{WHEN}\n{CONTROL.already_reported}")
    assert buttons_of(api.of("sendMessage")[-1]) == []


async def test_other_peoples_sign_ins_cannot_be_reported(phone: Phone, api: ScriptedApi) -> None:
    """Another user with the button's data or the token cannot change the session or learn about it."""
    waiting, past = await opened(phone), await confirmed(phone)
    for data in (f"r:{waiting}", f"r:{past}", report_of(past), report_of(waiting)):
        edits = len(api.of("editMessageText"))
        await phone.handle(phone.tap(data, 22))
        assert await reported_count(phone) == 0
        assert not await phone.storage.users.is_blocked("22", PROJECT_ID)
        assert "Acme" not in str(api.of("answerCallbackQuery")[-1]) + str(api.of("editMessageText")[edits:])
    assert (await phone.session(waiting)).status == "pending"
    assert (await phone.session(past)).status == "confirmed"


async def test_own_waiting_session_is_no_past_sign_in(phone: Phone) -> None:
    """A forged button of the list for a waiting session does nothing: only its prompt's buttons decide it."""
    session_token = await opened(phone)
    await phone.handle(phone.tap(report_of(session_token)))
    assert (await phone.session(session_token)).status == "pending"
    assert not await phone.storage.users.is_blocked("11", PROJECT_ID)


@pytest.mark.parametrize("language", LANGUAGES)
def test_report_of_a_developers_own_sign_in_says_what_it_ended(language: str) -> None:
    """A report signs the developer out of the service everywhere; the button ends the block of its project."""
    texts = LANGUAGES[language].control
    seen = SeenSession("reported", "Acme & Söhne <shop>", project_id=PROJECT_ID, signed_out=True)
    shown = reported_reply(texts, seen)
    assert shown.text == texts.reported_developer.format(project=ACME, unblock=texts.unblock_button)
    assert shown.buttons is not None
    [[button]] = shown.buttons.inline_keyboard
    assert (button.text, button.callback_data) == (texts.unblock_button, f"u:{PROJECT_ID}")


# ---- /block and /unblock


async def test_block_and_unblock(phone: Phone, api: ScriptedApi) -> None:
    """/block offers the projects that the user signed in to and has not blocked, /unblock the blocked ones."""
    await confirmed(phone)
    await confirmed(phone)
    await phone.handle(phone.message("/block"))
    offer = api.of("sendMessage")[-1]
    assert offer["text"] == CONTROL.block
    assert buttons_of(offer) == [{"text": "\u2068Acme & Söhne <shop>\u2069", "callback_data": f"b:{PROJECT_ID}"}]
    await phone.handle(phone.tap(f"b:{PROJECT_ID}"))
    assert api.of("editMessageText")[-1]["text"] == CONTROL.blocked.format(project=ACME)
    assert buttons_of(api.of("editMessageText")[-1]) == [UNBLOCK]
    assert await phone.storage.users.is_blocked("11", PROJECT_ID)
    await phone.handle(phone.message("/block"))
    nothing = CONTROL.nothing_to_block.format(not_me=CONTROL.not_me_button)
    assert api.of("sendMessage")[-1]["text"] == nothing
    await phone.handle(phone.message("/unblock"))
    assert api.of("sendMessage")[-1]["text"] == CONTROL.unblock
    assert [button["callback_data"] for button in buttons_of(api.of("sendMessage")[-1])] == [f"u:{PROJECT_ID}"]
    await phone.handle(phone.tap(f"u:{PROJECT_ID}"))
    assert not await phone.storage.users.is_blocked("11", PROJECT_ID)
    await phone.handle(phone.message("/unblock"))
    assert api.of("sendMessage")[-1]["text"] == CONTROL.nothing_to_unblock


async def test_blocks_are_each_users_own(phone: Phone) -> None:
    """A user's taps change only that user's blocks."""
    await phone.handle(phone.tap(f"b:{PROJECT_ID}", 11))
    assert not await phone.storage.users.is_blocked("22", PROJECT_ID)
    await phone.handle(phone.tap(f"u:{PROJECT_ID}", 22))
    assert await phone.storage.users.is_blocked("11", PROJECT_ID)


async def test_project_that_is_gone(phone: Phone, api: ScriptedApi) -> None:
    """A button of a deleted project answers that there is nothing left to change."""
    await phone.storage.projects.delete_project("dev_1", PROJECT_ID)
    for act in "bu":
        await phone.handle(phone.tap(f"{act}:{PROJECT_ID}"))
        assert api.of("editMessageText")[-1]["text"] == CONTROL.gone
        assert "reply_markup" not in api.of("editMessageText")[-1]
    assert not await phone.storage.users.is_blocked("11", PROJECT_ID)


# ---- what may not be


@pytest.mark.parametrize(
    "data",
    [
        "",
        "cc",
        "c:",
        "c:{token}x",
        "z:{token}",
        "{token}",
        "r:",
        "r:short",
        "r:{token}x",
        "rs:",
        "rs:20777",
        "rs:x:{hash}",
        "rs:-1:{hash}",
        "rs:999999:{hash}",
        "rs:20777:{hash}A",
        "rs:٢٠٧٧٧:{hash}",
        "b:",
        "b:proj_short",
        "b:{project}\x00",
        "u:{project} ",
        "rz:{token}",
    ],
)
async def test_malformed_data_is_answered_and_changes_nothing(data: str, phone: Phone, api: ScriptedApi) -> None:
    """A modified client can send any callback data, which is answered and changes nothing."""
    session_token = await opened(phone)
    written = report_of(session_token).rpartition(":")[2]
    await phone.handle(phone.tap(data.format(token=session_token, hash=written, project=PROJECT_ID)))
    assert [answer["text"] for answer in api.of("answerCallbackQuery")] == [EN.unknown]
    assert api.of("editMessageText") == []
    assert (await phone.session(session_token)).status == "pending"
    assert not await phone.storage.users.is_blocked("11", PROJECT_ID)


@pytest.mark.parametrize("chat", [{"id": -1001, "type": "supergroup", "title": "G"}, {"id": 33, "type": "private"}])
async def test_nothing_of_this_is_done_outside_the_own_private_chat(chat: dict[str, Any], phone: Phone) -> None:
    """In a group, everybody would see where a user signs in, and a tap from elsewhere may not be the user's."""
    waiting, past = await opened(phone), await confirmed(phone)
    phone.api.calls.clear()
    for command in ("/sessions", "/block", "/unblock"):
        await phone.handle(phone.message(command, chat=chat))
    assert "Acme" not in str(phone.api.calls)
    prompt = {"message_id": 501, "chat": chat, "date": 1795214643, "text": "?"}
    for data in (f"r:{waiting}", report_of(past), f"b:{PROJECT_ID}"):
        await phone.handle(phone.tap(data, message=prompt))
    assert await reported_count(phone) == 0
    assert not await phone.storage.users.is_blocked("11", PROJECT_ID)


async def test_forwarded_command_shows_nothing(phone: Phone, api: ScriptedApi) -> None:
    """Text that somebody else wrote is not a command of the user."""
    await confirmed(phone)
    origin = {"type": "hidden_user", "sender_user_name": "Eve", "date": 1}
    await phone.handle(phone.message("/sessions", forward_origin=origin))
    assert "Acme" not in api.of("sendMessage")[-1]["text"]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_everything_is_in_the_users_language(language: str, phone: Phone, api: ScriptedApi) -> None:
    """`language_code` chooses these texts too, the labels included."""
    texts = LANGUAGES[language].control
    user = {"from": phone.user(language_code=language)}
    session_token = await confirmed(phone)
    await phone.handle(phone.message("/sessions", **user))
    assert buttons_of(api.of("sendMessage")[-1])[0]["text"] == f"1. {texts.not_me_button}"
    await phone.handle(phone.tap(report_of(session_token), **user))
    assert buttons_of(api.of("editMessageText")[-1])[0]["text"] == texts.unblock_button
    await phone.handle(phone.message("/unblock", **user))
    assert api.of("sendMessage")[-1]["text"] == texts.unblock


def test_longest_list_fits_a_message() -> None:
    """Ten projects with the longest names fit in a message of 4,096 characters without tags, in every language."""
    name = "\N{ARABIC LETTER ALEF}" * 100
    key = SessionKey(99_999, secrets.token_bytes(32))
    longest = [RecentSignIn(key, NamedProject(PROJECT_ID, name), 0, is_reported=True)] * SHOWN
    for texts in LANGUAGES.values():
        assert len(sessions_reply(texts.control, longest).text) < 4_096


@pytest.mark.parametrize("day", [0, 20_777, 65_535])
def test_key_in_a_button_comes_back(day: int) -> None:
    """The key in a button's data identifies exactly one session."""
    key = SessionKey(day, secrets.token_bytes(32))
    assert read_key(write_key(key)) == key


async def test_nothing_personal_is_logged(phone: Phone, api: ScriptedApi) -> None:
    """No log line contains a token, a name or a user id."""
    with capture_logs() as logs:
        waiting, past = await opened(phone, 4242424242), await confirmed(phone, 4242424242)
        for data in (f"r:{waiting}", report_of(past), f"b:{PROJECT_ID}"):
            await phone.handle(phone.tap(data, 4242424242))
        await phone.handle(phone.message("/sessions", 4242424242))
    assert [entry["event"] for entry in logs].count("sign_in_reported") == 2
    for secret in (waiting, past, "Ada", "Acme", "4242424242", report_of(past)):
        assert secret not in str(logs)


async def test_hostile_project_names_are_only_text(phone: Phone, api: ScriptedApi) -> None:
    """In lists, answers and labels, a name is plain text that cannot reorder the text around it."""
    await add_project(phone.storage, phone.clock(), "</code><b>Bank</b>\u202e", OTHER_ID)
    session_token = (await phone.signin.create_session(OTHER_ID, public=True)).session_token
    await phone.handle(phone.message(f"/start {session_token}"))
    await phone.handle(phone.tap(f"c:{session_token}"))
    for command in ("/sessions", "/block"):
        await phone.handle(phone.message(command))
    for data in (f"b:{OTHER_ID}", f"u:{OTHER_ID}", report_of(session_token)):
        await phone.handle(phone.tap(data))
    await phone.handle(phone.message("/unblock"))
    listed, block, unblock = api.of("sendMessage")[-3:]
    for text in [listed["text"], *(edit["text"] for edit in api.of("editMessageText")[-3:])]:
        assert "<code>\u2068&lt;/code&gt;&lt;b&gt;Bank&lt;/b&gt;\u2069</code>" in text
    for offer in (block, unblock):
        assert [button["text"] for button in buttons_of(offer)] == ["\u2068</code><b>Bank</b>\u2069"]
    assert "\u202e" not in str(api.calls)
