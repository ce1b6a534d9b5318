"""The endpoints with which Mini Apps sign their users in.

They answer like verify for a confirmed session, and their limits are those of generate.
"""

from functools import partial
from typing import Final

from pydantic_core import to_json

from taproof.api.sessions import SessionApi
from taproof.core.errors import TaproofError
from taproof.http.body import Receive, Scope, text_field
from taproof.http.limits.rates import GenerateCall
from taproof.http.metrics import Metrics
from taproof.http.requester import requester_of
from taproof.service.sessions.create_and_verify import NOBODY_KNOWN
from taproof.service.sessions.mini_apps import MiniAppSignIns


class MiniAppApi:
    """Serves the sign-ins of Mini Apps, as a public and as a server-side ASGI application."""

    def __init__(self, sign_ins: MiniAppSignIns, session_api: SessionApi, metrics: Metrics) -> None:
        self._sign_ins = sign_ins
        self._session_api = session_api
        self._metrics = metrics
        self.sign_in_public: Final = partial(session_api.answer_start, "mini_app", self._sign_in, public=True)
        self.sign_in: Final = partial(session_api.answer_start, "mini_app", self._sign_in, public=False)

    async def _sign_in(self, call: GenerateCall, scope: Scope, receive: Receive, *, public: bool) -> bytes:
        project_id, body = await self._session_api.read_call(scope, receive, public=public)
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
