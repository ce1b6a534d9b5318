"""The fields that both clients read from answers and send in requests."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.sdk.either_client import ACCOUNT, CONFIRMED, CREATED, PROJECT, EitherClient, ScriptedServer, reply

from taproof import InvalidRequest, RateLimited, UnexpectedAnswer, Usage

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
    """The code is passed on as the service wrote it, and left out of logs; it is None if there is none."""
    server.replies = [reply(200, CREATED | {"match_code": "07"}), reply(200, CREATED)]
    sign_in = client.create_session()
    assert sign_in.match_code == "07"
    assert "07" not in repr(sign_in)
    assert client.create_session().match_code is None


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


def test_a_match_code_of_another_type_is_refused(client: EitherClient, server: ScriptedServer) -> None:
    """A page that shows another number than the messenger offers would lock its users out."""
    server.replies = [reply(200, CREATED | {"match_code": 42})]
    with pytest.raises(UnexpectedAnswer, match="match_code"):
        client.create_session()


def test_the_usage_of_an_account(client: EitherClient, server: ScriptedServer) -> None:
    """A limit may be None."""
    server.replies = [reply(200, ACCOUNT)]
    assert client.read_account().usage == Usage(
        projects=2, projects_limit=3, sign_ins_this_month=120, sign_ins_limit=None
    )


def test_the_fields_of_a_project(client: EitherClient, server: ScriptedServer) -> None:
    """Each field has the type that it is declared with."""
    server.replies = [reply(200, PROJECT)]
    project = client.read_project("proj_1")
    assert (project.phone_required, project.show_context, project.match_code) == (False, True, "on")
    assert project.allowed_origins == ("https://shop.example.com", "https://example.com")
    assert (project.same_device, project.return_urls) == ("offer", ("https://shop.example.com/app",))
    assert project.logo_url == "https://shop.example.com/logo.png"
    assert project.texts == {"default": {"prompt_title": "Members area"}}
    assert project.webhook_events == ("auth.confirmed", "auth.reported")
    assert (project.bot_username, project.bot_broken_at) == ("shop_bot", INSTANT)
    assert (project.webhook_failing_since, project.webhook_turned_off) == (None, None)


def test_a_project_without_a_required_field_is_refused(client: EitherClient, server: ScriptedServer) -> None:
    """A setting that is missing has no default: the client must not claim a value that the service did not send."""
    for name in (
        "phone_required",
        "show_context",
        "match_code",
        "allowed_origins",
        "same_device",
        "return_urls",
        "texts",
        "logo_url",
        "webhook_events",
    ):
        server.replies = [reply(200, {field: value for field, value in PROJECT.items() if field != name})]
        with pytest.raises(UnexpectedAnswer, match=name):
            client.read_project("proj_1")


def test_a_field_of_another_type_is_refused(client: EitherClient, server: ScriptedServer) -> None:
    """No value of another type is passed on."""
    numbers = {"sessions_count", "confirmed_count"}
    for name in PROJECT:
        server.replies = [reply(200, PROJECT | {name: "7" if name in numbers else 7})]
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
    with pytest.raises(TypeError, match="allowed_origins"):
        client.update_project("proj_1", allowed_origins="https://shop.example.com")
    with pytest.raises(TypeError, match="return_urls"):
        client.update_project("proj_1", return_urls="https://shop.example.com/app")
    with pytest.raises(TypeError, match="webhook_events"):
        client.update_project("proj_1", webhook_events="auth.reported")
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


@pytest.mark.parametrize(
    "code", ["origin_not_allowed", "bot_broken", "bot_taken", "bot_token_refused", "plan_limit_reached"]
)
def test_a_refusal_has_its_code(client: EitherClient, server: ScriptedServer, code: str) -> None:
    """Each refusal raises InvalidRequest at once, with its code."""
    server.replies = [reply(400, {"error": "No."}, X_Error_Code=code)]
    with pytest.raises(InvalidRequest) as caught:
        client.create_session()
    assert caught.value.code == code
    with pytest.raises(InvalidRequest) as caught:
        client.update_project("proj_1", bot_token=BOT_TOKEN)
    assert caught.value.code == code
    assert len(server.received) == 2


def test_a_rate_limit_has_its_code(client: EitherClient, server: ScriptedServer) -> None:
    """After its retries, a call reports the reason for the refusal and the time until the next attempt."""
    headers = {"Retry_After": "3", "RateLimit": '"generate";r=0;t=3', "RateLimit_Policy": '"generate";q=10;w=60'}
    server.replies = [reply(429, {"error": "Too many."}, X_Error_Code="rate_limited", **headers)]
    with pytest.raises(RateLimited) as caught:
        client.create_session()
    assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 3.0)


def test_an_error_does_not_show_a_bot_token(client: EitherClient, server: ScriptedServer) -> None:
    """A service or proxy that echoes the request does not put the bot's token into the caller's log."""
    server.replies = [reply(400, {"error": f"Telegram does not know the bot {BOT_TOKEN}."})]
    with pytest.raises(InvalidRequest) as caught:
        client.update_project("proj_1", bot_token=BOT_TOKEN)
    assert str(caught.value) == "Telegram does not know the bot …."
