"""The Bot API server at /sandbox/bot<token>/<method> (https://core.telegram.org/bots/api#making-requests).

As with Telegram, the token alone authenticates the bot, so the Host header and the content type are not checked.
"""

import re
from typing import Any, Final

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from taproof.core.stacks import describe_stack
from taproof.sandbox.telegram.bots import SandboxBots
from taproof.sandbox.telegram.faults import Faults
from taproof.sandbox.telegram.request import ApiError, bad_request, read_body, read_parameters

PREFIX: Final = "/sandbox/bot"
_PATH: Final = re.compile(r"/sandbox/bot([0-9]+:[A-Za-z0-9_-]+)/([^/]*)")

_NAME: Final = re.compile(r"[A-Za-z]{1,64}")
_LACKS: Final = "the sandbox has no method {}; docs/reference/sandbox.md lists the methods that it has"

_log = structlog.get_logger(__name__)


class BotApi:
    """The ASGI application below `/sandbox/bot`."""

    def __init__(self, bots: SandboxBots, faults: Faults) -> None:
        self._bots = bots
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        request = Request(scope, receive)
        try:
            response = JSONResponse(await self._answer(request))
        except ApiError as error:
            headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            response = JSONResponse(error.answer(), error.error_code, headers)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 — the URL contains the token, so no error may reach the server's log.
            # Only the stack is logged: the message may quote a person's text.
            _log.error("sandbox_call_failed", error=type(error).__name__, stack=describe_stack(error))
            response = JSONResponse(ApiError(500, "Internal Server Error").answer(), 500)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> dict[str, Any]:
        found = _PATH.fullmatch(request.scope["path"])
        if found is None:
            raise ApiError(404, "Not Found")
        # Read the whole body first. If the response came earlier, the server would close the connection, and the client
        # could see a reset instead of the refusal.
        body = await read_body(request)
        bot = self._bots.authenticate(found[1])
        if request.method not in {"GET", "POST"}:
            raise ApiError(405, "Method Not Allowed")
        method = found[2]
        parameters = read_parameters(request, body)
        self._faults.raise_for(method, bot.id)
        call = bot.methods.by_name.get(method.lower())
        if call is None:
            # Bot libraries take a 404 for an invalid token. The real server's methods change too often for a list here.
            raise bad_request(_LACKS.format(method)) if _NAME.fullmatch(method) else ApiError(404, "Not Found")
        result, description = await call(parameters)
        answer = {"ok": True, "result": result}
        return answer if description is None else answer | {"description": description}
