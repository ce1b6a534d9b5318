"""The control API's part of the app that creates managed bots (core.telegram.org/api/bots/managed-bots)."""

from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.sandbox.control.bots import free_username
from taproof.sandbox.control.errors import InvalidSandboxRequest, ManagerNotAllowed, TooManyBots
from taproof.sandbox.control.request import find_person, json_response, optional_text, read_object, text_field
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.bots import BOT_LIMIT, NEW_BOT_PATH, SandboxBot, SandboxBots

_LINK_LIMIT: Final = 2_048
_NAME_LIMIT: Final = 64


class NewBotControl:
    """The route with which a simulated user confirms the creation of a bot that a link suggests."""

    def __init__(self, bots: SandboxBots, own_hosts: OwnHosts) -> None:
        self._bots = bots
        self._own_hosts = own_hosts
        self.route: Final = Route("/sandbox/users/{user_id}/newbot", self._create, methods=["POST"])

    async def _create(self, request: Request) -> Response:
        """Create the bot. As in the app, the user can change the suggested username and name."""
        person = find_person(request, self._bots.people)
        fields = await read_object(request, "link", "username", "name")
        manager, suggested, suggested_name = self._read_link(text_field(fields, "link", _LINK_LIMIT))
        username = free_username(self._bots, optional_text(fields, "username", 33) or suggested)
        name = optional_text(fields, "name", _NAME_LIMIT) or suggested_name or username
        if not manager.methods.can_manage_bots:
            raise ManagerNotAllowed
        if len(self._bots.by_id) >= BOT_LIMIT:
            raise TooManyBots
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
        return bot, username, names[0][:_NAME_LIMIT]
