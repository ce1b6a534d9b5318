"""Managed bots in the sandbox, as Bot API 9.6 documents them: the link, the update, the token."""

from typing import Any

import httpx
from tests.sandbox.bot import Bot, refused
from tests.sandbox.conftest import ADA, TOKEN, USERNAME, Running


async def create(running: Running, link: str, **fields: str) -> httpx.Response:
    return await running.http.post(f"/sandbox/users/{ADA}/newbot", json={"link": link, **fields})


async def updates(running: Running) -> list[dict[str, Any]]:
    """Return the pending updates about managed bots."""
    found = (await running.call("getUpdates", allowed_updates=["managed_bot"]))["result"]
    return [update["managed_bot"] for update in found]


async def test_a_managed_bot(running: Running) -> None:
    """The manager is notified of the bot, its owner and each new token, and only the manager can read the token."""
    assert (await running.call("getMe"))["result"]["can_manage_bots"] is True
    assert await updates(running) == []
    made = await create(running, f"https://t.me/newbot/{USERNAME}/ada_shop_bot?name=Ada%27s%20shop")
    assert made.status_code == 200, made.text
    shown = made.json()
    assert (shown["username"], shown["name"], shown["can_manage_bots"]) == ("ada_shop_bot", "Ada's shop", False)
    assert "token" not in shown
    (update,) = await updates(running)
    assert (update["user"]["id"], update["bot"]["id"], update["bot"]["is_bot"]) == (ADA, shown["id"], True)
    token = (await running.call("getManagedBotToken", user_id=shown["id"]))["result"]
    assert (await Bot(running.http, token).get_me()).username == "ada_shop_bot"
    revoked = await running.post("bots/ada_shop_bot/revoke", {})
    assert len(await updates(running)) == 2
    assert (await running.call("getManagedBotToken", user_id=shown["id"]))["result"] == revoked["token"] != token


async def test_what_is_refused(running: Running) -> None:
    """No other bot reads a token; a manager without the right, and taken or malformed names, create nothing."""
    link = f"{running.base}/sandbox/newbot/{USERNAME}/ada_shop_bot"
    other = await running.post("bots", {"username": "acme_login_bot"})
    made = (await create(running, link, username="ada_other_bot", name="Other")).json()
    assert (made["username"], made["name"]) == ("ada_other_bot", "Other")
    for user_id in (other["id"], int(TOKEN.partition(":")[0]), 5, "x"):
        answer = await running.call("getManagedBotToken", user_id=user_id)
        assert (answer["error_code"], answer["description"]) == (400, "Bad Request: BOT_INVALID")
    with refused(400, "Bad Request: BOT_INVALID"):
        await Bot(running.http, other["token"]).call("getManagedBotToken", str, user_id=made["id"])
    for wrong, status in (
        (f"https://t.me/newbot/{USERNAME}/ada_other_bot", 400),
        (f"https://t.me/newbot/{USERNAME}/ada_shop", 400),
        (f"https://t.me/newbot/{USERNAME}", 400),
        ("https://t.me/newbot/nobody_bot/ada_shop_bot", 400),
        (f"https://evil.example/sandbox/newbot/{USERNAME}/ada_shop_bot", 400),
        ("https://t.me/newbot/acme_login_bot/ada_shop_bot", 400),
        ("http://[", 400),
    ):
        assert (await create(running, wrong)).status_code == status, wrong
    managed = await running.post(f"bots/{USERNAME}/manage", {"enabled": False})
    assert managed["can_manage_bots"] is False
    denied = await create(running, link)
    assert (denied.status_code, denied.headers["x-error-code"]) == (400, "manager_not_allowed")
    assert (await running.http.post(f"/sandbox/bots/{USERNAME}/manage", json={"enabled": 1})).status_code == 400
