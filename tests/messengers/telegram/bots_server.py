"""A Bot API server for many bots over real HTTP: long polls wait, webhooks are recorded, tokens can be revoked.

Written from the Bot API's documentation; see `conftest.py` for the server of one bot, which fails as told.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from taproof.messengers.telegram.signed_buttons import ButtonSigner
from taproof.messengers.telegram.types import InlineKeyboardButton, InlineKeyboardMarkup

Fault = Callable[[], tuple[int, str]]
"""Returns the status and the description of a refusal."""


def tagged(signer: ButtonSigner, bot_id: int, user_id: int, data: str) -> str:
    """Return the data of a button as the service signs it, for a message "Sign in?" whose one button is "Tap"."""
    buttons = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="ButtonTap", callback_data=data)]])
    return signer.sign(bot_id, user_id, "Sign in?", buttons, edited=False).inline_keyboard[0][0].callback_data or ""


@dataclass(eq=False)
class ServedBot:
    """One bot, with the calls that it received and its pending updates."""

    id: int
    username: str
    token: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)
    webhook: dict[str, Any] = field(default_factory=dict)
    commands: list[dict[str, str]] = field(default_factory=list)
    faults: dict[str, Fault] = field(default_factory=dict)
    slowness: float = 0.0
    """Seconds that each call but getUpdates takes."""
    polls: int = 0
    """The long polls that are waiting."""
    most_polls: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def of(self, *methods: str) -> list[dict[str, Any]]:
        """Return the parameters of every call of these methods, in order."""
        return [parameters for method, parameters in self.calls if method in methods]

    def texts(self, user_id: int | None = None) -> list[str]:
        """Return the messages that the bot has sent, to one user or to all."""
        sent = self.of("sendMessage", "editMessageText")
        return [each["text"] for each in sent if user_id is None or each["chat_id"] == user_id]

    def give(self, *updates: dict[str, Any]) -> None:
        self.updates += updates
        self.news.set()

    def revoke(self) -> str:
        """Replace the token, as @BotFather does; the old one is refused from now on, even in waiting calls."""
        number, secret = self.token.split(":")
        self.token = f"{number}:{secret[:-4]}{int(secret[-4:]) + 1:04d}"
        self.webhook = {}
        self.news.set()
        return self.token


class BotsServer:
    """Answers `/bot<token>/<method>` for every bot that was added."""

    def __init__(self) -> None:
        self.bots: dict[int, ServedBot] = {}
        self.refuses_everybody = False
        self.base = ""
        self._numbers = itertools.count(1)
        self._update_ids = itertools.count(900_000_001)

    def add(self, username: str = "") -> ServedBot:
        number = next(self._numbers)
        bot_id = 7_000_000_000 + number
        token = f"{bot_id}:AA{'testTEST' * 3}{number:05d}0000"
        self.bots[bot_id] = bot = ServedBot(bot_id, username or f"shop_{number}_bot", token)
        return bot

    def message(self, text: str, user_id: int = 11) -> dict[str, Any]:
        """Return an update: a private message."""
        user = {"id": user_id, "is_bot": False, "first_name": "Ada"}
        chat = {"id": user_id, "first_name": "Ada", "type": "private"}
        content = {"message_id": 500, "from": user, "chat": chat, "date": 1795214643, "text": text}
        return {"update_id": next(self._update_ids), "message": content}

    def tap(self, data: str, user_id: int = 11) -> dict[str, Any]:
        """Return an update: a tap on a button with this very `data`, of a message of the bot's."""
        user = {"id": user_id, "is_bot": False, "first_name": "Ada"}
        chat = {"id": user_id, "first_name": "Ada", "type": "private"}
        keyboard = {"inline_keyboard": [[{"text": "ButtonTap", "callback_data": data}]]}
        prompt = {"message_id": 501, "chat": chat, "date": 1795214643, "text": "Sign in?", "reply_markup": keyboard}
        update_id = next(self._update_ids)
        query = {"id": str(update_id), "from": user, "chat_instance": "-8", "message": prompt, "data": data}
        return {"update_id": update_id, "callback_query": query}

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["BotsServer"]:
        application = web.Application()
        application.router.add_post("/bot{token}/{method}", self._respond)
        runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            for bot in self.bots.values():
                bot.revoke()
            await runner.cleanup()

    async def _respond(self, request: web.Request) -> web.Response:
        token, method = request.match_info["token"], request.match_info["method"]
        bot = self.bots.get(int(token.partition(":")[0]))
        if bot is None or bot.token != token or self.refuses_everybody:
            return _answer(401, description="Unauthorized")
        parameters: dict[str, Any] = await request.json()
        bot.calls.append((method, parameters))
        if method in bot.faults:
            status, description = bot.faults[method]()
            return _answer(status, description=description)
        if method == "getUpdates":
            return await self._poll(bot, token, parameters)
        if bot.slowness:
            await asyncio.sleep(bot.slowness)
        return _answer(200, result=self._result(bot, method, parameters))

    async def _poll(self, bot: ServedBot, token: str, parameters: dict[str, Any]) -> web.Response:
        if bot.webhook:
            description = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook first"
            return _answer(409, description=description)
        offset = parameters.get("offset", 0)
        bot.updates = [update for update in bot.updates if update["update_id"] >= offset]
        if not parameters.get("timeout"):
            # An acknowledgement at the end; this server may learn later that the client has given up its last poll.
            return _answer(200, result=bot.updates[: parameters.get("limit", 100)])
        bot.polls += 1
        bot.most_polls = max(bot.polls, bot.most_polls)
        try:
            async with asyncio.timeout(parameters["timeout"]):
                while not bot.updates and bot.token == token:
                    bot.news.clear()
                    await bot.news.wait()
        except TimeoutError:
            pass
        finally:
            bot.polls -= 1
        if bot.token != token:
            return _answer(401, description="Unauthorized")
        return _answer(200, result=bot.updates[: parameters.get("limit", 100)])

    def _result(self, bot: ServedBot, method: str, parameters: dict[str, Any]) -> Any:
        if method == "getMe":
            return {"id": bot.id, "is_bot": True, "first_name": "Shop", "username": bot.username}
        if method == "getWebhookInfo":
            info = {"url": bot.webhook.get("url", ""), "has_custom_certificate": False, "pending_update_count": 0}
            return info | {name: bot.webhook[name] for name in ("allowed_updates",) if name in bot.webhook}
        is_private = parameters.get("scope", {}).get("type") == "all_private_chats"
        if method == "getMyCommands":
            return bot.commands if is_private else []
        if method == "setMyCommands" and is_private and not parameters.get("language_code"):
            bot.commands = parameters["commands"]
        if method == "deleteWebhook":
            bot.webhook = {}
        if method == "setWebhook":
            bot.webhook = parameters
            bot.news.set()
        if method in {"sendMessage", "editMessageText"}:
            chat = {"id": parameters["chat_id"], "type": "private"}
            return {"message_id": len(bot.calls), "date": 1795214643, "chat": chat, "text": parameters["text"]}
        return True


def _answer(status: int, *, result: Any = None, description: str = "") -> web.Response:
    body: dict[str, Any] = {"ok": status == 200}
    body |= {"result": result} if status == 200 else {"error_code": status, "description": description}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
