"""`Client`: the service's API for programs that block, on urllib3."""
# ruff: noqa: PLC0415 — what only a client needs is imported by the first one: checking proofs need not wait for it.

import json
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Self, TypeVar

from taproof.sdk import developer_calls, session_calls
from taproof.sdk.exchange import Call, CallResult, NoResponse, Pause, Request, Response, Service, present
from taproof.sdk.service_address import service_at

if TYPE_CHECKING:
    import urllib3

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_CHUNK: Final = 65_536
IDLE_CONNECTIONS: Final = 32
"""Kept for the next calls; there may be more at a time."""
CONNECT: Final = 10.0
"""Seconds for making a connection, of those that a request may take."""
NO_CONNECTION: Final = "no connection came about"
NO_HOST: Final = "the address names no host that there can be"
TOO_SLOW: Final = "no complete answer came in time"
WRONG_CERTIFICATE: Final = "its TLS certificate does not hold, or it does not speak TLS there"


def _blocking(call: Callable[Concatenate[Service, P], Call[R]]) -> Callable[Concatenate["Client", P], R]:
    """Return the method that makes a call."""

    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._carry_out(call(self._service, *args, **kwargs))

    present(method, call)
    return method


def _iterating(
    pages: Callable[Concatenate[Service, P], developer_calls.Pages[T]],
) -> Callable[Concatenate["Client", P], Iterator[T]]:
    """Return the method that goes through all pages of a list."""

    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._iterate(pages(self._service, *args, **kwargs))

    present(method, pages, Iterator)
    return method


class Client:
    """Calls one Taproof service. Any number of threads may share it.

    Every method raises a `TaproofApiError`. What is safe to repeat is repeated, as the service's `Retry-After` asks or
    after growing pauses, until `timeout` is over: reads, and anything that was certainly not done.

    Use it in a `with` block, or `close` it.

    Args:
        base_url: the service's address, such as https://signin.example.com. http:// only for this machine's own.
        access_token: `tap_…`, for the developer API.
        secret_key: `sk_…`, for sign-ins that the server starts.
        project_id: `proj_…`, for public sign-ins, or beside secret_key to be sure that it is this project's.
        timeout: seconds for one call, its retries and pauses included. `wait_for_user` has its own. Looking the host's
            name up is not counted, and each of its addresses that does not respond may take 10 seconds.
        ca_file: a file of PEM certificates to trust instead of the machine's.

    Raises:
        ValueError: one of them cannot be right. OSError: `ca_file` cannot be read.
    """

    def __init__(
        self,
        base_url: str,
        *,
        access_token: str | None = None,
        secret_key: str | None = None,
        project_id: str | None = None,
        timeout: float = 30.0,
        ca_file: str | None = None,
    ) -> None:
        from taproof.sdk.timed_http import TimedPools

        self._service = service_at(
            base_url, access_token=access_token, secret_key=secret_key, project_id=project_id, timeout=timeout
        )
        self._headers = fixed_headers()
        self._pool = TimedPools(maxsize=IDLE_CONNECTIONS, ssl_context=tls_context(self._service, ca_file))
        self._sleep: Callable[[float], None] = time.sleep

    create_session = _blocking(session_calls.create_session)
    verify_session = _blocking(session_calls.verify_session)
    wait_for_user = _blocking(session_calls.wait_for_user)

    read_account = _blocking(developer_calls.read_account)
    list_projects = _blocking(developer_calls.list_projects)
    create_project = _blocking(developer_calls.create_project)
    read_project = _blocking(developer_calls.read_project)
    update_project = _blocking(developer_calls.update_project)
    delete_project = _blocking(developer_calls.delete_project)
    regenerate_secrets = _blocking(developer_calls.regenerate_secrets)
    read_webhook_secret = _blocking(developer_calls.read_webhook_secret)
    rotate_webhook_secret = _blocking(developer_calls.rotate_webhook_secret)
    promote_webhook_secret = _blocking(developer_calls.promote_webhook_secret)
    send_webhook_test = _blocking(developer_calls.send_webhook_test)
    list_deliveries = _iterating(developer_calls.list_deliveries)
    read_delivery = _blocking(developer_calls.read_delivery)
    resend_delivery = _blocking(developer_calls.resend_delivery)
    list_sessions = _iterating(developer_calls.list_sessions)
    read_session = _blocking(developer_calls.read_session)
    erase_user = _blocking(developer_calls.erase_user)
    read_analytics = _blocking(developer_calls.read_analytics)
    list_access_tokens = _blocking(developer_calls.list_access_tokens)
    create_access_token = _blocking(developer_calls.create_access_token)
    delete_access_token = _blocking(developer_calls.delete_access_token)
    list_audit_entries = _iterating(developer_calls.list_audit_entries)

    def close(self) -> None:
        """Close its connections."""
        self._pool.clear()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Name the service, and no credential."""
        return f"Client({self._service.address!r})"

    def _carry_out(self, call: Call[R]) -> R:
        outcome: CallResult | None = None
        while True:
            try:
                step = call.send(outcome)
            except StopIteration as end:
                result: R = end.value
                return result
            if isinstance(step, Pause):
                self._sleep(step.seconds)
                outcome = None
            else:
                outcome = self._send(step)

    def _iterate(self, pages: developer_calls.Pages[T]) -> Iterator[T]:
        cursor = None
        while True:
            items, cursor = self._carry_out(pages.page(cursor))
            yield from items
            if cursor is None:
                return

    def _send(self, request: Request) -> CallResult:
        from urllib3.exceptions import (
            ConnectTimeoutError,
            HTTPError,
            LocationParseError,
            NewConnectionError,
            ReadTimeoutError,
        )

        try:
            response = self._open(request)
            try:
                body = _read_body(response, request.answer_limit)
            except BaseException:
                # Bytes of this answer may still come: nobody may take them for the next one's.
                response.close()
                raise
            headers = {name.lower(): value for name, value in response.headers.items()}
            if body is None:
                response.close()
            response.release_conn()
            return Response(response.status, headers, body)
        except ReadTimeoutError:
            return NoResponse(TOO_SLOW, sent=True)
        except (NewConnectionError, ConnectTimeoutError):
            return NoResponse(NO_CONNECTION, sent=False)
        except LocationParseError:
            return NoResponse(NO_HOST, sent=False, lasting=True)
        except HTTPError as error:
            if is_tls_failure(error):
                return NoResponse(WRONG_CERTIFICATE, sent=False, lasting=True)
            return NoResponse("the connection was lost, or no answer came in time", sent=True)

    def _open(self, request: Request) -> "urllib3.BaseHTTPResponse":
        import urllib3

        return self._pool.request(
            request.method,
            self._service.address + request.path,
            body=json_body(request),
            headers=self._headers | own_headers(request),
            timeout=urllib3.Timeout(total=request.seconds, connect=CONNECT),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )


def _read_body(response: "urllib3.BaseHTTPResponse", limit: int) -> bytes | None:
    """Return the body, or None when it is longer than `limit`."""
    body = bytearray()
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > limit:
            return None
    return bytes(body)


# ---- what both clients share


def fixed_headers() -> dict[str, str]:
    """Return the headers of every request."""
    from importlib import metadata

    try:
        version = metadata.version("taproof")
    except metadata.PackageNotFoundError:  # Copied into an application instead of installed.
        version = "unknown"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Answers are short. Uncompressed, none can be made to grow without end.
    return {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"taproof/{version} Python/{python}",
    }


def own_headers(request: Request) -> dict[str, str]:
    """Return the headers of this request."""
    headers = {} if request.bearer is None else {"Authorization": f"Bearer {request.bearer}"}
    return headers if request.body is None else headers | {"Content-Type": "application/json"}


def json_body(request: Request) -> bytes | None:
    """Return what is sent as the body; raises TypeError or ValueError when an argument cannot be written as JSON."""
    return None if request.body is None else json.dumps(request.body, allow_nan=False).encode()


def tls_context(service: Service, ca_file: str | None) -> ssl.SSLContext | None:
    """Return a context that checks certificates and names; None for an http:// address."""
    return ssl.create_default_context(cafile=ca_file) if service.address.startswith("https:") else None


def is_tls_failure(error: BaseException | None) -> bool:
    """Tell whether an error came of TLS: a certificate does not get better when it is looked at again."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError | ssl.CertificateError):
            return True
        error = error.__cause__ or error.__context__
    return False
