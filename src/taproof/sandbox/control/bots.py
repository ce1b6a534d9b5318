"""The control API's part of @BotFather and of the app that creates managed bots.

See https://core.telegram.org/api/bots/managed-bots.
"""

from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.sandbox.control.errors import BotUsernameTaken, InvalidSandboxRequest, ManagerNotAllowed, TooManyBots
from taproof.sandbox.control.request import (
    LINK_LIMIT,
    NAME_LIMIT,
    find_bot,
    find_person,
    json_response,
    optional_text,
    read_object,
    text_field,
)
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.bots import BOT_LIMIT, BOT_USERNAME, NEW_BOT_PATH, SandboxBot, SandboxBots

BOTS_PATH: Final = "/sandbox/bots"


class BotsControl:
    """The routes below /sandbox/bots, and the one with which a simulated user creates the bot that a link suggests."""

    def __init__(self, bots: SandboxBots, own_hosts: OwnHosts) -> None:
        self._bots = bots
        self._own_hosts = own_hosts
        self.routes: Final = [
            Route("/sandbox/users/{user_id}/newbot", self._create_managed, methods=["POST"]),
            Route(BOTS_PATH, self._list_or_add, methods=["GET", "POST"]),
            Route(f"{BOTS_PATH}/{{username}}/revoke", self._revoke, methods=["POST"]),
            Route(f"{BOTS_PATH}/{{username}}/rename", self._rename, methods=["POST"]),
            Route(f"{BOTS_PATH}/{{username}}/manage", self._set_management, methods=["POST"]),
        ]

    async def _list_or_add(self, request: Request) -> Response:
        if request.method != "POST":
            return json_response({"bots": [self._bots.shown(bot) for bot in self._bots]})
        fields = await read_object(request, "username", "name")
        username = _free_username(self._bots, fields.get("username"))
        name = optional_text(fields, "name", NAME_LIMIT)
        self._check_room()
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
        username = None if fields.get("username") is None else _free_username(self._bots, fields["username"], bot.id)
        self._bots.rename(bot, username, optional_text(fields, "name", NAME_LIMIT))
        return json_response(self._bots.shown(bot))

    async def _set_management(self, request: Request) -> Response:
        bot = find_bot(self._bots, request.path_params["username"])
        enabled = (await read_object(request, "enabled")).get("enabled")
        if not isinstance(enabled, bool):
            raise InvalidSandboxRequest("enabled must be true or false.")
        bot.methods.can_manage_bots = enabled
        return json_response(self._bots.shown(bot))

    async def _create_managed(self, request: Request) -> Response:
        """Create the bot. As in the app, the user can change the suggested username and name."""
        person = find_person(request, self._bots.people)
        fields = await read_object(request, "link", "username", "name")
        manager, suggested, suggested_name = self._read_link(text_field(fields, "link", LINK_LIMIT))
        username = _free_username(self._bots, optional_text(fields, "username", 33) or suggested)
        name = optional_text(fields, "name", NAME_LIMIT) or suggested_name or username
        if not manager.methods.can_manage_bots:
            raise ManagerNotAllowed
        self._check_room()
        return json_response(self._bots.shown(self._bots.add_managed(username, name, manager, person)))

    def _read_link(self, link: str) -> tuple[SandboxBot, str, str]:
        """Return the manager, the suggested username and the suggested name ("" if there is none) of a link."""
        try:
            parts = urlsplit(link)
            names = parse_qs(parts.query, max_num_fields=20).get("name", [""])
        except ValueError:
            raise InvalidSandboxRequest("link is not a link.") from None
        is_real = parts.scheme == "https" and parts.netloc.lower() == "t.me"
        is_own = parts.scheme in {"http", "https"} and self._own_hosts.include_authority(parts.netloc)
        start = "/newbot/" if is_real else f"{NEW_BOT_PATH}/"
        manager, _, username = parts.path.removeprefix(start).partition("/")
        bot = self._bots.find(manager)
        if not (is_real or is_own) or not parts.path.startswith(start) or bot is None or not username:
            raise InvalidSandboxRequest(
                "link must be https://t.me/newbot/MANAGER/USERNAME or the sandbox's own form of it, with a known bot."
            )
        return bot, username, names[0][:NAME_LIMIT]

    def _check_room(self) -> None:
        if len(self._bots.by_id) >= BOT_LIMIT:
            raise TooManyBots


def _free_username(bots: SandboxBots, username: object, bot_id: int = 0) -> str:
    """Return the username without `@`. Refuse an invalid or taken one; the bot `bot_id` may keep its own."""
    username = username.removeprefix("@") if isinstance(username, str) else ""
    if BOT_USERNAME.fullmatch(username) is None:
        raise InvalidSandboxRequest(
            "username must be 5 to 32 letters, digits and underscores, and end in bot, such as acme_login_bot."
        )
    if bots.has_name(username, but_not=bot_id):
        raise BotUsernameTaken
    return username
