"""Updates that are pushed to a webhook, over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.granian_server import serve
from tests.ports import free_port
from tests.sandbox.bot import Bot, refused
from tests.sandbox.conftest import ADA, BORIS, Running
from tests.waiting import until


class Receiver:
    """A webhook endpoint whose answers a test sets."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self.statuses: list[int] = []
        self.got: list[tuple[str | None, dict[str, Any]]] = []
        self.app = Starlette(routes=[Route("/hook", self._take, methods=["POST"])])

    async def _take(self, request: Request) -> Response:
        self.got.append((request.headers.get("x-telegram-bot-api-secret-token"), json.loads(await request.body())))
        status = self.statuses.pop(0) if self.statuses else 200
        return Response(status_code=status)

    async def wait_for(self, count: int) -> None:
        await until(lambda: len(self.got) >= count, f"{count} updates")

    def texts(self) -> list[str]:
        return [update["message"]["text"] for _, update in self.got]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    stop = await serve(receiver.app, receiver.port)
    yield receiver
    await stop()


async def pending(bot: Bot) -> int:
    return (await bot.get_webhook_info()).pending_update_count


async def test_updates_are_pushed_with_the_secret(running: Running, bot: Bot, receiver: Receiver) -> None:
    """Each update is posted when it arrives, pending ones first, and is removed once it was accepted."""
    await running.post(f"users/{ADA}/send", {"text": "1"})
    await bot.set_webhook(receiver.url, secret_token="s-e_c", allowed_updates=["message"])
    await running.post(f"users/{ADA}/send", {"text": "2"})
    await receiver.wait_for(2)
    assert receiver.texts() == ["1", "2"]
    assert {secret for secret, _ in receiver.got} == {"s-e_c"}

    async def is_empty() -> bool:
        return await pending(bot) == 0

    await until(is_empty)
    info = await bot.get_webhook_info()
    assert (info.url, info.allowed_updates, info.max_connections) == (receiver.url, ["message"], 40)
    assert info.last_error_date is None


async def test_a_refused_update_comes_again_and_keeps_the_order(running: Running, bot: Bot, receiver: Receiver) -> None:
    """Until an update is accepted, the same user's next one waits, and the bot can read the error."""
    receiver.statuses = [503]
    await bot.set_webhook(receiver.url)
    for text in ("1", "2"):
        await running.post(f"users/{ADA}/send", {"text": text})
    await receiver.wait_for(3)
    assert receiver.texts() == ["1", "1", "2"]
    assert receiver.got[0] == receiver.got[1]
    info = await bot.get_webhook_info()
    assert info.last_error_message == "Wrong response from the webhook: 503 Service Unavailable"
    assert info.last_error_date is not None


async def test_one_person_does_not_hold_up_another(running: Running, bot: Bot, receiver: Receiver) -> None:
    """An update that is refused repeatedly delays only the user who caused it."""
    receiver.statuses = [500, 500]
    await bot.set_webhook(receiver.url)
    await running.post(f"users/{ADA}/send", {"text": "stuck"})
    await receiver.wait_for(2)
    await running.post(f"users/{BORIS}/send", {"text": "free"})
    await receiver.wait_for(3)
    assert receiver.texts() == ["stuck", "stuck", "free"]
    assert await pending(bot) >= 1


async def test_no_one_listens(running: Running, bot: Bot, closed_port: int) -> None:
    """A webhook that cannot be reached keeps its updates for later."""
    await bot.set_webhook(f"http://127.0.0.1:{closed_port}/hook")
    await running.post(f"users/{ADA}/send", {"text": "1"})

    async def is_told() -> bool:
        return (await bot.get_webhook_info()).last_error_message == "Connection refused"

    await until(is_told)
    await bot.delete_webhook()
    [update] = await bot.get_updates()
    assert update.message is not None


async def test_webhook_and_polling_exclude_each_other(running: Running, bot: Bot, receiver: Receiver) -> None:
    """While a webhook is set, polls are refused; setting one ends a poll, and deleting it allows polling again."""
    waiting = asyncio.create_task(bot.get_updates(timeout=50))
    await running.until_polled()
    answers = [await running.call("setWebhook", url=receiver.url) for _ in range(2)]
    assert [answer["description"] for answer in answers] == ["Webhook was set", "Webhook is already set"]
    with refused(409, "terminated by setWebhook request"):
        await waiting
    with refused(409, "can't use getUpdates method while webhook is active"):
        await bot.get_updates()
    answers = [await running.call(method) for method in ("deleteWebhook", "setWebhook")]
    assert [answer["description"] for answer in answers] == ["Webhook was deleted", "Webhook is already deleted"]
    assert await bot.get_updates() == []


async def test_pending_updates_can_be_dropped(running: Running, bot: Bot, receiver: Receiver) -> None:
    """`drop_pending_updates` drops the pending updates, with either method."""
    await running.post(f"users/{ADA}/send", {"text": "1"})
    await bot.delete_webhook(drop_pending_updates=True)
    assert await bot.get_updates() == []
    await running.post(f"users/{ADA}/send", {"text": "2"})
    await bot.set_webhook(receiver.url, drop_pending_updates=True)
    await running.post(f"users/{ADA}/send", {"text": "3"})
    await receiver.wait_for(1)
    assert receiver.texts() == ["3"]


@pytest.mark.parametrize(
    ("parameters", "description"),
    [
        ({"url": "http://example.com/"}, "bad webhook: An HTTPS URL must be provided for webhook"),
        ({"url": "https://example.com:8080/"}, "bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443"),
        ({"url": "ftp://example.com/"}, "invalid webhook URL specified"),
        ({"url": "https://"}, "invalid webhook URL specified"),
        ({"url": "https://example.com:x/"}, "invalid webhook URL specified"),
        ({"url": "https://[/"}, "invalid webhook URL specified"),
        ({"secret_token": "x" * 257}, "secret token is too long"),
        ({"secret_token": "a b"}, "secret token contains unallowed characters"),
    ],
)
async def test_refused_webhooks(bot: Bot, parameters: dict[str, Any], description: str) -> None:
    """A URL that the real server refuses is refused here too, except plain HTTP to this machine."""
    with refused(400) as raised:
        await bot.set_webhook(**({"url": "http://localhost:9/"} | parameters))
    assert raised.value.description == f"Bad Request: {description}"
