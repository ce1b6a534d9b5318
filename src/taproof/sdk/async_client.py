"""`AsyncClient`: the service's API for asyncio and trio, on httpx, which the extra `taproof[async]` installs."""
# ruff: noqa: PLC0415 — only the first client imports httpx, so that taproof can be imported without it.

import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from taproof.sdk import developer_calls, http_request, member_calls, oidc_client_calls, session_calls, user_calls
from taproof.sdk.environment_proxy import find_proxy
from taproof.sdk.exchange import Call, CallResult, HttpResponse, Pause, Request, Service, present
from taproof.sdk.service_address import service_at

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _awaiting(
    call: Callable[Concatenate[Service, P], Call[R]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, R]]:
    """Return the method of `AsyncClient` that makes this call."""

    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._carry_out(call(self._service, *args, **kwargs))

    present(method, call)
    return method


def _iterating(
    pages: Callable[Concatenate[Service, P], developer_calls.Pages[T]],
) -> Callable[Concatenate["AsyncClient", P], AsyncIterator[T]]:
    """Return the method of `AsyncClient` that iterates over all pages of this list, with `async for`."""

    def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self._iterate(pages(self._service, *args, **kwargs))

    present(method, pages, AsyncIterator)
    return method


class AsyncClient:
    """Calls one Taproof service. It has the same methods as `Client`; await them, and use `async for` for lists.

    Use it in an `async with` block, or await `aclose`. Cancelling a call closes its connection. The arguments are the
    same as for `Client`.

    Raises:
        ImportError: httpx is not installed. For the other errors, see `Client`.
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
        try:
            import anyio
            import httpx
        except ImportError:
            raise ImportError("AsyncClient needs httpx. Install it with: pip install 'taproof[async]'") from None
        self._service = service_at(
            base_url, access_token=access_token, secret_key=secret_key, project_id=project_id, timeout=timeout
        )
        context = http_request.tls_context(self._service, ca_file)
        self._proxy = proxy = find_proxy(self._service.address, os.environ)
        login = (proxy.username, proxy.password) if proxy is not None and (proxy.username or proxy.password) else None
        self._http = httpx.AsyncClient(
            proxy=None if proxy is None else httpx.Proxy(proxy.address, auth=login),
            headers=http_request.fixed_headers(),
            # Without TLS, a context that trusts nobody: httpx's own takes 30 ms to load all authorities.
            verify=context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            # `_send` also limits the total time of each request.
            timeout=httpx.Timeout(None, connect=http_request.CONNECT),
            # The number of connections is not limited, because a call that waits for a user must not block another.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=http_request.IDLE_CONNECTIONS),
            follow_redirects=False,
            trust_env=False,  # As in `Client`, credentials from .netrc are not used.
        )
        self._sleep: Callable[[float], Awaitable[None]] = anyio.sleep

    create_session = _awaiting(session_calls.create_session)
    verify_session = _awaiting(session_calls.verify_session)
    wait_for_user = _awaiting(session_calls.wait_for_user)
    cancel_session = _awaiting(session_calls.cancel_session)
    sign_in_mini_app = _awaiting(session_calls.sign_in_mini_app)

    read_account = _awaiting(developer_calls.read_account)
    list_projects = _awaiting(developer_calls.list_projects)
    create_project = _awaiting(developer_calls.create_project)
    read_project = _awaiting(developer_calls.read_project)
    update_project = _awaiting(developer_calls.update_project)
    delete_project = _awaiting(developer_calls.delete_project)
    regenerate_secrets = _awaiting(developer_calls.regenerate_secrets)
    list_members = _awaiting(member_calls.list_members)
    update_member = _awaiting(member_calls.update_member)
    delete_member = _awaiting(member_calls.delete_member)
    list_member_invitations = _awaiting(member_calls.list_member_invitations)
    create_member_invitation = _awaiting(member_calls.create_member_invitation)
    delete_member_invitation = _awaiting(member_calls.delete_member_invitation)
    accept_member_invitation = _awaiting(member_calls.accept_member_invitation)
    list_clients = _awaiting(oidc_client_calls.list_clients)
    create_client = _awaiting(oidc_client_calls.create_client)
    read_client = _awaiting(oidc_client_calls.read_client)
    update_client = _awaiting(oidc_client_calls.update_client)
    delete_client = _awaiting(oidc_client_calls.delete_client)
    regenerate_client_secret = _awaiting(oidc_client_calls.regenerate_client_secret)
    list_grants = _iterating(oidc_client_calls.list_grants)
    end_grant = _awaiting(oidc_client_calls.end_grant)
    read_webhook_secret = _awaiting(developer_calls.read_webhook_secret)
    rotate_webhook_secret = _awaiting(developer_calls.rotate_webhook_secret)
    promote_webhook_secret = _awaiting(developer_calls.promote_webhook_secret)
    send_webhook_test = _awaiting(developer_calls.send_webhook_test)
    list_deliveries = _iterating(developer_calls.list_deliveries)
    read_delivery = _awaiting(developer_calls.read_delivery)
    resend_delivery = _awaiting(developer_calls.resend_delivery)
    list_sessions = _iterating(developer_calls.list_sessions)
    read_session = _awaiting(developer_calls.read_session)
    list_users = _iterating(user_calls.list_users)
    export_user = _awaiting(user_calls.export_user)
    erase_user = _awaiting(user_calls.erase_user)
    read_analytics = _awaiting(developer_calls.read_analytics)
    list_access_tokens = _awaiting(developer_calls.list_access_tokens)
    create_access_token = _awaiting(developer_calls.create_access_token)
    delete_access_token = _awaiting(developer_calls.delete_access_token)
    list_audit_entries = _iterating(developer_calls.list_audit_entries)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client."""
        await self.aclose()

    def __repr__(self) -> str:
        """Return the name of the class and the service's address, without credentials."""
        return f"AsyncClient({self._service.address!r})"

    async def _carry_out(self, call: Call[R]) -> R:
        outcome: CallResult | None = None
        while True:
            try:
                step = call.send(outcome)
            except StopIteration as end:
                result: R = end.value
                return result
            if isinstance(step, Pause):
                await self._sleep(step.seconds)
                outcome = None
            else:
                outcome = await self._send(step)

    async def _iterate(self, pages: developer_calls.Pages[T]) -> AsyncIterator[T]:
        cursor = None
        while True:
            items, cursor = await self._carry_out(pages.page(cursor))
            for item in items:
                yield item
            if cursor is None:
                return

    async def _send(self, request: Request) -> CallResult:
        import anyio
        import httpx

        try:
            with anyio.fail_after(request.seconds):
                return await self._exchange(request)
        except TimeoutError:
            return http_request.TOO_SLOW
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
            if http_request.is_tls_failure(error):
                return http_request.WRONG_CERTIFICATE
            return http_request.NO_CONNECTION if self._proxy is None else http_request.proxy_failed(self._proxy)
        except (httpx.InvalidURL, UnicodeError):
            # These are not HTTPErrors, and are raised before anything is sent: for 999.1.1.1, which is not an address,
            # and for xn--, which is not a valid name (IDNA).
            return http_request.NO_HOST
        except httpx.HTTPError:
            return http_request.CONNECTION_LOST

    async def _exchange(self, request: Request) -> HttpResponse:
        address, content = self._service.address + request.path, request.content()
        async with self._http.stream(request.method, address, content=content, headers=request.headers) as response:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > request.answer_limit:
                    return HttpResponse(response.status_code, dict(response.headers), None)
            return HttpResponse(response.status_code, dict(response.headers), bytes(body))
