"""The JSON API that acts as the simulated users."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.sandbox.bot import Bot
from tests.sandbox.conftest import ADA, BORIS, TOKEN, USERNAME, EchoBot, Running, buttons, run_sandbox

from taproof.sandbox.telegram.people import Person

ADA_USER = {
    "id": ADA,
    "first_name": "Ada",
    "last_name": "Lovelace",
    "username": "ada",
    "phone": "+12025550101",
    "language_code": "en",
    "has_started": False,
    "has_blocked": False,
}


# ---- users


async def test_users(running: Running) -> None:
    """Three users exist from the start; others can be added, and changed by their id."""
    users = (await running.http.get("/sandbox/users")).json()["users"]
    assert users[0] == ADA_USER
    assert [(user["username"], user["language_code"]) for user in users[1:]] == [(None, "ru"), ("sara_ahmadi", "fa")]
    grace = await running.post("users", {"first_name": " Grace ", "username": "@grace"})
    assert grace == ADA_USER | {
        "id": 1004,
        "first_name": "Grace",
        "last_name": None,
        "username": "grace",
        "phone": "+12025550104",
        "language_code": None,
    }
    changed = await running.post(
        "users", {"id": 1004, "first_name": "<b>&\u202eГ\n", "last_name": "مرا", "phone": "+1555000"}
    )
    assert (changed["first_name"], changed["username"]) == ("<b>&Г", None)
    big = await running.post("users", {"id": 2**52 - 1, "first_name": "x", "language_code": "pt-BR"})
    assert big["id"] == 2**52 - 1
    assert len((await running.http.get("/sandbox/users")).json()["users"]) == 5


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("first_name", (None, "", "\x00 ", 5, "x" * 65)),
        ("id", ("5", True, 0, 2**52, int(TOKEN.split(":")[0]))),
        ("username", ("a b", USERNAME.upper(), "ADA")),
        ("phone", ("call me",)),
        ("language_code", ("english",)),
        ("is_bot", (True,)),
    ],
)
async def test_refused_users(running: Running, field: str, values: tuple[object, ...]) -> None:
    """The refusal names the invalid field, and no user is added or changed."""
    for value in values:
        error = await running.post("users", {"first_name": "x", field: value}, 400)
        assert list(error) == ["error"]
        assert field in error["error"]
    assert len((await running.http.get("/sandbox/users")).json()["users"]) == 3


async def test_users_are_bounded(running: Running) -> None:
    """The thousand-and-first user is refused; existing ones can still be changed."""
    for number in range(3, 1000):
        running.sandbox.bots.people[5000 + number] = Person(5000 + number, "x")
    response = await running.http.post("/sandbox/users", json={"first_name": "x"})
    assert response.headers["x-error-code"] == "too_many_users"
    await running.post("users", {"id": ADA, "first_name": "A"})


# ---- opening, tapping, reading


@pytest.mark.parametrize(
    "link",
    [
        "{base}/sandbox/phone?start=tok_EN-1",
        "http://localhost:9/sandbox/phone?start=tok_EN-1&x=y",
        f"https://t.me/{USERNAME}?start=tok_EN-1",
        f"https://T.me/{USERNAME.upper()}/?start=tok_EN-1",
        f"tg://resolve?domain={USERNAME}&start=tok_EN-1",
    ],
)
async def test_open_sends_start_and_waits_for_the_reply(running: Running, echo: EchoBot, link: str) -> None:
    """Every form of the deeplink sends `/start TOKEN`, and the answer contains the bot's reply."""
    opened = await running.post(f"users/{ADA}/open", {"deeplink": link.format(base=running.base)})
    assert opened["answered"] is True
    assert opened["has_started"] is True
    assert [(message["from"], message["text"]) for message in opened["messages"]] == [
        ("user", "/start tok_EN-1"),
        ("bot", "You wrote 15 characters"),
    ]
    assert opened["messages"][1]["buttons"] == [["Confirm", "Cancel"]]


@pytest.mark.parametrize(
    ("link", "code"),
    [
        ("https://t.me/other_bot?start=x", "deeplink_invalid"),
        ("https://t.me/taproof_sandbox_bot", "deeplink_invalid"),
        ("https://t.me/taproof_sandbox_bot?start=", "deeplink_invalid"),
        ("https://t.me/taproof_sandbox_bot?start=a&start=b", "deeplink_invalid"),
        ("https://t.me/taproof_sandbox_bot?start=a%20b", "deeplink_invalid"),
        (f"https://t.me/taproof_sandbox_bot?start={'a' * 65}", "deeplink_invalid"),
        ("https://evil.example/sandbox/phone?start=x", "deeplink_invalid"),
        ("http://127.0.0.1/other?start=x", "deeplink_invalid"),
        ("http://user@127.0.0.1/sandbox/phone?start=x", "deeplink_invalid"),
        ("tg://resolve?start=x", "deeplink_invalid"),
        ("javascript:alert(1)", "deeplink_invalid"),
        ("http://[/sandbox/phone?start=x", "deeplink_invalid"),
        ("x" * 2049, "invalid_sandbox_request"),
        (None, "invalid_sandbox_request"),
    ],
)
async def test_refused_deeplinks(running: Running, link: str | None, code: str) -> None:
    """A link that is not a valid deeplink of this sandbox is refused and sends nothing."""
    response = await running.http.post(f"/sandbox/users/{ADA}/open", json={"deeplink": link})
    assert (response.status_code, response.headers["x-error-code"]) == (400, code)
    assert await running.messages() == []


async def test_open_without_a_bot_says_so() -> None:
    """When no bot answers, the call ends after some seconds with `answered` false."""
    async with run_sandbox(reply_seconds=0.2) as running:
        opened = await running.post(f"users/{ADA}/open", {"deeplink": f"https://t.me/{USERNAME}?start=x"})
    assert opened["answered"] is False
    assert len(opened["messages"]) == 1


@pytest.mark.parametrize(("button", "data"), [("Confirm", "c:token"), ("Cancel", "x:token"), ("Отмена", "x:token")])
async def test_tap_in_any_language(running: Running, echo: EchoBot, button: str, data: str) -> None:
    """Confirm and Cancel match the bot's two choices in any language; any other label matches literally."""
    echo.labels = ("Да", "Отмена")
    await running.post(f"users/{BORIS}/open", {"deeplink": f"https://t.me/{USERNAME}?start=x"})
    answer = await running.post(f"users/{BORIS}/tap", {"button": button})
    assert answer == {"answered": True, "alert": "Done.", "show_alert": False}
    last = (await running.messages(BORIS))[-1]
    assert (last["text"], last["buttons"], last["edited"]) == (f"You chose {data}", [], True)


async def test_tap_a_label_as_it_is_typed(running: Running, echo: EchoBot) -> None:
    """A straight apostrophe matches a curly one, and the isolates around a name need not be typed."""
    echo.labels = ("\u2068My shop\u2069", "This wasn\u2019t me")
    for typed, data in (("My shop", "c:token"), ("This wasn't me", "x:token")):
        await running.post(f"users/{BORIS}/open", {"deeplink": f"https://t.me/{USERNAME}?start=x"})
        await running.post(f"users/{BORIS}/tap", {"button": typed})
        assert (await running.messages(BORIS))[-1]["text"] == f"You chose {data}"


async def test_tap_names_the_message(running: Running, bot: Bot, echo: EchoBot) -> None:
    """Without an id, the tap is on the newest message with buttons; an id selects an older one."""
    await running.post(f"users/{ADA}/open", {"deeplink": f"https://t.me/{USERNAME}?start=x"})
    old = (await running.messages())[-1]["message_id"]
    await bot.send_message(ADA, "newer", reply_markup=buttons(("Other", "c:2")))
    await bot.send_message(ADA, "without")
    missing = await running.post(f"users/{ADA}/tap", {"button": "Cancel"}, 404)
    assert missing == {"error": "There is no such button. The buttons are: Other."}
    await running.post(f"users/{ADA}/tap", {"button": "Cancel", "message_id": old})
    assert [message["text"] for message in await running.messages() if message["edited"]] == ["You chose x:token"]


async def test_tap_without_buttons(running: Running) -> None:
    """A tap without a message with buttons is 404, and the sentence says what to do."""
    for body in ({"button": "Confirm"}, {"button": "Confirm", "message_id": 5}):
        error = await running.post(f"users/{ADA}/tap", body, 404)
        assert "There is no message with buttons" in error["error"]
    await running.post(f"users/{ADA}/tap", {}, 400)


async def test_a_link_button_is_not_tapped(running: Running) -> None:
    """A button that only opens a link sends nothing to the bot, and the answer says so."""
    await running.post(f"users/{ADA}/send", {"text": "x"})
    keyboard = {"inline_keyboard": [[{"text": "Site", "url": "https://a.example"}]]}
    await running.call("sendMessage", chat_id=ADA, text="x", reply_markup=keyboard)
    await running.post(f"users/{ADA}/tap", {"button": "Site"}, 400)


async def test_a_blocked_bot_hears_nothing(running: Running) -> None:
    """A user who has blocked the bot must unblock it before writing."""
    assert (await running.post(f"users/{ADA}/block", {}))["has_blocked"] is True
    for verb, body in (
        ("send", {"text": "x"}),
        ("share", {"contact": "own"}),
        ("open", {"deeplink": f"https://t.me/{USERNAME}?start=x"}),
    ):
        response = await running.http.post(f"/sandbox/users/{ADA}/{verb}", json=body)
        assert (response.status_code, response.headers["x-error-code"]) == (400, "bot_blocked")
    assert (await running.post(f"users/{ADA}/unblock", {}))["has_blocked"] is False
    await running.post(f"users/{ADA}/send", {"text": "x"})


async def test_waiting_for_messages(running: Running) -> None:
    """A reader is answered when something changes, or with the same version when the time is over."""
    url = f"/sandbox/users/{ADA}/messages"
    version = (await running.http.get(url)).json()["version"]
    assert (await running.http.get(url, params={"wait": 0.1, "after": version})).json()["version"] == version
    waiting = asyncio.create_task(running.http.get(url, params={"wait": 20, "after": version}))
    await running.post(f"users/{ADA}/send", {"text": "x"})
    assert [message["text"] for message in (await waiting).json()["messages"]] == ["x"]
    for bad in ("31", "-1", "nan", "1e3", "x"):
        assert (await running.http.get(url, params={"wait": bad})).status_code == 400


async def test_messages_are_bounded(running: Running) -> None:
    """Of a long chat the newest 500 messages are kept."""
    messenger = running.sandbox.bots.first.messenger
    chat = messenger.chat(ADA)
    for number in range(505):
        messenger.write(chat, str(number))
    texts = [message["text"] for message in await running.messages()]
    assert (len(texts), texts[0], texts[-1]) == (500, "5", "504")


# ---- what bad requests get


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"users/{ADA}/send", {"text": " \n"}),
        (f"users/{ADA}/send", {"text": "x" * 4097}),
        (f"users/{ADA}/block", {"x": 1}),
        ("faults", {"method": "sendMessage"}),
        ("faults", {"method": "sendMessage", "error_code": 200}),
        ("faults", {"method": "", "error_code": 400}),
        ("faults", {"method": "sendMessage", "error_code": 400, "times": 0}),
        ("faults", {"method": "sendMessage", "error_code": 429, "retry_after": "1"}),
    ],
)
async def test_refused_bodies(running: Running, path: str, body: dict[str, Any]) -> None:
    """A value out of bounds is 400 with a sentence."""
    error = await running.post(path, body, 400)
    assert error["error"].endswith(".")


async def test_faults_are_bounded(running: Running) -> None:
    """At most 100 faults wait."""
    for _ in range(100):
        await running.post("faults", {"method": "x", "error_code": 500})
    await running.post("faults", {"method": "x", "error_code": 500}, 400)


@pytest.mark.parametrize("user_id", ["0", "9", "x", "-1", "1001x", "9" * 5000, "١٠٠١x", "%00"])
@pytest.mark.parametrize("verb", ["messages", "send"])
async def test_unknown_users_are_not_found(running: Running, user_id: str, verb: str) -> None:
    """Any unknown id gets 404, in any form."""
    url = f"/sandbox/users/{user_id}/{verb}"
    response = await (running.http.get(url) if verb == "messages" else running.http.post(url, json={"text": "x"}))
    assert (response.status_code, response.headers["x-error-code"]) == (404, "user_not_found")


@pytest.mark.parametrize(
    ("content", "content_type", "status"),
    [
        (b'{"text": "x"}', "text/plain", 400),
        (b'{"text": "x"}', "application/x-www-form-urlencoded", 400),
        (b'{"text": "x"}', "", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"text": "\xff"}', "application/json", 400),
        (b'{"text": "\\ud800"}', "application/json", 400),
        (b"[" * 10_000, "application/json", 400),
        (b'{"text": "' + b"x" * 16_384 + b'"}', "application/json", 413),
    ],
)
async def test_only_small_json_is_read(running: Running, content: bytes, content_type: str, status: int) -> None:
    """Only a small JSON object is accepted, so a form of a foreign page does nothing."""
    response = await running.http.post(
        f"/sandbox/users/{ADA}/send", content=content, headers={"Content-Type": content_type}
    )
    assert response.status_code == status
    assert list(response.json()) == ["error"]
    assert response.headers["x-error-code"]
    assert await running.messages() == []


async def test_no_cross_origin_consent(running: Running) -> None:
    """A preflight request of another site is refused."""
    response = await running.http.options(
        "/sandbox/users", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert response.status_code == 405
    assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "u@localhost", "", "[", "::1"]
)
async def test_foreign_hosts_are_refused(running: Running, host: str) -> None:
    """A foreign name that points to this machine opens neither the API nor the page (DNS rebinding)."""
    for path in ("users", "phone", f"users/{ADA}/messages"):
        response = await running.http.get(f"/sandbox/{path}", headers={"Host": host})
        assert (response.status_code, response.headers["x-error-code"]) == (400, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:9", "[::1]:80", "app.localhost"])
async def test_own_hosts_are_answered(running: Running, host: str) -> None:
    """Every name of this machine is accepted. The bot's calls work under any name, since they carry a token."""
    assert (await running.http.get("/sandbox/users", headers={"Host": host})).status_code == 200
    foreign = await running.http.get(f"/sandbox/bot{TOKEN}/getMe", headers={"Host": "evil.example"})
    assert foreign.status_code == 200


async def test_unknown_addresses_and_methods(running: Running) -> None:
    """Unknown paths and wrong methods get the one error shape."""
    missing = await running.http.get("/sandbox/nothing")
    assert (missing.status_code, missing.headers["x-error-code"]) == (404, "sandbox_path_not_found")
    wrong = await running.http.put("/sandbox/users", json={})
    assert (wrong.status_code, wrong.headers["x-error-code"]) == (405, "sandbox_method_not_allowed")
    assert set(wrong.headers["allow"].split(", ")) >= {"GET", "POST"}
    assert list(missing.json()) == list(wrong.json()) == ["error"]


async def test_a_bug_is_answered_without_leaking(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected failure is a plain 500 in either API, and its message reaches neither caller nor log."""
    said = "what somebody wrote"

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(running.sandbox.bots.first.messenger, "write", fail)
    monkeypatch.setattr(running.sandbox.bots.first.messenger, "answer", fail)
    with capture_logs() as logs:
        assert await running.post(f"users/{ADA}/send", {"text": "x"}, 500) == {"error": "Internal error."}
        answer = await running.call("answerCallbackQuery", callback_query_id="1")
    assert answer == {"ok": False, "error_code": 500, "description": "Internal Server Error"}
    assert [entry["event"] for entry in logs] == ["sandbox_failed", "sandbox_call_failed"]
    assert said not in str(logs)
    assert TOKEN not in str(logs)
