"""Calls to a service over HTTP: with the access token that `taproof login` stored, or without one, to sign in."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import math
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from taproof.cli.credentials import Credential, Credentials
from taproof.core.errors import TaproofError
from taproof.core.names import visible_name
from taproof.core.webhook_url import is_loopback
from taproof.sdk.exchange import NoResponse, Request, Service
from taproof.sdk.reading import json_object

if TYPE_CHECKING:
    from taproof.sdk.blocking_http import BlockingHttp

WAIT: Final = 25
"""Seconds that one call waits for the tap."""
_SECONDS: Final = WAIT + 15
_DOWNLOAD_SECONDS: Final = 3_600
_ANSWER_LIMIT: Final = 64 * 1024
_TEXT_LIMIT: Final = 2_000
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+")
"""The address appears in commands to paste, so it must not contain characters that a shell interprets."""
_SYSTEMS: Final = {"Darwin": "Macintosh; Intel Mac OS X 10_15_7", "Linux": "Linux", "Windows": "Windows NT 10.0"}
"""The names of systems in User-Agent headers. The prompt in the messenger shows the system."""


class NoServiceAddress(TaproofError, code="no_service_address"):
    """URL is not the address of a service."""

    sentence = (
        "URL must be the https:// address of a service, such as https://signin.example.com. Only an address of this "
        "machine may begin with http://."
    )


class ServiceUnusable(TaproofError, code="service_unusable"):
    """The service returned no usable answer."""


class NotLoggedIn(TaproofError, code="not_logged_in"):
    """There is no stored access token to use."""

    sentence = "You are not signed in to any service. Run taproof login URL first."


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of a service; `body` is {} if the response is not a JSON object."""

    address: str
    status: int
    code: str
    body: dict[str, Any]

    @property
    def sentence(self) -> str:
        """The service's own error message, made safe to print."""
        said = visible_name(str(self.body.get("error", ""))[:_TEXT_LIMIT])
        return said or f"HTTP status {self.status}. Is this the address of a Taproof service?"

    def text(self, field: str) -> str:
        """Return a text of the answer. Raises ServiceUnusable if there is none."""
        value = self.body.get(field)
        if not isinstance(value, str) or not value or len(value) > _TEXT_LIMIT:
            raise ServiceUnusable(f"{self.address} does not answer like a Taproof service: {field} is missing.")
        return value

    def number(self, field: str, least: float, most: float) -> float:
        """Return a number of the answer, limited to a range. Raises ServiceUnusable if there is none."""
        value = self.body.get(field)
        # json.loads accepts NaN and Infinity. Every comparison with NaN is false.
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
            raise ServiceUnusable(f"{self.address} does not answer like a Taproof service: {field} is missing.")
        return min(max(value, least), most)


@dataclass(frozen=True, slots=True)
class RemoteService:
    """Calls one service. Its answers are read up to a limit, redirects are not followed, and no proxy is used."""

    address: str
    http: "BlockingHttp"

    def call(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        bearer: str | None = None,
        answer_limit: int = _ANSWER_LIMIT,
        receive: Callable[[bytes], object] | None = None,
    ) -> Answer:
        """Make one call. `receive` is given the body of a successful response in pieces, for at most an hour.

        Raises:
            ServiceUnusable: there was no response, it broke off, or it is too long.
        """
        seconds = _SECONDS if receive is None else _DOWNLOAD_SECONDS
        request = Request(
            method=method, path=path, bearer=bearer, body=body, seconds=seconds, answer_limit=answer_limit
        )
        outcome = self.http.send(request) if receive is None else self.http.download(request, receive)
        if isinstance(outcome, NoResponse):
            raise ServiceUnusable(f"{self.address} cannot be reached: {outcome.reason}.")
        if outcome.body is None:
            raise ServiceUnusable(f"{self.address} does not answer like a Taproof service.")
        code = outcome.headers.get("x-error-code", "")
        return Answer(self.address, outcome.status, code, json_object(outcome.body))


@contextlib.contextmanager
def open_remote(address: str) -> Iterator[RemoteService]:
    """Yield a service to call, and close its connections afterwards.

    Raises:
        ServiceUnusable: the environment names a proxy that is not an HTTP proxy.
    """
    from taproof.sdk.blocking_http import BlockingHttp
    from taproof.sdk.environment_proxy import UnusableProxy

    user_agent = f"taproof-login/{version('taproof')} ({_SYSTEMS.get(platform.system(), '')})"
    try:
        http = BlockingHttp(Service(address=address), user_agent=user_agent)
    except UnusableProxy as error:
        raise ServiceUnusable(str(error)) from None
    try:
        yield RemoteService(address, http)
    finally:
        http.close()


def service_address(url: str) -> str:
    """Return the normalized address of a service: scheme, host, and port where it is not the default."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise NoServiceAddress from None
    safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    more = parts.path not in {"", "/"} or parts.query or parts.fragment or "@" in parts.netloc
    if not safe or not host or more or _HOST.fullmatch(host) is None:
        raise NoServiceAddress
    shown = f"[{host}]" if ":" in host else host
    usual = {"https": 443, "http": 80}[parts.scheme]
    return f"{parts.scheme}://{shown}" if port in {None, usual} else f"{parts.scheme}://{shown}:{port}"


def signed_in_service(credentials: Credentials, url: str | None) -> tuple[str, Credential]:
    """Return the address of the given service, or of the only known one, and its credential."""
    known = credentials.read()
    if url is not None:
        address = service_address(url)
        if address not in known:
            raise NotLoggedIn(f"You are not signed in to {address}. To sign in: taproof login {address}")
        return address, known[address]
    if len(known) > 1:
        raise NotLoggedIn(f"You are signed in to several services. Name one: {', '.join(sorted(known))}")
    if not known:
        raise NotLoggedIn
    return next(iter(known.items()))
