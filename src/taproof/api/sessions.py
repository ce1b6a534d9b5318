"""The endpoints generate, verify and cancel. They are plain ASGI, because polling is nine tenths of all traffic.

Source: service-spec.md, Public and Server-side session endpoints; contract.md, Session endpoints.
"""

import json
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from functools import partial
from time import perf_counter
from typing import Any, Final, get_args

from pydantic_core import to_json

from taproof.core.clock import iso8601
from taproof.core.code_challenge import METHOD
from taproof.core.errors import InvalidRequest, InvalidSecretKey, MethodNotAllowed, RateLimited, TaproofError
from taproof.core.sessions import Hint
from taproof.http.body import Receive, Scope, flag_field, read_json_object, text_field, wait_field
from taproof.http.errors import NO_PAGE, bearer_token, error_response
from taproof.http.limits.rates import POLL_REFUSALS, GenerateCall, RateLimits
from taproof.http.metrics import Metrics, SessionEndpoint
from taproof.http.requester import requester_of, until_gone
from taproof.service.projects import Projects
from taproof.service.sessions.create_and_verify import NOBODY_KNOWN, SignInSessions
from taproof.service.sessions.wait import Waiting

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

HEADERS: Final[Headers] = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), *NO_PAGE]
_ANY_ORIGIN: Final[Headers] = [(b"access-control-allow-origin", b"*")]
_ANY_ORIGIN_ERROR: Final[Headers] = [
    *_ANY_ORIGIN,
    (b"access-control-expose-headers", b"X-Error-Code, Retry-After, RateLimit, RateLimit-Policy"),
]
WAIT_LIMIT: Final = 30
"""The longest time that a call can wait, in seconds. RFC 6202, section 5.5, calls 30 seconds safe; many proxies time
out after 60."""

_PREFLIGHT: Final[Headers] = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"Content-Type"),
    (b"access-control-max-age", b"86400"),
    (b"cache-control", b"no-store"),
    (b"content-length", b"0"),
    *NO_PAGE,
]


class SessionApi:
    """Serves generate, verify and cancel, each as a public and as a server-side ASGI application."""

    def __init__(
        self, sessions: SignInSessions, waiting: Waiting, projects: Projects, metrics: Metrics, limits: RateLimits
    ) -> None:
        self._sessions = sessions
        self._waiting = waiting
        self._projects = projects
        self._metrics = metrics
        self._count_poll, self._observe_verify = metrics.count_poll, metrics.observe_verify
        self._limits = limits
        self.generate_public: Final = partial(self.answer_start, "generate", self._generate, public=True)
        self.generate: Final = partial(self.answer_start, "generate", self._generate, public=False)
        self.verify_public: Final = partial(self._answer, "verify", self._verify, public=True)
        self.verify: Final = partial(self._answer, "verify", self._verify, public=False)
        self.cancel_public: Final = partial(self._answer, "cancel", self._cancel, public=True)
        self.cancel: Final = partial(self._answer, "cancel", self._cancel, public=False)

    def answer_start(
        self,
        endpoint: SessionEndpoint,
        handler: Callable[..., Awaitable[bytes]],
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        public: bool,
    ) -> Coroutine[Any, Any, None]:
        """Answer a POST that starts a session, with the JSON that `handler` returns, and tell how many calls are left.

        `handler` gets the call, to count it, and whether it is public.
        """
        call = GenerateCall(self._limits, scope, public=public)
        return self._answer(endpoint, partial(handler, call), scope, receive, send, public=public, call=call)

    async def _generate(self, call: GenerateCall, scope: Scope, receive: Receive, *, public: bool) -> bytes:
        project_id, body = await self.read_call(scope, receive, public=public)
        began = perf_counter()  # After the body has arrived: how fast a client sends it says nothing about the service.
        code_challenge = text_field(body, "code_challenge") if "code_challenge" in body else None
        if "code_challenge_method" in body and text_field(body, "code_challenge_method") != METHOD:
            raise InvalidRequest(f"code_challenge_method must be {METHOD}, the only supported method. You can omit it.")
        if "code_challenge_method" in body and code_challenge is None:
            raise InvalidRequest("code_challenge is missing, but code_challenge_method was sent.")
        return_url = text_field(body, "return_url") if "return_url" in body else None
        call.count(project_id)
        try:
            session = await self._sessions.create_session(
                project_id,
                public=public,
                code_challenge=code_challenge,
                return_url=return_url,
                requester=requester_of(scope) if public else NOBODY_KNOWN,
            )
        except TaproofError:
            call.give_back(project_id)
            raise
        self._metrics.count_created()
        self._metrics.observe_generate(perf_counter() - began)
        answer: dict[str, Any] = {
            "session_token": session.session_token,
            "deeplink": session.deeplink,
            "expires_at": iso8601(session.expires_at),
        }
        if session.match_code is not None:
            answer["match_code"] = session.match_code
        if session.return_required:
            answer["return_required"] = True
        if session.return_offered:
            answer["return_offered"] = True
        return to_json(answer)

    async def _verify(self, scope: Scope, receive: Receive, *, public: bool) -> bytes:
        if public:  # Like `read_call`, but without another coroutine, because nearly all requests run this code.
            body = await read_json_object(scope, receive)
            project_id = text_field(body, "project_id")
        else:
            project_id, body = await self.read_call(scope, receive, public=False)
        began = perf_counter()
        session_token, code_verifier = text_field(body, "session_token"), body.get("code_verifier")
        seconds = wait_field(body, WAIT_LIMIT) if "wait" in body else 0
        hints = "hints" in body and flag_field(body, "hints")
        seen_hint = _seen_hint(body) if "seen_hint" in body else None
        return_code = text_field(body, "return_code") if "return_code" in body else None
        if too_soon := self._limits.refuse_poll(scope, project_id, session_token, code_verifier, public=public):
            # `answer` sends this body with status 429: `_READY_STARTS` has a start message for each refusal. An
            # exception would cost more on the polled path.
            self._metrics.count_session_error("verify", _TOO_SOON)
            return POLL_REFUSALS[too_soon]
        try:
            if seconds:
                with self._metrics.waiting_calls.track_inprogress():
                    end = await self._waiting.wait(
                        project_id,
                        session_token,
                        seconds,
                        partial(until_gone, receive),
                        public=public,
                        code_verifier=code_verifier,
                        seen_hint=seen_hint if hints else None,
                        return_code=return_code,
                    )
                if end == "gone":
                    return _NOBODY_READS
                began = perf_counter()
                if end == "no_place":
                    self._metrics.waits_without_place.inc()
                if not public:
                    # The key can be replaced during the wait, and a replaced key is invalid immediately.
                    await self._projects.authenticate(bearer_token(scope))
            result = await self._sessions.verify_session(
                project_id, session_token, public=public, code_verifier=code_verifier, return_code=return_code
            )
        except TaproofError as error:
            self._limits.poll_failed(scope, project_id, session_token, code_verifier, error, public=public)
            raise
        self._count_poll[result.status]()
        self._observe_verify(perf_counter() - began)
        if hints and result.status == "pending":
            return _HINTED[result.hint]
        return _STATUS_ONLY[result.status] if result.identity is None else to_json(result.to_answer())

    async def _cancel(self, scope: Scope, receive: Receive, *, public: bool) -> bytes:
        project_id, body = await self.read_call(scope, receive, public=public)
        session_token, code_verifier = text_field(body, "session_token"), body.get("code_verifier")
        # A cancellation counts as a poll: a client makes it instead of its next poll.
        if too_soon := self._limits.refuse_poll(scope, project_id, session_token, code_verifier, public=public):
            raise RateLimited(too_soon)
        try:
            status, has_changed = await self._sessions.withdraw_session(
                project_id, session_token, public=public, code_verifier=code_verifier
            )
        except TaproofError as error:
            self._limits.poll_failed(scope, project_id, session_token, code_verifier, error, public=public)
            raise
        if has_changed:
            self._metrics.count_decision("withdrawn")
        return json.dumps({"status": status}).encode()

    async def read_call(self, scope: Scope, receive: Receive, *, public: bool) -> tuple[str, dict[str, Any]]:
        """Return the project id from the body or, for a server-side call, from the secret key; also return the body.

        The key is checked before and after the body is read: it can be replaced in between, and a replaced key is
        invalid immediately.
        """
        if public:
            body = await read_json_object(scope, receive)
            return text_field(body, "project_id"), body
        await self._projects.authenticate(bearer_token(scope))
        body = await read_json_object(scope, receive)
        project = await self._projects.authenticate(bearer_token(scope))
        if "project_id" in body and text_field(body, "project_id") != project.id:
            raise InvalidRequest("project_id is not this secret key's project. Omit it, or send the right one.")
        return project.id, body

    async def _answer(
        self,
        endpoint: SessionEndpoint,
        handler: Callable[..., Awaitable[bytes]],
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        public: bool,
        call: GenerateCall | None = None,
    ) -> None:
        """Answer a POST with the JSON that `handler` returns, or an error.

        `public`: answer any origin (CORS). `call` has the rate limit headers of the response.
        """
        status, headers = 200, _PUBLIC_HEADERS if public else HEADERS
        try:
            if scope["method"] != "POST":
                if public and scope["method"] == "OPTIONS":
                    await send_answer(send, 200, _PREFLIGHT, b"")
                    return
                raise MethodNotAllowed  # noqa: TRY301 — handled below like every other error.
            body = await handler(scope, receive, public=public)
            if (start := _READY_STARTS[public].get(body)) is not None:
                await send(start)
                await send({"type": "http.response.body", "body": body})
                return
            headers = [*headers, (b"content-length", b"%d" % len(body))]
        except Exception as error:  # noqa: BLE001 — a bug must be logged and answered with a 500 in the usual error shape.
            self._metrics.count_session_error(endpoint, error)
            if isinstance(error, InvalidSecretKey):
                self._limits.refused_credentials.note("secret_key", scope)
            status, headers, body = error_response(error, _ANY_ORIGIN_ERROR if public else ())
            if status == 405:
                headers.append((b"allow", b"POST, OPTIONS" if public else b"POST"))
        if call is not None:
            headers += call.headers(status)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _seen_hint(body: dict[str, Any]) -> str:
    """Return the hint that the client knows. Clients of a later release may know hints that this release does not."""
    seen_hint = body["seen_hint"]
    if isinstance(seen_hint, str):
        return seen_hint
    raise InvalidRequest("seen_hint must be a string: the hint of the response before.")


_TOO_SOON: Final = RateLimited()
_PUBLIC_HEADERS: Final = HEADERS + _ANY_ORIGIN
_STATUS_ONLY: Final = {
    status: json.dumps({"status": status}).encode() for status in ("pending", "cancelled", "expired", "used")
}
"""The bodies of all responses without an identity. A confirmed response always has one."""
_HINTED: Final = {hint: json.dumps({"status": "pending", "hint": hint}).encode() for hint in get_args(Hint)}
"""The bodies of all responses to clients that ask for hints, while the session is pending."""
_NOBODY_READS: Final = _STATUS_ONLY["pending"]
"""Sent to a client that disconnected while it waited. The session is not read, so that no proof is lost."""


def _ready_starts(*, public: bool) -> dict[bytes, dict[str, Any]]:
    """Return the start message of each response with a prepared body, keyed by body."""
    answers = [
        (200, [*(_PUBLIC_HEADERS if public else HEADERS), (b"content-length", b"%d" % len(body))], body)
        for body in (*_STATUS_ONLY.values(), *_HINTED.values())
    ]
    extra = _ANY_ORIGIN_ERROR if public else ()
    for seconds, body in POLL_REFUSALS.items():
        status, headers, _ = error_response(RateLimited(seconds), extra)
        answers.append((status, headers, body))
    return {
        body: {"type": "http.response.start", "status": status, "headers": headers} for status, headers, body in answers
    }


_READY_STARTS: Final = {public: _ready_starts(public=public) for public in (True, False)}
"""The start messages of nearly all responses, made once. Code that adds a header must copy the message."""


async def send_answer(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole response."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
