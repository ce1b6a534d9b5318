"""Retries requests while that is safe and the caller's time limit allows it."""

import email.utils
import math
from dataclasses import replace
from typing import Any, Final

from taproof.sdk.api_errors import ConnectionFailed, TaproofApiError, UnexpectedAnswer, error_of
from taproof.sdk.exchange import Call, CallResult, HttpResponse, Pause, Request, Service
from taproof.sdk.reading import json_object

_TRANSIENT: Final = frozenset({429, 502, 503, 504})
"""Statuses of temporary failures."""
_REFUSALS: Final = frozenset({429, 503})
"""Those temporary failures that, with `Retry-After`, mean that the service did not carry out the request."""
_ATTEMPTS: Final = 5
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 8.0
"""Maximum seconds between two attempts if the service sends no `Retry-After`."""
_LONGEST_RETRY_AFTER: Final = 86_400.0
_LEAST: Final = 0.1


def ask(service: Service, request: Request, *, held: float = 0.0) -> Call[dict[str, Any]]:
    """Send a request, retry it while that is safe, and return the JSON object from the response.

    The service may hold the request for `held` seconds, in addition to the client's timeout.
    """
    deadline = service.monotonic() + service.timeout + held
    # A read that hangs is abandoned early enough to be retried.
    share = 3 if request.repeatable else 1
    attempt = 0
    while True:
        # A pause may have lasted longer than intended.
        left = max(_LEAST, deadline - service.monotonic())
        outcome: CallResult = yield replace(request, seconds=min(left, service.timeout / share + held))
        try:
            return document(service, outcome)
        except TaproofApiError as error:
            attempt += 1
            pause = retry_pause(service, error, attempt)
            is_last = attempt == _ATTEMPTS or service.monotonic() + pause >= deadline
            if is_last or not _may_repeat(request, outcome, error):
                raise
        yield Pause(pause)


def document(service: Service, outcome: CallResult) -> dict[str, Any]:
    """Return the JSON object from a response with status 200. For anything else, raise a TaproofApiError."""
    if not isinstance(outcome, HttpResponse):
        raise ConnectionFailed(f"{service.address} cannot be reached: {outcome.reason}.")
    found = json_object(outcome.body)
    if outcome.status != 200:
        raise error_of(
            outcome.status,
            found.get("error"),
            code=outcome.headers.get("x-error-code", ""),
            retry_after=_retry_after(outcome.headers.get("retry-after", ""), service.wall_clock()),
            address=service.address,
        )
    if not found:
        raise UnexpectedAnswer(
            f"{service.address} did not answer with JSON of the expected length. Is base_url the address of a Taproof"
            " service?",
            status=200,
        )
    return found


def retry_pause(service: Service, error: TaproofApiError, failures: int) -> float:
    """Return the seconds to wait before the next attempt, after `failures` failures in a row.

    The pause is at least as long as `Retry-After` requests. Without it, the pause doubles with each failure, and up to
    half of it is random.
    """
    doubled = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures - 1, 10))
    if error.retry_after is not None:
        return error.retry_after + _FIRST_PAUSE * service.chance()
    return doubled * (0.5 + 0.5 * service.chance())


def is_passing(outcome: CallResult) -> bool:
    """Return whether a failure may be temporary."""
    return outcome.status in _TRANSIENT if isinstance(outcome, HttpResponse) else not outcome.lasting


def _may_repeat(request: Request, outcome: CallResult, error: TaproofApiError) -> bool:
    if not is_passing(outcome):
        return False
    if request.repeatable:
        return True
    if isinstance(outcome, HttpResponse):
        return outcome.status in _REFUSALS and error.retry_after is not None
    return not outcome.sent


def _retry_after(value: str, now: float) -> float | None:
    """Return the seconds that `Retry-After` requests (RFC 9110, 10.2.3: whole seconds or a date); None if invalid."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:20]), _LONGEST_RETRY_AFTER)
    try:
        moment = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(0.0, math.ceil(moment - now)), _LONGEST_RETRY_AFTER)
