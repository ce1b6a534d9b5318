"""The control API's part of the app that opens Mini Apps."""

import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.sandbox.control.errors import InvalidSandboxRequest
from taproof.sandbox.control.request import (
    find_person,
    integer_field,
    json_response,
    optional_text,
    read_bot,
    read_object,
)
from taproof.sandbox.telegram.bots import SandboxBots
from taproof.sandbox.telegram.init_data import CHAT_TYPES, InitDataSigner

_START_PARAM: Final = re.compile(r"[A-Za-z0-9_-]{1,512}")
_LATEST: Final = 10**11 - 1


class MiniAppControl:
    """The route with which a simulated user opens the Mini App of a bot."""

    def __init__(self, bots: SandboxBots, signer: InitDataSigner) -> None:
        self._bots = bots
        self._signer = signer
        self.route: Final = Route("/sandbox/users/{user_id}/mini-app", self._open, methods=["POST"])

    async def _open(self, request: Request) -> Response:
        """Return `Telegram.WebApp.initData`, as the Mini App of the bot receives it."""
        person = find_person(request, self._bots.people)
        fields = await read_object(request, "bot", "start_param", "chat_type", "auth_date")
        bot = read_bot(fields, self._bots)
        start_param = optional_text(fields, "start_param", 512)
        if start_param is not None and _START_PARAM.fullmatch(start_param) is None:
            raise InvalidSandboxRequest("start_param must be 1 to 512 of A-Z a-z 0-9 _ -.")
        chat_type = optional_text(fields, "chat_type", 10) or "private"
        if chat_type not in CHAT_TYPES:
            raise InvalidSandboxRequest(f"chat_type must be one of: {', '.join(CHAT_TYPES)}.")
        auth_date = integer_field(fields, "auth_date", 10**8, _LATEST)
        data = self._signer.sign(person, bot, chat_type, start_param, auth_date)
        return json_response({"bot": bot.username, "init_data": data})
