"""Sessions that end where they began: the messages that carry the link back, and what the user may still do there."""

import secrets
from typing import Any

import pytest
from tests.messengers.telegram.conftest import (
    ACME,
    WHEN,
    Fault,
    HandClock,
    Phone,
    ScriptedApi,
    add_project,
    opened,
    untagged,
)
from tests.messengers.telegram.phone_asking import Asking
from tests.messengers.telegram.test_ended_prompts import editor_of, withdraw

from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.sdk.code_challenge import code_challenge

EN = LANGUAGES["en"]
GONE = {"remove_keyboard": True}
PAGE = "https://shop.example/sign-in"
PROJECT = "proj_0000000000000000000011"
REMOVED = (EN.phone.removed, GONE)
RETURNING = EN.returning.format(project=ACME, back=EN.back_button.format(project=ACME))
WITH_PHONE = "proj_0000000000000000000012"
OTHER_MESSAGE = "Bad Request: message can't be edited"


@pytest.fixture
async def projects(asking: Asking, clock: HandClock) -> None:
    """Two projects that require the return; one collects phone numbers."""
    more: dict[str, Any] = {"same_device": "require", "allowed_origins": ("https://shop.example",)}
    more["developer_id"] = "dev_pro"
    await add_project(asking.phone.storage, clock(), "Acme & Söhne <shop>", PROJECT, **more)
    more |= {"collect_phone": True, "phone_required": False}
    await add_project(asking.phone.storage, clock(), "Acme & Söhne <shop>", WITH_PHONE, **more)


async def begin(phone: Phone, project_id: str = PROJECT) -> str:
    """Open a new session and tap Confirm; return its token."""
    challenge = code_challenge(secrets.token_urlsafe(32))
    created = await phone.signin.create_session(project_id, public=True, code_challenge=challenge, return_url=PAGE)
    await phone.handle(phone.message(f"/start {created.session_token}"))
    await phone.handle(phone.tap(f"c:{created.session_token}"))
    return created.session_token


def sent_id(api: ScriptedApi, text: str) -> int:
    """Return the id that `ScriptedApi` gave to the last message that was sent with this text."""
    return [n for n, (name, each) in enumerate(api.calls, 1) if name == "sendMessage" and each["text"] == text][-1]


async def withdrawn_message(phone: Phone, api: ScriptedApi, session_token: str) -> int:
    """Cancel a session for its application; return the only message that the bot edits. It must send none."""
    before, sent = len(api.of("editMessageText")), len(api.of("sendMessage"))
    await withdraw(phone, session_token)
    assert await editor_of(phone, phone.bot).edit_some() == 1
    [edit] = api.of("editMessageText")[before:]
    assert edit["text"] == EN.withdrawn.format(project=ACME, when=WHEN)
    assert len(api.of("sendMessage")) == sent
    message_id: int = edit["message_id"]
    return message_id


@pytest.mark.usefixtures("projects")
@pytest.mark.parametrize("kind", ["replaced", "sent anew", "link opened again", "contact", "contact twice", "without"])
async def test_cancel_edits_the_message_with_the_link(kind: str, asking: Asking, bot: Bot, api: ScriptedApi) -> None:
    """A session's latest message is edited, however it was sent, and the keyboard is removed once."""
    phone = asking.phone
    if kind == "sent anew":
        api.fail("editMessageText", Fault(400, OTHER_MESSAGE))
    with_phone = kind in {"contact", "contact twice", "without"}
    session_token = await begin(phone, WITH_PHONE if with_phone else PROJECT)
    if kind == "link opened again":
        await phone.handle(phone.message(f"/start {session_token}"))
    elif kind.startswith("contact"):
        for _ in range(2 if kind == "contact twice" else 1):
            await phone.handle(asking.contact())
        assert (asking.texts()[-1], api.of("sendMessage")[-1]["reply_markup"]) == REMOVED
    elif kind == "without":
        await phone.handle(phone.tap(f"w:{session_token}"))
    assert asking.texts().count(EN.phone.over) == (kind == "without")
    expected = 501 if kind in {"replaced", "without"} else sent_id(api, RETURNING)
    assert await withdrawn_message(phone, api, session_token) == expected


@pytest.mark.usefixtures("projects")
@pytest.mark.parametrize("act", ["x", "r", "withdrawn"])
async def test_a_shared_number_leaves_no_keyboard_to_remove(act: str, asking: Asking, api: ScriptedApi) -> None:
    """After the contact, no end of the session says that the number is no longer requested."""
    session_token = await begin(asking.phone, WITH_PHONE)
    await asking.phone.handle(asking.contact())
    if act == "withdrawn":
        await withdraw(asking.phone, session_token)
    await asking.phone.handle(asking.phone.tap(f"{'x' if act == 'withdrawn' else act}:{session_token}"))
    assert (await asking.phone.session(session_token)).status == "cancelled"
    assert asking.texts()[-1] == EN.phone.removed
    assert EN.phone.over not in asking.texts()


@pytest.mark.usefixtures("projects")
async def test_a_withdrawn_question_removes_its_keyboard_once(asking: Asking, bot: Bot) -> None:
    """A tap before the edit leaves the keyboard to the edit."""
    session_token = await begin(asking.phone, WITH_PHONE)
    await withdraw(asking.phone, session_token)
    await asking.phone.handle(asking.phone.tap(f"x:{session_token}"))
    assert await editor_of(asking.phone, bot).edit_some() == 1
    assert asking.texts().count(EN.phone.over) == 1


@pytest.mark.usefixtures("projects")
@pytest.mark.parametrize("kind", ["sent anew", "contact", "link opened again"])
async def test_messages_that_lead_back_cannot_be_forwarded(kind: str, asking: Asking, api: ScriptedApi) -> None:
    """Messages that show the link, or get it by an edit, are sent protected; others are not."""
    if kind == "sent anew":
        api.fail("editMessageText", Fault(400, OTHER_MESSAGE))
    session_token = await begin(asking.phone, PROJECT if kind == "sent anew" else WITH_PHONE)
    if kind == "link opened again":
        await asking.phone.handle(asking.phone.message(f"/start {session_token}"))
    if kind != "sent anew":
        await asking.phone.handle(asking.contact())
    with_buttons = [each for each in api.of("sendMessage") if "inline_keyboard" in each.get("reply_markup", {})]
    assert len(with_buttons) == (3 if kind == "link opened again" else 2)
    protected = [each for each in api.of("sendMessage") if each.get("protect_content") is True]
    assert protected == with_buttons
    await opened(asking.phone)
    assert "protect_content" not in api.of("sendMessage")[-1]


@pytest.mark.usefixtures("projects")
@pytest.mark.parametrize(("act", "outcome"), [("x", "cancelled"), ("r", "reported")])
@pytest.mark.parametrize("project_id", [PROJECT, WITH_PHONE])
async def test_a_user_may_refuse_after_confirm(act: str, outcome: str, project_id: str, asking: Asking) -> None:
    """Below the link, Cancel and "This wasn't me" end the session and remove the link from the message."""
    phone, api = asking.phone, asking.api
    session_token = await begin(phone, project_id)
    if project_id == WITH_PHONE:
        await asking.phone.handle(asking.contact())
    [shown] = [each for _, each in api.calls if each["text"] == RETURNING and "reply_markup" in each]
    [[back], *others] = shown["reply_markup"]["inline_keyboard"]
    assert back["url"].startswith(f"{PAGE}#taproof_return=")
    assert [each["callback_data"] for row in others for each in untagged(row)] == [
        f"x:{session_token}",
        f"r:{session_token}",
    ]
    sent = len(api.of("sendMessage"))
    await asking.phone.handle(phone.tap(f"{act}:{session_token}"))
    session = await phone.session(session_token)
    assert (session.status, session.identity) == ("cancelled", None)
    assert (session.reported_at is not None) is (outcome == "reported")
    assert back["url"] not in str(api.of("editMessageText")[-1])
    assert api.of("editMessageText")[-1]["text"].startswith(
        getattr(EN.control if act == "r" else EN, outcome).split("\n")[0].format(project=ACME)
    )
    assert len(api.of("sendMessage")) == sent
