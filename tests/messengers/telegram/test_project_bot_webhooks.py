"""Webhook delivery for the bots of projects: each has its own address and its own secret."""

import json
from collections.abc import MutableMapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from tests.giving_bots import give_bot
from tests.messengers.telegram.bots_server import ServedBot
from tests.messengers.telegram.conftest import in_background, talking_intake
from tests.messengers.telegram.test_project_bots import SHORT, Farm, farm
from tests.waiting import until

from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable
from taproof.core.project_bots import ProjectBot
from taproof.messengers.telegram.bot_api import Bot, TelegramUnauthorizedError
from taproof.messengers.telegram.connection import BotTokenRefusedError, Reconnection
from taproof.messengers.telegram.project_bot_webhooks import ProjectBotWebhooks
from taproof.messengers.telegram.project_bots import ProjectBotReconnection, ProjectBots
from taproof.messengers.telegram.updates import UpdateIntake
from taproof.messengers.telegram.webhook import keep_webhook

__all__ = ["farm"]  # A fixture, which pytest finds by its name.

BASE = "https://sign-in.example/bot/webhook"
FIRST_KEY = new_master_key(system_entropy)


@dataclass
class Hooked:
    """A farm whose bots receive their updates by webhook."""

    farm: Farm
    keys: Encryptor
    endpoint: ProjectBotWebhooks
    running_bots: ProjectBots
    newer: list[str]
    """The master keys that `keys` returns from now on."""
    check_seconds: float = 0.02

    def secret(self, bot: ServedBot) -> str:
        return self.keys.derive(f"own {bot.id}")

    async def post(self, path: str, secret: str, update: Any) -> int:
        """POST as the messenger does, and return the status."""
        body = json.dumps(update).encode()
        messages: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: MutableMapping[str, Any]) -> None:
            messages.append(message)

        headers = [(b"x-telegram-bot-api-secret-token", secret.encode())]
        await self.endpoint({"type": "http", "method": "POST", "path": path, "headers": headers}, receive, send)
        status: int = messages[0]["status"]
        return status

    def running(self) -> AbstractAsyncContextManager[None]:
        return in_background(self.running_bots.run(0))


@pytest.fixture
async def hooked(farm: Farm) -> Hooked:
    newer: list[str] = []
    keys = Encryptor(FIRST_KEY, lambda: newer.pop() if newer else None)

    def secrets(bot_id: int) -> list[str]:
        return keys.derive_all(f"own {bot_id}")

    def intake(token: str) -> UpdateIntake:
        bot = farm.connect(token)
        return talking_intake(bot, farm.signin, farm.signer, farm.storage, farm.clock, bot_id=bot.id)

    async def receive(bot: Bot, reconnection: Reconnection) -> None:
        url, check_seconds = f"{BASE}/{bot.id}", made.check_seconds
        secret = partial(secrets, bot.id)
        await keep_webhook(bot, url, secret, reconnection, check_seconds=check_seconds, secret_seconds=0.02)

    shown = farm.shown
    running_bots = ProjectBots(
        farm.bots, farm.connect, receive, farm.service_bot, lambda *counts: shown.append(counts), times=SHORT
    )
    made = Hooked(farm, keys, ProjectBotWebhooks(farm.bots, intake, secrets), running_bots, newer)
    return made


async def test_each_bots_webhook_is_set_with_its_own_secret(hooked: Hooked) -> None:
    """Each bot has its own secret, so one bot's secret is not valid for updates of another."""
    bots = [hooked.farm.server.add() for _ in range(3)]
    for bot in bots:
        await hooked.farm.add_project(bot)
    async with hooked.running():
        await until(lambda: all(bot.webhook for bot in bots))
    assert [bot.webhook["url"] for bot in bots] == [f"{BASE}/{bot.id}" for bot in bots]
    assert [bot.webhook["secret_token"] for bot in bots] == [hooked.secret(bot) for bot in bots]
    assert len({bot.webhook["secret_token"] for bot in bots}) == 3
    assert all(bot.webhook["drop_pending_updates"] is False for bot in bots)


async def test_a_changed_webhook_is_set_again(hooked: Hooked) -> None:
    """A missing or foreign webhook, which would stop this project's sign-ins, is replaced."""
    bot = hooked.farm.server.add()
    bot.webhook = {"url": "https://elsewhere.example/", "secret_token": "x"}
    await hooked.farm.add_project(bot)
    async with hooked.running():
        for changed in ({}, {"url": "https://elsewhere.example/"}, {}):
            await until(lambda: bot.webhook.get("url") == f"{BASE}/{bot.id}")
            bot.webhook = changed
        await until(lambda: bot.webhook.get("url") == f"{BASE}/{bot.id}")
        calls = len(bot.of("setWebhook"))
        looks = len(bot.of("getWebhookInfo"))
        await until(lambda: len(bot.of("getWebhookInfo")) > looks + 3)
        assert len(bot.of("setWebhook")) == calls, "one that is set is left alone"


async def test_a_rotated_master_key_gives_each_bot_its_new_secret(hooked: Hooked) -> None:
    """The webhook is set again immediately, and both secrets are accepted until then."""
    hooked.check_seconds = 3600.0
    bot = hooked.farm.server.add()
    await hooked.farm.add_project(bot)
    async with hooked.running():
        await until(lambda: bot.webhook)
        old = hooked.secret(bot)
        hooked.newer.append(f"{new_master_key(system_entropy)},{FIRST_KEY}")
        new = hooked.secret(bot)
        assert new != old
        await until(lambda: bot.webhook["secret_token"] == new)
        for secret in (old, new):
            update = hooked.farm.server.message("/help")
            assert await hooked.post(f"/bot/webhook/{bot.id}", secret, update) == 200
        assert len(bot.of("setWebhook")) == 2


async def test_a_revoked_token_is_found_out_where_nothing_is_polled(hooked: Hooked) -> None:
    """No update arrives for a bot whose token was revoked, so its token is checked regularly."""
    bot, other = hooked.farm.server.add(), hooked.farm.server.add()
    for each in (bot, other):
        await hooked.farm.add_project(each)
    async with hooked.running():
        await until(lambda: bot.webhook and other.webhook)
        bot.revoke()
        await until(lambda: hooked.farm.shown[-1] == (1, 1))
    assert await hooked.farm.broken_at(bot) is not None
    assert await hooked.farm.broken_at(other) is None


async def test_a_sign_in_is_decided_by_what_is_posted(hooked: Hooked) -> None:
    """An update that is posted to a bot's address is handled as that bot's, only once however often it is posted."""
    bot = hooked.farm.server.add()
    project = await hooked.farm.add_project(bot)
    token = await hooked.farm.start_session(project)
    opened, tapped = hooked.farm.server.message(f"/start {token}"), hooked.farm.tap(bot, f"c:{token}")
    for update in (opened, opened, tapped, tapped):
        assert await hooked.post(f"/bot/webhook/{bot.id}", hooked.secret(bot), update) == 200
    assert (await hooked.farm.session(token)).status == "confirmed"
    assert len(bot.of("sendMessage")) == len(bot.of("editMessageText")) == 1


async def test_a_stranger_learns_and_changes_nothing(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the bot's own secret, every address gives the same answer, and the store is not read."""
    bot, other = hooked.farm.server.add(), hooked.farm.server.add()
    token = await hooked.farm.start_session(await hooked.farm.add_project(bot))
    await hooked.farm.add_project(other)
    looked_up: list[int] = []

    async def read_bot(bot_id: int) -> ProjectBot | None:
        looked_up.append(bot_id)
        return None

    monkeypatch.setattr(hooked.farm.bots, "read_bot", read_bot)
    update = hooked.farm.server.message(f"/start {token}")
    paths = [str(bot.id), str(bot.id + 50), "0", "", "²", "9" * 5000, f"{bot.id}/x", "../webhook", f"0{bot.id}"]
    for path in paths:
        for secret in ("", "x", hooked.secret(other), hooked.keys.derive("own")):
            assert await hooked.post(f"/bot/webhook/{path}", secret, update) == 401
    assert looked_up == []
    assert (await hooked.farm.session(token)).opener_id is None
    assert bot.calls == other.calls == []


async def test_an_update_for_a_bot_of_another_project_opens_nothing(hooked: Hooked) -> None:
    """An update belongs to the bot to whose address it was posted, whatever it contains."""
    bot, other = hooked.farm.server.add(), hooked.farm.server.add()
    token = await hooked.farm.start_session(await hooked.farm.add_project(bot))
    await hooked.farm.add_project(other)
    for update in (hooked.farm.server.message(f"/start {token}"), hooked.farm.tap(bot, f"c:{token}")):
        assert await hooked.post(f"/bot/webhook/{other.id}", hooked.secret(other), update) == 200
    session = await hooked.farm.session(token)
    assert (session.status, session.opener_id) == ("pending", None)


async def test_updates_of_a_bot_that_is_gone_are_not_acknowledged(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Updates of a removed, broken or unreadable bot get 503, so the messenger keeps them for a while."""
    bot = hooked.farm.server.add()
    project = await hooked.farm.add_project(bot)
    update = hooked.farm.server.message("/help")

    async def post() -> int:
        return await hooked.post(f"/bot/webhook/{bot.id}", hooked.secret(bot), update)

    found = await hooked.farm.bots.read_bot(bot.id)
    assert found is not None
    assert await hooked.farm.storage.bots.mark_bot_broken(project, found.encrypted_token, 1)
    assert await post() == 503
    await give_bot(hooked.farm.storage, "dev_1", project, None)
    assert await post() == 503
    assert bot.calls == []
    await hooked.farm.give(project, bot, bot.revoke())
    with monkeypatch.context() as patched:

        async def fail(_: int) -> ProjectBot | None:
            raise StoreUnavailable

        patched.setattr(hooked.farm.bots, "read_bot", fail)
        assert await post() == 503
    assert await post() == 200
    assert len(bot.texts()) == 1


async def test_own_reconnection_forgives_what_was_mended() -> None:
    """Only consecutive refusals count."""
    trouble = TelegramUnauthorizedError("Unauthorized")
    reconnection = ProjectBotReconnection(SHORT)
    for _ in range(3):
        await reconnection.wait(trouble)
        reconnection.succeeded()
    await reconnection.wait(trouble)
    with pytest.raises(BotTokenRefusedError):
        await reconnection.wait(trouble)
