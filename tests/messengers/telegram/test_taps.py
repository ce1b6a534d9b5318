"""Taps on Confirm and Cancel (contract.md, Messenger), also when the Bot API refuses the reply."""

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import (
    ACME,
    WHEN,
    Fault,
    Phone,
    ScriptedApi,
    add_project,
    opened,
)

from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity
from taproof.messengers.texts.catalog import LANGUAGES

EN = LANGUAGES["en"]
CONFIRMED = f"{EN.confirmed}\n\n{EN.confirmed_next}"
EXPIRED = f"{EN.expired}\n\n{EN.expired_next}"


# ---- taps


async def test_confirm(phone: Phone, api: ScriptedApi) -> None:
    """Confirm records the identity; the message is edited without buttons, and the tap is answered."""
    session_token = await opened(phone)
    assert await phone.handle(phone.tap(f"c:{session_token}")) == "done"
    session = await phone.session(session_token)
    assert session.status == "confirmed"
    assert session.identity == MessengerIdentity("11", "Ada Love", "ada")
    [edit] = api.of("editMessageText")
    assert edit["text"] == CONFIRMED.format(project=ACME, when=WHEN)
    assert (edit["chat_id"], edit["message_id"]) == (11, 501)
    assert "reply_markup" not in edit
    [answer] = api.of("answerCallbackQuery")
    assert answer["text"] == EN.confirmed_notice.format(when=WHEN)
    assert answer["callback_query_id"] == "4382bfdwdsb323b2d9"


async def test_cancel(phone: Phone, api: ScriptedApi) -> None:
    """Cancel ends the session and records no identity."""
    session_token = await opened(phone)
    await phone.handle(phone.tap(f"x:{session_token}"))
    session = await phone.session(session_token)
    assert (session.status, session.identity) == ("cancelled", None)
    assert api.of("editMessageText")[0]["text"] == EN.cancelled.format(project=ACME, when=WHEN)


async def test_user_without_username_or_last_name(phone: Phone) -> None:
    """A missing username is stored as "", and names lose characters that cannot be stored. Ids have up to 52 bits."""
    session_token = await opened(phone, 2**52 - 1)
    user = {"id": 2**52 - 1, "is_bot": False, "first_name": "A\ud800d\x00a 👩‍🚀"}
    await phone.handle(phone.tap(f"c:{session_token}", 2**52 - 1, **{"from": user}))
    assert (await phone.session(session_token)).identity == MessengerIdentity(str(2**52 - 1), "Ada 👩‍🚀", "")


@pytest.mark.parametrize(("first", "second"), [("c", "c"), ("c", "x"), ("x", "c"), ("x", "x")])
async def test_stale_tap_says_what_became_of_it(first: str, second: str, phone: Phone, api: ScriptedApi) -> None:
    """A tap after the decision changes nothing; pop-up and message show the decision and its time."""
    session_token = await opened(phone)
    await phone.handle(phone.tap(f"{first}:{session_token}"))
    phone.clock.now += 3 * MINUTE
    await phone.handle(phone.tap(f"{second}:{session_token}"))
    outcome, notice = (CONFIRMED, EN.confirmed_notice) if first == "c" else (EN.cancelled, EN.cancelled_notice)
    assert api.of("editMessageText")[-1]["text"] == outcome.format(project=ACME, when=WHEN)
    assert api.of("answerCallbackQuery")[-1]["text"] == notice.format(when=WHEN)


async def test_tap_at_the_edge_does_not_confirm(phone: Phone, api: ScriptedApi) -> None:
    """Exactly after ten minutes, a tap confirms nothing, and the prompt says that it expired."""
    session_token = await opened(phone)
    phone.clock.now += 10 * MINUTE
    await phone.handle(phone.tap(f"c:{session_token}"))
    assert (await phone.session(session_token)).identity is None
    assert api.of("editMessageText")[0]["text"] == EXPIRED.format(project=ACME)
    assert api.of("answerCallbackQuery")[0]["text"] == EN.expired_notice


async def test_foreign_tap_gets_an_alert_without_details(phone: Phone, api: ScriptedApi) -> None:
    """A tap of another account, even with a genuine button, decides nothing and reveals nothing."""
    session_token = await opened(phone)
    await phone.handle(phone.tap(f"c:{session_token}", 22))
    assert (await phone.session(session_token)).status == "pending"
    [answer] = api.of("answerCallbackQuery")
    assert (answer["text"], answer["show_alert"]) == (EN.foreign, True)
    assert api.of("editMessageText") == []


async def test_tap_on_a_purged_session(phone: Phone, api: ScriptedApi) -> None:
    """A prompt whose session is gone says so and loses its buttons."""
    await phone.handle(phone.tap("c:" + "A" * 43))
    assert api.of("editMessageText")[0]["text"] == EN.unknown
    assert api.of("answerCallbackQuery")[0]["text"] == EN.unknown


async def test_tap_before_opening_decides_nothing(phone: Phone) -> None:
    """A session that nobody opened has no owner, so no tap can confirm it."""
    session_token = await phone.create_session()
    await phone.handle(phone.tap(f"c:{session_token}"))
    assert (await phone.session(session_token)).status == "pending"


# ---- what the Bot API refuses


@pytest.mark.parametrize(
    ("description", "resent"),
    [
        ("Bad Request: message is not modified: specified new message content is exactly the same", False),
        ("Bad Request: message to edit not found", True),
        ("Bad Request: message can't be edited", True),
        ("Bad Request: MESSAGE_ID_INVALID", True),
    ],
)
async def test_prompt_that_cannot_be_edited(description: str, *, resent: bool, phone: Phone, api: ScriptedApi) -> None:
    """If the prompt cannot be edited, the user learns of the decision in a new message."""
    session_token = await opened(phone)
    api.fail("editMessageText", Fault(400, description))
    assert await phone.handle(phone.tap(f"c:{session_token}")) == "done"
    assert (len(api.of("sendMessage")) == 2) is resent
    assert len(api.of("answerCallbackQuery")) == 1


async def test_tap_that_is_too_old_to_answer(phone: Phone, api: ScriptedApi) -> None:
    """A late pop-up is dropped; the decision and the edited message stay."""
    session_token = await opened(phone)
    refusal = "Bad Request: query is too old and response timeout expired or query ID is invalid"
    api.fail("answerCallbackQuery", Fault(400, refusal))
    assert await phone.handle(phone.tap(f"c:{session_token}")) == "done"
    assert (await phone.session(session_token)).status == "confirmed"
    assert len(api.of("answerCallbackQuery")) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(403, "Forbidden: bot was blocked by the user"),
        Fault(403, "Forbidden: user is deactivated"),
        Fault(400, "Bad Request: chat not found"),
    ],
)
async def test_user_who_cannot_be_reached(fault: Fault, phone: Phone, api: ScriptedApi) -> None:
    """An update of a user who blocked the bot is not repeated."""
    api.fail("sendMessage", Fault(fault.status, fault.description))
    with capture_logs() as logs:
        assert await phone.handle(phone.message("/start")) == "done"
    assert {entry["log_level"] for entry in logs} == {"info"}
    assert len(api.of("sendMessage")) == 1


async def test_flood_limit_is_waited_out(phone: Phone, api: ScriptedApi) -> None:
    """`retry_after` is obeyed for the prompt and for the outcome of a decision, and both are finally sent."""
    for method in ["sendMessage", "editMessageText"]:
        api.fail(method, Fault(429, "Too Many Requests: retry after 1", {"retry_after": 1}))
    session_token = await opened(phone)
    assert await phone.handle(phone.tap(f"c:{session_token}")) == "done"
    assert len(api.of("sendMessage")) == len(api.of("editMessageText")) == 2


async def test_reply_that_decides_nothing_does_not_wait(phone: Phone, api: ScriptedApi) -> None:
    """At the flood limit, help, refusals and replies to stale taps are dropped, and the update is finished."""
    session_token = await opened(phone)
    assert await phone.handle(phone.tap(f"c:{session_token}")) == "done"
    api.calls.clear()
    for method in ["sendMessage", "editMessageText", "answerCallbackQuery"]:
        api.fail(method, Fault(429, "Too Many Requests: retry after 3600", {"retry_after": 3600}, times=99))
    group = {"id": -1, "title": "G", "type": "group"}
    for update in [
        phone.message("hello"),
        phone.message("/start", chat=group),
        phone.message("/start nonsense"),
        phone.message(f"/start {session_token}", 22),
        phone.tap(f"c:{session_token}"),
        phone.tap(f"c:{session_token}", 22),
        phone.tap("x"),
    ]:
        assert await phone.handle(update) == "done"
    methods = [method for method, _ in api.calls]
    assert [methods.count(name) for name in ("sendMessage", "editMessageText", "answerCallbackQuery")] == [4, 1, 3]


async def test_nothing_personal_is_logged(phone: Phone, api: ScriptedApi) -> None:
    """No log line contains a session token, a name or a user's text, even on failures."""
    with capture_logs() as logs:
        session_token = await opened(phone)
        api.fail("editMessageText", Fault(400, "Bad Request: message to edit not found"))
        api.fail("sendMessage", Fault(400, "Bad Request: can't parse entities", times=3))
        await phone.handle(phone.tap(f"c:{session_token}"))
        api.fail("sendMessage", Fault(500, "Internal Server Error"))
        await phone.handle(phone.message(f"/start {session_token}"))
        await phone.handle({"update_id": 5, "message": {"text": session_token, "from": "Ada"}})
    assert logs
    for secret in [session_token, "Ada", "Acme", "ada"]:
        assert secret not in str(logs)


async def test_own_texts_in_the_language_of_the_user(phone: Phone, api: ScriptedApi) -> None:
    """A project's texts are in its prompt and in the outcome; test_prompts.py has each language."""
    texts = {"default": {"confirmed": "Thanks"}, "es": {"prompt_title": "Zona de socios", "confirmed": "Gracias"}}
    await add_project(phone.storage, phone.clock(), "Acme", "proj_0000000000000000000003", texts=texts)
    created = await phone.signin.create_session("proj_0000000000000000000003", public=True)
    user = {"from": phone.user(language_code="es-MX")}
    await phone.handle(phone.message(f"/start {created.session_token}", **user))
    await phone.handle(phone.tap(f"c:{created.session_token}", **user))
    assert api.of("sendMessage")[0]["text"].startswith("<code>\u2068Zona de socios\u2069</code>\n\n")
    assert api.of("editMessageText")[0]["text"].endswith("\n\n<code>\u2068Gracias\u2069</code>")
