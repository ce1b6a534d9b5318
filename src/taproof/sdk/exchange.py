"""The steps of a call. API calls do no I/O themselves (sans-I/O).

A call is a generator. It yields a `Request` and receives an `HttpResponse` or `NoResponse`, or it yields a `Pause` and
receives None afterwards. Its return value is the result. `client.py` runs calls with urllib3, and `async_client.py`
with httpx.
"""

import inspect
import json
import secrets
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, get_args, get_type_hints

R = TypeVar("R")

ANSWER_LIMIT: Final = 1_048_576
"""Maximum length of a response's body, in bytes, unless the request sets another limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request.

    Attributes:
        path: the path below the service's address, beginning with "/", and the query.
        bearer: the credential; None for a public request.
        body: sent as JSON; None for no body.
        repeatable: True if a second request does no harm, even if the first one was received.
        seconds: the time limit for the request and its response. The sender sets it.
        answer_limit: the maximum length of the response's body, in bytes.
    """

    method: str
    path: str
    bearer: str | None = field(default=None, repr=False)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    repeatable: bool = False
    seconds: float = 0.0
    answer_limit: int = ANSWER_LIMIT

    @property
    def headers(self) -> dict[str, str]:
        """The headers of this request, in addition to those that every request has."""
        headers = {} if self.bearer is None else {"Authorization": f"Bearer {self.bearer}"}
        return headers if self.body is None else headers | {"Content-Type": "application/json"}

    def content(self) -> bytes | None:
        """Return the body as JSON."""
        return None if self.body is None else json.dumps(self.body, allow_nan=False).encode()


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A response. Header names are in lower case; `body` is None if it is longer than the request allows."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class NoResponse:
    """No response: the reason, and whether the request may have been received."""

    reason: str
    sent: bool
    lasting: bool = False
    """True if a retry cannot help."""


CallResult = HttpResponse | NoResponse
Call = Generator[Request | Pause, Any, R]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The values that all calls of a client share: the address, the credentials, the clocks and a source of randomness.

    Attributes:
        timeout: seconds for one call, including its retries.
        monotonic: a clock that never runs backwards, in seconds.
        wall_clock: seconds since the epoch, for a `Retry-After` that is a date.
        chance: returns a random number from 0 to 1, to spread the retries of clients that failed at the same time.
    """

    address: str
    access_token: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    project_id: str | None = None
    timeout: float = 30.0
    monotonic: Callable[[], float] = field(default=time.monotonic, repr=False)
    wall_clock: Callable[[], float] = field(default=time.time, repr=False)  # noqa: TID251 — tests pass their own.
    chance: Callable[[], float] = field(default=secrets.SystemRandom().random, repr=False)


def present(method: Any, call: Callable[..., Any], returned: Any = None) -> None:
    """Set the name, docstring and signature of a client's method from its call, for `help` and the reference.

    `returned` is the generic type that the method wraps around the call's result, such as `Iterator`.
    """
    signature = inspect.signature(call)
    result = get_args(signature.return_annotation)[-1]
    _, *parameters = signature.parameters.values()
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:  # Show the settings one by one.
        keyword, (settings,) = inspect.Parameter.KEYWORD_ONLY, get_args(parameters.pop().annotation)
        kinds = get_type_hints(settings).items()
        parameters += [inspect.Parameter(name, keyword, default=None, annotation=kind) for name, kind in kinds]
    method.__name__ = call.__name__
    method.__doc__ = call.__doc__
    method.__signature__ = signature.replace(
        parameters=[inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *parameters],
        return_annotation=returned[result] if returned else result,
    )
