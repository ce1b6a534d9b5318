"""The calls to the session endpoints (service-spec.md, Endpoints; docs: long poll)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from taproof.contract.session import ConfirmedSession, MessengerUser, SignInStatus
from taproof.sdk.api_errors import TaproofApiError
from taproof.sdk.code_challenge import code_challenge, new_code_verifier
from taproof.sdk.exchange import Call, CallResult, Pause, Request, Service
from taproof.sdk.reading import read
from taproof.sdk.retries import ask, document, is_passing, retry_pause

_WAIT: Final = 25.0
"""Seconds that the service should hold a call; proxies usually allow 60 seconds (docs: long poll)."""
_INTERVAL: Final = 2.0
"""Seconds between two calls that the service does not hold (service-spec.md, Limits)."""
_ON_THE_WAY: Final = 10.0
"""Seconds that a response can take in addition to the wait that the call requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A started sign-in. Reading its result needs all of these values: keep them on the server.

    Attributes:
        session_token: the session token. Omitted from `repr`, like the next two, to keep it out of logs.
        deeplink: the link that the user opens; show it as a link or a QR code.
        code_verifier: proves that the reader of the result started the sign-in. Keep it secret.
        expires_at: the time when the link stops working.
        project_id: the project of the sign-in; None if the client has only a secret key.
        match_code: the number that the user must choose in the messenger, such as "42": show it next to the link. None
            unless the project's `match_code` is on. Also omitted from `repr`.
        return_required: True if the result needs the return code (the project's `same_device` is "require"). In that
            case, show the link only, and no QR code: a sign-in on another device cannot be finished.
    """

    session_token: str = field(repr=False)
    deeplink: str = field(repr=False)
    code_verifier: str = field(repr=False)
    expires_at: datetime
    project_id: str | None = None
    match_code: str | None = field(default=None, repr=False)
    return_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInResult:
    """The result of a sign-in.

    Attributes:
        status: "pending", then one of: "confirmed"; "cancelled" by the user; "expired" after ten minutes; "used" if the
            result was already received.
        user: the user who confirmed; None unless the status is "confirmed".
        confirmed_at: the time of the confirmation; None unless the status is "confirmed".
        proof: the signed proof for `verify_proof`; None unless the status is "confirmed". Omitted from `repr`.
        hint: what happens while the status is "pending", if `verify_session` was called with `hints`: "waiting";
            "opened" in the messenger; "choosing" a match code; "phone_asked"; "return" if the user confirmed and the
            return code is missing; "unreachable" if the user has blocked the bot. A newer service may add more.
    """

    status: SignInStatus
    user: MessengerUser | None = None
    confirmed_at: datetime | None = None
    proof: str | None = field(default=None, repr=False)
    hint: str | None = None

    @property
    def is_confirmed(self) -> bool:
        """True if the user confirmed."""
        return self.status == "confirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    status: SignInStatus


def create_session(service: Service, *, return_url: str | None = None) -> Call[SignIn]:
    """Start a sign-in. Show the user its `deeplink`, and its `match_code` if it has one, then call `wait_for_user`.

    With a secret key, the call uses the endpoint for servers; otherwise, the public one for `project_id`. It is not
    retried once the service may have received it.

    Args:
        return_url: the page of your application to which the user returns after Confirm, if the project's
            `same_device` is "offer" or "require". It receives the return code as `#taproof_return=…`: see
            `verify_session`. It must be exactly one of `return_urls` or, if there are none, a page of
            `allowed_origins`.

    Raises:
        TaproofApiError: such as AuthenticationFailed, or InvalidRequest if the project is paused or `return_url` is
            not allowed. `code` gives the reason: "return_url_not_allowed", or "same_device_required" if the project
            requires `return_url`.
        ValueError: the client has neither secret_key nor project_id.
    """
    code_verifier = new_code_verifier()
    body = {"code_challenge": code_challenge(code_verifier), "code_challenge_method": "S256"}
    if return_url is not None:
        body["return_url"] = return_url
    answer = yield from ask(service, _request(service, "generate", service.project_id, body))
    # The service sends `return_required` only if it is true.
    own = {"code_verifier": code_verifier, "project_id": service.project_id}
    return read(SignIn, {"return_required": False} | answer | own)


def verify_session(
    service: Service,
    sign_in: SignIn,
    *,
    return_code: str | None = None,
    hints: bool = False,
    seen_hint: str | None = None,
    wait: float = 0.0,
) -> Call[SignInResult]:
    """Read the status of a sign-in once.

    Args:
        sign_in: the value that `create_session` returned.
        return_code: the value of `taproof_return` in the fragment of `return_url`. Only the page can read a fragment,
            so let it send the code to your server. Pass it together with the sign-in of the same browser session. A
            wrong or expired code counts as missing: with `return_required`, the status is then "pending".
        hints: ask for the `hint` of a pending sign-in.
        seen_hint: with `hints` and `wait`, the call also ends as soon as the hint is another one.
        wait: the seconds, up to 30, for which the service may hold the call while the sign-in is pending.

    Raises:
        TaproofApiError: such as NotFound if the sign-in does not exist or another client started it.
    """
    body = {"return_code": return_code, "hints": hints or None, "seen_hint": seen_hint, "wait": wait or None}
    given = {name: value for name, value in body.items() if value is not None}
    return _result((yield from ask(service, _call(service, "verify", sign_in, **given), held=wait)))


def cancel_session(service: Service, sign_in: SignIn) -> Call[SignInStatus]:
    """Cancel a pending sign-in, for example because the user closed the page, and return its status.

    The message in the messenger then says that the application cancelled the request. No webhook is sent. If the
    sign-in is no longer pending, nothing changes, and the status is that of the sign-in, such as "confirmed".

    Raises:
        TaproofApiError: such as NotFound if the sign-in does not exist or another client started it.
    """
    return read(_Ended, (yield from ask(service, _call(service, "cancel", sign_in)))).status


def wait_for_user(service: Service, sign_in: SignIn, *, timeout: float = 600.0) -> Call[SignInResult]:
    """Wait until the user has decided or the sign-in has ended, and return the result.

    The call returns as soon as the user taps a button. Temporary failures are retried: lost connections, 502, 503, 504
    and 429. Retries respect `Retry-After`; if it is later than `timeout`, the last attempt is made just before the
    timeout. If a response is lost, the same result can be read again within a minute.

    A sign-in with `return_required` stays "pending" here: read it with `verify_session` and the return code.

    Args:
        sign_in: the value that `create_session` returned.
        timeout: the maximum wait in seconds. After that, the status is "pending": call again to continue waiting.

    Raises:
        TaproofApiError: the service refused the request, or requests still failed at the timeout.
    """
    deadline = service.monotonic() + timeout
    failures = 0
    while True:
        begun = service.monotonic()
        left = max(0.0, deadline - begun)
        # The last call ends a little earlier, so that its response arrives in time.
        wait = round(min(_WAIT, max(0.0, left - _INTERVAL)), 3)
        seconds = min(wait + _ON_THE_WAY, max(left, _INTERVAL))
        outcome: CallResult = yield replace(_call(service, "verify", sign_in, wait=wait), seconds=seconds)
        try:
            result = _result(document(service, outcome))
        except TaproofApiError as error:
            failures += 1
            # The last call begins early enough for its response to arrive in time.
            left = deadline - _INTERVAL - service.monotonic()
            if not is_passing(outcome) or left <= 0:
                raise
            pause = min(retry_pause(service, error, failures), left)
        else:
            failures = 0
            if result.status != "pending":
                return result
            # A service that already holds too many calls answers early. In that case, poll instead.
            held = service.monotonic() - begun
            pause = 0.0 if wait >= 1 and held >= wait - 0.5 else _INTERVAL
            if service.monotonic() + pause >= deadline:
                return result
        if pause:
            yield Pause(pause)


def sign_in_mini_app(service: Service, init_data: str) -> Call[SignInResult]:
    """Sign in the user who opened the Mini App of the project's bot, and return the confirmed result.

    With a secret key, the call uses the endpoint for servers; otherwise, the public one for `project_id`. Each
    `init_data` signs in once, so the call is not retried once the service may have received it.

    Args:
        init_data: `Telegram.WebApp.initData` of the page, unchanged.

    Raises:
        TaproofApiError: such as InvalidRequest if Telegram did not sign the data for the project's bot, or if it is
            older than five minutes or was used before. `code` gives the reason.
        ValueError: the client has neither secret_key nor project_id.
    """
    request = _request(service, "mini-app", service.project_id, {"init_data": init_data})
    return _result((yield from ask(service, request)))


def _call(service: Service, verb: str, sign_in: SignIn, **more: Any) -> Request:
    body = {"session_token": sign_in.session_token, "code_verifier": sign_in.code_verifier, **more}
    return _request(service, verb, sign_in.project_id or service.project_id, body)


def _request(service: Service, verb: str, project_id: str | None, body: dict[str, Any]) -> Request:
    if service.secret_key is None and project_id is None:
        raise ValueError("Give the client project_id (proj_…) for a public sign-in, or secret_key (sk_…).")
    return Request(
        method="POST",
        path=f"/api/v1/{verb}" if service.secret_key else f"/api/v1/{verb}/public",
        bearer=service.secret_key,
        body=body if project_id is None else body | {"project_id": project_id},
        # With the code verifier, verify can return the same response again. A second cancel changes nothing.
        repeatable=verb in {"verify", "cancel"},
    )


def _result(answer: Mapping[str, Any]) -> SignInResult:
    status = answer.get("status")
    if status != "confirmed":
        return read(SignInResult, {"status": status, "hint": answer.get("hint")})
    confirmed, user = read(ConfirmedSession, answer), read(MessengerUser, answer)
    return SignInResult(status=status, user=user, confirmed_at=confirmed.confirmed_at, proof=confirmed.proof)
