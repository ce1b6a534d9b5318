"""The endpoints with which Mini Apps sign their users in.

They answer like verify for a confirmed session, and their limits are those of generate.
"""

from functools import partial

from pydantic_core import to_json

from taproof.api.sessions import Send, SessionApi
from taproof.core.errors import TaproofError
from taproof.http.body import Receive, Scope, read_json_object, text_field
from taproof.http.limits.rates import GenerateCall, RateLimits
from taproof.http.metrics import Metrics
from taproof.http.requester import requester_of
from taproof.service.sessions.create_and_verify import NOBODY_KNOWN
from taproof.service.sessions.mini_apps import MiniAppSignIns


class MiniAppApi:
    """Serves the sign-ins of Mini Apps, public and server-side. Each public method is an ASGI application.

    Args:
        sign_ins: checks the data of Mini Apps.
        session_api: answers calls as the other session endpoints do.
        metrics: counts the sessions, each of which is confirmed too.
        limits: limits the calls.
    """

    def __init__(self, sign_ins: MiniAppSignIns, session_api: SessionApi, metrics: Metrics, limits: RateLimits) -> None:
        self._sign_ins = sign_ins
        self._session_api = session_api
        self._metrics = metrics
        self._limits = limits

    async def sign_in_public(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve POST /api/v1/mini-app/public."""
        call = GenerateCall(self._limits, scope, public=True)
        await self._session_api.answer(
            "mini_app", partial(self._sign_in, call), scope, receive, send, public=True, call=call
        )

    async def sign_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve POST /api/v1/mini-app."""
        call = GenerateCall(self._limits, scope, public=False)
        await self._session_api.answer(
            "mini_app", partial(self._sign_in, call), scope, receive, send, public=False, call=call
        )

    async def _sign_in(self, call: GenerateCall, scope: Scope, receive: Receive, *, public: bool) -> bytes:
        if public:
            body = await read_json_object(scope, receive)
            project_id = text_field(body, "project_id")
        else:
            project_id, body = await self._session_api.read_keyed(scope, receive)
        init_data = text_field(body, "init_data")
        call.count(project_id)
        try:
            result = await self._sign_ins.sign_in(
                project_id, init_data, public=public, requester=requester_of(scope) if public else NOBODY_KNOWN
            )
        except TaproofError:
            call.give_back(project_id)
            raise
        self._metrics.count_created()
        self._metrics.count_decision("confirmed")
        return to_json(result.to_answer())
