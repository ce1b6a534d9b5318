"""The control API's part of @BotFather: creates bots, renames them, and revokes their tokens."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.sandbox.control.errors import BotUsernameTaken, InvalidSandboxRequest, TooManyBots
from taproof.sandbox.control.request import find_bot, json_response, optional_text, read_object
from taproof.sandbox.telegram.bots import BOT_LIMIT, BOT_USERNAME, SandboxBots

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
            Route(f"{BOTS_PATH}/{{username}}/manage", self._set_management, methods=["POST"]),
        ]

    async def _list_or_add(self, request: Request) -> Response:
        if request.method != "POST":
            return json_response({"bots": [self._bots.shown(bot) for bot in self._bots]})
        fields = await read_object(request, "username", "name")
        username = free_username(self._bots, fields.get("username"))
        name = optional_text(fields, "name", _NAME_LIMIT)
        if len(self._bots.by_id) >= BOT_LIMIT:
            raise TooManyBots
        bot = self._bots.add(username, name or username)
        return json_response(self._bots.shown(bot) | {"token": bot.token})

    async def _revoke(self, request: Request) -> Response:
        bot = find_bot(self._bots, request.path_params["username"])
        await read_object(request)
        await self._bots.revoke(bot)
        return json_response(self._bots.shown(bot) | {"token": bot.token})

    async def _rename(self, request: Request) -> Response:
        bot = find_bot(self._bots, request.path_params["username"])
        fields = await read_object(request, "username", "name")
        username = None if fields.get("username") is None else free_username(self._bots, fields["username"], bot.id)
        self._bots.rename(bot, username, optional_text(fields, "name", _NAME_LIMIT))
        return json_response(self._bots.shown(bot))

    async def _set_management(self, request: Request) -> Response:
        bot = find_bot(self._bots, request.path_params["username"])
        enabled = (await read_object(request, "enabled")).get("enabled")
        if not isinstance(enabled, bool):
            raise InvalidSandboxRequest("enabled must be true or false.")
        bot.methods.can_manage_bots = enabled
        return json_response(self._bots.shown(bot))


def free_username(bots: SandboxBots, username: object, bot_id: int = 0) -> str:
    """Return the username without `@`. Refuse an invalid or taken one; the bot `bot_id` may keep its own."""
    username = username.removeprefix("@") if isinstance(username, str) else ""
    if BOT_USERNAME.fullmatch(username) is None:
        raise InvalidSandboxRequest(
            "username must be 5 to 32 letters, digits and underscores, and end in bot, such as acme_login_bot."
        )
    if bots.has_name(username, but_not=bot_id):
        raise BotUsernameTaken
    return username
