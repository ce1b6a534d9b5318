"""`Client`: the service's API for synchronous programs, on urllib3."""
# ruff: noqa: PLC0415 — only the first client imports urllib3, so that checking proofs does not load it.

import time
from collections.abc import Callable, Iterator
from typing import Concatenate, ParamSpec, Self, TypeVar

from taproof.sdk import developer_calls, member_calls, oidc_client_calls, session_calls, user_calls
from taproof.sdk.exchange import Call, CallResult, Pause, Service, present
from taproof.sdk.service_address import service_at

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _blocking(call: Callable[Concatenate[Service, P], Call[R]]) -> Callable[Concatenate["Client", P], R]:
    """Return the method of `Client` that makes this call."""

    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._carry_out(call(self._service, *args, **kwargs))

    present(method, call)
    return method


def _iterating(
    pages: Callable[Concatenate[Service, P], developer_calls.Pages[T]],
) -> Callable[Concatenate["Client", P], Iterator[T]]:
    """Return the method of `Client` that iterates over all pages of this list."""

    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._iterate(pages(self._service, *args, **kwargs))

    present(method, pages, Iterator)
    return method


class Client:
    """Calls one Taproof service. Any number of threads can share it.

    Every method can raise a `TaproofApiError`. Requests are retried until `timeout` if that is safe: reads, and
    requests that the service certainly did not carry out. The pauses follow `Retry-After`, or grow exponentially.

    Use it in a `with` block, or call `close`. The proxy of the network (HTTPS_PROXY, ALL_PROXY, NO_PROXY) is used.

    Args:
        base_url: the service's address, such as https://signin.example.com. http:// is allowed for loopback only.
        access_token: `tap_…`, for the developer API.
        secret_key: `sk_…`, for sign-ins that the server starts.
        project_id: `proj_…`, for public sign-ins, or with secret_key to ensure that the key belongs to this project.
        timeout: seconds for one call, including retries and pauses. `wait_for_user` has its own. The name lookup is not
            counted, and each address of the host that does not respond can take up to 10 seconds.
        ca_file: a file of PEM certificates to trust instead of the machine's.

    Raises:
        ValueError: an argument or the proxy is not valid. OSError: `ca_file` cannot be read.
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
        from taproof.sdk.blocking_http import BlockingHttp

        self._service = service_at(
            base_url, access_token=access_token, secret_key=secret_key, project_id=project_id, timeout=timeout
        )
        self._http = BlockingHttp(self._service, ca_file=ca_file)
        self._sleep: Callable[[float], None] = time.sleep

    create_session = _blocking(session_calls.create_session)
    verify_session = _blocking(session_calls.verify_session)
    wait_for_user = _blocking(session_calls.wait_for_user)
    cancel_session = _blocking(session_calls.cancel_session)
    sign_in_mini_app = _blocking(session_calls.sign_in_mini_app)

    read_account = _blocking(developer_calls.read_account)
    list_projects = _blocking(developer_calls.list_projects)
    create_project = _blocking(developer_calls.create_project)
    read_project = _blocking(developer_calls.read_project)
    update_project = _blocking(developer_calls.update_project)
    delete_project = _blocking(developer_calls.delete_project)
    regenerate_secrets = _blocking(developer_calls.regenerate_secrets)
    list_members = _blocking(member_calls.list_members)
    update_member = _blocking(member_calls.update_member)
    delete_member = _blocking(member_calls.delete_member)
    list_member_invitations = _blocking(member_calls.list_member_invitations)
    create_member_invitation = _blocking(member_calls.create_member_invitation)
    delete_member_invitation = _blocking(member_calls.delete_member_invitation)
    accept_member_invitation = _blocking(member_calls.accept_member_invitation)
    list_clients = _blocking(oidc_client_calls.list_clients)
    create_client = _blocking(oidc_client_calls.create_client)
    read_client = _blocking(oidc_client_calls.read_client)
    update_client = _blocking(oidc_client_calls.update_client)
    delete_client = _blocking(oidc_client_calls.delete_client)
    regenerate_client_secret = _blocking(oidc_client_calls.regenerate_client_secret)
    list_grants = _iterating(oidc_client_calls.list_grants)
    end_grant = _blocking(oidc_client_calls.end_grant)
    read_webhook_secret = _blocking(developer_calls.read_webhook_secret)
    rotate_webhook_secret = _blocking(developer_calls.rotate_webhook_secret)
    promote_webhook_secret = _blocking(developer_calls.promote_webhook_secret)
    send_webhook_test = _blocking(developer_calls.send_webhook_test)
    list_deliveries = _iterating(developer_calls.list_deliveries)
    read_delivery = _blocking(developer_calls.read_delivery)
    resend_delivery = _blocking(developer_calls.resend_delivery)
    list_sessions = _iterating(developer_calls.list_sessions)
    read_session = _blocking(developer_calls.read_session)
    list_users = _iterating(user_calls.list_users)
    export_user = _blocking(user_calls.export_user)
    erase_user = _blocking(user_calls.erase_user)
    read_analytics = _blocking(developer_calls.read_analytics)
    list_access_tokens = _blocking(developer_calls.list_access_tokens)
    create_access_token = _blocking(developer_calls.create_access_token)
    delete_access_token = _blocking(developer_calls.delete_access_token)
    list_audit_entries = _iterating(developer_calls.list_audit_entries)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def __repr__(self) -> str:
        """Return the name of the class and the service's address, without credentials."""
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
                outcome = self._http.send(step)

    def _iterate(self, pages: developer_calls.Pages[T]) -> Iterator[T]:
        cursor = None
        while True:
            items, cursor = self._carry_out(pages.page(cursor))
            yield from items
            if cursor is None:
                return
