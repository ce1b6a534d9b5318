"""What services have learned since release 0.1.0: read where it is there, missed nowhere, sent only when given."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.sdk.either_client import ACCOUNT, CONFIRMED, CREATED, EitherClient, ScriptedServer, reply

from taproof import InvalidRequest, NotFound, RateLimited, UnexpectedAnswer, Usage

PHONE = "+4915123456789"
BOT_TOKEN = "123456789:AAF-canary_of_a_token_0123456789abcd"
MOMENT = "2026-11-20T22:44:03.127Z"
INSTANT = datetime(2026, 11, 20, 22, 44, 3, 127_000, UTC)
PROJECT = {
    "id": "proj_1",
    "name": "Shop",
    "secret_key_preview": "sk_…abcd",
    "webhook_url": "",
    "is_active": True,
    "public_access": True,
    "collect_phone": True,
    "created_at": MOMENT,
    "sessions_count": 7,
    "confirmed_count": 5,
}
SECRETS = {"secret_key": "sk_" + "a" * 49, "webhook_secret": "whsec_" + "a" * 44}
NEWER = {
    "phone_required": False,
    "show_context": True,
    "match_code": "on",
    "allowed_origins": ["https://shop.example.com", "https://example.com"],
    "bot_username": "shop_bot",
    "bot_broken_at": MOMENT,
}
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
    """The code is handed over as the service wrote it, in no log; without one there is none."""
    server.replies = [reply(200, CREATED | {"match_code": "07"}), reply(200, CREATED)]
    sign_in = client.create_session()
    assert sign_in.match_code == "07"
    assert "07" not in repr(sign_in)
    assert client.create_session().match_code is None


def test_the_phone_number_of_who_confirmed(client: EitherClient, server: ScriptedServer) -> None:
    """The number is there when it was collected, in no log; without one there is none."""
    server.replies = [reply(200, CREATED), reply(200, CONFIRMED | {"messenger_phone": PHONE}), reply(200, CONFIRMED)]
    sign_in = client.create_session()
    result = client.wait_for_user(sign_in)
    assert result.user.messenger_phone == PHONE
    assert PHONE not in repr(result)
    assert client.verify_session(sign_in).user.messenger_phone is None


def test_a_match_code_of_another_type_is_refused(client: EitherClient, server: ScriptedServer) -> None:
    """A page that showed something else than the messenger offers would lock its users out."""
    server.replies = [reply(200, CREATED | {"match_code": 42})]
    with pytest.raises(UnexpectedAnswer, match="match_code"):
        client.create_session()


def test_the_usage_of_an_account(client: EitherClient, server: ScriptedServer) -> None:
    """The usage has limits or none; an older service says nothing of it."""
    usage = {"projects": 2, "projects_limit": 3, "sign_ins_this_month": 120, "sign_ins_limit": None}
    server.replies = [reply(200, ACCOUNT | {"usage": usage}), reply(200, ACCOUNT)]
    assert client.read_account().usage == Usage(
        projects=2, projects_limit=3, sign_ins_this_month=120, sign_ins_limit=None
    )
    assert client.read_account().usage is None


def test_the_newer_fields_of_a_project(client: EitherClient, server: ScriptedServer) -> None:
    """Each is read as what it is; an older service has none of them."""
    server.replies = [reply(200, PROJECT | NEWER), reply(200, PROJECT)]
    project = client.read_project("proj_1")
    assert (project.phone_required, project.show_context, project.match_code) == (False, True, "on")
    assert project.allowed_origins == ("https://shop.example.com", "https://example.com")
    assert (project.bot_username, project.bot_broken_at) == ("shop_bot", INSTANT)
    older = client.read_project("proj_1")
    assert [getattr(older, name) for name in NEWER] == [None] * 6


@pytest.mark.parametrize("field", sorted(NEWER))
def test_a_newer_field_of_another_type_is_refused(client: EitherClient, server: ScriptedServer, field: str) -> None:
    """No value is passed on as something that it is not."""
    server.replies = [reply(200, PROJECT | NEWER | {field: 7})]
    with pytest.raises(UnexpectedAnswer, match=field):
        client.read_project("proj_1")


def test_the_newer_fields_of_a_session(client: EitherClient, server: ScriptedServer) -> None:
    """The number and the time of a report are there when there are such; the number in no log."""
    server.replies = [reply(200, SESSION | {"messenger_phone": PHONE, "reported_at": MOMENT}), reply(200, SESSION)]
    session = client.read_session("sess_1")
    assert (session.messenger_phone, session.reported_at) == (PHONE, INSTANT)
    assert PHONE not in repr(session)
    older = client.read_session("sess_1")
    assert (older.messenger_phone, older.reported_at) == (None, None)


def test_analytics_of_an_older_service(client: EitherClient, server: ScriptedServer) -> None:
    """Before there were reports none were counted: that is not the same as none having come."""
    counts = {"opened": 1, "confirmed": 1, "cancelled": 0, "expired": 0}
    day = {"date": "2026-11-20", "sessions": 1, "unique_users": 1, **counts}
    totals = {"total_sessions": 1, "confirmed_sessions": 1, "unique_users": 1, "conversion_rate": 100.0}
    funnel = {"requested": 1, "used": 1, **counts}
    server.replies = [reply(200, totals | {"daily": [day], "funnel": funnel, "projects": []})]
    analytics = client.read_analytics()
    assert (analytics.daily[0].reported, analytics.funnel.reported) == (None, None)


def test_what_is_not_given_is_not_sent(client: EitherClient, server: ScriptedServer) -> None:
    """Older services refuse fields that they do not know: a call that does not use them works there too."""
    server.replies = [reply(200, PROJECT | SECRETS)]
    client.create_project("Shop")
    client.update_project("proj_1", name="Store")
    created, updated = (each.body for each in server.received)
    assert created == {"name": "Shop", "webhook_url": "", "public_access": True, "collect_phone": False}
    assert updated == {"name": "Store"}


def test_what_is_given_is_sent(client: EitherClient, server: ScriptedServer) -> None:
    """Each setting comes under its own name, also where it is false or empty."""
    server.replies = [reply(200, PROJECT | SECRETS)]
    given: dict[str, Any] = {
        "phone_required": False,
        "show_context": False,
        "match_code": "on",
        "allowed_origins": ("https://shop.example.com",),
        "bot_token": BOT_TOKEN,
    }
    client.create_project("Shop", **given)
    client.update_project("proj_1", **given)
    client.update_project("proj_1", match_code="off", allowed_origins=(), bot_token="")
    sent = given | {"allowed_origins": ["https://shop.example.com"]}
    created, updated, emptied = (each.body for each in server.received)
    assert created == sent | {"name": "Shop", "webhook_url": "", "public_access": True, "collect_phone": False}
    assert updated == sent
    assert emptied == {"match_code": "off", "allowed_origins": [], "bot_token": ""}


def test_origins_are_a_list(client: EitherClient, server: ScriptedServer) -> None:
    """One address in place of a list would be taken for a list of letters: it is refused before anything is sent."""
    server.replies = [reply(200, PROJECT)]
    with pytest.raises(TypeError, match="allowed_origins"):
        client.update_project("proj_1", allowed_origins="https://shop.example.com")
    assert server.received == []


def test_erasing_a_user(client: EitherClient, server: ScriptedServer) -> None:
    """It tells whether there was something to erase; an id leads nowhere else."""
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


def test_erasing_with_an_older_service(client: EitherClient, server: ScriptedServer) -> None:
    """A service that cannot erase says so: nobody is left to think that it was done."""
    server.replies = [reply(404, {"error": "There is nothing at this path."})]
    with pytest.raises(NotFound):
        client.erase_user("1001")


@pytest.mark.parametrize(
    "code", ["origin_not_allowed", "bot_broken", "bot_taken", "bot_token_refused", "plan_limit_reached"]
)
def test_a_refusal_has_its_code(client: EitherClient, server: ScriptedServer, code: str) -> None:
    """Each of them is InvalidRequest, at once, with the code that tells it apart."""
    server.replies = [reply(400, {"error": "No."}, X_Error_Code=code)]
    with pytest.raises(InvalidRequest) as caught:
        client.create_session()
    assert caught.value.code == code
    with pytest.raises(InvalidRequest) as caught:
        client.update_project("proj_1", bot_token=BOT_TOKEN)
    assert caught.value.code == code
    assert len(server.received) == 2


def test_a_rate_limit_has_its_code(client: EitherClient, server: ScriptedServer) -> None:
    """When its retries are used up a call says what it was refused for, and when to come again."""
    headers = {"Retry_After": "3", "RateLimit": '"generate";r=0;t=3', "RateLimit_Policy": '"generate";q=10;w=60'}
    server.replies = [reply(429, {"error": "Too many."}, X_Error_Code="rate_limited", **headers)]
    with pytest.raises(RateLimited) as caught:
        client.create_session()
    assert (caught.value.code, caught.value.retry_after) == ("rate_limited", 3.0)


def test_no_bots_token_is_in_an_error(client: EitherClient, server: ScriptedServer) -> None:
    """A service or proxy that echoes what was sent does not bring the bot's token into the caller's log."""
    server.replies = [reply(400, {"error": f"Telegram does not know the bot {BOT_TOKEN}."})]
    with pytest.raises(InvalidRequest) as caught:
        client.update_project("proj_1", bot_token=BOT_TOKEN)
    assert str(caught.value) == "Telegram does not know the bot …."
