"""The fields that both clients read from answers and send in requests."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.sdk.either_client import CONFIRMED, CREATED, PROJECT, EitherClient, ScriptedServer, reply

from taproof import InvalidRequest, UnexpectedAnswer

PHONE = "+4915123456789"
BOT_TOKEN = "123456789:AAF-canary_of_a_token_0123456789abcd"
MOMENT = "2026-11-20T22:44:03.127Z"
INSTANT = datetime(2026, 11, 20, 22, 44, 3, 127_000, UTC)
SECRETS = {"secret_key": "sk_" + "a" * 49, "webhook_secret": "whsec_" + "a" * 44}
SESSION = {
    "id": "sess_1",
    "project_id": "proj_1",
    "project_name": "Shop",
    "messenger_id": "1001",
    "messenger_name": "Ada",
    "messenger_username": "",
    "status": "used",
    "created_at": MOMENT,
    "confirmed_at": MOMENT,
}


def test_the_match_code_of_a_sign_in(client: EitherClient, server: ScriptedServer) -> None:
    """The code is passed on as the service wrote it, and left out of logs.

    One that is not a text would lock users out.
    """
    answers = (CREATED | {"match_code": "07"}, CREATED, CREATED | {"match_code": 42})
    server.replies = [reply(200, answer) for answer in answers]
    sign_in = client.create_session()
    assert sign_in.match_code == "07"
    assert "07" not in repr(sign_in)
    assert client.create_session().match_code is None
    with pytest.raises(UnexpectedAnswer, match="match_code"):
        client.create_session()


def test_the_phone_number_of_the_user(client: EitherClient, server: ScriptedServer) -> None:
    """The number is there if it was collected, and left out of logs; it is None otherwise."""
    server.replies = [reply(200, CREATED), reply(200, CONFIRMED | {"messenger_phone": PHONE}), reply(200, CONFIRMED)]
    sign_in = client.create_session()
    result = client.wait_for_user(sign_in)
    assert result.user.messenger_phone == PHONE
    assert PHONE not in repr(result)
    assert client.verify_session(sign_in).user.messenger_phone is None


def test_a_developer_can_have_thousands_of_projects(client: EitherClient, server: ScriptedServer) -> None:
    """Their list is longer than other responses may be."""
    server.replies = [reply(200, {"projects": [PROJECT | {"webhook_url": "x" * 2_048}] * 2_000})]
    assert len(client.list_projects()) == 2_000


def test_a_field_of_another_type_is_refused(client: EitherClient, server: ScriptedServer) -> None:
    """A value of another type is never passed on, and a missing value gets no default."""
    numbers = {"sessions_count", "confirmed_count"}
    for name in PROJECT:
        without = {field: value for field, value in PROJECT.items() if field != name}
        may_be_missing = PROJECT[name] is None or name.startswith("bot_")
        answers = [PROJECT | {name: "7" if name in numbers else 7}, *([] if may_be_missing else [without])]
        for answer in answers:
            server.replies = [reply(200, answer)]
            with pytest.raises(UnexpectedAnswer, match=name):
                client.read_project("proj_1")


def test_the_fields_of_a_session(client: EitherClient, server: ScriptedServer) -> None:
    """The phone number and the time of a report are there if the session has them; the number is left out of logs."""
    server.replies = [
        reply(200, SESSION | {"messenger_phone": PHONE, "reported_at": MOMENT}),
        reply(200, SESSION | {"reported_at": None}),
    ]
    session = client.read_session("sess_1")
    assert (session.messenger_phone, session.reported_at) == (PHONE, INSTANT)
    assert PHONE not in repr(session)
    other = client.read_session("sess_1")
    assert (other.messenger_phone, other.reported_at) == (None, None)


def test_omitted_arguments_are_not_sent(client: EitherClient, server: ScriptedServer) -> None:
    """An omitted setting keeps its default or its value."""
    server.replies = [reply(200, PROJECT | SECRETS)]
    client.create_project("Shop")
    client.update_project("proj_1", name="Store")
    created, updated = (each.body for each in server.received)
    assert created == {"name": "Shop"}
    assert updated == {"name": "Store"}


def test_arguments_are_sent(client: EitherClient, server: ScriptedServer) -> None:
    """Each setting is sent under its own name, even if it is false or empty."""
    server.replies = [reply(200, PROJECT | SECRETS)]
    given: dict[str, Any] = {
        "phone_required": False,
        "show_context": False,
        "match_code": "on",
        "allowed_origins": ("https://shop.example.com",),
        "same_device": "require",
        "return_urls": ("https://shop.example.com/app",),
        "logo_url": "https://shop.example.com/logo.png",
        "texts": {"ru": {"confirmed": "Спасибо"}},
        "webhook_events": ("auth.reported",),
        "bot_token": BOT_TOKEN,
    }
    client.create_project("Shop", **given)
    client.update_project("proj_1", **given)
    client.update_project("proj_1", match_code="off", allowed_origins=(), bot_token="")
    sent = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    created, updated, emptied = (each.body for each in server.received)
    assert created == sent | {"name": "Shop"}
    assert updated == sent
    assert emptied == {"match_code": "off", "allowed_origins": [], "bot_token": ""}


def test_invalid_settings_are_not_sent(client: EitherClient, server: ScriptedServer) -> None:
    """A string would be read as a list of letters, and an unknown setting not be set: both are refused unsent."""
    server.replies = [reply(200, PROJECT)]
    for name in ("allowed_origins", "return_urls", "webhook_events"):
        with pytest.raises(TypeError, match=name):
            client.update_project("proj_1", **{name: "https://shop.example.com"})
    with pytest.raises(TypeError, match="public_acces is not a setting"):
        client.update_project("proj_1", public_acces=True)
    assert server.received == []


def test_erasing_a_user(client: EitherClient, server: ScriptedServer) -> None:
    """The call returns whether there was anything to erase; an id cannot change the path."""
    server.replies = [reply(200, {"erased": True}), reply(200, {"erased": False}), reply(200, {"erased": 1})]
    assert client.erase_user("1001") is True
    assert client.erase_user("1001") is False
    with pytest.raises(UnexpectedAnswer, match="erased"):
        client.erase_user("1001")
    assert set(server.lines) == {"DELETE /api/v1/dev/users/1001 HTTP/1.1"}
    for messenger_id in ("", "../projects", "1001/", 1001):
        with pytest.raises(ValueError, match="id"):
            client.erase_user(messenger_id)
    assert len(server.received) == 3


def test_an_error_does_not_show_a_bot_token(client: EitherClient, server: ScriptedServer) -> None:
    """A service or proxy that echoes the request does not put the bot's token into the caller's log."""
    server.replies = [reply(400, {"error": f"Telegram does not know the bot {BOT_TOKEN}."})]
    with pytest.raises(InvalidRequest) as caught:
        client.update_project("proj_1", bot_token=BOT_TOKEN)
    assert str(caught.value) == "Telegram does not know the bot …."
