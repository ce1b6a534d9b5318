"""Give a terminal an access token after a sign-in with the messenger. `taproof login` calls these endpoints.

Where they fit, the responses use the terms of RFC 8628 (OAuth 2.0 Device Authorization Grant), sections 3.2 and 3.5.
As everywhere in this API, bodies are JSON and all errors have the same shape.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Final

from pydantic import BaseModel, Field

from taproof.api.sessions import HEADERS, Send, send_answer
from taproof.core.accounts import Actor
from taproof.core.clock import DAY, SECOND, Clock
from taproof.core.errors import (
    AccessDenied,
    AuthorizationPending,
    ExpiredToken,
    InvalidRequest,
    MethodNotAllowed,
    RateLimited,
    SignInNotFound,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.names import name_problem
from taproof.http.body import Receive, Scope, read_json_object, text_field, wait_field
from taproof.http.errors import error_response
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.http.requester import requester_of, until_gone
from taproof.service.console.sign_in import TERMINAL, DeveloperSignIns
from taproof.service.developers import Developers

WAIT_LIMIT: Final = 25
"""The longest time that a call can wait, in seconds."""
INTERVAL: Final = 2
"""Seconds between two calls without `wait`."""
TOKEN_NAME: Final = "taproof login"  # noqa: S105 — the label of a token, not a token.
TOKEN_DAYS: Final = 90
"""The lifetime of the access token, in days."""
DeviceCode = Annotated[
    str,
    Field(
        min_length=1,
        description="Opaque. It can be exchanged for the access token: never show it outside the program that uses it.",
        examples=["AdmAcTPpQZ0hM5qzBf8kXw2vLr7sYd1eJ4gN6oP9tUa3bCiV"],
    ),
]
_USED: Final = (
    "This device_code has already been exchanged for its access token. Start a new sign-in with POST /api/v1/login."
)
_REPORTED: Final = (
    "The user who confirmed this sign-in reported it afterwards, so no access token is created. If you reported it by "
    "mistake, send /unblock to the bot in the messenger. Start a new sign-in with POST /api/v1/login."
)
_NO_DEVELOPER: Final = (
    "This messenger account is not linked to a developer. Ask for an invitation (an owner creates one in the console, "
    "the operator with: taproof developers invite EMAIL)."
)


class StartedLogin(BaseModel):
    """A sign-in that waits for a developer."""

    device_code: DeviceCode
    verification_uri_complete: str = Field(
        description="Show it to the developer, as a link or a QR code.",
        examples=["https://t.me/acme_sign_in_bot?start=UHbqfTr3m0h7xYk2Vw9cLr5sZ8dA1eB4gJ6nP0tQ3vE"],
    )
    match_code: str = Field(
        description="Show it next to the link: in the messenger, the developer chooses it from three codes. A wrong "
        "choice cancels the sign-in.",
        examples=["42"],
    )
    expires_in: int = Field(ge=0, description="Seconds until the sign-in expires.", examples=[600])
    interval: int = Field(description="Seconds to pause between two calls without wait.", examples=[INTERVAL])


class FinishedLogin(BaseModel):
    """The only response with the access token."""

    access_token: str = Field(
        pattern="^tap_",
        description=f"Shown only once. It is valid for {TOKEN_DAYS} days unless it is revoked.",
        examples=["tap_…"],
    )
    expires_in: int = Field(
        description="Seconds until the access token expires.", examples=[TOKEN_DAYS * DAY // SECOND]
    )
    token_id: str = Field(
        description="To revoke the token: DELETE /api/v1/dev/tokens/:id.", examples=["tok_4KsdT0aQm2vXc81LpZwEyB"]
    )
    email: str = Field(description="The developer's e-mail address.", examples=["ada@example.com"])


class LoginApi:
    """Serves the two login endpoints, each an ASGI application: `start` and `create_token`."""

    def __init__(
        self,
        developer_sign_ins: DeveloperSignIns,
        developers: Developers,
        metrics: Metrics,
        limits: RateLimits,
        clock: Clock,
    ) -> None:
        self._limits = limits
        self._developer_sign_ins = developer_sign_ins
        self._developers = developers
        self._metrics = metrics
        self._clock = clock
        self.start: Final = partial(_answer, self._start)
        self.create_token: Final = partial(_answer, self._create_token)

    async def _start(self, scope: Scope, receive: Receive) -> StartedLogin:
        await read_json_object(scope, receive)
        self._limits.count_sign_in(scope)
        # A terminal is not a web page. An Origin header from it would only mislead the user.
        requester = requester_of(scope)._replace(origin=None)
        started = await self._developer_sign_ins.start(TERMINAL, requester)
        return StartedLogin(
            device_code=started.encrypted,
            verification_uri_complete=started.deeplink,
            match_code=started.match_code,
            expires_in=max(0, started.expires_at - self._clock()) // SECOND,
            interval=INTERVAL,
        )

    async def _create_token(self, scope: Scope, receive: Receive) -> FinishedLogin:
        body = await read_json_object(scope, receive)
        device_code = text_field(body, "device_code")
        name = text_field(body, "name").strip() if "name" in body else TOKEN_NAME
        # Check the name before the sign-in is consumed, so that the user need not confirm again after a wrong name.
        if (problem := name_problem(name)) is not None:
            raise InvalidRequest(f"name {problem}.")
        seconds = wait_field(body, WAIT_LIMIT)
        if too_soon := self._limits.refuse_poll(scope, "", device_code, None, public=True):
            raise RateLimited(too_soon)
        try:
            if seconds:
                await self._wait(device_code, seconds, receive)
            seen = await self._developer_sign_ins.read(device_code, TERMINAL)
        except SignInNotFound as error:
            self._limits.poll_failed(scope, "", device_code, None, error, public=True)
            raise
        if seen.status == "pending":
            raise AuthorizationPending
        if seen.status == "cancelled":
            raise AccessDenied
        if seen.status == "expired":
            raise ExpiredToken
        identity = (await self._developer_sign_ins.finish(device_code, TERMINAL)).identity
        if identity is None:
            raise ExpiredToken(_USED)
        return await self._give_token(scope, device_code, identity, name)

    async def _give_token(
        self, scope: Scope, device_code: str, identity: MessengerIdentity, name: str
    ) -> FinishedLogin:
        developer = await self._developers.read_developer_by_messenger_id(identity.messenger_id)
        if developer is None:
            self._limits.refused_credentials.note("messenger_account", scope)
            raise AccessDenied(_NO_DEVELOPER)
        client = scope.get("client")
        actor = Actor(developer, "login", address=client[0] if client else "")
        expires_at = self._clock() + TOKEN_DAYS * DAY
        try:
            sign_in = await self._developer_sign_ins.source(device_code, TERMINAL)
            created = await self._developers.create_access_token(actor, name, expires_at=expires_at, sign_in=sign_in)
        except AccessDenied:
            raise AccessDenied(_REPORTED) from None
        return FinishedLogin(
            access_token=created.plaintext,
            expires_in=TOKEN_DAYS * DAY // SECOND,
            token_id=created.token.id,
            email=developer.email,
        )

    async def _wait(self, device_code: str, seconds: float, receive: Receive) -> None:
        """Wait while the sign-in is pending.

        If the client disconnects, raise AuthorizationPending, so that nothing is read.
        """
        with self._metrics.waiting_calls.track_inprogress():
            end = await self._developer_sign_ins.wait(device_code, TERMINAL, seconds, partial(until_gone, receive))
        if end == "no_place":
            self._metrics.waits_without_place.inc()
        if end == "gone":
            raise AuthorizationPending


async def _answer(
    handler: Callable[[Scope, Receive], Awaitable[BaseModel]], scope: Scope, receive: Receive, send: Send
) -> None:
    try:
        if scope["method"] != "POST":
            raise MethodNotAllowed  # noqa: TRY301 — handled below like every other error.
        body = (await handler(scope, receive)).model_dump_json().encode()
        status, headers = 200, [*HEADERS, (b"content-length", b"%d" % len(body))]
    except Exception as error:  # noqa: BLE001 — a bug must be logged and answered with a 500 in the usual error shape.
        status, headers, body = error_response(
            error, [(b"allow", b"POST")] if isinstance(error, MethodNotAllowed) else ()
        )
    await send_answer(send, status, headers, body)
