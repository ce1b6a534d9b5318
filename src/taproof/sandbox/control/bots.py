"""The control API's part of @BotFather: creates bots, renames them, and revokes their tokens."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.sandbox.control.errors import SandboxError, invalid_request
from taproof.sandbox.control.request import find_bot, json_response, optional_text, read_object
from taproof.sandbox.telegram.bots import BOT_LIMIT, BOT_USERNAME, SandboxBot, SandboxBots

BOTS_PATH: Final = "/sandbox/bots"
_NAME_LIMIT: Final = 64


class BotsControl:
    """The routes below /sandbox/bots."""

    def __init__(self, bots: SandboxBots) -> None:
        self._bots = bots
        self.routes: Final = [
            Route(BOTS_PATH, self._list_or_add, methods=["GET", "POST"]),
            Route(f"{BOTS_PATH}/{{username}}/revoke", self._revoke, methods=["POST"]),
            Route(f"{BOTS_PATH}/{{username}}/rename", self._rename, methods=["POST"]),
        ]

    async def _list_or_add(self, request: Request) -> Response:
        if request.method != "POST":
            return json_response({"bots": [self._bots.shown(bot) for bot in self._bots]})
        fields = await read_object(request, "username", "name")
        username = self._username(fields.get("username"), None)
        name = optional_text(fields, "name", _NAME_LIMIT)
        if len(self._bots.by_id) >= BOT_LIMIT:
            raise SandboxError("too_many_bots")
        return self._with_token(self._bots.add(username, name or username))

    async def _revoke(self, request: Request) -> Response:
        bot = self._bot(request)
        await read_object(request)
        await self._bots.revoke(bot)
        return self._with_token(bot)

    async def _rename(self, request: Request) -> Response:
        bot = self._bot(request)
        fields = await read_object(request, "username", "name")
        username = None if fields.get("username") is None else self._username(fields["username"], bot)
        self._bots.rename(bot, username, optional_text(fields, "name", _NAME_LIMIT))
        return json_response(self._bots.shown(bot))

    def _bot(self, request: Request) -> SandboxBot:
        return find_bot(self._bots, request.path_params["username"])

    def _username(self, username: object, itself: SandboxBot | None) -> str:
        """Return the username without `@`, or refuse one that is invalid or taken."""
        username = username.removeprefix("@") if isinstance(username, str) else ""
        if BOT_USERNAME.fullmatch(username) is None:
            raise invalid_request(
                "username must be 5 to 32 letters, digits and underscores that end in bot, like acme_login_bot."
            )
        people = {(person.username or "").lower() for person in self._bots.people.values()}
        if username.lower() in people or self._bots.find(username) not in {None, itself}:
            raise SandboxError("bot_username_taken")
        return username

    def _with_token(self, bot: SandboxBot) -> Response:
        return json_response(self._bots.shown(bot) | {"token": bot.token})
