"""Calls to a service over HTTP: with the access token that `taproof login` stored, or without one, to sign in."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from taproof.cli.credentials import Credential, Credentials
from taproof.core.errors import TaproofError
from taproof.core.names import visible_name
from taproof.core.webhook_url import is_loopback
from taproof.sdk.api_errors import TaproofApiError, UnexpectedAnswer
from taproof.sdk.exchange import CallResult, Request, Service
from taproof.sdk.retries import document

if TYPE_CHECKING:
    from taproof.sdk.blocking_http import BlockingHttp

Receive = Callable[[bytes], object]

WAIT: Final = 25
"""Seconds that one call waits for the tap."""
_SECONDS: Final = WAIT + 15
_DOWNLOAD_SECONDS: Final = 3_600
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


class CallFailed(TaproofError, code="call_failed"):
    """The service refused a call, in its own words, or returned no usable answer."""


class NotLoggedIn(TaproofError, code="not_logged_in"):
    """There is no stored access token to use."""

    sentence = "You are not signed in to any service. Run taproof login URL first."


@dataclass(frozen=True, slots=True)
class RemoteService:
    """Sends requests to one service. Responses are read up to a limit, and redirects are not followed."""

    service: Service
    http: "BlockingHttp"

    def send(self, request: Request, receive: Receive | None = None) -> CallResult:
        """Send a request. `receive` is given the body of a successful response in pieces, for at most an hour."""
        seconds = _SECONDS if receive is None else _DOWNLOAD_SECONDS
        return self.http.send(replace(request, seconds=seconds), receive)

    def ask(self, request: Request) -> dict[str, Any]:
        """Send a request, and return the JSON of the response. Any other response raises a TaproofApiError."""
        return document(self.service, self.send(request))


def call_failed(address: str, error: TaproofApiError, what: str = "") -> CallFailed:
    """Return the error of a command whose call failed. `what` says what the service did not do."""
    if isinstance(error, UnexpectedAnswer):
        named = address or "The service"
        return CallFailed(f"{named} does not answer like a Taproof service. {visible_name(error.sentence)}")
    sentence = visible_name(error.sentence)
    if what and error.status is not None:
        sentence = f"{address} {what}: {sentence}"
    elif error.code == "invalid_access_token" and address:
        sentence += f" To sign in again: taproof login {address}"
    return CallFailed(sentence)


@contextlib.contextmanager
def open_remote(address: str, access_token: str | None = None) -> Iterator[RemoteService]:
    """Yield a service to call, and close its connections afterwards."""
    from taproof.sdk.blocking_http import BlockingHttp
    from taproof.sdk.environment_proxy import UnusableProxy

    service = Service(address=address, access_token=access_token)
    user_agent = f"taproof-login/{version('taproof')} ({_SYSTEMS.get(platform.system(), '')})"
    try:
        http = BlockingHttp(service, user_agent=user_agent)
    except UnusableProxy as error:
        raise CallFailed(str(error)) from None
    with contextlib.closing(http):
        yield RemoteService(service, http)


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
